"""Bits per token of the references, from what ``fairseq-generate --score-reference`` prints.

The model is given the reference's tokens before each, so that, unlike BLEU, this does not see where
its own translations end. Bits of models with other subwords do not compare.
"""

import re
from typing import Dict, List

import numpy as np

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import parse_number, stream_lines
from fairseq_posenc.tools.scores.reference_check import check_reference
from fairseq_posenc.tools.scores.texts import TestSet

BITS = "bits"
SIGNATURE = "-log2 p of the references' subwords and ends of sentence, by their number"
_LINE = re.compile(r"([THP])-([0-9]{1,15})\t(.*)", re.DOTALL)


def read_reference_bits(path: str, texts: TestSet) -> np.ndarray:
    """Return the statistics of bits per token, ``(sentences, 2)``: bits, and tokens.

    Args:
        path: what ``fairseq-generate --score-reference`` printed.
        texts: the test set.

    Raises:
        UsageError: the file is another one, lacks sentences, or is of other sentences.
    """
    lines: Dict[str, Dict[int, str]] = {letter: {} for letter in "THP"}
    for line in stream_lines(path):
        match = _LINE.fullmatch(line)
        if match:
            lines[match[1]][int(match[2])] = match[3]
    hypotheses = {number: text.partition("\t")[2] for number, text in lines["H"].items()}
    # fairseq marks the unknown words of T-lines alone
    targets = {number: text.replace("<<unk>>", "<unk>") for number, text in lines["T"].items()}
    if not lines["P"] or targets != hypotheses:
        raise UsageError(
            f"{path} is not from fairseq-generate --score-reference: its hypotheses are not the "
            "references"
        )
    if sorted(lines["P"]) != [*range(len(texts))]:
        raise UsageError(
            f"{path} has scores of {len(lines['P'])} references, but there are {len(texts)} "
            "sentences: it must be of this test set; pass --required-batch-size-multiple 1 to "
            "fairseq-generate"
        )
    scored = [lines["T"][number] for number in range(len(texts))]
    check_reference(path, texts.reference, scored, None, [], texts.languages)
    return np.array([_bits(path, *line) for line in sorted(lines["P"].items())])


def _bits(path: str, number: int, scores: str) -> List[float]:
    try:
        values = [parse_number(word) for word in scores.split()]
    except ValueError:
        values = [float("nan")]
    if not values or not all(abs(value) < 1e9 for value in values):
        raise UsageError(f"{path}: P-{number} has no scores, or one that is no number")
    return [round(-sum(values), 4), float(len(values))]

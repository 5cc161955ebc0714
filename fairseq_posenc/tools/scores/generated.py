"""What ``fairseq-generate`` prints: the lines S-id, T-id, H-id and D-id, and how to read them."""

import re
from dataclasses import dataclass
from itertools import islice
from typing import Dict, List, Optional, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import parse_number, read_lines
from fairseq_posenc.tools.scores.texts import Languages

_LINE = re.compile(r"([STHD])-([0-9]{1,15})\t(.*)", re.DOTALL)
_DICTIONARY = re.compile(r"\| \[(\S{1,40})\] dictionary: [0-9]+ types")
_SCORED_REFERENCES = "'score_reference': True"  # in the configuration that fairseq logs
_LOG_MESSAGE = re.compile(r"\| (?:INFO|WARNING) \| fairseq|(?:INFO|WARNING):fairseq")


@dataclass
class Generated:
    """The sentences of one output of ``fairseq-generate``, in the order of the test set.

    ``hypotheses`` are H-lines: tokens as the model made them; ``decoded`` D-lines: the same after
    fairseq's ``--bpe`` and ``--tokenizer``, if given. The output may lack T- and S-lines.
    ``languages`` are those that fairseq's log names, where it is part of the output.
    """

    hypotheses: List[str]
    decoded: List[str]
    references: Optional[List[str]]
    sources: Optional[List[str]]
    languages: Languages = Languages()


def read_generated(path: str, expected: Optional[int] = None) -> Generated:
    """Read an output of ``fairseq-generate``: lines in any order, log lines in between.

    Of several hypotheses of a sentence (``--nbest``) the one with the best score is taken, the
    first one of equals.

    Args:
        path: what was printed, or the file ``generate-test.txt`` in ``--results-path``.
        expected: the number of sentences of the test set, if known. Without it a missing sentence
            at the very end cannot be noticed.

    Raises:
        UsageError: the hypotheses are the references (``--score-reference``), no such lines,
            sentences without a hypothesis (ids are counted from 0), a sentence given twice, a line
            cut short or torn by a log message.
    """
    lines = read_lines(path)
    if any(_SCORED_REFERENCES in line and not _LINE.fullmatch(line) for line in lines):
        raise UsageError(
            f"{path} was made with --score-reference: its hypotheses are the references; run "
            "fairseq-generate without it to translate"
        )
    found = _by_kind(path, lines)
    for kind in "HD":
        if not found[kind]:
            raise UsageError(
                f"{path} has no {kind}-lines: give the whole output of fairseq-generate"
            )
    count = 1 + max(max(texts, default=0) for texts in found.values())
    if expected is not None:
        if count > expected:
            raise UsageError(
                f"{path} has a sentence with id {count - 1}, but the test set has {expected}: "
                "output and reference do not belong together"
            )
        count = expected
    for kind, texts in found.items():
        missing = count - len(texts)
        if texts and missing:
            # a damaged id may be huge
            first = islice((i for i in range(count) if i not in texts), 5)
            named = ", ".join(map(str, first)) + (", ..." if missing > 5 else "")
            raise UsageError(
                f"{path} has no {kind}-line for {missing} of {count} sentences (ids {named}): pass "
                "--required-batch-size-multiple 1 to fairseq-generate (by default it drops what "
                "does not fill the last batch), and, if sentences were skipped as too long, raise "
                "--max-source-positions/--max-target-positions"
            )
    ordered = {kind: [texts[i] for i in sorted(texts)] for kind, texts in found.items()}
    named_languages = [match.group(1) for match in map(_DICTIONARY.search, lines) if match]
    return Generated(
        hypotheses=ordered["H"],
        decoded=ordered["D"],
        references=ordered["T"] or None,
        sources=ordered["S"] or None,
        languages=Languages(*named_languages) if len(named_languages) == 2 else Languages(),
    )


def _by_kind(path: str, lines: List[str]) -> Dict[str, Dict[int, str]]:
    """Return the texts by kind of line and number of sentence."""
    found: Dict[str, Dict[int, str]] = {kind: {} for kind in "HDST"}
    scores: Dict[Tuple[str, int], float] = {}
    for number, line in enumerate(lines, 1):
        place = f"{path}, line {number}"
        match = _LINE.fullmatch(line)
        if not match:
            if re.match(r"[STHD]-\d+$", line):
                raise UsageError(f"{place}: cut short; run fairseq-generate again")
            continue
        kind, sentence, text = match.group(1), int(match.group(2)), match.group(3)
        if _LOG_MESSAGE.search(text):
            raise UsageError(
                f"{place}: a log message was printed into this line; do not join the outputs by "
                "2>&1, or let fairseq-generate write a file with --results-path"
            )
        if kind in "ST":
            if sentence in found[kind]:
                raise UsageError(f"{place}: {kind}-{sentence} a second time; give one output")
            found[kind][sentence] = text
            continue
        first, tab, text = text.partition("\t")
        try:
            score = parse_number(first if tab else "")
        except ValueError:
            raise UsageError(
                f"{place}: expected a score and a text, separated by a tab; the line is cut short "
                "or not from fairseq-generate"
            ) from None
        if sentence not in found[kind] or score > scores[kind, sentence]:
            scores[kind, sentence] = score
            found[kind][sentence] = text
    return found

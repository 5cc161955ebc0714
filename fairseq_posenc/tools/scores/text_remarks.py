"""What a user should know of references beside the hypotheses: case, Unicode, entities, pieces."""

import re
import unicodedata
from typing import List, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.texts import TestSet

_PIECE = re.compile(r"@@(?= |$)|\u2581|(?<!\S)##(?=\w)")
_ENTITY = re.compile("&(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9a-fA-F]+);")


def check_joined(texts: TestSet) -> None:
    """Refuse hypotheses of subwords beside references of words.

    Raises:
        UsageError: most have marks of subwords, and few references have.
    """
    sides = texts.hypothesis, texts.reference
    pieces, words = (sum(bool(_PIECE.search(line)) for line in lines) for lines in sides)
    if 2 * pieces > len(texts) and 10 * words < len(texts):
        example = next(filter(None, map(_PIECE.search, texts.hypothesis)))
        raise UsageError(
            f"{pieces} hypotheses hold subwords, marked {example[0]!r}, and the references are "
            "words: join them, or give the output of fairseq-generate itself with --generated, and "
            "--remove-bpe"
        )


def text_remarks(texts: TestSet) -> List[str]:
    """Return remarks on forms of the references that no hypothesis has."""
    remarks = []
    entities = sum(bool(_ENTITY.search(line)) for line in texts.reference)
    if entities:
        remarks.append(
            f"{entities} references hold entities such as &quot;: BLEU with tok:13a decodes them, "
            "chrF, TER and tokenised BLEU do not"
        )
    tabs = sum("\t" in line for line in texts.reference)
    if tabs:
        remarks.append(
            f"{tabs} references hold tabs, taken as blanks; several references of a sentence are "
            "separated by tabs in all lines"
        )
    has_small = any(line != line.upper() for line in texts.hypothesis)
    if has_small and _has_capitals(texts.reference) and not _has_capitals(texts.hypothesis):
        remarks.append(
            "the references have capitals, and the hypotheses none: sacrebleu_lowercase compares "
            "without case"
        )
    for form in ("NFC", "NFD"):
        sides = (texts.hypothesis, texts.reference)
        own, reference = (_share_in(form, lines) for lines in sides)
        if own == 1 and reference < 0.5:
            remarks.append(
                f"the references are not in Unicode's form {form}, and the hypotheses are: their "
                "accented letters never match; give references in that form"
            )
    return remarks


def _has_capitals(lines: Sequence[str]) -> bool:
    return any(line != line.lower() for line in lines)


def _share_in(form: str, lines: Sequence[str]) -> float:
    """Return the share in a Unicode form of the lines that have several; half where none has."""
    several = [
        line
        for line in lines
        if unicodedata.normalize("NFC", line) != unicodedata.normalize("NFD", line)
    ]
    same = sum(unicodedata.is_normalized(form, line) for line in several)  # type: ignore
    return same / len(several) if several else 0.5

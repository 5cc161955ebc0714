"""What a user should know of references beside the hypotheses: case, Unicode, entities, pieces."""

import re
import unicodedata
from typing import List, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.texts import TestSet

_PIECE = re.compile(r"@@(?= |$)|\u2581|(?<!\S)##(?=\w)")
_ENTITY = re.compile("&(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9a-fA-F]+);")


def check_joined(texts: TestSet) -> None:
    """Refuse subwords on one side beside words on the other."""
    sides = {"hypotheses": texts.hypothesis, "references": texts.reference}
    marked = {side: sum(bool(_PIECE.search(s)) for s in lines) for side, lines in sides.items()}
    for side, beside in (("hypotheses", "references"), ("references", "hypotheses")):
        if 2 * marked[side] > len(texts) and 10 * marked[beside] < len(texts):
            example = next(filter(None, map(_PIECE.search, sides[side])))
            advice = "give raw text"
            if side == "hypotheses":
                advice = (
                    "join them, or give the output of fairseq-generate itself with --generated, "
                    "and --remove-bpe"
                )
            raise UsageError(
                f"{marked[side]} {side} hold subwords, marked {example[0]!r}, and the {beside} are "
                f"words: {advice}"
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
    sides = texts.hypothesis, texts.reference
    marked = min(sum(bool(_PIECE.search(line)) for line in lines) for lines in sides)
    if 2 * marked > len(texts):
        remarks.append(
            "hypotheses and references hold subwords: scores of subwords are other than those of "
            "words; join both"
        )
    tabs = sum("\t" in line for line in texts.reference)
    if tabs:
        several = "several references of a sentence are separated by tabs in all lines"
        if 2 * tabs > len(texts):  # of --data, where a line is a sentence
            several = "if they part several references of a sentence, give these as --reference"
        remarks.append(f"{tabs} references hold tabs, taken as blanks; {several}")
    case_of = {"hypotheses": _case(texts.hypothesis), "references": _case(texts.reference)}
    if all(case_of.values()) and len(set(case_of.values())) == 2:
        cases = ", ".join(f"the {side} {case}" for side, case in case_of.items())
        remarks.append(f"{cases}: sacrebleu_lowercase compares without case")
    for form in ("NFC", "NFD"):
        own, reference = (_share_in(form, lines) for lines in sides)
        if own == 1 and reference < 0.5:
            remarks.append(
                f"the references are not in Unicode's form {form}, and the hypotheses are: their "
                "accented letters never match; give references in that form"
            )
    return remarks


def _case(lines: Sequence[str]) -> str:
    """Say whether lines have capitals, or nothing else; empty where few letters have case."""
    text = "".join(lines)
    if 2 * sum(c.lower() != c.upper() for c in text) <= sum(map(str.isalpha, text)):
        return ""  # as Arabic beside a few names in capitals
    if text == text.lower():
        return "have no capitals"
    return "are all capitals" if text == text.upper() else "have capitals"


def _share_in(form: str, lines: Sequence[str]) -> float:
    """Return the share in a Unicode form of the lines that have several; half where none has."""
    several = [
        line
        for line in lines
        if unicodedata.normalize("NFC", line) != unicodedata.normalize("NFD", line)
    ]
    same = sum(unicodedata.is_normalized(form, line) for line in several)  # type: ignore
    return same / len(several) if several else 0.5

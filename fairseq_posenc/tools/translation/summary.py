"""Lines that say what became of parallel text: pairs left out, unknown tokens."""

from collections import Counter
from typing import Iterator, Sequence

from fairseq_posenc.tools.translation.cleaning import LONGEST_WORD
from fairseq_posenc.tools.translation.options import TranslationOptions
from fairseq_posenc.tools.translation.pairs import Languages
from fairseq_posenc.tools.unknown_tokens import unknown_lines

# what a model does with unknown tokens
_OF_TRAINING = "trained on that writes <unk>"
_OF_TESTS = "can neither tell them apart nor write them"


def cleaning_summary(split: str, pairs: int, dropped: Counter, options: TranslationOptions) -> str:
    """Return a line with the numbers of pairs kept and left out, and why."""
    reasons = {
        "too long": f"longer than --max-length {options.max_length} subwords",
        "ratio": f"one side more than --ratio {options.ratio:g} times as long as the other",
        "empty": "with an empty side",
        "long word": f"with a subword of more than {LONGEST_WORD} characters",
    }
    read = pairs + dropped.total()
    line = f"{split}: {pairs:,} of {read:,} pairs kept"
    if not dropped:
        return line
    counts = ", ".join(f"{count:,} {reasons[reason]}" for reason, count in dropped.most_common())
    return f"{line}; {dropped.total():,} ({dropped.total() / read:.1%}) left out: {counts}"


def unknown_summary(folder: str, splits: Sequence[str], languages: Languages) -> Iterator[str]:
    """Yield a line per split with the shares of unknown tokens, and warnings from 1 % on."""
    pair = "-".join(languages)
    for split in splits:
        paths = {language: f"{folder}/{split}.{pair}.{language}" for language in languages}
        consequence = _OF_TRAINING if split.startswith("train") else _OF_TESTS
        yield from unknown_lines(split, paths, consequence)

"""Lines that say what became of parallel text: pairs left out, unknown tokens."""

from collections import Counter
from typing import Iterator, Sequence

import numpy as np

from fairseq_posenc.data.indexed import check_indexed, read_dictionary
from fairseq_posenc.tools.translation.cleaning import LONGEST_WORD
from fairseq_posenc.tools.translation.options import TranslationOptions
from fairseq_posenc.tools.translation.pairs import Languages

_WARNING_SHARE = 1.0  # percent of tokens


def cleaning_summary(split: str, kept: int, dropped: Counter, options: TranslationOptions) -> str:
    """Return a line with the numbers of pairs kept and left out, and why.

    Args:
        split: name of the split.
        kept: number of pairs.
        dropped: number of pairs by the reasons of :func:`cleaning.reason_to_drop`.
        options: which name the bounds.
    """
    reasons = {
        "too long": f"longer than --max-length {options.max_length} subwords",
        "ratio": f"one side more than --ratio {options.ratio:g} times as long as the other",
        "empty": "with an empty side",
        "long word": f"with a subword of more than {LONGEST_WORD} characters",
    }
    read = kept + dropped.total()
    line = f"{split}: {kept:,} of {read:,} pairs kept"
    if not dropped:
        return line
    counts = ", ".join(f"{count:,} {reasons[reason]}" for reason, count in dropped.most_common())
    return f"{line}; {dropped.total():,} ({dropped.total() / read:.1%}) left out: {counts}"


def unknown_summary(folder: str, splits: Sequence[str], languages: Languages) -> Iterator[str]:
    """Yield a line per split with the shares of unknown tokens, and warnings from 1 % on.

    Args:
        folder: of binarised text.
        splits: their names.
        languages: source and target.
    """
    pair = "-".join(languages)
    for split in splits:
        shares = {}
        for language in languages:
            dictionary = read_dictionary(f"{folder}/dict.{language}.txt")
            path = f"{folder}/{split}.{pair}.{language}"
            index = check_indexed(path)
            tokens = np.memmap(f"{path}.bin", index.dtype, "r") if index else np.zeros(0)
            # every line ends with </s>, which is no token of the text
            total = len(tokens) - len(index.ends) if index else 0
            unknown = int(np.count_nonzero(tokens == dictionary.unk()))
            shares[language] = 100 * unknown / max(1, total)
        counts = ", ".join(f"{share:.2f} % of {language}" for language, share in shares.items())
        yield f"{split}: unknown tokens: {counts}"
        for language, share in shares.items():
            if share >= _WARNING_SHARE:
                yield (
                    f"warning: {share:.1f} % of the tokens of {split}.{language} are not in the "
                    "dictionary: <unk> stands for each, and a model trained on that writes <unk>; "
                    "take subwords that were learnt from such text"
                )

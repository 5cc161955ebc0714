"""Shares of unknown tokens in binarised text, and warnings from 1 % on."""

from typing import Iterator, Mapping

import numpy as np

from fairseq_posenc.data.indexed import check_indexed

_WARNING_SHARE = 1.0  # percent of tokens


def unknown_share(path: str, unknown: int, end: int) -> float:
    """Return the share of unknown tokens of a binarised file, in percent; ends do not count.

    Args:
        path: of the file, without its ending.
        end: number of the token that ends sentences, which is no token of the text.
    """
    index = check_indexed(path)
    if not index or not len(index.ends) or not index.ends[-1]:
        return 0.0
    tokens = np.memmap(f"{path}.bin", index.dtype, "r")
    total = int(np.count_nonzero(tokens != end))
    return 100 * float(np.count_nonzero(tokens == unknown)) / max(1, total)


def unknown_lines(split: str, shares: Mapping[str, float], consequence: str) -> Iterator[str]:
    """Yield a line with the shares of a split by side, and a warning for each from 1 % on.

    Args:
        shares: of unknown tokens, in percent.
        consequence: what a model does with them.
    """
    counts = ", ".join(f"{share:.2f} % of {side}" for side, share in shares.items())
    yield f"{split}: unknown tokens: {counts}"
    for side, share in shares.items():
        if share >= _WARNING_SHARE:
            yield (
                f"warning: {share:.1f} % of the tokens of {split}.{side} are not in the "
                f"dictionary: <unk> stands for each, and a model {consequence}; "
                "take subwords that were learnt from such text"
            )

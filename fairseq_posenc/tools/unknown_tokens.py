"""Shares of unknown tokens in binarised text, and warnings from 1 % on."""

from typing import Iterator, Mapping

import numpy as np
from fairseq.data import Dictionary

from fairseq_posenc.data.indexed import check_indexed

_WARNING_SHARE = 1.0  # percent of tokens


def unknown_share(path: str) -> float:
    """Return the share of unknown tokens of a binarised file, in percent; ends do not count.

    ``path`` is without its ending.
    """
    index, special = check_indexed(path), Dictionary()  # whose numbers are those of all
    if not index or not len(index.ends) or not index.ends[-1]:
        return 0.0
    tokens = np.memmap(f"{path}.bin", index.dtype, "r")
    total = int(np.count_nonzero(tokens != special.eos()))
    return 100 * float(np.count_nonzero(tokens == special.unk())) / max(1, total)


def unknown_lines(split: str, paths: Mapping[str, str], consequence: str) -> Iterator[str]:
    """Yield a line with the shares of a split by side, and a warning for each from 1 % on.

    Args:
        paths: of the binarised files of each side.
        consequence: what a model does with unknown tokens.
    """
    shares = {side: unknown_share(path) for side, path in paths.items()}
    counts = ", ".join(f"{share:.2f} % of {side}" for side, share in shares.items())
    yield f"{split}: unknown tokens: {counts}"
    for side, share in shares.items():
        if share >= _WARNING_SHARE:
            yield (
                f"warning: {share:.1f} % of the tokens of {split}.{side} are not in the "
                f"dictionary: <unk> stands for each, and a model {consequence}; "
                "take subwords that were learnt from such text"
            )

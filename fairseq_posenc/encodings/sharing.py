"""Which layers and heads share one set of scalars, and attention terms made of biases."""

from typing import Dict, Sequence, Tuple

from torch import Tensor

from fairseq_posenc.encodings.base import AttentionTerms, Stack

SHARING = ("none", "layers", "heads")


def sets(stack: Stack, sharing: str) -> Tuple[int, int]:
    """Return how many sets of scalars there are: for layers, and for the heads of one.

    With ``none`` every head of every layer has its own; with ``layers`` one set of heads serves
    all layers; with ``heads`` one set per layer serves all its heads (Chen et al. 2021, Table 8).

    Raises:
        ValueError: ``sharing`` is none of these.
    """
    if sharing not in SHARING:
        raise ValueError(f"sharing must be one of {', '.join(SHARING)}, not {sharing}")
    return 1 if sharing == "layers" else stack.layers, 1 if sharing == "heads" else stack.heads


def terms_of_biases(stack: Stack, biases: Sequence[Tensor]) -> Dict[int, AttentionTerms]:
    """Return the terms of all layers.

    Args:
        stack: the stack of layers.
        biases: one ``(heads or 1, Q, K)`` per layer, or a single one, whose terms all layers get.
    """
    terms = [AttentionTerms(bias=bias) for bias in biases]
    return dict(enumerate(terms * (stack.layers // len(terms))))

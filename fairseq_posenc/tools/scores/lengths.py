"""Splitting a test set by the length of its sentences, or by another number of each."""

import math
from dataclasses import dataclass
from typing import List, Optional, Sequence

import numpy as np

from fairseq_posenc.errors import UsageError

SENTENCE = "sentence"
"""What numbers from a file are of, where lengths are of the source or the reference."""

AUTO = "auto"  # the edges behind those that are given, by the lengths of the sentences
_FIRST_EDGES = 10, 20, 30


@dataclass(frozen=True)
class Bin:
    """Sentences longer than ``longer_than`` and at most ``up_to`` long (None: no limit)."""

    name: str
    longer_than: float
    up_to: Optional[float]

    def members(self, lengths: Sequence[int]) -> List[int]:
        """Return the indices of the sentences whose length lies in this bin."""
        top = math.inf if self.up_to is None else self.up_to
        return [i for i, length in enumerate(lengths) if self.longer_than < length <= top]


def by_edges(edges: Sequence[int], smallest: int = 1, option: str = "--bins") -> List[Bin]:
    """Return the bins 1-10, 11-20, 21-30, 31+ for the edges 10, 20, 30 (SHAPE, Figure 3).

    An empty sentence counts to the first bin, so that the bins make up the whole test set.

    Args:
        edges: the largest number of each bin but the last one.
        smallest: number of the first bin, and of its name.
    """
    if not edges or edges[0] < smallest or any(low >= high for low, high in zip(edges, edges[1:])):
        raise UsageError(f"{option} takes rising whole numbers above 0, such as 10,20,30")
    lows, tops = [smallest - 1, *edges], [*edges, None]
    names = [f"{low + 1}+" if top is None else f"{low + 1}-{top}" for low, top in zip(lows, tops)]
    return [Bin(*bin) for bin in zip(names, [-1, *edges], tops)]


def edges_of_data(edges: Sequence[int], lengths: Sequence[int]) -> List[int]:
    """Return rising edges, continued by the data: 40, 60, 80, 120, 160, 240, …

    The last range, which is open, has at most a third of the sentences, and at most a tenth where
    that is more than 50; or it ends before the next edge. No range that is added is empty.

    Args:
        edges: the first ones; without any 10, 20 and 30.
    """
    edges = list(edges or _FIRST_EDGES)
    edge, is_half = edges[-1], True  # half as long again, then a third
    most = min(len(lengths) / 3, max(len(lengths) / 10, 50))
    while sum(length > edges[-1] for length in lengths) > most:
        edge = edge * 3 // 2 if is_half and edge > 1 else max(edge * 4 // 3, edge + 1)
        is_half = not is_half
        if edge >= max(lengths):
            break
        if any(edges[-1] < length <= edge for length in lengths):
            edges.append(edge)
    return edges


def by_percentiles(lengths: Sequence[int]) -> List[Bin]:
    """Return the bins short, medium and long, cut at the 33 % and 66 % percentiles of ``lengths``.

    As in CAPE (Likhomanenko et al. 2021, section 5.3, Figure 8). Percentiles are NumPy's (linear
    interpolation between sentences). A sentence as long as a percentile belongs below it; sentences
    of one length are never torn apart, so that many equal lengths make the bins unequal in size.
    """
    low, high = (float(edge) for edge in np.percentile(lengths, (33.0, 66.0)))
    return [Bin("short", -1, low), Bin("medium", low, high), Bin("long", high, None)]


def length_label(of: str, unit: str) -> str:
    """Return what bins count, in words: "source length (words)", or a file's ending, "clauses"."""
    of = "longer side's" if of == "longer" else of
    return unit if of == SENTENCE else f"{of} length ({unit})"


def share(within: Optional[int], sentences: int) -> str:
    """Return how many of the sentences are within the trained length, as tables show it."""
    return "?" if within is None else f"{within}/{sentences}"

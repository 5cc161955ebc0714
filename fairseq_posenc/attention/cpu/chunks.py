"""Chunks of attention on a CPU, whose scores stay in the cache."""

from typing import Iterator, NamedTuple, Sequence, Tuple

from torch import Tensor

# Scores in flight per thread: 1 MB of float32, about the second-level cache of a core.
_SCORES = 2**18
# From this length on, causal attention is cut into blocks of rows that leave the future out.
LONG_CAUSAL, _CAUSAL_ROWS = 256, 128
_FEWEST_ROWS = 16


class Chunk(NamedTuple):
    """Some heads of some sequences, some rows, columns up to a last one."""

    matrices: slice  # which of the batch · heads matrices
    batches: slice
    heads: slice
    rows: slice  # which queries
    columns: int  # how many keys, from the first
    first: bool  # whether no other chunk of these matrices came before; it has all columns then

    @property
    def shape(self) -> Tuple[int, int, int]:
        """Matrices, rows, columns."""
        return size(self.batches) * size(self.heads), size(self.rows), self.columns

    def by_head(self, scores: Tensor) -> Tensor:
        """View the chunk's scores ``(matrices, rows, columns)`` as ``(sequences, heads, …)``."""
        return scores.view((size(self.batches), size(self.heads)) + scores.shape[1:])


class ScoreLayout(NamedTuple):
    """The size of an attention: its matrices of scores are ``(queries, keys)``."""

    batch: int
    heads: int
    queries: int
    keys: int
    causal: bool

    def chunks(self, threads: int, head_by_head: bool = False) -> Iterator[Chunk]:
        """Cut into chunks of rows; the last rows of a matrix come first."""
        budget = _SCORES * threads
        fitting = max(_FEWEST_ROWS, budget // self.keys)
        if self.causal and self.queries >= LONG_CAUSAL:
            fitting = _CAUSAL_ROWS
        rows = min(self.queries, fitting)
        matrices = max(1, budget // (rows * self.keys))
        starts = range(0, self.queries, rows)
        for batches, heads in self._groups(matrices, head_by_head):
            # one head of several sequences is every so many matrices
            step = self.heads if head_by_head else 1
            first = batches.start * self.heads + heads.start
            group = slice(first, (batches.stop - 1) * self.heads + heads.stop, step)
            for start in reversed(starts):
                stop = min(start + rows, self.queries)
                columns = stop if self.causal else self.keys
                is_first = start == starts[-1]
                yield Chunk(group, batches, heads, slice(start, stop), columns, is_first)

    def _groups(self, most: int, head_by_head: bool) -> Iterator[Tuple[slice, slice]]:
        """Cut sequences and heads into pairs of slices of at most that many matrices."""
        if head_by_head:
            return (
                (batches, heads)
                for heads in split_evenly(self.heads, 1)
                for batches in split_evenly(self.batch, most)
            )
        return (
            (batches, heads)
            for batches in split_evenly(self.batch, max(1, most // self.heads))
            for heads in split_evenly(self.heads, most)
        )


def split_evenly(total: int, most: int) -> Iterator[slice]:
    """Cut a range into parts of nearly the same size, none above ``most``."""
    number = -(-total // most)
    for part in range(number):
        yield slice(total * part // number, total * (part + 1) // number)


def size(part: slice) -> int:
    """Return how many a slice without step has."""
    return part.stop - part.start


class Scratch:
    """Memory for the scores of one chunk at a time, with some zeros before and behind them."""

    def __init__(self, like: Tensor, margin: int):
        self.like, self.margin = like, margin
        self.memory = like.new_empty(0)

    def get(self, shape: Sequence[int], fresh: bool = False) -> Tensor:
        """Return memory of that shape, which the next call overwrites."""
        numbers = shape[0] * shape[1] * shape[2]
        with_margins = numbers + 2 * self.margin
        if fresh or self.memory.numel() < with_margins:
            self.memory = self.like.new_empty(with_margins)
        if self.margin:
            self.memory[: self.margin].zero_()
            self.memory[self.margin + numbers : with_margins].zero_()
        return self.memory[self.margin : self.margin + numbers].view(shape)

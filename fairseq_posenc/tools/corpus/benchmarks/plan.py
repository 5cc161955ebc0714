"""What is asked for: a seed and sizes."""

from typing import List, NamedTuple, Tuple

from fairseq_posenc.errors import UsageError

FEWEST = 9
File = Tuple[str, List[str]]
"""A file's path, divided by "/", and its lines."""


class Plan(NamedTuple):
    """Equal plans give equal files; ``examples`` are those of each training set."""

    seed: int = 1
    examples: int = 300

    @property
    def held_out(self) -> int:
        """Examples of every development or test set, in each language."""
        return self.examples // 3

    def check(self) -> None:
        """Raise a UsageError if a set would be too small to hold every label."""
        if self.examples < FEWEST:
            raise UsageError(
                f"a benchmark needs at least {FEWEST} training examples, not {self.examples}"
            )

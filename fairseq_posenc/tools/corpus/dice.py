"""Seeded random choices that are the same under every version of Python."""

import random
from typing import Sequence, Tuple, TypeVar

Item = TypeVar("Item")


class Dice:
    """Random choices that all come from ``random.random``, whose sequence Python guarantees.

    Args:
        seed: any text; equal texts give equal choices.
    """

    def __init__(self, seed: str):
        self.random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.random() < probability

    def between(self, low: int, high: int) -> int:
        """Return a whole number from ``low`` to ``high``, both included, all equally likely."""
        return low + int(self.random() * (high - low + 1))

    def pick(self, items: Sequence[Item]) -> Item:
        """Return one of the items, all equally likely."""
        return items[int(self.random() * len(items))]

    def weighted(self, items: Sequence[Tuple[Item, float]]) -> Item:
        """Return one item of ``(item, weight)`` pairs, as likely as its share of the weights."""
        rest = self.random() * sum(weight for _, weight in items)
        for item, weight in items:
            rest -= weight
            if rest < 0:
                return item
        return items[-1][0]

"""Examples whose texts no other split holds."""

from typing import Callable, Iterable, List, NamedTuple, Optional, Sequence, Set, TypeVar

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.corpus.benchmarks.scenes import Scenes
from fairseq_posenc.tools.corpus.dice import Dice
from fairseq_posenc.tools.corpus.tree import Clause

_ATTEMPTS = 2000


Item = TypeVar("Item")


class Example(NamedTuple):
    """One or two texts with their label; ``scenes`` are what they say, in the same order."""

    texts: Sequence[str]
    label: str
    scenes: Sequence[Clause] = ()


Maker = Callable[[Scenes, str], Optional[Example]]


class Unseen:
    """Keeps splits apart: an example with a text of an earlier split is drawn again."""

    def __init__(self) -> None:
        self._taken: Set[str] = set()

    def split(self, maker: Maker, labels: Sequence[str], number: int, seed: str) -> List[Example]:
        """Return the examples of one split, as many of each label as of any other, in any order.

        Args:
            maker: makes an example of a label, or None where this start does not lead to one.
            labels: those to make examples of.
            number: of examples.
            seed: equal seeds give equal examples, whatever their number.

        Raises:
            UsageError: there are not so many examples.
        """
        dice = Dice(seed)
        examples: List[Example] = []
        order: List[str] = []
        while len(examples) < number:
            order = order or shuffled(labels, dice)
            examples.append(self._draw(maker, order.pop(), dice))
        for example in examples:
            self._taken.update(example.texts)
        return examples

    def _draw(self, maker: Maker, label: str, dice: Dice) -> Example:
        for _ in range(_ATTEMPTS):
            example = maker(Scenes(dice), label)
            if example is not None and self._taken.isdisjoint(example.texts):
                return example
        raise UsageError("found no more examples that no other split has; ask for fewer")


def shuffled(items: Iterable[Item], dice: Dice) -> List[Item]:
    """Return the items in an order drawn by chance."""
    rest, order = list(items), []
    while rest:
        order.append(rest.pop(dice.between(0, len(rest) - 1)))
    return order

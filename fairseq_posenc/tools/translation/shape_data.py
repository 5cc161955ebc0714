"""The data settings of SHAPE (Kiyono et al. 2021, section 3.1), made from text with BPE."""

from itertools import groupby
from typing import Any, Callable, Dict, Iterable, Iterator, Tuple

from tqdm import tqdm

from fairseq_posenc.data.segmentation import SEPARATOR
from fairseq_posenc.tools.translation.pairs import Languages, Pair, pairs_of_files, write_pairs
from fairseq_posenc.tools.workers import chunked

LONGEST = 50
NEIGHBOURS = 10


def extrapolate(pairs: Iterable[Pair], longest: int = LONGEST) -> Iterator[Pair]:
    """Yield the pairs neither side of which exceeds ``longest`` subwords (EXTRAPOLATE)."""
    for pair in pairs:
        if max(len(line.split()) for line in pair) <= longest:
            yield pair


def interpolate(
    pairs: Iterable[Pair],
    neighbours: int = NEIGHBOURS,
    separator: str = SEPARATOR,
    keep_rest: bool = False,
) -> Iterator[Pair]:
    """Yield neighbouring pairs joined to long ones, with a token between them (INTERPOLATE).

    No pair is used twice. Where both lines are blank, a document ends: nothing is joined across it.
    Without a ``separator`` there is a space between lines. Our reading: what is left over at the
    end (fewer than ``neighbours``) is dropped in training, where 4.5 M pairs become 450 K (Table
    3); in validation and test sets, which are joined alike and must stay whole, it makes a shorter
    one (``keep_rest``).
    """
    between = f" {separator} " if separator else " "
    for is_text, document in groupby(pairs, lambda pair: any(line.strip() for line in pair)):
        for group in chunked(document, neighbours) if is_text else ():
            if keep_rest or len(group) == neighbours:
                source, target = (between.join(side) for side in zip(*group))
                yield source, target


_SETTINGS: Dict[str, Callable[..., Iterator[Pair]]] = {
    "extrapolate": extrapolate,
    "interpolate": interpolate,
}


def write_setting(
    name: str, prefix: str, output: str, languages: Languages, **options: Any
) -> Tuple[int, int]:
    """Turn the pair of files ``prefix.<language>`` into one of the setting.

    Args:
        options: of the function of that name.
    """
    read = 0

    def pairs() -> Iterator[Pair]:
        nonlocal read
        bar = tqdm(pairs_of_files(prefix, languages), desc=name, unit=" pairs", disable=None)
        for read, pair in enumerate(bar, 1):  # noqa: B007
            yield pair

    written = write_pairs(output, languages, _SETTINGS[name](pairs(), **options))
    return read, written

"""Growth of a sentence to an exact length."""

from typing import Callable, List, Optional, Tuple

from fairseq_posenc.tools.corpus import additions, ornaments
from fairseq_posenc.tools.corpus.draft import Draft
from fairseq_posenc.tools.corpus.grammar import Grammar
from fairseq_posenc.tools.corpus.tree import Sentence

_PATIENCE = 60
_STEPS: List[Tuple[Callable[[Draft], bool], float]] = [
    (ornaments.adjective, 5.0),
    (ornaments.very, 0.8),
    (ornaments.frequency, 1.0),
    (ornaments.time, 1.0),
    (ornaments.manner, 1.0),
    (ornaments.companion, 1.2),
    (ornaments.place, 1.5),
    (additions.front, 1.2),
    (additions.follower, 1.5),
    (additions.list_member, 1.2),
    (additions.relative, 3.0),
    (additions.second_verb, 1.2),
    (additions.main, 1.5),
]


def grow(grammar: Grammar, target: int) -> Optional[Sentence]:
    """Return a sentence of exactly ``target`` tokens, or None if this start does not reach it.

    The steps have the same probabilities however long the sentence is, so that long sentences are
    made of the same constructions as short ones, only of more.
    """
    draft = Draft(grammar, target)
    failures = 0
    while draft.rest > 0 and failures < _PATIENCE:
        step = draft.dice.weighted(_STEPS)
        failures = 0 if step(draft) else failures + 1
    return draft.tree if draft.rest == 0 else None

"""Functions of fairseq that ours replace; ``grep -rn replaces fairseq_posenc`` finds them.

They refuse a mistake in one line, let nothing in an untrusted file run, and mend where fairseq does
something else than asked. Importing the models replaces all of them.
"""

import functools
from inspect import isclass
from typing import Any, Callable, Set

REPLACED: Set[str] = set()
"""Their names: ``checkpoint_utils.load_checkpoint``, ``FairseqTask.train_step``."""


def replace(owner: Any, name: str, value: Any) -> None:
    """Give a module or a class of fairseq something of ours by one of its names."""
    where = owner.__name__ if isclass(owner) else owner.__name__.partition(".")[2]
    REPLACED.add(f"{where}.{name}")
    setattr(owner, name, value)


def replaces(owner: Any, name: str) -> Callable[[Callable], Callable]:
    """Put a function in the place of one of fairseq's, which it gets as its first argument."""
    original = getattr(owner, name)

    def put(function: Callable) -> Callable:
        @functools.wraps(original)
        def replacement(*args: Any, **kwargs: Any) -> Any:
            return function(original, *args, **kwargs)

        replace(owner, name, replacement)
        return function

    return put

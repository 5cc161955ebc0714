"""Functions of fairseq that ours replace; ``grep -rn "^ *@*replace" fairseq_posenc`` finds them.

They refuse a mistake in one line, let nothing in an untrusted file run, and mend where fairseq does
something else than asked. Importing the models replaces all of them.
"""

import functools
from inspect import isclass
from typing import Any, Callable, Dict, Set

REPLACED: Set[str] = set()
"""Their names: ``checkpoint_utils.load_checkpoint``, ``FairseqTask.train_step``."""


def replace(owner: Any, name: str, value: Any) -> None:
    """Give a module or a class of fairseq something of ours by one of its names."""
    where = owner.__name__ if isclass(owner) else owner.__name__.partition(".")[2]
    REPLACED.add(f"{where}.{name}")
    setattr(owner, name, value)


class _Library:
    """A library, with other functions in the place of some of its own."""

    def __init__(self, library: Any, functions: Dict[str, Any]):
        vars(self).update(functions, _library=library)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)


def replace_in_library(module: Any, name: str, **functions: Any) -> None:
    """Give a module of fairseq other functions of a library, which it imports by this name."""
    replace(module, name, _Library(getattr(module, name), functions))


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

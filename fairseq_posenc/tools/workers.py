"""Several processes that work on chunks of text, in order and with little read ahead."""

import multiprocessing
import os
import threading
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Callable, Iterable, Iterator, List, TypeVar

from fairseq_posenc.errors import UsageError

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 4  # chunks per process that wait for it or for their turn


def chunked(items: Iterable[Item], size: int = 1000) -> Iterator[List[Item]]:
    """Cut a stream into lists of ``size`` items; the last one may be shorter."""
    iterator = iter(items)
    return iter(lambda: list(islice(iterator, size)), [])


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Iterator[Result]:
    """Like ``map``, in several processes; items are read only a little ahead of the results.

    Args:
        work: can be pickled, as ``functools.partial`` of a function of a module can.
        workers: processes; with 1, all happens in this one.
    """
    if workers < 2:
        yield from map(work, items)
        return
    waiting: deque = deque()
    try:
        with ProcessPoolExecutor(workers, initializer=exit_with_parent) as pool:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > _AHEAD * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    except BrokenProcessPool:
        raise UsageError(
            "a process died, perhaps because memory ran out; try again with fewer --workers"
        ) from None


def map_lists(
    work: Callable[[List[Item]], Iterable[Result]],
    items: Iterable[Item],
    workers: int,
    size: int = 1000,
) -> Iterator[Result]:
    """Yield what ``work`` makes of lists of ``size`` items, one result after another."""
    for results in in_order(work, chunked(items, size), workers):
        yield from results


def exit_with_parent() -> None:
    """Let this process end when the one that started it was killed.

    Without this it would wait forever. The system's parent may be another one: a fork server.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None  # this is no main process

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()

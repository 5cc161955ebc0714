"""``fairseq-preprocess``, with processes whose death is noticed.

fairseq's own wait forever for a process that the system has killed, usually because memory ran
out. What is written is the same, but for dictionaries with types of one name (``--srcdict``), which
fairseq writes so that it cannot read them again.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import SimpleNamespace
from typing import Any, Callable, Dict, Optional, Sequence

from fairseq import binarizer, options
from fairseq.data import dictionary
from fairseq_cli import preprocess as fairseq_preprocess

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import file_error
from fairseq_posenc.tasks.translation import OUR_TRANSLATION
from fairseq_posenc.tools.workers import exit_with_parent


class Pool:
    """What fairseq uses of ``multiprocessing.Pool``."""

    def __init__(self, processes: int):
        self._executor = ProcessPoolExecutor(
            processes, initializer=exit_with_parent, initargs=(os.getpid(),)
        )

    def apply_async(
        self, function: Callable, args: Sequence[Any] = (), kwds: Optional[Dict[str, Any]] = None
    ) -> SimpleNamespace:
        """Return an object whose ``get()`` waits for the result, or raises what went wrong."""
        return SimpleNamespace(get=self._executor.submit(function, *args, **(kwds or {})).result)

    def close(self) -> None:
        """Do nothing; ``join`` is always next."""

    def join(self) -> None:
        """Wait for the end of all work, or the death of a process."""
        self._executor.shutdown()


def preprocess(arguments: Sequence[str], quiet: bool = False) -> None:
    """Run ``fairseq-preprocess`` with its command-line arguments.

    Args:
        arguments: of the command line.
        quiet: log to ``preprocess.log`` in the folder it writes, and nowhere else.

    Raises:
        UsageError: a process died, or a file cannot be read or written.
    """
    binarizer.Pool = dictionary.Pool = Pool
    fairseq_preprocess.logger.propagate = not quiet
    args = options.get_preprocessing_parser().parse_args(list(arguments))
    if args.task == "translation":
        args.task = OUR_TRANSLATION  # which reads dictionaries as all of us do
    try:
        fairseq_preprocess.main(args)
    except BrokenProcessPool:
        raise UsageError(
            "a process died, perhaps because memory ran out; try again with fewer --workers"
        ) from None
    except FileExistsError as error:
        raise UsageError(
            f"{error} is there already; give it as --srcdict, and another --destdir"
        ) from None
    except OSError as error:
        raise file_error("binarise into", args.destdir, error) from None

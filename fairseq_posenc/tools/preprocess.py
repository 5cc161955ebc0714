"""``fairseq-preprocess``, with processes whose death is noticed.

fairseq's own wait forever for a process that the system has killed, usually because memory ran
out. What is written is the same, but for dictionaries with types of one name (``--srcdict``), which
fairseq writes so that it cannot read them again. Text with carriage returns inside lines, which
fairseq would divide there, is refused.
"""

import re
from argparse import Namespace
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Callable, Dict, Optional, Sequence

from fairseq import binarizer, options
from fairseq.data import dictionary
from fairseq_cli import preprocess as fairseq_preprocess

from fairseq_posenc.data.languages import check_language
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import file_error
from fairseq_posenc.tasks.translation import OUR_TRANSLATION
from fairseq_posenc.tools.workers import exit_with_parent


class Pool:
    """What fairseq uses of ``multiprocessing.Pool``."""

    def __init__(self, processes: int):
        self._executor = ProcessPoolExecutor(processes, initializer=exit_with_parent)

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
        quiet: log to ``preprocess.log`` in the folder it writes, and nowhere else.
    """
    binarizer.Pool = dictionary.Pool = Pool
    fairseq_preprocess.logger.propagate = not quiet
    args = options.get_preprocessing_parser().parse_args(list(arguments))
    if args.task == "translation":
        args.task = OUR_TRANSLATION  # which reads dictionaries as all of us do
    for option in ("source_lang", "target_lang"):
        if getattr(args, option):
            check_language(getattr(args, option), f"--{option.replace('_', '-')}")
    _check_line_ends(args)
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


def _check_line_ends(args: Namespace) -> None:
    """Refuse text that fairseq, unlike whoever wrote it, would divide at carriage returns."""
    languages = [args.source_lang] if args.only_source else [args.source_lang, args.target_lang]
    prefixes = ",".join(filter(None, (args.trainpref, args.validpref, args.testpref)))
    for prefix in filter(None, prefixes.split(",")):
        for path in (f"{prefix}.{language}" if language else prefix for language in languages):
            with suppress(OSError), open(path, "rb") as stream:  # fairseq tells what is missing
                for number, line in enumerate(stream, 1):
                    if b"\r" in line and b"\r" in re.sub(rb"\r?\n$", b"", line):
                        raise UsageError(
                            f"{path}, line {number} has a carriage return inside, at which fairseq "
                            "would divide it; replace all of them by spaces: "
                            f"tr '\\r' ' ' < {path} > {path}.new"
                        )

"""Checks of ``--save-dir``: one training at a time, which writes over its own checkpoints alone, or
over those of the model in that folder with which it begins.
"""

import errno
import fcntl
import logging
import os
import re
import socket
from typing import Any, Dict, List, NamedTuple, Optional, TextIO

from fairseq_posenc.errors import UsageError

logger = logging.getLogger(__name__)

LAST = "checkpoint_last.pt"
LOCK = ".training.lock"
# fairseq's names of checkpoints, without ``--checkpoint-suffix`` and ``.pt``
_NAMES = r"checkpoint(\d+|_\d+_\d+|_best|_last|\.best_.+)"
# folder -> its lock file, which stays open as long as the process lives
_locks: Dict[str, TextIO] = {}
FINE_TUNING = "--finetune-from-model"


class FirstCheckpoint(NamedTuple):
    """The checkpoint that a training begins with, which may be missing, and the option that names
    it; no option names the last one of ``--save-dir``."""

    path: str
    option: str = ""

    @property
    def is_continued(self) -> bool:
        """Whether the training of the checkpoint goes on."""
        return self.option != FINE_TUNING


def first_checkpoint(cfg: Any, suffix: str = "") -> Optional[FirstCheckpoint]:
    """Return the checkpoint that fairseq begins with, if any.

    As ``load_checkpoint`` of its ``checkpoint_utils`` chooses.
    """
    if cfg.restore_file != LAST:
        return FirstCheckpoint(cfg.restore_file.replace(".pt", f"{suffix}.pt"), "--restore-file")
    last = os.path.join(cfg.save_dir, LAST.replace(".pt", f"{suffix}.pt"))
    if os.path.exists(last):
        return FirstCheckpoint(last)
    if getattr(cfg, "continue_once", None):
        return FirstCheckpoint(cfg.continue_once, "--continue-once")
    model = getattr(cfg, "finetune_from_model", None)
    return FirstCheckpoint(model, FINE_TUNING) if model else None


def check_start(cfg: Any, suffix: str = "") -> bool:
    """Check which checkpoint a training begins with, before fairseq loads it.

    Args:
        cfg: fairseq's ``CheckpointConfig``.
        suffix: of the names of checkpoints, before ``.pt``.

    Returns:
        whether a training is resumed; else it begins anew, with new weights or with trained ones.

    Raises:
        UsageError: a checkpoint that was named is missing: fairseq would begin with new weights.
            The folder holds checkpoints, and the training begins with none of them: fairseq would
            write over them.
    """
    first = first_checkpoint(cfg, suffix)
    start, continued = (first.path, first.is_continued) if first else ("", False)
    if first and not first.option and cfg.finetune_from_model:
        logger.info("continuing %s; %s %s is not read", start, FINE_TUNING, cfg.finetune_from_model)
    elif first and continued and not os.path.isfile(start):
        saved = os.path.join(cfg.save_dir, os.path.basename(start))
        raise UsageError(
            f"there is no checkpoint {start} ({first.option})"
            + (f"; is {saved} meant?" if os.path.isfile(saved) else "")
        )
    resumed = continued and not cfg.reset_optimizer
    folder = os.path.realpath(cfg.save_dir)
    if cfg.no_save or (start and os.path.dirname(os.path.realpath(start)) == folder):
        return resumed
    written = _checkpoints(cfg.save_dir, suffix)
    if written:
        last = os.path.join(cfg.save_dir, LAST.replace(".pt", f"{suffix}.pt"))
        newest = last if last in written else max(written, key=os.path.getmtime)
        raise UsageError(
            f"{cfg.save_dir} holds checkpoints of another training, and this one would write over "
            f"them: it begins with {start or 'new weights'}; give another --save-dir, or continue "
            f"that training with --restore-file {newest}"
        )
    return resumed


def _checkpoints(folder: str, suffix: str) -> List[str]:
    """Return the checkpoints in a folder that a training with this suffix may write over."""
    pattern = re.compile(f"{_NAMES}{re.escape(suffix)}\\.pt")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if pattern.fullmatch(name)]


def lock(folder: str) -> None:
    """Take a folder for the training of this process, until the process ends, however it does.

    The lock is a record lock (``lockf``): forked workers that load data do not inherit it. Where
    the file system has no such locks, nothing is locked.

    Raises:
        UsageError: another training has taken it.
    """
    folder = os.path.realpath(folder)
    if folder in _locks:
        return
    stream: Optional[TextIO] = None
    try:
        os.makedirs(folder, exist_ok=True)
        # a+ makes the file, and leaves the holder's name in it
        stream = open(  # noqa: SIM115
            os.path.join(folder, LOCK), "a+", encoding="utf-8", opener=_open_no_link
        )
        fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if stream is None or error.errno not in (errno.EACCES, errno.EAGAIN):
            logger.info("%s cannot be locked: %s", folder, error.strerror)
            return
        stream.seek(0)
        holder = stream.read(200)
        stream.close()
        raise UsageError(
            f"another training{holder and f' ({holder})'} is writing to {folder}; wait for its "
            "end, or give another --save-dir"
        ) from None
    stream.truncate(0)
    stream.write(f"process {os.getpid()} on {socket.gethostname()}")
    stream.flush()
    # closing the file would release the lock
    _locks[folder] = stream


def _open_no_link(path: str, flags: int) -> int:
    """Open a file, but follow no symbolic link: its target would be emptied."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)

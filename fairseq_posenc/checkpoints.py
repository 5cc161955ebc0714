"""Writing checkpoints, and finding those that can be continued from."""

import glob
import os
from typing import Any, Optional

import torch

from fairseq_posenc.compat import load_checkpoint
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import replacing


def save(state: Any, path: str) -> None:
    """Write a checkpoint, which takes its name when it is complete.

    Raises:
        UsageError: it cannot be written.
    """
    with replacing(path, "wb") as stream:
        try:
            torch.save(state, stream)
        except RuntimeError as error:
            if isinstance(error.__context__, OSError):
                # a full disk, of which torch tells the consequences alone
                raise error.__context__ from error
            raise


def newest_whole(folder: str, names: str = "checkpoint*.pt") -> Optional[str]:
    """Return the checkpoint of the most updates that can be read, or ``None``.

    Only checkpoints with an optimiser state count: others cannot be continued from.

    Args:
        folder: ``--save-dir`` of a run.
        names: pattern of the files to look at.
    """
    best, most = None, -1
    for path in sorted(glob.glob(os.path.join(folder, names))):
        try:
            state = load_checkpoint(path)
        except UsageError:
            continue
        updates = _updates(state)
        if updates > most:
            best, most = path, updates
    return best


def _updates(state: Any) -> int:
    try:
        resumable = state["last_optimizer_state"] is not None
        updates = state["optimizer_history"][-1]["num_updates"]
    except (KeyError, IndexError, TypeError):
        return -1
    return updates if resumable and isinstance(updates, int) else -1

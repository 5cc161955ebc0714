"""Writing checkpoints, and finding those that can be continued from."""

import glob
import itertools
import math
import os
import shutil
import sys
from typing import Any, List, NamedTuple, Optional

import torch

from fairseq_posenc.compat import load_checkpoint
from fairseq_posenc.errors import DamagedCheckpoint, UsageError
from fairseq_posenc.files import replacing


class _Saved(NamedTuple):
    path: str
    updates: int
    value: Any  # of this model on the validation set; None if it was not validated
    best: Any  # of the training so far, this model included


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


def newest_whole(folder: str) -> Optional[str]:
    """Return the checkpoint of the most updates that can be continued from, or ``None``.

    Damaged checkpoints do not count, nor do those without an optimiser's state.

    Args:
        folder: ``--save-dir`` of a run, which has checkpoints called ``checkpoint*.pt``.

    Raises:
        UsageError: a checkpoint cannot be read, and is not known to be damaged.
    """
    return max(_read_all(folder), key=lambda saved: saved.updates, default=_NONE).path or None


def restore(folder: str, best: bool = False) -> Optional[str]:
    """Make a killed training's checkpoints agree, and return the one to continue from, if any.

    fairseq writes a checkpoint and then copies it to ``checkpoint_best.pt`` and
    ``checkpoint_last.pt``; a training killed in between has counted the new best model already, and
    would never copy it. Damaged files are moved aside, to ``<name>.damaged``.

    Args:
        folder: ``--save-dir`` of a run.
        best: whether ``checkpoint_best.pt`` is needed; otherwise it stays as it is.

    Raises:
        UsageError: a checkpoint cannot be read; the best one is needed, and is lost.
    """
    found = _read_all(folder, set_aside=True)
    if not found:
        return None
    newest = max(found, key=lambda saved: saved.updates)
    _copy_to("checkpoint_last.pt", newest, found)
    if best and newest.best is not None and not math.isnan(newest.best):
        # of equally good ones fairseq keeps the later
        equal = [saved for saved in found if saved.value == newest.best]
        if not equal:
            raise UsageError(
                f"{folder} has no checkpoint of the best validation so far, {newest.best}: put "
                "checkpoint_best.pt back, or move all its checkpoints away and train anew"
            )
        _copy_to("checkpoint_best.pt", max(equal, key=lambda saved: saved.updates), found)
    return newest.path


_NONE = _Saved("", -1, None, None)


def _read_all(folder: str, set_aside: bool = False) -> List[_Saved]:
    found = []
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "checkpoint*.pt"))):
        try:
            state = load_checkpoint(path)
            updates = state["optimizer_history"][-1]["num_updates"]
            extra = state.get("extra_state", {})
            if state["last_optimizer_state"] is not None and isinstance(updates, int):
                values = [_number(extra.get(name)) for name in ("val_loss", "best")]
                found.append(_Saved(path, updates, *values))
        except DamagedCheckpoint:
            if set_aside:
                names = (f"{path}.damaged{number or ''}" for number in itertools.count())
                aside = next(name for name in names if not os.path.lexists(name))
                os.rename(path, aside)
                print(f"note: {path} is damaged: moved to {aside}", file=sys.stderr)
        except (KeyError, IndexError, TypeError, AttributeError):
            continue
    return found


def _number(value: Any) -> Optional[float]:
    return value if isinstance(value, (int, float)) else None


def _copy_to(name: str, source: _Saved, found: List[_Saved]) -> None:
    target = os.path.join(os.path.dirname(source.path), name)
    if source._replace(path=target) not in found:
        with open(source.path, "rb") as original, replacing(target, "wb") as copy:
            shutil.copyfileobj(original, copy)

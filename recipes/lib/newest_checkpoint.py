"""Print the checkpoint of a folder to continue from, or nothing if there is none.

A training that was killed while fairseq copied checkpoints is put in order first: what is damaged
is moved aside, and checkpoint_last.pt and, if it is needed, checkpoint_best.pt are copied anew. The
plugin itself finds the place in the epoch where the number of GPUs has changed.
"""

import argparse
import glob
import itertools
import math
import os
import re
import shutil
import sys
from typing import Any, List, NamedTuple, Optional

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.errors import DamagedCheckpoint, UsageError
from fairseq_posenc.tools.writing import replacing
from recipes.lib.settings import read_lines


class Saved(NamedTuple):
    """A checkpoint that can be continued from.

    Attributes:
        path: of the file.
        updates: of its training so far.
        value: of this model on the validation set; None if it was not validated.
        best: of the training so far, this model included.
    """

    path: str
    updates: int
    value: Optional[float]
    best: Optional[float]


def restore(folder: str, best: bool = False) -> Optional[str]:
    """Make a killed training's checkpoints agree, and return the one to continue from, if any.

    fairseq writes a checkpoint and then copies it to ``checkpoint_best.pt`` and
    ``checkpoint_last.pt``; a training killed in between has counted the new best model already, and
    would never copy it. Damaged files are moved aside, to ``<name>.damaged``; those without an
    optimiser's state, such as averages, do not count.

    Args:
        folder: ``--save-dir`` of a run, which has checkpoints called ``checkpoint*.pt``.
        best: whether ``checkpoint_best.pt`` is needed; otherwise it stays as it is.

    Raises:
        UsageError: a checkpoint cannot be read, and is not known to be damaged; the best one is
            needed, and is lost; the newest is of another seed than the folder's ``settings``.
    """
    checkpoints = _read_all(folder)
    if not checkpoints:
        return None
    newest = max(checkpoints, key=lambda saved: saved.updates)
    _check_seed(newest.path)
    _copy_to("checkpoint_last.pt", newest, checkpoints)
    if best and newest.best is not None and not math.isnan(newest.best):
        # of equally good ones fairseq keeps the later
        equal = [saved for saved in checkpoints if saved.value == newest.best]
        if not equal:
            raise UsageError(
                f"{folder} has no checkpoint of the best validation so far, {newest.best}: put "
                "checkpoint_best.pt back, or move all its checkpoints away and train anew"
            )
        _copy_to("checkpoint_best.pt", max(equal, key=lambda saved: saved.updates), checkpoints)
    return newest.path


def seconds_of(path: str) -> float:
    """Return for how long a checkpoint's model was trained, as fairseq counts."""
    seconds = load_checkpoint(path).get("extra_state", {}).get("previous_training_time", 0)
    return float(seconds) if isinstance(seconds, (int, float)) else 0.0


def _check_seed(path: str) -> None:
    folder = os.path.dirname(path)
    lines = read_lines(os.path.join(folder, "settings"))
    seeds = [line.split()[1] for line in lines if re.fullmatch(r"--seed \d+", line)]
    config = load_checkpoint(path, mmap=True).get("cfg") or {}
    seed = config.get("common", {}).get("seed", "")
    if seeds and str(seed) not in ("", seeds[-1]):
        raise UsageError(
            f"{path} is of seed {seed}, and {folder} of seed {seeds[-1]}: it is of another "
            "training; move it away, to train anew"
        )


def _read_all(folder: str) -> List[Saved]:
    def number(value: Any) -> Optional[float]:
        return value if isinstance(value, (int, float)) else None

    checkpoints = []
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "checkpoint*.pt"))):
        try:
            state = load_checkpoint(path)
            updates = state["optimizer_history"][-1]["num_updates"]
            extra = state.get("extra_state", {})
            if state["last_optimizer_state"] is not None and isinstance(updates, int):
                value, best = number(extra.get("val_loss")), number(extra.get("best"))
                checkpoints.append(Saved(path, updates, value, best))
        except DamagedCheckpoint:
            names = (f"{path}.damaged{count or ''}" for count in itertools.count())
            aside = next(name for name in names if not os.path.lexists(name))
            os.rename(path, aside)
            print(f"note: {path} is damaged: moved to {aside}", file=sys.stderr)
        except (KeyError, IndexError, TypeError, AttributeError):
            continue
    return checkpoints


def _copy_to(name: str, source: Saved, checkpoints: List[Saved]) -> None:
    target = os.path.join(os.path.dirname(source.path), name)
    if source._replace(path=target) not in checkpoints:
        with open(source.path, "rb") as original, replacing(target, "wb") as copy:
            shutil.copyfileobj(original, copy)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="--save-dir of a run")
    parser.add_argument("--best", action="store_true", help="checkpoint_best.pt is needed")
    parser.add_argument("--seconds", action="store_true", help="print also those trained so far")
    args = parser.parse_args()
    newest = restore(args.folder, args.best)
    if newest and args.seconds:
        print(newest, seconds_of(newest), sep="\t")
    elif newest:
        print(newest)


if __name__ == "__main__":
    main()

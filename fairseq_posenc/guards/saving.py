"""Checkpoints of a training are written whole or not at all, whatever ends it."""

import glob
import os
from typing import Any, Callable

import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager

from fairseq_posenc.files import disk_error, file_error
from fairseq_posenc.patching import replace, replaces

_PARTIAL = ".tmp"  # fairseq's ending of what it is writing


class _WholeCopies(PathManager):
    """fairseq's files, where a copy has its name once it is whole."""

    @staticmethod
    def copy(src_path: str, dst_path: str, overwrite: bool = False) -> bool:
        if not (overwrite and PathManager.supports_rename(dst_path)):
            return PathManager.copy(src_path, dst_path, overwrite)
        copied = PathManager.copy(src_path, f"{dst_path}{_PARTIAL}", overwrite)
        if copied:
            PathManager.rename(f"{dst_path}{_PARTIAL}", dst_path)
        return copied


replace(checkpoint_utils, "PathManager", _WholeCopies)
# once: fairseq's second attempt goes on behind what the first has written
replace(checkpoint_utils, "_torch_persistent_save", torch.save)


@replaces(checkpoint_utils, "save_checkpoint")
def _save_checkpoint(save: Callable, cfg: Any, *args: Any, **kwargs: Any) -> Any:
    """Say in one line that a disk is full, and leave nothing half written."""
    try:
        return save(cfg, *args, **kwargs)
    except Exception as error:
        failed = disk_error(error)
        for partial in glob.glob(f"{glob.escape(cfg.save_dir)}/checkpoint*.pt{_PARTIAL}"):
            os.remove(partial)
        raise file_error("write a checkpoint to", cfg.save_dir, failed) from error

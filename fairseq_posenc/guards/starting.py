"""What a training can be told before its first update: no room to write, no text, a short way."""

import functools
import logging
from typing import Any

from fairseq import checkpoint_utils
from fairseq.tasks import FairseqTask

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import file_error

logger = logging.getLogger(__name__)


def check_what_starts() -> None:
    """Let fairseq say in one line that it cannot write, or has nothing to read."""
    verify, kept = checkpoint_utils.verify_checkpoint_directory, FairseqTask.filter_indices_by_size

    @functools.wraps(verify)
    def verify_checkpoint_directory(save_dir: str) -> None:
        try:
            verify(save_dir)
        except OSError as error:
            raise file_error("write to --save-dir", save_dir, error) from None

    @functools.wraps(kept)
    def filter_indices_by_size(
        self: FairseqTask,
        indices: Any,
        dataset: Any,
        max_positions: Any = None,
        ignore_invalid_inputs: bool = False,
    ) -> Any:
        found = kept(self, indices, dataset, max_positions, ignore_invalid_inputs)
        if not len(found):
            raise UsageError(
                f"nothing is left of {len(dataset)} samples: all are longer than {max_positions} "
                "tokens; raise --max-…-positions, --tokens-per-sample or --max-tokens"
                if len(dataset)
                else "a set of the data has no samples; binarise text that is not empty"
            )
        return found

    checkpoint_utils.verify_checkpoint_directory = verify_checkpoint_directory
    FairseqTask.filter_indices_by_size = filter_indices_by_size


def warn_of_short_training(cfg: Any) -> None:
    """Warn if a training ends before its learning rate has reached its peak.

    ``cfg`` is fairseq's whole configuration.
    """
    warm_up = getattr(cfg.lr_scheduler, "warmup_updates", None) or 0
    updates = cfg.optimization.max_update
    if isinstance(warm_up, int) and 0 < updates <= warm_up:
        logger.warning(
            "--max-update %d ends the training within its warm-up (--warmup-updates %d): the "
            "learning rate never reaches its peak; give a shorter warm-up",
            updates,
            warm_up,
        )

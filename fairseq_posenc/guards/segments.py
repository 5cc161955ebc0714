"""Check that a task gives a BERT model the segment of each token."""

import logging
from typing import Any

from fairseq.tasks import FairseqTask

from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards import signatures

logger = logging.getLogger(__name__)


def check_task(args: Any, task: Any) -> None:
    """Check that a model with segments gets them from its task, as from all of ours.

    Args:
        args: of the model, with its segments; those of a trained one have a signature.
        task: anything but a task of fairseq is accepted, as it reads no data.

    Raises:
        UsageError: a training would take all tokens as of one segment.
    """
    without = isinstance(task, FairseqTask) and not getattr(task, "gives_segments", False)
    if args.position_segments == "none" or not without:
        return
    problem = (
        f"--position-segments {args.position_segments}: this task of fairseq does not say which "
        "text a token is of, so that all are of segment 0"
    )
    if not signatures.is_from_checkpoint(args):
        raise UsageError(f"{problem}; leave the option out, or give --task posenc_masked_lm")
    logger.warning("%s", problem)

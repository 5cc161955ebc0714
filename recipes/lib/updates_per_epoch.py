"""Print the number of updates in an epoch of `fairseq-train` with these arguments.

python -m recipes.lib.updates_per_epoch DATA --task … --arch …

Warm-up and decay are given to fairseq in updates, in papers as a share of the training.
"""

import math
import os
import sys
from typing import Sequence

from fairseq import options, utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import import_models
from fairseq.tasks import setup_task

from fairseq_posenc import models


def updates_per_epoch(arguments: Sequence[str]) -> int:
    """Return the updates of one epoch on one GPU or CPU, before a training runs.

    Args:
        arguments: of ``fairseq-train``; without those of the learning rate's schedule, defaults.
    """
    # fairseq imports nothing from --user-dir when the package is imported already
    import_models(os.path.dirname(models.__file__), models.__name__)
    cfg = convert_namespace_to_omegaconf(
        options.parse_args_and_arch(options.get_training_parser(), list(arguments))
    )
    task = setup_task(cfg.task)
    task.load_dataset(cfg.dataset.train_subset)
    batches = task.get_batch_iterator(
        dataset=task.dataset(cfg.dataset.train_subset),
        max_tokens=cfg.dataset.max_tokens,
        max_sentences=cfg.dataset.batch_size,
        max_positions=utils.resolve_max_positions(task.max_positions()),
        ignore_invalid_inputs=True,
        required_batch_size_multiple=cfg.dataset.required_batch_size_multiple,
        seed=cfg.common.seed,
    ).next_epoch_itr()
    return math.ceil(len(batches) / cfg.optimization.update_freq[0])


if __name__ == "__main__":
    if sys.argv[1:] in ([], ["--help"], ["-h"]):
        print((__doc__ or "").strip())
    else:
        print(updates_per_epoch(sys.argv[1:]))

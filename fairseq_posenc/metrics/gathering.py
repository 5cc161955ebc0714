"""Predictions of a whole validation set, from all batches and all workers, during training."""

from typing import Any, Dict, List

import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.logging.meters import MetersDict


class Gathered(MetersDict._DerivedMeter):
    """A meter that keeps what was predicted for each example, once, whoever predicted it.

    Log it under a name that begins with ``_``, so that fairseq does not print it, and derive
    scores from its ``values``, example's number -> anything. To fairseq it is a derived meter:
    of all others it writes the content into checkpoints, and can read none but its own again.
    """

    def __init__(self) -> None:
        super().__init__(lambda _: len(self.values))
        self.values: Dict[int, Any] = {}

    def update(self, values: Dict[int, Any]) -> None:
        """Take the predictions of a batch."""
        self.values.update(values)


def from_all_workers(value: Any) -> List[Any]:
    """Return the values of all data-parallel workers, each of which must call this.

    fairseq's own ``all_gather_list`` needs GPUs and has a limit of 16 KB.
    """
    group = distributed_utils.get_data_parallel_group()
    workers = distributed_utils.get_world_size(group)
    if workers == 1:
        return [value]
    values: List[Any] = [None] * workers
    torch.distributed.all_gather_object(values, value, group=group)
    return values

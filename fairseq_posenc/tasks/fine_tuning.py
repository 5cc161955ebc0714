"""Base of the fine-tuning tasks: a head, predictions of whole sets, checks of checkpoints."""

import zlib
from contextlib import nullcontext
from typing import Any, Dict, Iterable, List, Tuple, Type

import torch
from fairseq.data import Dictionary
from fairseq.distributed import utils as distributed_utils
from fairseq.logging import metrics
from fairseq.logging.meters import MetersDict
from fairseq.tasks import FairseqTask
from omegaconf import OmegaConf, open_dict

from fairseq_posenc.criterions.fine_tuning import FineTuningCriterion
from fairseq_posenc.errors import UsageError

Predictions = List[Tuple[int, Any]]


class FineTuningTask(FairseqTask):
    """Base of tasks whose scores are computed over whole sets, from all batches and workers.

    A subclass has ``add_head``, for new models, ``metric``, of what :meth:`valid_step` has found so
    far, and ``predict``, ``score`` and ``write``, see ``posenc predict``; its configuration has
    ``max_positions`` and ``train_subset``. The dictionary gets ``<mask>``.
    """

    gives_segments = True
    criterion: Type[FineTuningCriterion] = FineTuningCriterion  # the one that goes with it
    metric_names: Iterable[str] = ()  # of metric()

    def __init__(self, cfg: Any, dictionary: Dictionary):
        super().__init__(cfg)
        self.dictionary = dictionary
        dictionary.add_symbol("<mask>")
        self._new_predictions: Dict[int, Any] = {}

    def is_training_set(self, split: str, combine: bool) -> bool:
        """Return whether a split is trained on; others are not combined, as scores would mix."""
        training = split == self.cfg.train_subset
        if combine and not training:
            raise UsageError(
                "subsets are not combined; name them, as in --valid-subset valid,valid1"
            )
        return training

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Build the model, for inputs of this task's length, with its head."""
        with open_dict(cfg) if OmegaConf.is_config(cfg) else nullcontext():
            cfg.max_positions = self.cfg.max_positions
        model = super().build_model(cfg, from_checkpoint)
        self.add_head(model)
        return model

    def build_criterion(self, *args, **kwargs):
        """Build the criterion, which must be the one that is made for this task."""
        criterion = super().build_criterion(*args, **kwargs)
        if not isinstance(criterion, self.criterion):
            name = self.cfg._name
            raise UsageError(f"--task {name} needs --criterion {name}")
        return criterion

    def valid_step(self, sample, model, criterion):
        """Validate on a batch, and keep the predictions of all workers."""
        loss, sample_size, log = super().valid_step(sample, model, criterion)
        self.share_predictions(log.pop("predictions"))
        return loss, sample_size, log

    def share_predictions(self, predictions: Dict[int, Any]) -> None:
        """Keep the predictions of all workers, each of which must call this."""
        for of_worker in from_all_workers(predictions):
            self._new_predictions.update(of_worker)

    def reduce_metrics(self, logging_outputs, criterion):
        """Log the loss and, in validation, the metrics of the whole set so far, in percent."""
        super().reduce_metrics(logging_outputs, criterion)
        if not self._new_predictions:
            return
        # kept among the meters of this validation, where the metrics find all of its batches
        metrics.log_custom(KeptPredictions, "_predictions", self._new_predictions)
        self._new_predictions = {}
        for name in self.metric_names:
            metrics.log_derived(
                name, lambda meters, name=name: self.metric(name, meters["_predictions"].values)
            )

    def check_whole(self, split: str, predictions: Predictions) -> None:
        """Raise a ValueError unless there is exactly one prediction for each item of a split."""
        if sorted(number for number, _ in predictions) != list(range(len(self.datasets[split]))):
            raise ValueError(f"there is not exactly one prediction for each item of '{split}'")

    def state_dict(self) -> Dict[str, Any]:
        """Return the properties of a folder that a checkpoint's folder must share."""
        symbols = "\n".join(self.dictionary.symbols).encode("utf-8")
        return {"vocabulary": zlib.crc32(symbols)}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Refuse a checkpoint that was trained on a folder with, say, another vocabulary."""
        own = self.state_dict()
        for key, value in state_dict.items():
            if key in own and own[key] != value:
                detail = "dict.txt" if key == "vocabulary" else f"{value} and {own[key]}"
                raise UsageError(
                    f"the checkpoint and {self.cfg.data} have different {key} ({detail}); prepare "
                    "the folder with the subwords of the checkpoint, for a task like its own"
                )

    def max_positions(self) -> int:
        """Return the most tokens of an input."""
        return self.cfg.max_positions

    @property
    def source_dictionary(self) -> Dictionary:
        """The dictionary of the subwords."""
        return self.dictionary

    @property
    def target_dictionary(self) -> None:
        """None: targets are numbers."""
        return None


class KeptPredictions(MetersDict._DerivedMeter):
    """Prediction for each example in one validation of one subset.

    A meter is the right place, though nothing is measured: fairseq makes new meters for each
    validation of each subset and passes them to derived metrics, and the predictions are needed as
    long, by these metrics.

    It is a derived meter because fairseq writes all other meters into checkpoints, and can read
    none but its own kinds again. Its name in the log begins with ``_``: those are not printed.
    """

    def __init__(self):
        super().__init__(lambda _: len(self.values))
        self.values: Dict[int, Any] = {}  # example's number -> anything

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

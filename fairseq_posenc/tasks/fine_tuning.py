"""What the fine-tuning tasks share: a head, predictions of whole sets, checks of checkpoints."""

import zlib
from contextlib import nullcontext
from functools import partial
from typing import Any, Dict, Iterable, List, Tuple, Type

from fairseq.data import Dictionary
from fairseq.logging import metrics
from fairseq.tasks import FairseqTask
from omegaconf import OmegaConf, open_dict

from fairseq_posenc.criterions.fine_tuning import FineTuningCriterion
from fairseq_posenc.errors import UsageError
from fairseq_posenc.metrics.gathering import Gathered, from_all_workers

Predictions = List[Tuple[int, Any]]


class FineTuningTask(FairseqTask):
    """Base of tasks whose scores are computed over whole sets, from all batches and workers.

    A subclass has ``predict``, ``score`` and ``write``, see ``posenc predict``; its
    configuration has ``max_positions`` and ``train_subset``.

    Attributes:
        criterion: class of the criterion that goes with it.
        metric_names: what :meth:`derived` knows.

    Args:
        cfg: options.
        dictionary: of the subwords, with ``<mask>``.
    """

    criterion: Type[FineTuningCriterion] = FineTuningCriterion
    metric_names: Iterable[str] = ()

    def __init__(self, cfg: Any, dictionary: Dictionary):
        super().__init__(cfg)
        self.dictionary = dictionary
        self._fresh: Dict[int, Any] = {}

    def add_head(self, model) -> None:
        """Add the head of this task to a new model."""
        raise NotImplementedError(f"{type(self).__name__}.add_head")

    def derived(self, name: str, predictions: Dict[int, Any]) -> float:
        """Return a metric in percent, of what :meth:`valid_step` has found so far."""
        raise NotImplementedError(f"{type(self).__name__}.derived")

    def is_training_set(self, split: str, combine: bool) -> bool:
        """Return whether a split is trained on.

        Raises:
            UsageError: subsets shall be combined for validation, which would mix their scores.
        """
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
        """Build the criterion.

        Raises:
            UsageError: it is not made for this task.
        """
        criterion = super().build_criterion(*args, **kwargs)
        if not isinstance(criterion, self.criterion):
            name = self.cfg._name
            raise UsageError(f"--task {name} needs --criterion {name}")
        return criterion

    def valid_step(self, sample, model, criterion):
        """Validate on a batch, and keep what all workers have predicted."""
        loss, sample_size, log = super().valid_step(sample, model, criterion)
        for part in from_all_workers(log.pop("predictions")):
            self._fresh.update(part)
        return loss, sample_size, log

    def reduce_metrics(self, logging_outputs, criterion):
        """Log the loss and, in validation, the metrics of the whole set so far, in percent."""
        super().reduce_metrics(logging_outputs, criterion)
        if self._fresh:
            metrics.log_custom(Gathered, "_predictions", self._fresh)
            self._fresh = {}
            for name in self.metric_names:
                metrics.log_derived(name, partial(_from_meters, self, name))

    def check_whole(self, split: str, predictions: Predictions) -> None:
        """Check that predictions are those of a whole split.

        Raises:
            ValueError: there is not exactly one for each item of the data set.
        """
        if sorted(number for number, _ in predictions) != list(range(len(self.datasets[split]))):
            raise ValueError(f"there is not exactly one prediction for each item of '{split}'")

    def state_dict(self) -> Dict[str, Any]:
        """Return what a folder must share with the one that a checkpoint was trained on."""
        symbols = "\n".join(self.dictionary.symbols).encode("utf-8")
        return {"vocabulary": zlib.crc32(symbols)}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Compare with a checkpoint.

        Raises:
            UsageError: it was trained on a folder with, for example, another vocabulary.
        """
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


def _from_meters(task: FineTuningTask, name: str, meters) -> float:
    return task.derived(name, meters["_predictions"].values)

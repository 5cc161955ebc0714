"""Base of the fine-tuning criterions."""

import math
from dataclasses import dataclass
from typing import Any, Dict, List

from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from omegaconf import II
from torch import Tensor

from fairseq_posenc.errors import UsageError


@dataclass
class FineTuningCriterionConfig(FairseqDataclass):
    """The metric by which fairseq chooses the best checkpoint."""

    best_checkpoint_metric: str = II("checkpoint.best_checkpoint_metric")
    maximize_best_checkpoint_metric: bool = II("checkpoint.maximize_best_checkpoint_metric")


class FineTuningCriterion(FairseqCriterion):
    """Base of criterions with a loss that is summed over the examples.

    In validation the predictions travel in the logging output; the task scores the whole set.

    Raises:
        UsageError: ``--best-checkpoint-metric`` is not one of them, or would choose the worst.
    """

    def __init__(self, cfg: FineTuningCriterionConfig, task: Any):
        super().__init__(task)
        best, maximise = cfg.best_checkpoint_metric, cfg.maximize_best_checkpoint_metric
        metrics = ["loss", *task.metric_names]
        if best not in metrics:
            raise UsageError(f"--best-checkpoint-metric {best}: the task has {', '.join(metrics)}")
        if maximise != (best != "loss"):
            raise UsageError(
                f"--best-checkpoint-metric {best} goes {'without' if maximise else 'with'} "
                "--maximize-best-checkpoint-metric, or the worst checkpoint is taken for the best"
            )

    @staticmethod
    def logging_output(loss: Tensor, sample: Dict[str, Any], in_bits: bool = True) -> Dict:
        """Return the entries that every criterion logs; cross-entropies are logged in bits."""
        examples = len(sample["id"])
        return {
            "loss": loss.detach() / (math.log(2) if in_bits else 1),
            "ntokens": sample["ntokens"],
            "nsentences": examples,
            "sample_size": examples,
        }

    @staticmethod
    def reduce_metrics(logging_outputs: List[Dict[str, Any]]) -> None:
        """Log the loss per example and, where it is counted, the accuracy in percent."""

        def total(name: str) -> float:
            return utils.item(sum(log.get(name, 0) for log in logging_outputs))

        examples = total("sample_size")
        metrics.log_scalar("loss", total("loss") / examples, examples, round=4)
        if any("correct" in log for log in logging_outputs):
            metrics.log_scalar("accuracy", 100 * total("correct") / examples, examples, round=2)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """Return True: the task takes the predictions out before workers are summed."""
        return True

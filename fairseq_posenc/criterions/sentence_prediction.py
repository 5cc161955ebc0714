"""The criterion ``posenc_sentence_prediction``: cross-entropy for labels, squares for scores."""

from dataclasses import dataclass
from typing import Any, Dict

import torch
from fairseq.criterions import register_criterion
from torch import Tensor
from torch.nn import functional as F

from fairseq_posenc.criterions.fine_tuning import FineTuningCriterion, FineTuningCriterionConfig
from fairseq_posenc.errors import UsageError
from fairseq_posenc.options import option


def outputs_of(model: torch.nn.Module, sample: Dict[str, Any], head: str) -> Tensor:
    """Return a classification head's logits for a batch, (B, labels), or scores (B, 1)."""
    return model(**sample["net_input"], features_only=True, classification_head_name=head)[0]


def decisions(outputs: Tensor, regression: bool) -> Tensor:
    """Return numbers of labels, or scores (float32), (B,), for (B, labels) outputs of a head."""
    return outputs.float().squeeze(-1) if regression else outputs.argmax(-1)


@dataclass
class PosencSentencePredictionCriterionConfig(FineTuningCriterionConfig):
    """Options of the criterion."""

    classification_head_name: str = option(
        "sentence_classification_head", "name of the classification head to use"
    )


@register_criterion("posenc_sentence_prediction", dataclass=PosencSentencePredictionCriterionConfig)
class PosencSentencePredictionCriterion(FineTuningCriterion):
    """Cross-entropy (logged in bits), or the squared error of scores as they are in the files."""

    def __init__(self, cfg: PosencSentencePredictionCriterionConfig, task):
        super().__init__(cfg, task)
        self.head = task.cfg.classification_head_name
        self.regression = task.description.regression

    def forward(self, model, sample, reduce=True):
        """Return loss (summed over the batch), number of examples and logging output."""
        if "target" not in sample:
            raise UsageError(
                "a set without labels can be predicted (posenc predict), but not be trained or "
                "validated on"
            )
        # outputs: (batch, labels), or (batch, 1) for scores; targets: (batch,)
        outputs, targets = outputs_of(model, sample, self.head), sample["target"]
        if self.regression:
            loss = F.mse_loss(outputs.float().squeeze(-1), targets.float(), reduction="sum")
        else:
            loss = F.cross_entropy(outputs.float(), targets, reduction="sum")
        log = self.logging_output(loss, sample, in_bits=not self.regression)
        predicted = decisions(outputs.detach(), self.regression)
        if not model.training:
            # number of the example → prediction and target
            pairs = zip(predicted.tolist(), targets.tolist())
            log["predictions"] = dict(zip(sample["id"].tolist(), pairs))
        elif not self.regression:
            log["correct"] = (predicted == targets).sum()
        return loss, len(targets), log

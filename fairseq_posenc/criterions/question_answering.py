"""The criterion ``posenc_question_answering``: cross-entropy of the answer's start and end."""

from typing import Any, Dict

import torch
from fairseq.criterions import register_criterion
from torch import Tensor

from fairseq_posenc.criterions.fine_tuning import FineTuningCriterion, FineTuningCriterionConfig
from fairseq_posenc.errors import UsageError

SPAN_HEAD = "span"


def logits_of(model: torch.nn.Module, sample: Dict[str, Any]) -> Tensor:
    """Return the scores of a batch's tokens as start and as end, (B, T, 2), in float32."""
    return model(**sample["net_input"], span_head_name=SPAN_HEAD)[0].float()


@register_criterion("posenc_question_answering", dataclass=FineTuningCriterionConfig)
class PosencQuestionAnsweringCriterion(FineTuningCriterion):
    """Mean of the cross-entropies of start and end, per window (logged in bits).

    As in BERT (Devlin et al. 2019, section 4.2). Our reading: the softmax is over the context and
    ``<s>``, at which the answer is in windows without it; the question, ``</s>`` and padding
    cannot be answers.
    """

    def forward(self, model, sample, reduce=True):
        """Return loss (summed over the windows), number of windows and logging output."""
        if "answer" not in sample:
            raise UsageError(
                "questions without answers can be predicted (posenc predict), but not be trained "
                "or validated on"
            )
        # logits, scores: (batch, length, 2), as start and as end
        logits = logits_of(model, sample)
        # allowed: (batch, length), the context and <s>
        allowed = sample["answerable"].clone()
        allowed[:, 0] = True
        scores = logits.masked_fill(~allowed.unsqueeze(-1), float("-inf")).log_softmax(dim=1)
        # answer: (batch, 2), the positions of start and end
        loss = -scores.gather(1, sample["answer"].unsqueeze(1)).sum() / 2
        log = self.logging_output(loss, sample)
        if not model.training:
            log["predictions"] = dict(self.task.candidates(logits, sample))
        return loss, len(sample["id"]), log

"""fairseq's label-smoothed cross entropy in training on a CPU, with one tensor in place of four.

The logits of a batch are its largest tensor: tokens times the size of the vocabulary. fairseq's
loss makes their log-probabilities, and three more of that size in the backward pass.
"""

from typing import Any, Callable, Dict, Tuple

import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.models import FairseqDecoder
from fairseq.models.transformer import TransformerModelBase
from torch import Tensor
from torch.autograd.function import once_differentiable

from fairseq_posenc.patching import replaces


class LabelSmoothedNLL(torch.autograd.Function):
    """The loss and its negative log-likelihood, summed over the targets that are no padding.

    For probabilities p over V types and a target t it is -(1 - ε - e) log pₜ - e Σᵥ log pᵥ with
    e = ε / (V - 1), as in fairseq. Its gradient by the logits, (1 - ε - e + e V) p - e, less
    1 - ε - e at t, takes the place of the probabilities in the forward pass.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target: Tensor, epsilon: float, padding_index: int
    ) -> Tuple[Tensor, Tensor]:
        """Take logits ``(N, V)`` and targets ``(N,)``."""
        uniform = epsilon / (logits.size(1) - 1)
        certain = 1 - epsilon - uniform
        mask = target.ne(padding_index).to(logits.dtype)
        lprobs = logits.log_softmax(1)
        nll_loss = -lprobs.gather(1, target[:, None]).squeeze(1).mul(mask).sum()
        smooth_loss = -lprobs.sum(1).mul(mask).sum()
        gradient = lprobs.exp_().mul_(certain + uniform * logits.size(1)).sub_(uniform)
        gradient.scatter_add_(1, target[:, None], torch.full_like(mask, -certain)[:, None])
        ctx.save_for_backward(gradient.mul_(mask[:, None]))
        ctx.mark_non_differentiable(nll_loss)
        return certain * nll_loss + uniform * smooth_loss, nll_loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, loss_gradient: Tensor, _: Tensor) -> Tuple[Tensor, None, None, None]:
        """Return the gradient by the logits."""
        (gradient,) = ctx.saved_tensors
        # it is 1 unless the loss is scaled
        if loss_gradient != 1:
            gradient = gradient * loss_gradient
        return gradient, None, None, None


def _is_taken(model: Any, logits: Any) -> bool:
    """Whether the model's probabilities are the plain softmax of its decoder's logits."""
    while hasattr(model, "module"):  # of several workers
        model = model.module
    decoder = getattr(model, "decoder", None)
    return (
        isinstance(logits, Tensor)
        and logits.requires_grad
        and logits.device.type == "cpu"
        and logits.dtype == torch.float32
        and type(model).get_normalized_probs is TransformerModelBase.get_normalized_probs
        and type(decoder).get_normalized_probs is FairseqDecoder.get_normalized_probs
        and getattr(decoder, "adaptive_softmax", None) is None
    )


@replaces(LabelSmoothedCrossEntropyCriterion, "compute_loss")
def _compute_loss(
    compute: Callable,
    criterion: LabelSmoothedCrossEntropyCriterion,
    model: Any,
    net_output: Any,
    sample: Dict[str, Any],
    reduce: bool = True,
) -> Any:
    """Let fairseq's criterion, and those made from it, take :class:`LabelSmoothedNLL`."""
    logits, prefix = net_output[0], criterion.ignore_prefix_size
    if not (reduce and _is_taken(model, logits)):
        return compute(criterion, model, net_output, sample, reduce=reduce)
    target = model.get_targets(sample, net_output)[:, prefix:].flatten()
    logits = logits[:, prefix:].flatten(0, 1)
    return LabelSmoothedNLL.apply(logits, target, criterion.eps, criterion.padding_idx)

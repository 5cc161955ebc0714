"""The label-smoothed loss in one tensor beside fairseq's own."""

import pytest
import torch
from fairseq.criterions import label_smoothed_cross_entropy as stock
from fairseq.distributed import ModuleProxyWrapper
from fairseq.models import FairseqDecoder

from fairseq_posenc.criterions.label_smoothing import LabelSmoothedNLL

PADDING = 1


def stock_loss(logits, target, epsilon):
    lprobs = logits.log_softmax(-1)
    return stock.label_smoothed_nll_loss(lprobs, target, epsilon, ignore_index=PADDING)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("scale", [1, 2.5], ids=["loss", "scaled loss"])
@pytest.mark.parametrize("targets", [[4, 1, 0, 6, 1], [1, 1, 1, 1, 1], [2, 3, 4, 5, 6]], ids=str)
def test_loss_and_gradient_are_fairseqs(targets, scale, epsilon):
    generator = torch.Generator().manual_seed(1)
    logits = 5 * torch.randn(5, 7, dtype=torch.float64, generator=generator)
    target = torch.tensor(targets)
    results = []
    for loss in (lambda *a: LabelSmoothedNLL.apply(*a, PADDING), stock_loss):
        leaf = logits.clone().requires_grad_()
        loss, nll_loss = loss(leaf, target, epsilon)
        (scale * loss).backward()
        results.append((loss.detach(), nll_loss.detach(), leaf.grad))
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("prefix", [0, 2])
@pytest.mark.parametrize(
    ("altered", "taken"),
    [(None, True), ("workers", True), ("precision", False), ("probabilities", False)],
)
def test_the_criterion_has_the_loss_of_fairseqs(
    altered, taken, prefix, build_model, tiny_task, monkeypatch
):
    model = build_model().train()
    if altered == "precision":
        model.double()
    elif altered == "workers":  # as fairseq wraps the model of several
        model = ModuleProxyWrapper(torch.nn.DataParallel(model))
    elif altered == "probabilities":

        class Decoder(type(model.decoder)):
            def get_normalized_probs(self, net_output, log_probs, sample=None):
                return FairseqDecoder.get_normalized_probs(self, net_output, log_probs, sample) - 1

        model.decoder.__class__ = Decoder
    target = torch.tensor([[5, 6, 7, 2], [8, 2, PADDING, PADDING]])
    sample = {
        "net_input": {
            "src_tokens": torch.tensor([[4, 5, 6, 2], [7, 8, 9, 2]]),
            "src_lengths": torch.tensor([4, 4]),
            "prev_output_tokens": target.roll(1, 1),
        },
        "target": target,
        "ntokens": 6,
    }
    criterion = stock.LabelSmoothedCrossEntropyCriterion(
        tiny_task, False, 0.1, ignore_prefix_size=prefix
    )
    results, calls = [], []
    apply = LabelSmoothedNLL.apply
    monkeypatch.setattr(LabelSmoothedNLL, "apply", lambda *a: calls.append(a) or apply(*a))
    patched = type(criterion).compute_loss
    for compute_loss in (patched, patched.__wrapped__):
        monkeypatch.setattr(type(criterion), "compute_loss", compute_loss)
        model.zero_grad()
        loss, size, log = criterion(model, sample)
        loss.backward()
        gradients = [w.grad.clone() for w in model.parameters() if w.grad is not None]
        results.append((loss.detach(), log["nll_loss"], torch.tensor(size), *gradients))
    torch.testing.assert_close(*results)
    assert len(calls) == taken

"""Predictions come in the order of the examples, whatever that of the batches."""

from types import SimpleNamespace

import torch

from fairseq_posenc.tools.bert import predict as module


def test_predictions_come_in_the_order_of_the_examples():
    task = SimpleNamespace(
        dataset=lambda subset: range(4), max_positions=lambda: 16,
        get_batch_iterator=lambda *_, **__: SimpleNamespace(
            next_epoch_itr=lambda shuffle: [[3, 1], [0, 2]]
        ),
        predict=lambda model, sample: [(number, model.training) for number in sample],
    )  # fmt: skip
    model = torch.nn.Linear(1, 1).eval()
    model.max_positions = lambda: 8
    expected = [(number, False) for number in range(4)]
    assert module.predictions(model, task, "valid", 100) == expected

"""What a training is told before its first update, each in one line."""

import logging
from argparse import Namespace
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.data import FairseqDataset
from fairseq.dataclass.configs import DistributedTrainingConfig
from fairseq.distributed import utils as distributed_utils
from fairseq.tasks import FairseqTask
from fairseq.tasks.masked_lm import MaskedLMTask
from fairseq_cli import train

from fairseq_posenc.encodings import StackConfig, build, cape
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards import segments, training_start
from fairseq_posenc.models import bert  # noqa: F401 (fairseq is guarded)
from fairseq_posenc.tasks.masked_lm import PosencMaskedLMTask


class Sentences(FairseqDataset):
    """Sentences of which only the lengths are known."""

    def __init__(self, *lengths):
        self.sizes = np.array(lengths)

    def __len__(self):
        return len(self.sizes)

    def size(self, index):
        return self.sizes[index]


@pytest.mark.parametrize(
    "lengths, told",
    [((9, 7), "nothing is left of 2 samples: all are longer than 5"), ((), "no samples"),
     ((9, 3), None)],
)  # fmt: skip
def test_a_set_of_which_nothing_is_left_is_refused(lengths, told):
    sentences, task = Sentences(*lengths), FairseqTask(None)
    indices = np.arange(len(lengths))
    if told is None:
        assert list(task.filter_indices_by_size(indices, sentences, 5, True)) == [1]
        return
    with pytest.raises(UsageError, match=told):
        task.filter_indices_by_size(indices, sentences, 5, ignore_invalid_inputs=True)
    if lengths:
        with pytest.raises(
            UsageError, match="a sample has 9 tokens, more than the 5 .*raise --max"
        ):
            task.filter_indices_by_size(indices, sentences, 5)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(UsageError, match=f"^cannot write to --save-dir {folder}: Not a direct"):
            checkpoint_utils.verify_checkpoint_directory(str(folder))


def test_a_metric_that_a_validation_lacks_is_named():
    cfg = Namespace(
        checkpoint=Namespace(best_checkpoint_metric="nll", maximize_best_checkpoint_metric=False),
        task=Namespace(eval_bleu=True),
    )
    trainer = Namespace(get_num_updates=lambda: 3)
    training_start.patch_valid_stats()
    with pytest.raises(UsageError, match="-metric nll: the validation has loss, bleu$"):
        train.get_valid_stats(cfg, trainer, {"loss": 2.0}, False)
    # of a model whose translations are all empty
    cfg.checkpoint.best_checkpoint_metric = "bleu"
    stats = train.get_valid_stats(cfg, trainer, {"loss": 2.0}, False)
    assert stats == {"loss": 2.0, "bleu": 0.0, "num_updates": 3}


@pytest.mark.parametrize(
    "most, last, end, warned",
    [(30, 20, 0.0, 1), (20, 20, 0.0, 0), (30, 20, 0.1, 0), (30, None, None, 0)],
)
def test_a_training_that_goes_on_at_a_learning_rate_of_0_is_told(caplog, most, last, end, warned):
    scheduler = Namespace(total_num_update=last, end_learning_rate=end)
    cfg = Namespace(lr_scheduler=scheduler, optimization=Namespace(max_update=most))
    training_start.warn_of_short_training(cfg)
    assert len(caplog.records) == warned and (not warned or "update 20, where" in caplog.text)


@pytest.mark.parametrize("environment, size, gpus, told", [
    ({"WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "a"}, 1, 1, "GPU; give --distributed-world-size 4"),
    ({"WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "a"}, 1, 0, "--distributed-rank, 0 to 3"),
    ({"WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "a"}, 4, 1, None),
    ({"WORLD_SIZE": "1", "TORCHELASTIC_RUN_ID": "a"}, 1, 0, None),
    ({"WORLD_SIZE": "4"}, 1, 0, None),
])  # fmt: skip
def test_workers_of_torchrun_that_each_train_alone_are_refused(
    monkeypatch, environment, size, gpus, told
):
    for name in ("WORLD_SIZE", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    with pytest.raises(UsageError, match=told) if told else nullcontext():
        training_start.check_workers(Namespace(distributed_world_size=size))


@pytest.mark.parametrize("torchrun", [True, False])
def test_workers_that_need_gpus_are_refused_without_any(monkeypatch, torchrun):
    names = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
    for name, value in zip(names, ("localhost", "29500", "2", "0")):
        if torchrun:
            monkeypatch.setenv(name, value)
        else:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    cfg = DistributedTrainingConfig(distributed_world_size=2, tpu=False)
    with pytest.raises(UsageError, match="--distributed-world-size 2: fairseq sees no GPU"):
        distributed_utils.infer_init_method(cfg)
    assert cfg.distributed_init_method is None
    cfg.distributed_init_method = "tcp://localhost:29500"  # as the message says
    distributed_utils.infer_init_method(cfg)
    if torchrun:  # with GPUs, fairseq finds what torchrun says
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        cfg.distributed_init_method = None
        distributed_utils.infer_init_method(cfg)
        assert cfg.distributed_init_method == "env://"


@pytest.mark.parametrize("most, warm_up, warned", [(20, 40, 1), (40, 40, 1), (41, 40, 0),
                                                   (0, 40, 0), (20, None, 0)])  # fmt: skip
def test_a_training_within_its_warm_up_is_told(caplog, most, warm_up, warned):
    scheduler = {} if warm_up is None else {"warmup_updates": warm_up}
    cfg = Namespace(lr_scheduler=Namespace(**scheduler), optimization=Namespace(max_update=most))
    training_start.warn_of_short_training(cfg)
    assert [record.levelno for record in caplog.records] == warned * [logging.WARNING]


def test_cape_tells_once_that_order_is_lost(caplog):
    cape._warn_of_lost_order.cache_clear()
    for shift in (0.0, 0.5, 3.0, 3.0):
        build("cape", StackConfig(layers=1, heads=2, channels=8, max_length=9), local_shift=shift)
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith("the local shift εmax of 3 ")


@pytest.mark.parametrize("kind", [MaskedLMTask, PosencMaskedLMTask, type(None)])
def test_segments_need_a_task_that_has_them(caplog, kind):
    task, args = kind.__new__(kind), Namespace(position_segments="none")
    segments.check_task(args, task)
    args.position_segments = "per_head"
    if kind is MaskedLMTask:
        with pytest.raises(UsageError, match="per_head: this task .* give --task posenc_masked_lm"):
            segments.check_task(args, task)
    else:
        segments.check_task(args, task)
    args.position_signature = "position:tupe"  # a trained model
    segments.check_task(args, task)
    assert len(caplog.records) == (kind is MaskedLMTask)

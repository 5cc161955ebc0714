"""The facts of a log of fairseq-train, also where it was killed and resumed."""

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.training_log import read_log, validation_losses

TIME = "2026-11-21 03:59:00 | INFO |"


def start(update=0, gpus=1, names=(), parameters="1,768,960", config=""):
    """The head of a start of fairseq-train, resumed at ``update``."""
    lines = [f"{TIME} fairseq_cli.train | {{'common': {{{config}}}}}"]
    lines += [f"{TIME} fairseq_posenc.models.transformer | position:shape|max-shift:40|version:1"]
    lines += [
        f"{TIME} fairseq_cli.train | num. shared model params: {parameters} (num. trained: 7)"
    ]
    lines += [f"{TIME} fairseq_cli.train | num. expert model params: 0 (num. trained: 0)"]
    for rank, name in enumerate(names):
        facts = "capabilities =  7.0  ; total memory = 31.740 GB ; "
        lines.append(f"{TIME} fairseq.utils | rank {rank:3d}: {facts}name = {name:40s}")
    lines += [f"{TIME} fairseq_cli.train | training on {gpus} devices (GPUs/TPUs)"]
    loaded = f"Loaded checkpoint c.pt (epoch 2 @ {update} updates)"
    return [*lines, f"{TIME} fairseq.trainer | {loaded if update else 'No existing checkpoint'}"]


def inner(updates, wall, wps="3631.3"):
    return (
        f"{TIME} train_inner | epoch 001:    100 / 265 loss=11.162, ppl=1933.9, wps={wps}, "
        f"ups=2.02, wpb=1796.7, num_updates={updates}, lr=0.0005, train_wall=50, wall={wall}"
    )


def epoch(updates, wall):
    return (
        f"{TIME} train | epoch 014 | loss 4.349 | wps 3485.9 | ups 1.95 | num_updates {updates} "
        f"| lr 0.00259587 | train_wall 133 | wall {wall}"
    )


def done(seconds):
    return f"{TIME} fairseq_cli.train | done training in {seconds} seconds"


@pytest.fixture
def log(write):
    return lambda *lines: write("train.log", lines)


@pytest.fixture
def read(log):
    return lambda *lines: read_log(log(*lines))


def test_facts_of_an_unbroken_training(read):
    facts = read(*start(), inner(100, 51), inner(200, 113), epoch(265, 150), done("149.5"))
    assert facts == {
        "updates": 265, "seconds": 149.5, "seconds_repeated": 0, "parts": 1,
        "tokens_per_second": 3631.3, "parameters": 1768960, "gpus": 1, "hardware": None,
        "precision": None, "torch": None, "position": "position:shape|max-shift:40|version:1",
    }  # fmt: skip


def test_what_a_log_lacks_is_none(read):
    facts = read(inner(100, 51))
    assert [facts[name] for name in ("parameters", "gpus", "hardware", "position")] == [None] * 4
    assert (facts["seconds"], facts["parts"]) == (51, 1)


def test_the_precision_is_that_of_all_parts(read):
    words = "| precision: {}, on CPU AVX512, 1 of 2 threads"
    parts = [start() + [words.format(one), inner(100, 51)] for one in ("float32", "amp bfloat16")]
    assert read(*parts[1])["precision"] == "amp bfloat16"
    assert read(*parts[0], *parts[1])["precision"] == "float32 and amp bfloat16"


def test_the_versions_of_torch_are_those_of_all_parts(read):
    first, second = (start() + [f"| torch: 2.1{n}.0+cpu", inner(100 * n, 51)] for n in (3, 4))
    assert read(*first, *second)["torch"] == "2.13.0+cpu and 2.14.0+cpu"


def test_speed_is_the_median_of_the_inner_lines_or_of_epochs(read):
    speeds = ["10.0", "3000", "1000", "5000", "4000"]
    lines = [inner(100 * n, n, wps) for n, wps in enumerate(speeds, 1)]
    assert read(*start(), *lines, epoch(500, 9))["tokens_per_second"] == 3000
    # shorter than the log interval
    facts = read(*start(), epoch(60, 9), done("8.0"))
    assert (facts["tokens_per_second"], facts["updates"], facts["seconds"]) == (3485.9, 60, 8.0)


@pytest.mark.parametrize(
    ("lines", "seconds", "repeated", "parts"),
    [
        # killed after update 200, and after 310
        ([*start(), inner(100, 51), inner(200, 100), inner(300, 160),
          *start(200), inner(300, 40), epoch(310, 45), inner(400, 90),
          *start(310), inner(400, 31), inner(500, 70), done("75.0")], 100 + 45 + 75, 60 + 45, 3),
        # a part between two that start alike counts for nothing
        ([*start(), inner(100, 50), inner(200, 90), *start(100), inner(200, 40),
          *start(100), inner(200, 41), done("41.5")], 50 + 41.5, 40 + 40, 3),
        # a part that falls back behind an earlier one takes its time away
        ([*start(), inner(100, 50), inner(200, 90), inner(300, 140), *start(200), inner(300, 40),
          inner(400, 80), *start(100), inner(400, 150)], 50 + 0 + 150, 90 + 80, 3),
        # a finished training that goes on keeps all its time
        ([*start(), inner(100, 51), done("55.5"), *start(100), inner(200, 40), done("44.5")],
         100, 0, 2),
        # starts that were killed at once change nothing
        ([*start(), inner(100, 51), *start(100), *start(100), inner(200, 40)], 91, 0, 2),
    ],
)  # fmt: skip
def test_seconds_of_resumed_parts_are_summed_without_what_was_trained_twice(
    read, lines, seconds, repeated, parts
):
    facts = read(*lines)
    found = facts["seconds"], facts["seconds_repeated"], facts["parts"]
    assert found == (seconds, repeated, parts)


@pytest.mark.parametrize(
    ("last", "gpus", "hardware"),
    [
        (start(1, gpus=2, names=["NVIDIA H200"] * 2), 2, "NVIDIA H200"),
        (start(1, gpus=2, names=["A", "B"]), 2, "A, B"),
        (start(1, config="'seed': 1, 'cpu': True"), 1, "CPU"),
        (start(1, config="'cpu': False"), 1, None),
    ],
)
def test_devices_are_those_of_the_last_part(read, last, gpus, hardware):
    first = start(gpus=8, names=["Tesla V100-SXM2-32GB"] * 8)
    facts = read(*first, inner(1, 1), *last, inner(2, 1))
    assert (facts["gpus"], facts["hardware"]) == (gpus, hardware)


def test_parameters_of_older_logs_are_read(read):
    line = f"{TIME} fairseq_cli.train | num. model params: 61000000 (num. trained: 61000000)"
    assert read(line, inner(1, 1))["parameters"] == 61000000


@pytest.mark.parametrize("text", ["nothing of it", '{"train_wps": "5", "train_num_updates": "7"}'])
def test_other_files_are_refused(read, tmp_path, text):
    with pytest.raises(UsageError, match="not a log of fairseq-train --log-format simple"):
        read(text)
    with pytest.raises(UsageError, match=r"cannot read .*other\.log"):
        read_log(str(tmp_path / "other.log"))


def valid(updates, loss, nll=None, subset="valid"):
    other = f" | nll_loss {nll} | ppl 3545.36" if nll else ""
    return (
        f"{TIME} valid | epoch 001 | valid on '{subset}' subset | loss {loss}{other} | wps 13876.3 "
        f"| wpb 1102.2 | bsz 74 | num_updates {updates} | best_loss 0.001"
    )


@pytest.fixture
def losses(log):
    return lambda *lines: validation_losses(log(*lines))


def test_losses_of_validation_are_without_label_smoothing_where_that_is_logged(losses):
    lines = [valid(5, "11.781", "11.792"), valid(5, "8", "7", subset="test"), epoch(5, 9)]
    assert losses(*start(), *lines) == {5: 11.792}
    assert losses(*start(), valid(100, "9.02"), valid(200, "nan"))[100] == 9.02
    assert losses(valid(1, "1e-05", "inf")) == {1: float("inf")}


def test_losses_of_a_resumed_training_are_those_that_it_went_on_from(losses):
    first = [*start(), valid(100, 9), inner(100, 50), valid(200, 8), inner(200, 99), valid(300, 7)]
    # killed after update 300, resumed from 200; then from 100; a start killed at once counts not
    second = [*start(200), inner(250, 20), valid(250, 6), valid(400, 5)]
    third = [*start(100), valid(200, 4), *start(150)]
    assert losses(*first) == {100: 9, 200: 8, 300: 7}
    assert losses(*first, *second) == {100: 9, 200: 8, 250: 6, 400: 5}
    assert losses(*first, *second, *third) == {100: 9, 200: 4}
    assert losses(*first, *start(), valid(100, 3)) == {100: 3}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["nothing of it"], "is not a log of fairseq-train --log-format simple"),
        (['{"valid_nll_loss": "5", "valid_num_updates": "7"}'], "is not a log"),
        ([*start(), inner(100, 50), valid(100, 5, subset="valid1")], "has no validation"),
    ],
)
def test_logs_without_validation_are_refused(losses, lines, message):
    with pytest.raises(UsageError, match=message):
        losses(*lines)

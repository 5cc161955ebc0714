import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.results.training_log import read_log

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
    if update:
        place = f"c.pt (epoch 2 @ {update} updates)"
        lines += [f"{TIME} fairseq.trainer | Loaded checkpoint {place}"]
    else:
        lines += [f"{TIME} fairseq.trainer | No existing checkpoint found c.pt"]
    return lines


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
def read(tmp_path):
    def read(*lines):
        path = tmp_path / "train.log"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return read_log(str(path))

    return read


def test_facts_of_an_unbroken_training(read):
    facts = read(*start(), inner(100, 51), inner(200, 113), epoch(265, 150), done("149.5"))
    assert facts == {
        "updates": 265, "seconds": 149.5, "seconds_repeated": 0, "parts": 1,
        "tokens_per_second": 3631.3, "parameters": 1768960, "gpus": 1, "hardware": None,
        "position": "position:shape|max-shift:40|version:1",
    }  # fmt: skip


def test_speed_is_the_median_of_the_inner_lines_not_of_epochs(read):
    speeds = ["10.0", "3000", "1000", "5000", "4000"]
    lines = [inner(100 * n, n, wps) for n, wps in enumerate(speeds, 1)]
    assert read(*start(), *lines, epoch(500, 9))["tokens_per_second"] == 3000


def test_a_training_shorter_than_the_log_interval_has_the_speed_of_its_epochs(read):
    facts = read(*start(), epoch(60, 9), done("8.0"))
    assert (facts["tokens_per_second"], facts["updates"], facts["seconds"]) == (3485.9, 60, 8.0)


def test_seconds_of_resumed_parts_are_summed_without_what_was_trained_twice(read):
    facts = read(
        *start(), inner(100, 51), inner(200, 100), inner(300, 160),  # killed after update 200
        *start(200), inner(300, 40), epoch(310, 45), inner(400, 90),  # killed after update 310
        *start(310), inner(400, 31), inner(500, 70), done("75.0"),
    )  # fmt: skip
    assert facts["seconds"] == 100 + 45 + 75
    assert facts["seconds_repeated"] == 60 + 45
    assert (facts["parts"], facts["updates"]) == (3, 500)


def test_a_part_between_two_that_start_alike_counts_for_nothing(read):
    facts = read(
        *start(), inner(100, 50), inner(200, 90),
        *start(100), inner(200, 40),
        *start(100), inner(200, 41), done("41.5"),
    )  # fmt: skip
    assert (facts["seconds"], facts["seconds_repeated"]) == (50 + 41.5, 40 + 40)


def test_a_part_that_falls_back_behind_an_earlier_one_takes_its_time_away(read):
    facts = read(
        *start(), inner(100, 50), inner(200, 90), inner(300, 140),
        *start(200), inner(300, 40), inner(400, 80),
        *start(100), inner(400, 150),
    )  # fmt: skip
    assert facts["seconds"] == 50 + 0 + 150


def test_a_finished_training_that_goes_on_keeps_all_its_time(read):
    facts = read(*start(), inner(100, 51), done("55.5"), *start(100), inner(200, 40), done("44.5"))
    assert (facts["seconds"], facts["seconds_repeated"]) == (100, 0)


def test_starts_that_were_killed_at_once_change_nothing(read):
    facts = read(*start(), inner(100, 51), *start(100), *start(100), inner(200, 40))
    assert (facts["seconds"], facts["parts"]) == (91, 2)


def test_devices_are_those_of_the_last_part(read):
    first = start(gpus=8, names=["Tesla V100-SXM2-32GB"] * 8)
    facts = read(*first, inner(1, 1), *start(1, gpus=2, names=["NVIDIA H200"] * 2), inner(2, 1))
    assert (facts["gpus"], facts["hardware"]) == (2, "NVIDIA H200")
    facts = read(*start(gpus=2, names=["A", "B"]), inner(1, 1))
    assert (facts["gpus"], facts["hardware"]) == (2, "A, B")


def test_a_cpu_is_named(read):
    assert read(*start(config="'seed': 1, 'cpu': True"), inner(1, 1))["hardware"] == "CPU"
    assert read(*start(config="'cpu': False"), inner(1, 1))["hardware"] is None


def test_parameters_of_older_logs_are_read(read):
    line = f"{TIME} fairseq_cli.train | num. model params: 61000000 (num. trained: 61000000)"
    assert read(line, inner(1, 1))["parameters"] == 61000000


def test_what_a_log_lacks_is_none(read):
    facts = read(inner(100, 51))
    assert [facts[name] for name in ("parameters", "gpus", "hardware", "position")] == [None] * 4
    assert (facts["seconds"], facts["parts"]) == (51, 1)


@pytest.mark.parametrize("text", ["nothing of it", '{"train_wps": "5", "train_num_updates": "7"}'])
def test_other_files_are_refused(read, text):
    with pytest.raises(UsageError, match="no log of fairseq-train --log-format simple"):
        read(text)


def test_a_missing_log_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read .*train\.log"):
        read_log(str(tmp_path / "train.log"))

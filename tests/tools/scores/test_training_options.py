"""Results are told of whose trainings had other options, by the logs beside them."""

from argparse import Namespace

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.training_options import options_beside
from tests.tools.tables.test_length_table import score
from tests.tools.tables.test_tasks import TARGET, classes

HEAD = "2026-11-21 03:59:00 | INFO | fairseq_cli.train | "


def log(epochs=2, arch="posenc_transformer_tiny", **model):
    """The line of a log with a training's options, as fairseq writes it."""
    optimization = {"_name": None, "max_epoch": epochs, "lr": [0.001]}
    options = Namespace(save_dir="runs", arch=arch, **{**optimization, **model})
    groups = {
        "_name": None, "checkpoint": {"save_dir": "runs"}, "dataset": {"max_tokens": 100},
        "optimization": optimization, "model": options, "criterion": {"_name": "cross_entropy"},
    }  # fmt: skip
    return [f"{HEAD}{groups}", "epoch 001"]


def predicted(wrong, **changes):
    """A result of posenc predict, of which so many examples are wrong."""
    return classes(1, predictions=[*(1 - TARGET[:wrong]), *TARGET[wrong:]], **changes)


@pytest.fixture
def results(write):
    """Files of results and logs: of posenc score, or of posenc predict on a task."""

    def results(task=None, **logs):
        paths = []
        for number, (folder, lines) in enumerate(logs.items()):
            notes = {"seed": folder[-1]}
            content = predicted(number, task=task, notes=notes) if task else score(0.6 + number / 9)
            paths.append(write(f"{folder}/score.json", content))
            write(f"{folder}/train.log", lines)
        return [f"{path.split('/')[-2][0]}={path}" for path in paths]

    return results


@pytest.mark.parametrize("task", [None, "MNLI"])
def test_trainings_with_other_options_are_told(results, posenc, tmp_path, task):
    first, last = log(dropout=0.1), log(epochs=3, position_encoding="shape", dropout=0.1)
    paths = results(task, a1=first, a2=log(dropout=0.3), b1=[*first, *last])
    of_task = " on MNLI" if task else ""
    words = (
        f"Options of training{of_task} differ: --max-epoch 2 (a), 3 (b); --dropout 0.1 (a, b), "
        "0.3 (a). So may figures."
    )
    output = tmp_path / "report"
    assert words in posenc("table", "--results", *paths).out
    # before all else
    assert posenc("compare", *paths, "--output", output).out.startswith(words)
    assert words in (output / "report.html").read_text()


@pytest.mark.parametrize("task", [None, "MNLI"])
def test_rows_seeds_and_folders_are_no_other_options(results, posenc, task):
    paths = results(
        task, a1=log(seed=1, position_encoding="shape"), a2=log(seed=2), b1=["epoch 001"]
    )
    assert "Options of training" not in posenc("table", "--results", *paths).out


def test_learning_rates_that_a_table_chooses_are_told_by_it_alone(write, posenc):
    paths = []
    for name, rate in (("a", 0.001), ("b", 0.0001)):
        content = predicted(9, notes={"seed": "1", "lr": str(rate)})
        paths.append(write(f"{name}/score.json", content))
        write(f"{name}/train.log", [line.replace("0.001", str(rate)) for line in log()])
        assert options_beside(paths[-1])["lr"] == f"[{rate}]"
    assert "Options of training" not in posenc("table", "--results", *paths).out


def test_epochs_that_the_notes_tell_are_told_once(write, posenc):
    paths = []
    for name, epochs in (("a", 2), ("b", 3)):
        content = {**score(epochs / 9), "notes": {"seed": "1", "epochs": str(epochs)}}
        paths.append(write(f"{name}/score.json", content))
        write(f"{name}/train.log", log(epochs=epochs))
    printed = posenc("table", "--results", *paths).out
    assert printed.count("--max-epoch 2 (a), 3 (b)") == 1


@pytest.mark.parametrize("task", [None, "MNLI"])
def test_a_log_of_another_training_is_told(write, posenc, task):
    head = f"{HEAD}{{'_name': None, 'common': {{'_name': None, 'seed': 2}}}}"
    lines = ["INFO | x | position:shape|max-shift:9|version:0", head]
    for folder, seed, signature in (("a", "1", "alibi"), ("b", "2", "shape|max-shift:9")):
        notes = {"seed": seed, "signature": f"position:{signature}|version:0"}
        content = predicted(int(seed), task=task) if task else score(int(seed) / 9)
        write(f"{folder}/score.json", {**content, "notes": notes})
        path = write(f"{folder}/train.log", lines).replace("train.log", "score.json")
    paths = [path.replace("b/score", "a/score"), path]
    words = "The train.log beside the result of a, seed 1, is of seed 2, not 1 and position shape, "
    printed = posenc("table", "--results", *paths).out
    assert f"{words}not alibi: is it its own?" in printed and printed.count("The train.log") == 1


@pytest.mark.parametrize("lines", [[f"{HEAD}{{'_name': <None>}}"], ["\0"], [HEAD + "{'_name': 1}"]])
def test_a_log_that_tells_no_options_is_none(write, lines):
    assert options_beside(write("train.log", lines)) == {}


@pytest.mark.parametrize("task", [None, "MNLI"])
def test_seeds_of_a_name_have_one_encoding(write, posenc, task):
    def path(folder, number, signature):
        notes = {"seed": str(number), "signature": f"position:{signature}"}
        content = predicted(number, task=task) if task else score(0.5 + number / 9)
        return write(f"{folder}/exp/score.json", {**content, "notes": notes})

    paths = [path("x", 1, "shape|max-shift:40|version:1"), path("y", 2, "alibi|version:1")]
    message = "y/exp/score.json is a seed of exp, as .*x/exp/score.json, and has other positions"
    with pytest.raises(UsageError, match=message):
        posenc("table", "--results", *paths)
    alike = path("z", 3, "shape|max-shift:40|version:2")
    assert "exp" in posenc("table", "--results", paths[0], alike).out

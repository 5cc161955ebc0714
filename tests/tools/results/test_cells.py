import json
import statistics

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.results.cells import TASKS, Cell, Metric, read_cells, summarise

ACCURACY = Metric(("valid",), "accuracy")


def cell(lr, seed, *figures, task="MNLI", row="a"):
    """A cell whose subsets valid, valid1 … have these accuracies; none: not finished."""
    subsets = ["valid", "valid1", "valid2"]
    scores = {name: {"accuracy": figure} for name, figure in zip(subsets, figures)} or None
    return Cell(row, "learned", task, lr, str(seed), scores)


@pytest.fixture
def runs(tmp_path):
    """A function that writes a cell; without scores it has not finished."""

    def write(place, scores=None, options="learned --position-segments input"):
        folder = tmp_path / place
        folder.mkdir(parents=True)
        (tmp_path / place.split("/")[0] / "row").write_text(options + "\n")
        if scores is not None:
            text = scores if isinstance(scores, str) else json.dumps({"scores": scores})
            (folder / "score.json").write_text(text)
        return str(tmp_path)

    return write


def test_the_median_over_seeds_is_reported_with_their_spread():
    values = [70.0, 90.0, 71.0, 73.0, 72.0]
    cells = [cell("1e-5", seed, value) for seed, value in enumerate(values)]
    summary = summarise(cells, "MNLI", ACCURACY)
    assert summary.median == 72.0
    assert summary.spread == statistics.stdev(values)
    assert (summary.seeds, summary.lr, summary.unfinished) == (5, "1e-5", 0)


def test_the_learning_rate_with_the_best_median_is_taken_not_the_one_with_the_best_run():
    lucky = [cell("4e-5", seed, value) for seed, value in enumerate([60.0, 60.0, 99.0])]
    steady = [cell("2e-5", seed, value) for seed, value in enumerate([70.0, 71.0, 72.0])]
    assert summarise(lucky + steady, "MNLI", ACCURACY).lr == "2e-5"


def test_equal_medians_go_to_the_smallest_learning_rate_by_number():
    cells = [cell(lr, 1, 70.0) for lr in ("3e-5", "1e-4", "9e-6")]
    assert summarise(cells, "MNLI", ACCURACY).lr == "9e-6"


def test_every_figure_of_a_task_is_of_the_learning_rate_that_its_own_metric_chooses():
    cells = [cell("1e-5", 1, 80.0, 10.0), cell("2e-5", 1, 70.0, 99.0)]
    assert summarise(cells, "MNLI", TASKS["MNLI"].figures["MNLI-mm"]).median == 10.0


def test_languages_are_averaged_and_english_development_data_chooses():
    def xnli(lr, valid, *tests):
        languages = ("de", "ur", "th", "ro")
        scores = {f"test-{name}": {"accuracy": value} for name, value in zip(languages, tests)}
        return Cell("a", "learned", "XNLI", lr, "1", {"valid-en": {"accuracy": valid}, **scores})

    cells = [xnli("1e-5", 80.0, 30.0, 40.0, 50.0, 99.0), xnli("2e-5", 70.0, *[90.0] * 4)]
    summary = summarise(cells, "XNLI", TASKS["XNLI"].figures["XNLI"])
    # Romanian is none of XNLI's
    assert (summary.median, summary.part) == (40.0, "3 of 15")


@pytest.mark.parametrize(
    ("name", "count"), [("XNLI", 15), ("XQuAD F1", 11), ("MLQA EM", 7), ("TyDiQA-GoldP F1", 9)]
)
def test_a_mean_over_all_languages_of_a_benchmark_is_whole(name, count):
    metric = TASKS["XNLI" if name == "XNLI" else "SQuAD"].figures[name]
    scores = {subset: {metric.name: 50.0} for subset in metric.subsets}
    assert (len(scores), metric.of(scores), metric.part(scores)) == (count, 50.0, None)
    assert metric.of({**scores, f"{metric.subsets[0][:-3]}-ro": {metric.name: 99.0}}) == 50.0
    scores.popitem()
    assert metric.part(scores) == f"{count - 1} of {count}"
    assert metric.of({}) is None


def test_unfinished_cells_of_any_learning_rate_are_counted():
    cells = [cell("1e-5", 1, 70.0), cell("1e-5", 2), cell("2e-5", 1), cell("2e-5", 1, task="QQP")]
    summary = summarise(cells, "MNLI", ACCURACY)
    assert (summary.median, summary.spread, summary.seeds) == (70.0, None, 1)
    assert summary.unfinished == 2


def test_nothing_finished_is_no_figure():
    assert summarise([cell("1e-5", 1), cell("1e-5", 1, 50.0, task="QQP")], "MNLI", ACCURACY) is None
    assert summarise([cell("1e-5", 1, 70.0)], "MNLI", Metric(("valid1",), "accuracy")) is None


def test_cells_are_read_from_their_folders(runs):
    runs("mine/CoLA/lr1e-5/seed2", {"valid": {"matthews": 50.0}})
    folder = runs("mine/CoLA/lr3e-5/seed11")
    done, open_ = read_cells(folder)
    options = "learned --position-segments input"
    assert done == Cell("mine", options, "CoLA", "1e-5", "2", {"valid": {"matthews": 50.0}})
    assert open_ == Cell("mine", options, "CoLA", "3e-5", "11", None)


def test_other_folders_of_a_run_are_no_cells(runs):
    runs("pretrain/learned/seed1/x")
    assert len(read_cells(runs("mine/CoLA/lr1e-5/seed1"))) == 1


@pytest.mark.parametrize(
    ("place", "scores", "message"),
    [
        ("a/Cola/lr1/seed1", None, "no task is called Cola"),
        ("a/CoLA/lr1/seed1", "{", "no JSON"),
        ("a/CoLA/lr1/seed1", '{"all": 1}', "not from posenc predict"),
        ("a/CoLA/lr1", None, "has no cells"),
    ],
)
def test_what_is_no_cell_is_refused(runs, place, scores, message):
    with pytest.raises(UsageError, match=message):
        read_cells(runs(place, scores))


def test_means_over_different_languages_are_not_compared(runs):
    runs("a/XNLI/lr1/seed1", {"valid-en": {}, "test-de": {}})
    folder = runs("b/XNLI/lr1/seed1", {"valid-en": {}, "test-de": {}, "test-th": {}})
    with pytest.raises(
        UsageError, match="b/XNLI/lr1/seed1 cannot be compared with a/XNLI/lr1/seed"
    ):
        read_cells(folder)

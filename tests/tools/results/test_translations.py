import csv
import json
import statistics
import sys

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools import cli
from fairseq_posenc.tools.results.papers import load
from fairseq_posenc.tools.results.translations import (
    Cell,
    compare,
    find_cells,
    read_cells,
    summarise,
    value,
)

YEARS = range(2010, 2017)
BLEU = {"tests": ["a", "b"], "metric": "sacrebleu"}
SPEED = {"training": "tokens_per_second", "relative": True}


def score(figure, sentences=3, signature="tok:13a|version:2.6.0"):
    metrics = {"sacrebleu": figure, "tokenised_bleu": figure, "sacrebleu_lowercase": figure + 1}
    return {"all": {"sentences": sentences, **metrics}, "signatures": {"sacrebleu": signature}}


def result(tests, **training):
    tests = {name: score(figure) for name, figure in tests.items()}
    training = {"updates": 200000, "gpus": 8, "hardware": "V100", **training}
    return {"tests": tests, "training": training}


def cell(seed, tests=None, options="sinusoidal", setting="vanilla", row=None, **training):
    """A cell; without tests and training it has not finished."""
    found = result(tests or {}, **training) if tests or training else None
    return Cell(setting, row or options.split()[0], options, str(seed), True, found)


def news(figure):
    """Scores of newstest2010-2016: this figure, and one more each year."""
    return {f"newstest{year}": figure + index for index, year in enumerate(YEARS)}


def by_row(comparison):
    return {entry.ours or tuple(entry.labels): entry for entry in comparison.entries}


def lines_of(markdown):
    table = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len({len(line) for line in table}) == 1
    return [[text.strip() for text in line.strip("|").split("|")] for line in table]


def test_seeds_are_averaged_over_their_means_of_test_sets():
    cells = [cell(1, {"a": 20, "b": 30}), cell(2, {"a": 21, "b": 33}), cell(3)]
    mean = summarise(cells, BLEU, cells)
    assert mean == (26.0, statistics.stdev([25, 27]), 2, 1)
    assert mean.spread == pytest.approx(2**0.5)


def test_one_seed_has_no_spread():
    assert summarise([cell(1, {"a": 1, "b": 2})], BLEU, [])[:3] == (1.5, None, 1)


def test_a_mean_lacks_no_test_set():
    assert value(cell(1, {"a": 20}), BLEU) is None
    assert summarise([cell(1, {"a": 20}), cell(2)], BLEU, []) is None


def test_seeds_of_the_paper_that_are_not_there_are_open():
    cells = [cell(1, {"a": 1, "b": 1}), cell(2)]
    assert summarise(cells, BLEU, cells, wanted=5).unfinished == 4
    assert summarise(cells, BLEU, cells, wanted=1).unfinished == 1


def test_speed_is_relative_to_the_mean_of_the_baseline_of_that_setting():
    base = [cell(1, tokens_per_second=100), cell(2, tokens_per_second=300)]
    other = cell(1, setting="interpolate", tokens_per_second=7)
    ours = [cell(1, options="shaw", tokens_per_second=150)]
    everything = [*base, other, *ours]
    assert summarise(ours, SPEED, everything).mean == 0.75
    assert summarise(base, SPEED, everything).mean == 1
    assert summarise(base, SPEED, everything).spread == statistics.stdev([0.5, 1.5])


@pytest.mark.parametrize("other", [{"gpus": 4}, {"hardware": "H200"}, {"setting": "extrapolate"}])
def test_speeds_on_other_hardware_or_data_are_not_compared(other):
    ours = [cell(1, options="shaw", tokens_per_second=150)]
    assert summarise(ours, SPEED, [*ours, cell(1, **{"tokens_per_second": 1, **other})]) is None


def test_a_baseline_with_options_is_another_row():
    base = cell(1, options="sinusoidal --position-source-scale auto", tokens_per_second=100)
    assert summarise([base], SPEED, [base]) is None


def test_facts_of_a_training_have_their_unit():
    ours = cell(1, parameters=61_000_000)
    assert value(ours, {"training": "parameters", "unit": 1e6}) == 61
    assert value(cell(1), {"training": "parameters"}) is None


def test_table_2_of_shape_has_ours_below_the_papers():
    cells = [cell(1, news(20), tokens_per_second=100), cell(2, news(22), tokens_per_second=100)]
    cells += [cell(1, news(30), "shape --position-max-shift 40", "extrapolate", "k40")]
    cells += [cell(1, news(25), "shaw --position-shared-tables", tokens_per_second=80)]
    comparison = compare(load("shape-2"), cells)
    lines = lines_of(comparison.markdown())
    at = lines.index(["VANILLA", "APE", "paper", "23.61", "30.46", "1.00"])
    assert lines[at + 1][2:] == (
        ["vanilla/sinusoidal", "22.50 ± 1.41", "26.00 ± 1.41", "1.00 ± 0.00"]
    )
    assert lines[at + 2][2:] == ["difference", "-1.11", "-4.46", "+0.00"]
    assert lines[at + 3][2:] == ["seeds", *["2 (3 open)"] * 3]
    assert lines[at + 4] == ["VANILLA", "RPE", "paper", "23.67", "30.54", "0.91"]
    assert lines[at + 5][2:] == ["vanilla/shaw", "26.50", "30.00", "0.80"]
    at = lines.index(["EXTRAPOLATE", "SHAPE, K = 40 (section 3.3)", "paper", "23.12", "29.86", "-"])
    assert lines[at + 1][2:] == ["extrapolate/k40", "31.50", "35.00", "missing"]
    assert lines[at + 3][2:] == ["seeds", "1", "1", ""]
    assert [line[2:] for line in lines].count(["ours", *["missing"] * 3]) == 7


def test_rows_that_the_paper_lacks_are_appended_if_they_have_a_figure():
    cells = [
        cell(1, news(20), "alibi"),
        cell(1, news(20), "alibi", "elsewhere"),
        cell(1, None, "t5"),
    ]
    entries = compare(load("shape-2"), cells).entries
    assert [entry.ours for entry in entries[-2:]] == [None, "vanilla/alibi"]
    assert entries[-1].labels is None and entries[-1].figures["Valid"].ours.mean == 21.5


def test_one_row_of_ours_may_stand_below_two_of_the_paper():
    entries = compare(load("shape-7"), [cell(1, news(20))]).entries
    assert [entry.ours for entry in entries] == ["vanilla/sinusoidal"] * 2
    assert [entry.figures["2010"].paper for entry in entries] == [24.24, 24.22]
    assert entries[1].figures["Average"].ours.mean == 23


def test_times_and_sizes_are_compared_in_their_digits():
    ours = cell(1, parameters=60_930_000, seconds=97000.4)
    lines = lines_of(compare(load("shape-6"), [ours]).markdown())
    at = lines.index(["APE", "VANILLA", "DGX-1", "paper", "97073", "61"])
    assert lines[at + 1][3:] == ["vanilla/sinusoidal", "97000", "60.93"]
    assert lines[at + 2][3:] == ["difference", "-73", "-0"]


def cape(shift, valid, test):
    options = f"cape --position-source-scale auto --position-global-shift {shift}"
    tests = {"valid": valid, "newstest2014": test}
    return cell(1, tests, f"{options} --prepend-source-bos", "de6", f"cape_{shift}")


def test_of_capes_shifts_the_best_on_validation_data_is_compared():
    cells = [cape(5, 26.0, 29.0), cape(10, 27.0, 25.0), cape(50, 25.0, 28.0)]
    entries = by_row(compare(load("cape-2"), [*cells, *[cells[0]._replace(setting="fr6")]]))
    assert entries["de6/cape_10"].labels == ["CAPE, 6L-6L", "DE"]
    assert entries["de6/cape_10"].figures["Test BLEU"].difference() == pytest.approx(25 - 27.81)
    assert entries["de6/cape_5"].labels is None and entries["de6/cape_50"].labels is None
    assert entries["fr6/cape_5"].labels == ["CAPE, 6L-6L", "FR"]


def test_a_shift_without_result_is_not_the_best():
    open_ = cape(50, 0, 0)._replace(result=None)
    entries = by_row(compare(load("cape-2"), [cape(5, 26.0, 29.0), open_]))
    assert entries["de6/cape_5"].labels and not entries["de6/cape_50"].labels
    assert by_row(compare(load("cape-2"), [open_]))["de6/cape_50"].labels


def test_settings_are_columns_of_chens_table():
    cells = [
        cell(1, {"newstest2015": bleu}, "rel_scalar", setting, updates=100000)
        for setting, bleu in (("en-de", 20), ("en-cs", 10))
    ]
    entry = by_row(compare(load("chen2021-6"), cells))["rel_scalar"]
    ours = {name: figure.ours and figure.ours.mean for name, figure in entry.figures.items()}
    assert ours == {"EN-DE": 21, "DE-EN": None, "EN-CS": 11}


def test_other_lengths_of_training_and_the_hardware_are_told():
    cells = [cell(1, news(1), updates=60), cell(2, news(1)), cell(1, news(1), "shape")]
    notes = compare(load("shape-2"), cells, ["Tiny."]).notes
    assert notes == [
        "Tiny.", "vanilla: ours made 60, 200000 updates, the paper's 200000.",
        "Ours were trained on: 8 × V100.",
    ]  # fmt: skip
    assert compare(load("shape-7"), cells[1:]).notes == []
    (note,) = compare(load("shape-7"), cells[:1]).notes
    assert note == "vanilla: ours made 60 updates, the paper's 200000."


@pytest.fixture
def runs(tmp_path):
    """A function that writes a file of a folder of runs, and the row of a cell."""

    def write(place, content=None, options="shape"):
        path = tmp_path / "runs" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.parent.name.startswith("seed"):
            (path.parents[1] / "row").write_text(options + "\n")
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(tmp_path / "runs")

    return write


def test_cells_are_read_from_their_folders(runs):
    runs("vanilla/a/seed10/settings", "")
    runs("vanilla/a/seed9/checkpoint_last.pt", "")
    runs("text/wmt16_en_de/train.raw.de", "")
    folder = runs("vanilla/a/seed1/score.json", result({"newstest2014": 1}), "shape --x 1")
    cells = read_cells(folder)
    assert [(one.seed, one.begun, one.result is None) for one in cells] == (
        [("1", True, False), ("9", True, True), ("10", False, True)]
    )
    assert str(cells[0]) == "vanilla/a/seed1" and cells[0].options == "shape --x 1"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "no JSON"),
        (
            {"all": {}, "by_length": None, "signatures": {}},
            "not from score_cell",
        ),
        ({"scores": {"valid": {}}}, "not from score_cell"),
        ({"tests": {"newstest2014": {"sacrebleu": 3}}}, "tests.newstest2014.all is missing"),
        ({"tests": {}, "training": {"gpus": 1}}, "damaged: training.updates is missing"),
    ],
)
def test_foreign_results_are_refused(runs, content, message):
    with pytest.raises(UsageError, match=message):
        find_cells(runs("vanilla/a/seed1/score.json", content))


@pytest.mark.parametrize(
    "other", [score(1, sentences=4), score(1, signature="tok:intl|version:2.6.0")]
)
def test_results_that_cannot_be_compared_are_refused(runs, other):
    runs("vanilla/a/seed1/score.json", result({"newstest2014": 1}))
    folder = runs("vanilla/b/seed2/score.json", {"tests": {"newstest2014": other}})
    with pytest.raises(UsageError, match="vanilla/b/seed2 cannot be compared with vanilla/a/seed1"):
        find_cells(folder)


def test_other_settings_and_versions_may_differ(runs):
    runs("vanilla/a/seed1/score.json", result({"newstest2014": 1}))
    version = {"newstest2014": score(1, signature="tok:13a|version:2.4.0")}
    runs("vanilla/a/seed2/score.json", {"tests": version})
    joined = {"newstest2014": score(1, sentences=1)}
    assert len(find_cells(runs("interpolate/a/seed1/score.json", {"tests": joined}))) == 3


def test_a_folder_without_cells_is_refused_for_a_table_only(tmp_path):
    assert find_cells(str(tmp_path / "none")) == []
    with pytest.raises(UsageError, match="has no cells <setting>/<row>/seed<n>"):
        read_cells(str(tmp_path))


def test_swapped_sentences_are_read_from_their_analysis(runs):
    runs("interpolate/mine/seed1/checkpoint_last.pt", "")
    found = {"mine": {"original": 30.0, "swapped": 28.5, "drop": 1.5, "wrong_original": 2}}
    cells = read_cells(runs("interpolate/swap.json", {"models": found, "pairs": 10}))
    entry = by_row(compare(load("shape-1"), cells))["interpolate/mine"]
    assert entry.labels == ["SHAPE"]
    assert [figure.ours.mean for figure in entry.figures.values()] == [30.0, 28.5, 1.5]


def test_script_prints_markdown_and_writes_csv(runs, tmp_path, monkeypatch, capsys):
    folder = runs("vanilla/mine/seed1/score.json", result(news(20)))
    output = tmp_path / "table.csv"
    options = ["--paper", "shape-5", "--runs", folder, "--note", "Tiny.", "--output", str(output)]
    monkeypatch.setattr(sys, "argv", ["posenc", "table", *options])
    cli.main()
    assert "\nTiny.\n" in capsys.readouterr().out
    with output.open(encoding="utf-8", newline="") as stream:
        lines = list(csv.DictReader(stream))
    (line,) = [one for one in lines if one["row"] == "vanilla/mine" and one["figure"] == "2010"]
    assert (line["Model"], line["mean"], line["seeds"], line["paper"]) == (
        "SHAPE",
        "20",
        "1",
        "24.18",
    )
    assert float(line["difference"]) == pytest.approx(-4.18)
    assert len(lines) == 8 * 9

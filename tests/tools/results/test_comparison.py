import csv
import json
import statistics
import sys

import pytest

from fairseq_posenc.encodings import names as encodings
from fairseq_posenc.tools import cli
from fairseq_posenc.tools.results.cells import TASKS, Cell
from fairseq_posenc.tools.results.comparison import compare, load, names

each_table = pytest.mark.parametrize("name", names())
# the paper's own average of this row is not that of its figures, see the table's note
MISPRINTED = {("chen2021-9", "REL-SCALAR", "head-wise", "per-head")}


def cells(row, options, **figures):
    """Finished cells of a row with these figures, under the tasks' names with _ for -."""
    made = []
    for task, value in figures.items():
        task = task.replace("_", "-")
        subsets = {"MNLI": ("valid", "valid1")}.get(task, ("valid",))
        scores = {subset: {TASKS[task].choice.name: value} for subset in subsets}
        made.append(Cell(row, options, task, "1e-5", "1", scores))
    return made


def whole_row(row, options, value):
    return cells(row, options, **dict.fromkeys(
        ("MNLI", "QQP", "QNLI", "SST_2", "CoLA", "STS_B"), value
    ))  # fmt: skip


def lines_of(markdown):
    table = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len({len(line) for line in table}) == 1
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_there_are_all_tables_of_the_paper_about_bert():
    assert names() == [f"chen2021-{number}" for number in (4, 5, 8, 9, 10, 11, 12)]


@each_table
def test_the_papers_averages_are_those_of_its_figures(name):
    table = load(name)
    for row in table.rows:
        assert len(row.figures) == len(table.figures()) == 7
        tolerance = 0.2 if (name, *row.labels) in MISPRINTED else 0.1
        assert row.average == pytest.approx(statistics.mean(row.figures), abs=tolerance)


@each_table
def test_every_figure_of_a_paper_has_one_of_ours(name):
    ours = {figure for task in TASKS.values() for figure in task.figures}
    assert set(load(name).figures()) <= ours


@each_table
def test_rows_name_encodings_that_there_are_and_differ(name):
    rows = load(name).rows
    assert all(way.split()[0] in encodings() for row in rows for way in row.options)
    assert len({row.options[0] for row in rows}) == len(rows)
    assert len({tuple(row.labels) for row in rows}) == len(rows)


def test_one_model_has_the_same_figures_in_every_table():
    seen = {}
    for name in names():
        table = load(name)
        for row in table.rows:
            key = (table.figures()[0], row.options[0])
            assert seen.setdefault(key, row[2:]) == row[2:]
    assert len(seen) == 9 + 12


def test_figures_of_table_4():
    rows = {row.labels[0]: row for row in load("chen2021-4").rows}
    assert rows["REL-SCALAR"].figures == [86.3, 86.3, 91.0, 90.5, 92.9, 60.3, 89.3]
    assert rows["Devlin et al. [2]"].average == 84.8


def test_our_figure_stands_below_the_papers_with_the_difference():
    table = compare(load("chen2021-4"), whole_row("mine", "shaw --position-segments input", 90.0))
    lines = lines_of(table.markdown())
    at = lines.index(
        ["Shaw et al. [14]", "per-head", "input", "paper"]
        + ["86.3 / 86.0", "91.2", "90.5", "93.2", "59.8", "89.3", "85.2"]
    )
    assert lines[at + 1][3:] == ["mine", "90.00 / 90.00", *["90.00"] * 6]
    assert lines[at + 2][3:] == ["difference", "+3.7 / +4.0"] + (
        ["-1.2", "-0.5", "-3.2", "+30.2", "+0.7", "+4.8"]
    )
    assert lines[at + 3][3:] == ["lr, seeds", *["1e-5, 1"] * 6, ""]


def test_rows_are_matched_by_options_in_any_order():
    options = "rel_scalar --position-sharing none --position-segments per_head"
    entries = compare(load("chen2021-8"), whole_row("whatever", options, 1.0)).entries
    assert [entry.ours for entry in entries] == [None, None, "whatever"]


def test_rows_that_the_paper_lacks_are_appended():
    entries = compare(load("chen2021-4"), whole_row("b", "alibi", 1.0)).entries
    assert [entry.ours for entry in entries] == [None] * 4 + ["b"]
    assert entries[-1].labels is None and entries[-1].figures["QQP"].paper is None


def test_two_rows_of_one_encoding_stand_beside_the_same_figures():
    ours = [
        cell for row in "ab" for cell in whole_row(row, "learned --position-segments input", 1.0)
    ]
    entries = compare(load("chen2021-4"), ours).entries
    assert [entry.ours for entry in entries] == ["a", "b", None, None, None]
    assert entries[0].figures["QQP"].paper == entries[1].figures["QQP"].paper == 91.1


def test_tasks_that_the_paper_lacks_are_columns_at_the_end():
    table = compare(load("chen2021-4"), cells("b", "alibi", RTE=60.0, CoLA=50.0))
    assert list(table.columns)[-2:] == ["Avg", "RTE"]
    assert table.entries[-1].figures["RTE"].ours.median == 60.0
    assert "MRPC" not in table.columns


def test_what_is_missing_is_marked_and_not_averaged():
    table = compare(load("chen2021-4"), cells("b", "learned --position-segments input", CoLA=50.0))
    figures = table.entries[0].figures
    assert figures["QQP"].ours is None and figures["Avg"].ours is None
    lines = lines_of(table.markdown())
    assert (
        lines[3][3:] == ["b", "missing / missing"] + ["missing"] * 3 + ["50.00"] + ["missing"] * 2
    )
    assert ["", "", "", "ours", "missing / missing", *["missing"] * 6] in lines


def xtreme_row(options, left_out=""):
    """Finished cells of a row with 50 on every language but one."""
    made = []
    for task in ("XNLI", "SQuAD"):
        choice, metrics = TASKS[task].choice, TASKS[task].figures.values()
        scores = {choice.subsets[0]: {choice.name: 50.0}}
        for metric in metrics:
            for subset in set(metric.subsets) - {left_out}:
                scores.setdefault(subset, {})[metric.name] = 50.0
        made.append(Cell("b", options, task, "1e-5", "1", scores))
    return made


def test_means_over_some_languages_are_marked_and_not_compared():
    options = "rel_scalar --position-segments per_head"
    whole = compare(load("chen2021-9"), xtreme_row(options))
    partial = compare(load("chen2021-9"), xtreme_row(options, "xquad-th"))
    for table, figure, difference, average in (
        (whole, "50.00 / 50.00", "-19.2 / -4.4", "50.00"),
        (partial, "50.00 (10 of 11) / 50.00 (10 of 11)", "- / -", "missing"),
    ):
        lines = lines_of(table.markdown())
        at = next(number for number, line in enumerate(lines) if line[3] == "b")
        assert lines[at][4:] == ["50.00", figure, "50.00 / 50.00", "50.00 / 50.00", average]
        assert lines[at + 1][4:6] == ["-18.4", difference]
        assert ("of a benchmark's languages" in table.markdown()) == (table is partial)
    assert "10 of 11" in partial.csv() and "10 of 11" not in whole.csv()


def test_unfinished_cells_are_marked():
    ours = cells("b", "learned --position-segments input", CoLA=50.0)
    ours.append(ours[0]._replace(seed="2", scores=None))
    lines = lines_of(compare(load("chen2021-4"), ours).markdown())
    assert "1e-5, 1 (1 open)" in lines[5]


@pytest.fixture
def folder(tmp_path):
    """A folder of runs with one cell."""
    place = tmp_path / "runs" / "mine" / "CoLA" / "lr1e-5" / "seed1"
    place.mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "row").write_text("learned --position-segments input\n")
    (place / "score.json").write_text(json.dumps({"scores": {"valid": {"matthews": 50.5}}}))
    return tmp_path / "runs"


def test_script_prints_markdown_and_writes_it_and_csv(folder, tmp_path, monkeypatch, capsys):
    outputs = [tmp_path / "table.md", tmp_path / "table.csv"]
    options = ["--paper", "chen2021-4", "--runs", folder, "--note", "Tiny.", "--output", *outputs]
    monkeypatch.setattr(sys, "argv", ["posenc", "table", *map(str, options)])
    cli.main()
    printed = capsys.readouterr().out
    assert outputs[0].read_text(encoding="utf-8") == printed and printed.endswith("\nTiny.\n")
    with outputs[1].open(encoding="utf-8", newline="") as stream:
        lines = list(csv.DictReader(stream))
    (line,) = [line for line in lines if line["figure"] == "CoLA" and line["row"] == "mine"]
    assert (line["median"], line["paper"], line["seeds"]) == ("50.5", "58.7", "1")
    assert float(line["difference"]) == pytest.approx(-8.2)
    assert len(lines) == 4 * 8


@pytest.mark.parametrize(
    "options", [["--paper", "chen2021-4"], ["--by-length", "x", "--runs", "y"]]
)
def test_script_refuses_half_a_command(options, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["posenc", "table", *options])
    with pytest.raises(SystemExit):
        cli.main()
    assert "--paper and --runs belong together" in capsys.readouterr().err

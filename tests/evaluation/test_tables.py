import json
import runpy
import statistics
import sys
from pathlib import Path

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.evaluation.tables import by_length, read_runs

SCRIPT = str(Path(__file__).parents[2] / "scripts" / "table.py")


def score(all_, *bins, sizes=(5, 7), of="source", version="2.6.0", tok="13a"):
    edges = [-1, 10, None]
    parts = [
        {"name": name, "longer_than": low, "up_to": up, "sentences": n, "sacrebleu": b, "chrf": 2.0}
        for name, low, up, n, b in zip(["1-10", "11+"], edges, edges[1:], sizes, bins)
    ]
    return {
        "all": {"sacrebleu": all_, "chrf": 1.0},
        "by_length": {"of": of, "unit": "words", "bins": parts},
        "signatures": {"sacrebleu": f"tok:{tok}|version:{version}", "chrf": "nc:6"},
    }


@pytest.fixture
def write(tmp_path):
    def write(path, content):
        path = tmp_path / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return write


def test_rows_are_runs_and_columns_are_bins():
    table = by_length({"shape": [score(30, 31, 25)], "cape": [score(29, 30, 28)]})
    assert table.columns == ["all", "1-10", "11+"]
    cells = {name: [cell.mean for cell in row] for name, row in table.rows.items()}
    assert cells == {"shape": [30, 31, 25], "cape": [29, 30, 28]}
    assert table.title == "sacreBLEU by source length (words)"


def test_seeds_of_a_run_are_averaged_with_their_spread():
    values = [20.0, 21.0, 25.0]
    table = by_length({"shape": [score(v, v + 1, v + 2) for v in values]})
    assert [str(cell) for cell in table.rows["shape"]] == [
        f"{statistics.mean(values) + i:.2f} ± {statistics.stdev(values):.2f}" for i in range(3)
    ]
    assert "(shape 3)" in table.notes[0]


def test_another_metric_can_be_chosen():
    table = by_length({"shape": [score(30, 31, 25)]}, "chrf")
    assert [cell.mean for cell in table.rows["shape"]] == [1.0, 2.0, 2.0]
    assert "nc:6" in table.notes[-1]


def test_empty_bins_are_dashes():
    table = by_length({"shape": [score(30, 30, None)] * 2})
    assert str(table.rows["shape"][2]) == "-"


def test_markdown_has_equally_wide_columns():
    lines = by_length({"s": [score(30, 31.119, 25)], "rel_scalar": [score(9, 30, 28)]}).markdown()
    table = [line for line in lines.splitlines() if line.startswith("|")]
    assert len({len(line) for line in table}) == 1
    assert [cell.strip() for cell in table[2].split("|")] == [
        "",
        "s",
        "30.00",
        "31.12",
        "25.00",
        "",
    ]
    assert set(table[1]) == set("|-: ")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"sizes": (5, 8)}, "sentences per bin differ"),
        ({"of": "reference"}, "lengths differ"),
        ({"tok": "intl"}, "signatures differ"),
    ],
)
def test_results_that_cannot_be_compared_are_refused(other, message):
    with pytest.raises(UsageError, match=f"cape cannot be compared with shape: {message}"):
        by_length({"shape": [score(1, 1, 1)], "cape": [score(1, 1, 1, **other)]})


def test_versions_of_sacrebleu_may_differ():
    by_length({"shape": [score(1, 1, 1)], "cape": [score(1, 1, 1, version="2.4.0")]})


def test_results_without_bins_are_refused():
    with pytest.raises(UsageError, match="shape has no bins"):
        by_length({"shape": [{**score(1), "by_length": None}]})


def test_runs_are_named_by_argument_or_folder(write):
    paths = [write(f"{f}/score.json", score(1, 1, 1)) for f in ("a=b/seed1", "a=b/seed22", "c")]
    runs = read_runs([*paths, f"mine={paths[0]}", f"mine={paths[2]}"])
    assert {name: len(seeds) for name, seeds in runs.items()} == {"a=b": 2, "c": 1, "mine": 2}


@pytest.mark.parametrize(
    ("content", "message"), [("{", "no JSON"), ("[1]", "score.py"), ('{"all": 1}', "score.py")]
)
def test_files_that_are_no_results_are_refused(write, content, message):
    with pytest.raises(UsageError, match=message):
        read_runs([write("score.json", content)])


def test_script_prints_and_writes_the_table(write, tmp_path, monkeypatch, capsys):
    path, output = write("shape/score.json", score(30, 31, 25)), tmp_path / "table.md"
    monkeypatch.setattr(sys, "argv", ["table.py", "--by-length", path, "--output", str(output)])
    runpy.run_path(SCRIPT, run_name="__main__")
    printed = capsys.readouterr().out
    assert "| shape |" in printed
    assert output.read_text(encoding="utf-8") == printed

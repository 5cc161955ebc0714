import csv
import json
import sys

import numpy as np
import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools import cli
from fairseq_posenc.tools.results.bleu import corpus_score
from fairseq_posenc.tools.results.tables import Estimate, by_length, read_runs

LENGTHS = [4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17]
TRAINED = {"source": 12, "reference": 14}


def statistics(right, lengths=LENGTHS):
    """sacreBLEU's numbers of sentences of which the first words are right, by share."""
    rows = []
    for n in lengths:
        correct = [max(round(right * n) - order, 0) for order in range(4)]
        rows.append([n, n, *correct, *(n - order for order in range(4))])
    return rows


def bleu(rows):
    return corpus_score("sacrebleu", np.array(rows).sum(axis=0))


def score(right, **changes):
    """A result of posenc score: all sentences are translated right to some share."""
    rows = statistics(right)
    bins = [
        {"name": name, "longer_than": low, "up_to": up, "sentences": n, "within": w}
        for name, low, up, n, w in (("1-10", -1, 10, 5, 5), ("11+", 10, None, 7, 2))
    ]
    chrf = [[9, 9, 3] * 6] * len(rows)
    result = {
        "all": {"sentences": 12, "sacrebleu": bleu(rows), "within": 7},
        "by_length": {"of": "source", "unit": "words", "bins": bins},
        "sentences": {"length": LENGTHS, "statistics": {"sacrebleu": rows, "chrf": chrf}},
        "longest_trained": TRAINED,
        "signatures": {"sacrebleu": "tok:13a|version:2.6.0", "chrf": "nc:6"},
        "language": "de",
        "test_set": {"source": "a", "reference": "b"},
    }
    return {**result, **changes}


@pytest.fixture
def write(tmp_path):
    def write(path, content):
        path = tmp_path / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return write


def test_rows_are_runs_and_columns_are_bins_with_their_sentences():
    table = by_length({"shape": [score(0.8)], "cape": [score(0.9)]})
    assert table.header() == ["", "all (n=12)", "1-10 (n=5)", "11+ (n=7)"]
    parts = (slice(None), slice(5), slice(5, None))
    for name, right in (("shape", 0.8), ("cape", 0.9)):
        means = [cell.mean for cell in table.rows[name]]
        assert means == pytest.approx([bleu(statistics(right)[part]) for part in parts])
    assert table.title == "sacreBLEU by source length (words)"


def test_every_figure_has_its_interval_and_every_difference():
    table = by_length({"shape": [score(0.8)], "cape": [score(0.9)], "same": [score(0.8)]})
    for cells in (*table.rows.values(), *table.differences.values()):
        assert all(cell.low <= cell.mean <= cell.high for cell in cells)
    assert all(cell[:3] == (0, 0, 0) for cell in table.differences["same"])
    text = table.markdown()
    for cell in table.rows["shape"]:
        assert f"| {cell.mean:.2f} [{cell.low:.2f}, {cell.high:.2f}] |" in text
    first, rest = text.split("Differences to shape")
    assert "| same " in first and "| shape " not in rest
    assert rest.count(" * |") == sum(cell.low > 0 for cell in table.differences["cape"]) > 0
    assert "+0.00 [+0.00, +0.00] |" in rest


def test_a_difference_is_starred_only_where_its_interval_leaves_out_0():
    stars = [Estimate(1, low, 2).signed().endswith("*") for low in (0.1, 0, -0.1)]
    assert stars == [True, False, False] and Estimate(-1, -2, -0.1).signed().endswith("*")
    assert Estimate(None).signed() == "-"


def test_one_training_is_not_ranked_and_the_table_says_so():
    one, two = [score(0.8)], [score(0.8), score(0.9)]
    warning = "intervals are over sentences only and say nothing about other seeds"
    assert f"One training per row: {warning}" in by_length({"a": one, "b": one}).markdown()
    assert (
        f"Some rows are of one training: their {warning}"
        in by_length({"a": one, "b": two}).markdown()
    )
    text = by_length({"a": two, "b": two}).markdown()
    assert warning not in text and "Trainings (seeds): a 2, b 2." in text


def test_seeds_are_averaged_and_widen_the_interval():
    seeds = [score(right) for right in (0.7, 0.8, 0.95)]
    values = [bleu(statistics(right)) for right in (0.7, 0.8, 0.95)]
    cell, alone = (by_length({"a": runs}).rows["a"][0] for runs in (seeds, seeds[1:2]))
    assert cell.mean == pytest.approx(sum(values) / 3)
    assert cell.spread == pytest.approx(np.std(values, ddof=1)) and alone.spread is None
    assert cell.high - cell.low > alone.high - alone.low


def test_sentences_within_the_trained_length_are_counted_or_left_out():
    lines = by_length({"shape": [score(0.8)]}).markdown().splitlines()
    found = next(line for line in lines if "within" in line)
    assert [cell.strip() for cell in found.split("|")[2:-1]] == ["7/12", "5/5", "2/7"]
    assert any("source of at most 12 and target of at most 14 subwords" in line for line in lines)
    unknown = score(0.8, longest_trained=None)
    for part in (unknown["all"], *unknown["by_length"]["bins"]):
        del part["within"]
    assert "within" not in by_length({"shape": [unknown]}).markdown().lower()


def test_a_model_that_learned_nothing_is_named():
    bad = score(0.3)
    bad["all"].update(sacrebleu=0.2, chance=0.19, above_chance=False)
    fine = score(0.8)
    fine["all"].update(chance=0.2, above_chance=True)
    text = by_length({"shape": [fine], "cape": [bad]}).markdown()
    assert "cape has learned nothing to speak of: its sacreBLEU is 0.20, and 0.19 with" in text
    assert "shape has learned" not in text
    text = by_length({"cape": [fine, bad]}).markdown()
    assert "cape, seed 2 of 2, has learned nothing" in text


def test_another_metric_can_be_chosen():
    table = by_length({"shape": [score(0.8)]}, "chrf")
    assert table.title.startswith("chrF") and "nc:6" in table.notes[-1]


def test_empty_bins_are_dashes():
    empty = score(0.8)
    empty["by_length"]["bins"].append({**empty["by_length"]["bins"][1], "longer_than": 99})
    empty["by_length"]["bins"][-1].update(name="100+", sentences=0, within=0)
    table = by_length({"shape": [empty] * 2})
    assert str(table.rows["shape"][3]) == "-"


def test_markdown_has_equally_wide_columns():
    text = by_length({"s": [score(0.8)], "rel_scalar": [score(0.7)]}).markdown()
    for part in text.split("Differences"):
        table = [line for line in part.splitlines() if line.startswith("|")]
        assert len({len(line) for line in table}) == 1
        assert set(table[1]) == set("|-: ")


def test_csv_has_a_line_per_figure_with_its_interval():
    table = by_length({"shape": [score(0.8)], "cape": [score(0.9)]})
    lines = list(csv.DictReader(table.csv().splitlines()))
    assert len(lines) == 6
    found, cell, other = lines[5], table.rows["cape"][2], table.differences["cape"][2]
    assert [found[name] for name in ("row", "column", "sentences", "within trained length")] == [
        "cape", "11+", "7", "2"
    ]  # fmt: skip
    for name, value in (("mean", cell.mean), ("low", cell.low), ("difference high", other.high)):
        assert float(found[name]) == value
    assert found["standard deviation"] == ""


def other_bins(of="source", sentences=7):
    by_length = score(0.8)["by_length"]
    by_length["bins"][1]["sentences"] = sentences
    return {"by_length": {**by_length, "of": of}}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (other_bins(sentences=8), "sentences per bin differ"),
        (other_bins(of="reference"), "lengths differ"),
        ({"signatures": {"sacrebleu": "tok:intl"}}, "signatures differ"),
        ({"language": "fr"}, "target languages differ"),
        ({"test_set": {"source": "a", "reference": "x"}}, "references differ"),
        ({"test_set": {"source": "x", "reference": "b"}}, "sources differ"),
        (
            {"longest_trained": {"source": 99, "reference": 99}},
            "longest sentences trained on differ",
        ),
    ],
)
def test_results_that_cannot_be_compared_are_refused(other, message):
    with pytest.raises(UsageError, match=f"cape cannot be compared with shape: {message}"):
        by_length({"shape": [score(1)], "cape": [score(1, **other)]})


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (None, "score it again"),
        ({"length": LENGTHS, "statistics": {}}, "score it again"),
        ({"length": LENGTHS, "statistics": {"sacrebleu": statistics(1)[1:]}}, "other sentences"),
        ({"length": LENGTHS[::-1] + [1], "statistics": {"sacrebleu": statistics(1)}}, "other"),
        ({"length": [30] * 12, "statistics": {"sacrebleu": statistics(1)}}, "other sentences"),
        ({"length": LENGTHS, "statistics": {"sacrebleu": [[1, 2]] * 12}}, "other sentences"),
        ({"length": LENGTHS, "statistics": {"sacrebleu": [[-1] * 10] * 12}}, "other sentences"),
    ],
)
def test_results_without_whole_statistics_are_refused(sentences, message):
    with pytest.raises(UsageError, match=f"shape .*{message}"):
        by_length({"shape": [score(1, sentences=sentences)]})


def test_versions_of_sacrebleu_may_differ():
    other = {"signatures": {"sacrebleu": "tok:13a|version:2.4.0"}}
    by_length({"shape": [score(1)], "cape": [score(1, **other)]})


def test_results_without_bins_are_refused():
    with pytest.raises(UsageError, match="shape has no bins"):
        by_length({"shape": [score(1, by_length=None)]})


def test_runs_are_named_by_argument_or_folder(write):
    paths = [write(f"{f}/score.json", score(1)) for f in ("a=b/seed1", "a=b/seed22", "c")]
    runs = read_runs([*paths, f"mine={paths[0]}", f"mine={paths[2]}"])
    assert {name: len(seeds) for name, seeds in runs.items()} == {"a=b": 2, "c": 1, "mine": 2}


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "no JSON"), ("[1]", "posenc score"), ('{"all": 1}', "posenc score")],
)
def test_files_that_are_no_results_are_refused(write, content, message):
    with pytest.raises(UsageError, match=message):
        read_runs([write("score.json", content)])


def test_script_prints_and_writes_the_table(write, tmp_path, monkeypatch, capsys):
    path, output = write("shape/score.json", score(0.8)), tmp_path / "table.md"
    monkeypatch.setattr(
        sys, "argv", ["posenc", "table", "--by-length", path, "--output", str(output)]
    )
    cli.main()
    printed = capsys.readouterr().out
    assert "| shape " in printed
    assert output.read_text(encoding="utf-8") == printed

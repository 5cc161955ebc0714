"""Results as files, the table that posenc prints of them, and the files that it writes."""

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import from_json
from fairseq_posenc.tools.scores.result import Score
from fairseq_posenc.tools.tables.runs import read_runs
from tests.tools.tables.test_length_table import score, sentences


def test_runs_are_named_by_argument_or_folder(write):
    paths = [write(f"{f}/score.json", score(1)) for f in ("a=b/seed1", "a=b/seed22", "c")]
    runs = read_runs([*paths, f"mine={paths[0]}", f"mine={paths[2]}"])
    assert {name: len(seeds) for name, seeds in runs.items()} == {"a=b": 2, "c": 1, "mine": 2}


def test_results_of_a_recipe_are_those_of_one_test_set_with_their_seed(write):
    cell = {"tests": {"a": score(1), "b": score(0.5)}, "notes": {"seed": "7"}}
    path = write("shape/seed7/score.json", cell)
    [found] = read_runs([path], "b")["shape"]
    assert found == from_json(Score, {**score(0.5), "notes": {"seed": "7"}}, "", "")
    assert found.seed == "7"
    with pytest.raises(UsageError, match="score_cell.*tests.c is missing"):
        read_runs([path], "c")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[1]", "posenc score"),
        ({"all": 1}, "all should be an object"),
        (score(1, signatures={"sacrebleu": 3}), "signatures.sacrebleu should be text"),
        (score(1, **sentences({"sacrebleu": [["x"]]})), "should be a number"),
        (score(1, test_set={}), "test_set.reference is missing"),
    ],
)
def test_files_that_are_no_results_are_refused(write, content, message):
    with pytest.raises(UsageError, match=message):
        read_runs([write("score.json", content)])


def test_a_table_is_written_as_its_ending_says_or_refused(write, tmp_path, posenc):
    path = write("shape/score.json", score(0.8))
    outputs = [tmp_path / f"table.{ending}" for ending in ("md", "csv", "tex")]
    posenc("table", "--by-length", path, "--output", *outputs)
    markdown, commas, tex = (file.read_text(encoding="utf-8") for file in outputs)
    assert markdown.startswith("sacreBLEU by") and commas.startswith("row,column,")
    assert tex.startswith("% sacreBLEU by") and tex.endswith("\\bottomrule\n\\end{tabular}\n")
    posenc("table", "--by-length", path, "--output", *outputs)  # as of its own kind
    with pytest.raises((UsageError, SystemExit)):
        posenc("table", "--by-length", path, "--output", tmp_path / "t.xlsx")
    assert not (tmp_path / "t.xlsx").exists()

import json
import os
import runpy
import sys
from functools import partial

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.results import score_cell as scoring
from fairseq_posenc.tools.results.score import evaluate

score_cell = partial(scoring.score_cell, language="de")
LOG = (
    "2026-11-21 03:59:51 | INFO | train_inner | epoch 001: 100 / 265 loss=1, wps=3631.3, "
    "num_updates=100, train_wall=50, wall=51\n"
)
REFERENCES = ["Ein Haus <sep> Der Hund läuft heute schnell", "Kinder spielen im Garten"]
HYPOTHESES = ["Ein Haus <sep> Der Hund läuft heute", "Kinder spielen im großen Gar@@ ten"]


@pytest.fixture
def cell(tmp_path):
    """A folder with an output for `first`, for `second` (its own T-lines), and a log."""
    folder = tmp_path / "vanilla" / "shape" / "seed1"
    folder.mkdir(parents=True)
    for name, texts in (("first", HYPOTHESES), ("second", REFERENCES)):
        lines = []
        for index, (text, target) in enumerate(zip(texts, REFERENCES)):
            lines += [f"S-{index}\ta house", f"T-{index}\t{target}"]
            lines += [f"{kind}-{index}\t-0.4\t{text}" for kind in "HD"]
        (folder / f"{name}.out").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "train.log").write_text(LOG, encoding="utf-8")
    raw = "".join(f"{line}!\n" for line in REFERENCES)
    (tmp_path / "reference").write_text(raw, encoding="utf-8")
    return folder


def reference(cell):
    return str(cell.parents[2] / "reference")


def test_every_test_set_is_scored_as_by_evaluate(cell):
    tests = {"first": reference(cell), "second": ""}
    result = score_cell(str(cell), tests, {"seed": "1"}, ["x"], percentiles=True)
    assert result == json.loads((cell / "score.json").read_text(encoding="utf-8"))
    for name, path in tests.items():
        assert result["tests"][name] == evaluate(
            generated=str(cell / f"{name}.out"),
            reference=path or None,
            percentiles=True,
            language="de",
        )
    assert result["tests"]["first"]["all"]["sacrebleu"] < 90
    assert result["tests"]["second"]["all"]["sacrebleu"] == pytest.approx(100)
    assert (result["notes"], result["command"]) == ({"seed": "1"}, ["x"])


def test_the_facts_of_the_training_are_kept(cell):
    training = score_cell(str(cell), {"first": reference(cell)})["training"]
    assert (training["updates"], training["tokens_per_second"]) == (100, 3631.3)
    assert {"torch", "fairseq", "sacrebleu"} <= set(training["versions"])


@pytest.mark.parametrize("lost", ["first.out", "train.log"])
def test_nothing_is_written_where_a_file_is_missing(cell, lost):
    (cell / lost).unlink()
    with pytest.raises(UsageError, match=lost):
        score_cell(str(cell), {"first": reference(cell)})
    assert not (cell / "score.json").exists()


def test_a_cell_without_test_sets_is_refused(cell):
    with pytest.raises(UsageError, match="--test"):
        score_cell(str(cell), {})


@pytest.fixture
def run(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["score_cell", *map(str, arguments)])
        runpy.run_module("fairseq_posenc.tools.recipe.score_cell", run_name="__main__")
        return capsys.readouterr()

    return run


def test_script_scores_all_and_writes_one_file(cell, run):
    before = set(os.listdir(cell))
    printed = run(
        cell, "--test", f"first={reference(cell)}", "--test", "second=", "--language", "de",
        "--source-language", "en", "--without-token", "<sep>", "--note", "row=a=b", "--bins", "2,9",
    )  # fmt: skip
    assert set(os.listdir(cell)) - before == {"score.json"}
    result = json.loads((cell / "score.json").read_text(encoding="utf-8"))
    assert list(result["tests"]) == ["first", "second"]
    assert result["notes"] == {"row": "a=b"}
    assert result["command"][:2] == ["score_cell", str(cell)]
    without = result["tests"]["first"]["without_token"]
    assert without["token"] == "<sep>"
    assert without["all"]["sacrebleu"] < result["tests"]["first"]["all"]["sacrebleu"]
    assert printed.out.startswith("first\n") and "\nsecond\n" in printed.out
    assert f"without <sep>: sacreBLEU {without['all']['sacrebleu']:.2f}, " in printed.out


def test_script_wants_names_of_test_sets(cell, run):
    with pytest.raises(SystemExit):
        run(cell, "--test", "reference.de")

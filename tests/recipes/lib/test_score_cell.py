"""A finished training to its score.json: every test set, and the facts of its log."""

import json
import os
import sys

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.score import evaluate
from recipes.lib.score_cell import main, score_cell

LOG = (
    "2026-11-21 03:59:51 | INFO | train_inner | epoch 001: 100 / 265 loss=1, wps=3631.3, "
    "num_updates=100, train_wall=50, wall=51\n"
)
REFERENCES = ["Ein Haus <sep> Der Hund läuft heute schnell", "Kinder spielen im Garten"]
HYPOTHESES = ["Ein Haus <sep> Der Hund läuft heute", "Kinder spielen im großen Gar@@ ten"]


@pytest.fixture
def cell(tmp_path):
    """A folder with an output for `first`, for `second` (its own T-lines), and a log."""
    for name, texts in (("first", HYPOTHESES), ("second", REFERENCES)):
        lines = []
        for index, (text, target) in enumerate(zip(texts, REFERENCES)):
            lines += [f"S-{index}\ta house", f"T-{index}\t{target}"]
            lines += [f"{kind}-{index}\t-0.4\t{text}" for kind in "HD"]
        (tmp_path / f"{name}.out").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "train.log").write_text(LOG, encoding="utf-8")
    raw = "".join(f"{line}!\n" for line in REFERENCES)
    (tmp_path / "reference").write_text(raw, encoding="utf-8")
    return tmp_path


def test_every_test_set_is_scored_as_by_evaluate(cell):
    tests = {"first": str(cell / "reference"), "second": ""}
    options = {"percentiles": True, "language": "de"}
    scores = score_cell(str(cell), tests, {"seed": "1"}, ["x"], **options)
    result = json.loads((cell / "score.json").read_text(encoding="utf-8"))
    for name, path in tests.items():
        output = str(cell / f"{name}.out")
        assert scores[name] == evaluate(generated=output, reference=path or None, **options)
        assert json.loads(json.dumps(scores[name].to_json())) == result["tests"][name]
    assert result["tests"]["first"]["all"]["sacrebleu"] < 90
    assert result["tests"]["second"]["all"]["sacrebleu"] == pytest.approx(100)
    assert (result["notes"], result["command"]) == ({"seed": "1"}, ["x"])
    training = result["training"]
    assert (training["updates"], training["seconds"]) == (100, 51)
    assert {"torch", "fairseq", "sacrebleu"} <= set(training["versions"])


@pytest.mark.parametrize("lost", ["first.out", "train.log"])
def test_nothing_is_written_where_a_file_is_missing(cell, lost):
    (cell / lost).unlink()
    with pytest.raises(UsageError, match=lost):
        score_cell(str(cell), {"first": None}, language="de")
    assert not (cell / "score.json").exists()


def test_a_cell_without_test_sets_is_refused(cell):
    with pytest.raises(UsageError, match="--test"):
        score_cell(str(cell), {})


def test_script_scores_all_and_writes_one_file(cell, monkeypatch, capsys):
    before = set(os.listdir(cell))
    words = f"{cell} --test first={cell / 'reference'} --test second= --language de --bins 2,9"
    words += " --source-language en --without-token <sep> --note row=a=b"
    monkeypatch.setattr(sys, "argv", ["score_cell.py", *words.split()])
    main()
    printed = capsys.readouterr().out
    assert set(os.listdir(cell)) - before == {"score.json"}
    result = json.loads((cell / "score.json").read_text(encoding="utf-8"))
    assert list(result["tests"]) == ["first", "second"]
    assert result["notes"] == {"row": "a=b"}
    assert result["command"] == ["score_cell.py", *words.split()]
    first = result["tests"]["first"]
    without = first["without_token"]["all"]["sacrebleu"]
    assert without < first["all"]["sacrebleu"]
    assert printed.startswith("first\n") and "\nsecond\n" in printed
    assert f"without <sep>: sacreBLEU {without:.2f}, " in printed

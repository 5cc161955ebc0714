"""Damaged folders of sentences are refused."""

import json

import pytest

from fairseq_posenc.data.sentence_folder import Description, targets
from fairseq_posenc.errors import UsageError


@pytest.mark.parametrize(
    "change, message",
    [
        (None, "there is no .*task.json"),
        ("{", "is not JSON"),
        ({"splits": 1}, "damaged: splits should be an object"),
        ({"best": "bleu"}, "no metric is called 'bleu'"),
        ({"kind": "ranking"}, "neither a classification nor a regression"),
        ({"labels": []}, "neither a classification nor a regression"),
    ],
)
def test_a_damaged_description_is_refused(change, message, tmp_path):
    whole = {"name": "x", "kind": "classification", "labels": ["a", "b"], "metrics": ["accuracy"]}
    whole.update(best="accuracy", splits={"train": "train.tsv"})
    if change is not None:
        text = change if isinstance(change, str) else json.dumps({**whole, **change})
        (tmp_path / "task.json").write_text(text)
    with pytest.raises(UsageError, match=message):
        Description.read(str(tmp_path))


@pytest.mark.parametrize("content", ["3.5\nhigh\n", "nan\n", "1e999\n", ""])
def test_scores_that_are_none_are_refused(content, tmp_path):
    (tmp_path / "label").mkdir()
    assert targets(str(tmp_path), "valid", 0) is None and targets(str(tmp_path), "valid", 2) is None
    (tmp_path / "label" / "valid.label").write_text(content)
    with pytest.raises(UsageError, match=r"valid.label is (damaged|empty)"):
        targets(str(tmp_path), "valid", 0)

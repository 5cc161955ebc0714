"""The tables of what exported models do elsewhere."""

import re
from pathlib import Path

import pytest
import torch

from fairseq_posenc.errors import UsageError
from recipes.exports.random_models import CLASSES, TYPES, write_checkpoint, write_data

pytest.importorskip("transformers")
from recipes.exports import classes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "huggingface.md"


def cells(text):
    """The cells of the lines of a table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_models_go_to_the_consumers_that_are_here_and_come_back(monkeypatch):
    pytest.importorskip("ctranslate2")
    chosen = {name: CLASSES[name] for name in ("FSMT", "M2M100", "Roberta", "MPNet", "Bloom")}
    monkeypatch.setattr(classes, "CLASSES", chosen)
    text = classes.table()
    head, _, *lines = cells(text)
    assert head[0] == "class" and re.match(r"transformers 5\.\d+\.\d+$", head[1])
    assert [line[0] for line in lines] == list(chosen)
    for name, *differences in lines:
        for cell in differences:
            if cell == "refused (1)":
                assert name in ("FSMT", "MPNet")
            else:
                assert float(cell) < 1e-5
    assert text.endswith("1: No conversion is registered for the model configuration …Config.")


def test_a_difference_is_told_from_rounding():
    one, other = torch.tensor([2.0, 4.0]), torch.tensor([2.0, 4.1])
    assert classes.compared(one, one) == "0"
    assert classes.compared(other, one) == "**wrong**, 2e-02"
    assert classes.compared(other * float("nan"), one, ["head"]) == "**wrong**, without head: nan"


def test_the_page_has_a_row_for_each_class():
    section = PAGE.read_text("utf-8").partition("## Where the folders go")[2].partition("\n## ")[0]
    assert [line[0] for line in cells(section)] == ["class", *CLASSES]


def test_precisions_are_compared_on_the_same_sentences(tmp_path, monkeypatch):
    pytest.importorskip("ctranslate2")
    from recipes.exports import precisions

    data = tmp_path / "data"
    write_data(str(data))
    write_checkpoint(CLASSES["M2M100"], str(tmp_path / "model.pt"), str(data))
    arguments = str(tmp_path / "model.pt"), str(data), 70
    with pytest.raises(UsageError, match="there is no .*test.raw.de; posenc prepare translation"):
        precisions.table(*arguments)
    (data / "test.raw.de").write_text("w1 w2\n" * 90)
    (data / "sentencepiece.model").touch()
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(4, TYPES, (70, 5), generator=generator).tolist()
    sentences = [[*row[: 1 + n % 5], classes.EOS] for n, row in enumerate(tokens)]
    monkeypatch.setattr(precisions, "read_sentences", lambda *_: {"encoder": sentences})
    text = precisions.table(*arguments)
    assert text.startswith("n = 70 sentences, beam 5;")
    [_, _, *lines] = cells(text)
    named = {line[0]: line for line in lines}
    names = ["fairseq", *(f"CTranslate2, {name}" for name in ("float32", "bfloat16", "int8"))]
    assert list(named) == names and named["fairseq"][3] == "1.00 (1.00 to 1.00)"
    assert [named["fairseq"][5], named["fairseq"][1]] == ["70", "float32"]
    sizes = [float(named[name][2]) for name in names[1:]]
    assert sizes[0] > sizes[1] >= sizes[2] > 0
    monkeypatch.setattr(precisions, "read_sentences", lambda *_: {"encoder": sentences[:32]})
    with pytest.raises(UsageError, match="32 sentences are one batch, whose times have no quart"):
        precisions.table(*arguments)

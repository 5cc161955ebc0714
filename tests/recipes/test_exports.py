"""The tables of what exported models do elsewhere."""

import re
import sys
from pathlib import Path

import pytest

from fairseq_posenc.errors import UsageError
from recipes.exports import classes, consumer
from recipes.exports.random_models import CLASSES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "huggingface.md"


def cells(text):
    """The cells of the lines of a table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_models_go_to_the_consumers_that_are_here_and_come_back(monkeypatch):
    pytest.importorskip("transformers")
    pytest.importorskip("ctranslate2")
    chosen = {name: CLASSES[name] for name in ("FSMT", "M2M100", "Roberta", "MPNet", "Bloom")}
    monkeypatch.setattr(classes, "CLASSES", chosen)
    text = classes.table([sys.executable])
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
    one, other = consumer.torch.tensor([2.0, 4.0]), consumer.torch.tensor([2.0, 4.1])
    assert consumer.compared(one, one, []) == "0"
    assert consumer.compared(other, one, []) == "**wrong**, 2e-02"
    assert consumer.compared(other * float("nan"), one, ["head"]) == "**wrong**, without head: nan"


@pytest.mark.parametrize(
    "interpreter, reason", [("/none", "No such file"), ("true", "printed nothing")]
)
def test_an_environment_that_cannot_be_used_is_named(interpreter, reason, tmp_path):
    with pytest.raises(UsageError, match=f"--python {interpreter}: .*{reason}"):
        classes.consume(interpreter, str(tmp_path), "name")


def test_the_page_has_a_row_for_each_class():
    section = PAGE.read_text("utf-8").partition("## Where the folders go")[2].partition("\n## ")[0]
    assert [line[0] for line in cells(section)] == ["class", *CLASSES]

"""Pages print the GPU-hours that `python -m recipes.lib.hours` gives."""

import re
from pathlib import Path

import pytest

from recipes.lib import hours

DOCS = Path(__file__).parents[3] / "docs" / "recipes"
# page, what the figure is of, the words around it
PRINTED = [
    ("shape.md", "first try of a translation: sinusoids", "a row takes {} H100-hours"),
    ("shape.md", "first try of a translation: shaw", "Shaw's {}."),
    ("shape.md", "SHAPE's 21 trainings", "they take {} hours"),
    ("shape.md", "SHAPE's 21 trainings on eight GPUs, days", "{} days of eight"),
    ("cape.md", "first try of a translation: sinusoids", "a row takes {} H100-hours"),
    ("chen.md", "Chen et al., a translation", "{} each by"),
    ("chen.md", "Chen et al., Table 4's pre-trainings", "{} for the four pre-trainings"),
    ("chen.md", "Chen et al., pre-training of learned", "{} of them for `learned`"),
    ("chen.md", "Chen et al., pre-training of shaw", "{} for `shaw`"),
    ("chen.md", "GLUE, a model's fine-tunings", "on each task, take {}:"),
    ("chen.md", "a row of pretrain_english.sh --preset gpu", "That is {} H100-hours a row"),
    ("chen.md", "Chen et al., a multilingual pre-training", "so at least: {} for a pre-training"),
    ("chen.md", "XTREME, a model's fine-tunings", "and {} for the fine-tunings"),
    ("chen.md", "a row of pretrain_multilingual.sh --preset gpu", "at least {} hours a row"),
]  # fmt: skip


@pytest.mark.parametrize("page, figure, words", PRINTED)
def test_pages_print_what_the_function_gives(page, figure, words):
    text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
    assert words.format(hours.figures()[figure]) in text


def test_every_figure_is_on_a_page():
    assert set(hours.figures()) == {figure for _, figure, _ in PRINTED}


def test_hours_are_a_measured_steps():
    """32,768 tokens of sinusoids at length 32 took 0.94 of stock's 82 ms."""
    assert hours.hours(["sinusoidal"], "training, 32", 3600, 32768) == pytest.approx(0.94 * 0.082)
    assert hours.hours(["stock"] * 2, "training, 512", 3600, 65536) == pytest.approx(4 * 0.110)


def test_no_page_estimates_hours_by_operations():
    for page in DOCS.glob("*.md"):
        assert not re.search(r"TFLOP|by the arithmetic", page.read_text(encoding="utf-8")), page

"""The tables hold what the papers print, and everything in them can be measured."""

import pytest

from fairseq_posenc.encodings import names as encodings
from fairseq_posenc.tools.benchmark.record import FIGURES
from fairseq_posenc.tools.benchmark.settings import SHAPES
from fairseq_posenc.tools.benchmark.steps import position_options
from fairseq_posenc.tools.benchmark.tables import load, names
from fairseq_posenc.tools.benchmark.timing import SUBJECTS
from fairseq_posenc.tools.tables import papers


@pytest.mark.parametrize(
    "table, group, column, options, figure",
    [
        ("cape-9", "Transformer layer", "FP16 Len-100", "shaw --position-max-distance 1000", 3.3),
        ("cape-9", "Decoder", "FP32 Len-1000", "shaw --position-max-distance 100", 1.1),
        ("cape-9", "Decoder", "FP32 Len-1000", "none", None),
        ("chen2021-3", "BERT base", "Training", "shaw --position-segments input", 13),
        ("chen2021-3", "BERT small", "Inference", "shaw --position-segments input", 65),
        ("chen2021-3", "BERT small", "Inference", "rotary", None),
        ("shape-2", "Transformer base", "INTERPOLATE", "shaw --position-shared-tables", 0.05),
    ],
)
def test_figures_are_as_printed(table, group, column, options, figure):
    assert load(table).printed(group, column, options) == figure


def test_speed_in_training_is_that_of_shapes_table_of_scores():
    """Two files have these figures: one compares whole trainings, the other steps."""
    printed, ours = papers.load("shape-2"), load("shape-2")
    place = printed.figures().index("Speed")
    labels = {row.label: row.options for row in ours.rows}
    compared = 0
    for row in printed.rows:
        dataset, model = row.labels
        if model in labels and row.figures[place] is not None:
            figure = ours.printed("Transformer base", dataset, labels[model])
            assert figure == row.figures[place]
            compared += 1
    assert compared == 8


@pytest.mark.parametrize("name", names())
def test_every_row_and_column_can_be_built(name, settings_of):
    table = load(name)
    assert table.figure in FIGURES and table.base in [row.options for row in table.rows]
    for row in table.rows:
        assert set(row.figures) <= set(table.groups)
        assert all(len(figures) == len(table.columns) for figures in row.figures.values())
    settings = settings_of(name)
    assert len(settings) == len(table.groups) * len(table.columns)
    for setting in settings:
        assert setting.subject in SUBJECTS and setting.shape in SHAPES and setting.batch >= 1
        assert setting.shared and not setting.forked
        for options in setting.contestants:
            assert position_options(options).position_encoding == options.split()[0]


def test_encodings_are_measured_beside_the_papers_rows(settings_of):
    contestants = settings_of("chen2021-3")[0].contestants
    for name in encodings():
        assert name in contestants
        assert f"{name} --position-segments per_head" in contestants
    assert len(contestants) == len(set(contestants)) == 2 * len(encodings()) + 3
    paper = settings_of("cape-9")[0].contestants
    assert settings_of("cape-9", "--encodings alibi,cape")[0].contestants == [*paper, "alibi"]
    chosen = settings_of("chen2021-3", "--encodings alibi")[0].contestants
    assert chosen[4:] == ["alibi", "alibi --position-segments per_head"]


def test_columns_take_the_precision_that_they_name_or_the_first(settings_of):
    both = {(s.column[:4], s.dtype) for s in settings_of("cape-9")}
    assert both == {("FP16", "bfloat16"), ("FP32", "float32")}
    half = settings_of("cape-9", "--dtype bfloat16")
    assert len(half) == 9 and {s.column[:4] for s in half} == {"FP16"}
    for dtypes in ("float32,bfloat16", "bfloat16,float32"):
        found = {s.dtype for s in settings_of("shape-2", f"--dtype {dtypes}")}
        assert found == {dtypes.split(",")[0]}


def test_lengths_choose_columns(settings_of):
    chosen = settings_of("cape-9", "--lengths 100,1000")
    assert {s.length for s in chosen} == {100, 1000} and len(chosen) == 12
    assert settings_of("chen2021-3", "--lengths 100") == []
    quick = settings_of("cape-9", "--quick")
    assert {s.shape for s in quick} == {"tiny"} and {s.length for s in quick} == {10}


@pytest.mark.parametrize(
    "name, options, batches",
    [
        ("cape-9", "--tokens 100000", {10: 50, 100: 50, 1000: 50}),
        ("cape-9", "--tokens 900", {10: 50, 100: 9, 1000: 1}),
        ("shape-2", "--tokens 7000", {24: 291, 32: 218, 320: 21}),
        ("shape-2", "", {24: 42, 32: 32, 320: 3}),
    ],
)
def test_the_batch_is_the_papers_or_what_the_tokens_allow(settings_of, name, options, batches):
    assert {s.length: s.batch for s in settings_of(name, options)} == batches

"""The tables hold what the papers print, and everything in them can be measured."""

import pytest

from fairseq_posenc.encodings import names as encodings
from fairseq_posenc.tools.benchmark.cost.cell import SUBJECTS
from fairseq_posenc.tools.benchmark.cost.plan import cells
from fairseq_posenc.tools.benchmark.cost.report import FIGURES
from fairseq_posenc.tools.benchmark.cost.table import load, names
from fairseq_posenc.tools.benchmark.models import position_options
from fairseq_posenc.tools.benchmark.setting import SHAPES
from fairseq_posenc.tools.results import papers


def test_the_tables_of_the_papers_are_there():
    assert names() == ["cape-9", "chen2021-3", "generation", "shape-2"]


@pytest.mark.parametrize(
    "table, group, column, options, figure",
    [
        ("cape-9", "Transformer layer", "FP16 Len-100", "shaw --position-max-distance 1000", 3.3),
        ("cape-9", "Encoder", "FP32 Len-10", "shaw --position-max-distance 1000", 2.2),
        ("cape-9", "Encoder", "FP16 Len-100", "shaw --position-max-distance 100", 1.5),
        ("cape-9", "Decoder", "FP32 Len-1000", "shaw --position-max-distance 100", 1.1),
        ("cape-9", "Decoder", "FP32 Len-1000", "none", None),
        ("chen2021-3", "BERT base", "Training", "shaw --position-segments input", 13),
        ("chen2021-3", "BERT base", "Inference", "tupe --position-segments input", 19),
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
def test_every_row_and_cell_can_be_built(name, choose):
    table = load(name)
    assert table.figure in FIGURES and table.base in [row.options for row in table.rows]
    for row in table.rows:
        assert set(row.figures) <= set(table.groups)
        assert all(len(figures) == len(table.columns) for figures in row.figures.values())
    plan = cells(name, table, choose())
    assert len(plan) == len(table.groups) * len(table.columns)
    for cell in plan:
        assert cell.subject in SUBJECTS and cell.shape in SHAPES and cell.batch >= 1
        for options in cell.contestants:
            assert position_options(options).position_encoding == options.split()[0]


def test_every_encoding_is_a_row_of_chens_table_with_and_without_segments(choose):
    contestants = cells("chen2021-3", load("chen2021-3"), choose())[0].contestants
    for name in encodings():
        assert name in contestants
        assert f"{name} --position-segments per_head" in contestants
    assert len(contestants) == len(set(contestants)) == 2 * len(encodings()) + 3

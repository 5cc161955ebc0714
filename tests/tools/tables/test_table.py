"""How tables print figures: decimals, and stars."""

import numpy as np
import pytest

from fairseq_posenc.tools.tables.intervals import Estimate, Sampled
from fairseq_posenc.tools.tables.latex import best_rows, latex
from fairseq_posenc.tools.tables.length_table import differences_in_words
from fairseq_posenc.tools.tables.table import Table


@pytest.mark.parametrize(
    ("metric", "scale", "digits", "in_words"),
    [("COMET", 1, 4, 4), ("raters", 90, 2, 1), ("length_ratio", 1, 3, 3), ("sacrebleu", 1, 2, 1)],
)
def test_scores_as_small_as_comets_have_four_decimals(metric, scale, digits, in_words):
    """Its systems differ by hundredths."""
    means = {"a": (0.811, 0.812), "b": (0.8234, 0.8246)}
    drawn = np.linspace(0, 0.001, 9)
    table = Table(
        metric, "length", ["11+"], [7], [None],
        {name: [Sampled("12", [scale * mean for mean in pair], drawn)]
         for name, pair in means.items()},
    )  # fmt: skip
    mean, low, high, _ = table.differences["b"][0]
    assert f"| {mean:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}] * |" in table.markdown()
    assert f"{table.rows['b'][0].mean:.{digits}f}" in latex(table, best_rows(table))
    told = f"b {mean:+.{in_words}f} ± {(high - low) / 2:.{in_words}f}."
    assert differences_in_words(table, ["a", "b"]) == [f"11+, against a: {told}"]


def test_a_difference_without_width_has_no_star():
    """As of a single sentence of one training, which the bootstrap draws alone."""
    assert Estimate(6.5, 6.4, 6.6).signed(2) == "+6.50 [+6.40, +6.60] *"
    assert Estimate(6.5, 6.5, 6.5).signed(2) == "+6.50 [+6.50, +6.50]"

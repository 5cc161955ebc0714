import os

import pytest
from matplotlib.figure import Figure

from fairseq_posenc.errors import UsageError
from fairseq_posenc.evaluation.plots import plot_by_length


def score(*values):
    tops = [10, 20, 30, None]
    bins = [
        {"name": f"bin{i}", "longer_than": low, "up_to": up, "sentences": 3, "sacrebleu": value}
        for i, (low, up, value) in enumerate(zip([-1, 10, 20, 30], tops, values))
    ]
    return {
        "all": {"sacrebleu": 1.0},
        "by_length": {"of": "source", "unit": "subwords", "bins": bins},
        "signatures": {"sacrebleu": "tok:13a"},
    }


RUNS = {"shape": [score(30, 29, 20, 10), score(31, 28, 21, 9)], "cape": [score(30, 29, None, 15)]}


@pytest.fixture
def axes(monkeypatch, tmp_path):
    """The axes of a plot that was drawn and written."""

    def axes(**options):
        figures = []
        monkeypatch.setattr(
            Figure, "savefig", lambda figure, *_, **__: figures.append(figure), raising=True
        )
        plot_by_length(RUNS, str(tmp_path / "plot.png"), **options)
        return figures[0].axes[0]

    return axes


def test_a_line_per_run_goes_through_the_mean_of_each_bin_that_has_one(axes):
    lines = {container.get_label(): container[0] for container in axes().containers}
    assert lines["shape"].get_ydata() == pytest.approx([30.5, 28.5, 20.5, 9.5])
    assert lines["cape"].get_ydata() == pytest.approx([30, 29, 15])
    assert lines["cape"].get_xdata() == pytest.approx([0, 1, 3], abs=0.1)
    assert lines["shape"].get_color() != lines["cape"].get_color()
    assert lines["shape"].get_marker() != lines["cape"].get_marker()


@pytest.mark.parametrize(("longest", "shaded"), [(None, []), (19, [2, 3]), (20, [2, 3]), (21, [3])])
def test_bins_without_training_data_are_shaded(axes, longest, shaded):
    found = axes(trained_up_to=longest)
    to_data = found.transData.inverted()
    middles = [patch.get_extents().transformed(to_data).x0 + 0.5 for patch in found.patches]
    assert middles == pytest.approx(shaded)


def test_axes_say_what_they_show(axes):
    found = axes()
    assert found.get_xlabel() == "Source length (subwords)"
    assert found.get_ylabel() == "sacreBLEU"
    assert [tick.get_text() for tick in found.get_xticklabels()][0] == "bin0\nn = 3"


def test_a_png_is_written_and_nothing_else(tmp_path):
    output = tmp_path / "plots" / "bleu.png"
    plot_by_length(RUNS, str(output), trained_up_to=20)
    assert output.read_bytes().startswith(b"\x89PNG")
    assert os.listdir(output.parent) == ["bleu.png"]


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(UsageError, match="ending"):
        plot_by_length(RUNS, str(tmp_path / "plot.xyz"))

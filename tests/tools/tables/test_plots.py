"""The plot by length, read from matplotlib's axes."""

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.tables.plots import plot_by_length, plot_curves
from tests.tools.tables.test_length_table import by_length, score

RUNS = {"shape": [score(0.9), score(0.8)], "cape": [score(0.7)]}


def within(*counts):
    """A result, of whose bins of 5, 7 and no sentences so many are within the trained length."""
    result = score(0.8)
    bins = result["by_length"]["bins"]
    bins[1]["up_to"] = 99
    bins.append({"name": "100+", "longer_than": 99, "up_to": None, "sentences": 0})
    for part, count in zip(bins, counts):
        part["within"] = count
    return result


@pytest.fixture
def axes(drawn):
    """The axes of a plot that was drawn and written."""
    return lambda runs=RUNS: drawn(plot_by_length, by_length(runs))


def test_a_line_per_run_goes_through_its_estimates_with_their_intervals_as_bars(axes):
    drawn, table = axes(), by_length(RUNS)
    lines = {container.get_label(): container for container in drawn.containers}
    for name, row in table.rows.items():
        assert lines[name][0].get_ydata() == pytest.approx([one.mean for one in row[1:]])
        bars = [segment[:, 1].tolist() for segment in lines[name][2][0].get_segments()]
        assert bars == [pytest.approx([one.low, one.high]) for one in row[1:]]
    assert lines["shape"][0].get_color() != lines["cape"][0].get_color()
    assert lines["shape"][0].get_marker() != lines["cape"][0].get_marker()
    assert drawn.get_xlabel().startswith("Source length (words)")
    assert drawn.get_ylabel() == "sacreBLEU"


def test_differences_from_the_first_are_drawn_in_each_runs_colour(drawn, axes):
    several = drawn(lambda *of: plot_by_length(*of, differences=True), by_length(RUNS))
    [line] = several.containers
    expected = [one.mean for one in by_length(RUNS).differences["cape"][1:]]
    assert line.get_label() == "cape" and line[0].get_ydata() == pytest.approx(expected)
    assert line[0].get_color() == axes().containers[1][0].get_color()
    assert several.get_ylabel() == "sacreBLEU minus that of shape"
    with pytest.raises(UsageError, match="two encodings"):
        plot_by_length(by_length({"cape": RUNS["cape"]}), "unwritten.png", differences=True)


def test_bins_without_sentences_have_no_point(axes):
    (line,) = axes({"cape": [within(5, 2, 0)]}).containers
    assert line[0].get_xdata() == pytest.approx([0, 1], abs=0.1)


@pytest.mark.parametrize(
    ("counts", "shaded"),
    [((5, 2, 0), [0]), ((5, 7, 0), [0, 1]), ((0, 0, 0), []), ((None, None, None), [])],
)
def test_only_bins_wholly_within_the_trained_length_are_shaded(axes, counts, shaded):
    found = axes({"shape": [within(*counts)]})
    to_data = found.transData.inverted()
    middles = [patch.get_extents().transformed(to_data).x0 + 0.5 for patch in found.patches]
    assert middles == pytest.approx(shaded)
    names = [tick.get_text() for tick in found.get_xticklabels()]
    assert names[1] == ("11+\nn = 7" if None in counts else f"11+\n{counts[1]} of 7")
    assert ("within" in found.get_xlabel()) == (None not in counts)


STRANGE = ["$\\frac{1}{2}$", "$x^", "$\\unknown$", "_hidden", "a\nb\0\ud800", "x" * 100_000]


@pytest.mark.parametrize("name", STRANGE, ids=range(len(STRANGE)))
def test_names_from_elsewhere_are_drawn_as_they_are(axes, tmp_path, name):
    strange = score(0.9)
    strange["by_length"]["bins"][0]["name"] = name.replace("\ud800", "")
    path = tmp_path / "plot.svg"
    plot_by_length(by_length({name: [strange]}), str(path))
    plot_curves({name: [{100: 8.0, 200: 1.4}]}, str(tmp_path / "curves.svg"))
    assert path.stat().st_size < 1 << 18
    drawn = axes({name: [strange]})
    texts = [*drawn.get_xticklabels(), *drawn.figure.legends[0].get_texts()]
    shown = [text for text in texts if text.get_text().strip()[:2] == name[:2]]
    assert len(shown) == 2 or "\0" in name
    assert not any(text.get_parse_math() for text in texts)


def test_a_kind_of_picture_that_is_none_is_refused(tmp_path):
    with pytest.raises(UsageError, match="ending"):
        plot_by_length(by_length(RUNS), str(tmp_path / "plot.xyz"))


def test_the_command_draws_a_test_set_of_a_recipe_with_several(posenc, write, tmp_path):
    good, bad = score(0.9), score(0.3)
    several = write("cape/score.json", {"tests": {"a": good, "b": bad}, "notes": {}})
    alone = write("alone/score.json", bad)
    pictures = [tmp_path / name for name in ("several.png", "alone.png")]
    posenc("plot", "--by-length", several, "--test", "b", "--output", pictures[0])
    posenc("plot", "--by-length", f"cape={alone}", "--output", pictures[1])
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
    with pytest.raises(SystemExit):
        posenc("plot", "--curves", several, "--test", "b", "--output", pictures[0])

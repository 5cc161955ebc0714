"""How far trainings are from their end, in words, as a table and as a picture."""

import math

import numpy as np
import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.training_log import curves_table, over_seeds, reached, read_curves
from fairseq_posenc.tools.tables.plots import plot_curves

FALLING = {100: 8.0, 200: 1.4, 300: 1.1, 400: 1.01, 800: 1.01, 1000: 1.0}


def test_the_distance_from_the_end():
    end = reached(FALLING)
    assert (end.updates, end.last, end.within) == (1000, 1.0, 0.4)
    # at 750, which is on a straight line between validations
    assert end.quarter == pytest.approx(0.01)
    # it counts from where it stays there
    assert reached({**FALLING, 700: 1.03}).within == 0.8


def test_trainings_of_which_little_is_known():
    assert reached({50: 3.0})[2:] == (1.0, None)
    assert reached({50: 3.0, 100: math.nan}).within is None
    assert curves_table({"a": [{50: 3.0}]}).splitlines()[2].split("|")[-2].strip() == "-"
    assert "diverged" in curves_table({"a": [{50: 2.0, 100: math.inf}, {50: 2.0, 100: 1.0}]})


VALID = "| valid on 'valid' subset | loss 5 | nll_loss {} | num_updates {}"
BEGUN = "2026-11-28 09:00:00 | INFO | fairseq_cli.train | {'cpu': True}"


def test_a_training_that_was_ended_before_its_first_validation_is_left_out_with_a_word(
    tmp_path, run, fails
):
    logs = {"whole": VALID.format(3, 9), "begun": BEGUN, "empty": ""}
    for name, text in logs.items():
        (tmp_path / name).write_text(text)
    words = ["posenc", "plot", "--output", tmp_path / "curves.png", "--curves"]
    printed = run(*words, *(f"{name}={tmp_path / name}" for name in logs))
    assert f"note: {tmp_path}/begun has no validation: left out" in printed
    assert f"note: {tmp_path}/empty is empty: left out" in printed
    assert "| whole" in printed and "| begun" not in printed and (tmp_path / "curves.png").exists()
    assert f"error: {tmp_path}/begun has no validation" in fails(*words, tmp_path / "begun")


def test_the_table_has_means_over_seeds_with_intervals():
    other = {**FALLING, 700: 1.05, 1100: 1.2}
    table = curves_table({"shape": [FALLING, other], "cape": [FALLING]})
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:4]]
    # Student's quantile of one degree of freedom is 12.706; half the difference is the error
    half = 12.706 * 0.1
    assert rows[0][:5] == ["shape", "2", "1000-1100", f"1.100 ± {half:.3f}", "100 %"]
    assert rows[1] == ["cape", "1", "1000", "1.000", "40 %", "0.010"]
    assert "A single training has no interval" in table
    assert "A single" not in curves_table({"shape": [FALLING, other]})


def test_seeds_are_compared_where_all_were_validated_or_between():
    updates, losses = over_seeds([{100: 8.0, 200: 4.0, 400: 2.0}, {200: 5.0, 300: 3.0, 500: 1.0}])
    assert updates.tolist() == [200, 300, 400]
    assert losses.tolist() == [[4, 3, 2], [5, 3, 2]]


@pytest.fixture
def axes(drawn):
    return lambda curves: drawn(plot_curves, curves)


def test_a_line_is_the_mean_and_a_band_reaches_over_all_seeds(axes):
    other = {n: loss + 0.5 for n, loss in FALLING.items()}
    drawn = axes({"shape": [FALLING, other], "cape": [FALLING]})
    lines = {line.get_label(): line for line in drawn.lines}
    assert lines["cape"].get_xydata().tolist() == [[*point] for point in FALLING.items()]
    assert lines["shape"].get_ydata() == pytest.approx(np.array([*FALLING.values()]) + 0.25)
    [band] = drawn.collections
    points = {tuple(point) for point in band.get_paths()[0].vertices.round(6)}
    assert points == {*FALLING.items(), *other.items()}


def test_seeds_that_share_no_updates_are_refused(axes):
    with pytest.raises(UsageError, match="a: its seeds span no update in common"):
        axes({"a": [{100: 1.0}, {200: 1.0}]})


def test_command_draws_and_prints(tmp_path, write, posenc, capsys):
    form = "2026 | INFO | valid | epoch 1 | valid on 'valid' subset | nll_loss {} | num_updates {}"
    lines = [form.format(loss, updates) for updates, loss in FALLING.items()]
    paths = [write(f"shape/seed{seed}/train.log", lines) for seed in (1, 2)]
    assert read_curves([*paths, f"cape={paths[0]}"]) == {"shape": [FALLING] * 2, "cape": [FALLING]}
    picture = tmp_path / "curves.png"
    words = ["plot", "--output", picture, "--curves", *paths]
    printed = posenc(*words).out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "| shape |   2 |    1000 | 1.000 ± 0.000 |" in printed
    with pytest.raises(SystemExit):
        posenc(*words, "--metric", "chrf")
    assert "--metric, --test and --differences are for --by-length" in capsys.readouterr().err

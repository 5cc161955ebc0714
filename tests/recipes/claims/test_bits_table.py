"""Bits per token by length: what the tables say of trainings whose bits are known."""

import json

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.tables import plots
from recipes.claims import bits_table
from recipes.claims.trainings import EqualLevel, difference, end, read_rows

NAMES = ["1-4", "5-8", "9+"]


@pytest.fixture
def written(tmp_path):
    """Write bits.json of trainings; return their paths.

    Rows are ``{label: {seed: bits per token by range}}``, and in place of the bits of the end there
    may be a list of those of all checkpoints.
    """

    def write(rows, tokens=(4, 4, 4)):
        arguments = []
        for label, seeds in rows.items():
            for seed, checkpoints in seeds.items():
                folder = tmp_path / label / f"seed{seed}"
                folder.mkdir(parents=True, exist_ok=True)
                if isinstance(checkpoints, tuple):
                    checkpoints = [checkpoints]
                *earlier, end = [
                    {n: [[b * t, t] for t in tokens] for n, b in zip(NAMES, bits)}
                    for bits in checkpoints
                ]
                content = {"sentences": {**end, "all": [[1.0, 1.0]]},
                           "earlier": {str(n): bits for n, bits in enumerate(earlier)}}  # fmt: skip
                (folder / "bits.json").write_text(json.dumps(content))
                arguments.append(f"{label}={folder}/bits.json")
        return arguments

    return write


def test_differences_are_of_equal_seeds(written):
    rows, names = read_rows(
        written(
            {
                "base": {1: (2, 3, 4), 2: (2, 3, 6)},
                "new": {1: (1.5, 2, 2), 2: (1.5, 2, 4), 3: (9, 9, 9)},
            }
        )
    )
    assert names == NAMES
    differences = [difference(rows["new"], rows["base"], name) for name in [*names, "beyond"]]
    # as many tokens in both ranges: all beyond the first is the mean of the two
    assert [estimate.mean for estimate in differences] == pytest.approx([-0.5, -1, -2, -1.5])
    # equal in both seeds and for all sentences: nothing is uncertain
    assert differences[-1].high == pytest.approx(-1.5)


# bits within and beyond of a training: bits beyond fall more slowly, as of sinusoids
CURVE = [(8.0, 8.2, 8.2), (6.0, 6.9, 6.9), (4.0, 5.4, 5.4), (2.5, 4.5, 4.5)]


def test_a_slow_learner_does_not_win(written):
    """The same training, ended early, rises least beyond the trained lengths, and is no better."""
    better = [(w, b - 0.5, b - 0.5) for w, b, _ in CURVE]
    rows, _ = read_rows(written({
        "sinusoidal": {1: CURVE, 2: CURVE},
        "ended_early": {1: CURVE[:2], 2: CURVE[:2]},
        "better": {1: better, 2: better},
    }))  # fmt: skip
    last = rows["ended_early"]["seed1"][-1]
    assert last["beyond"][0] - last["1-4"][0] < 1 < 4.5 - 2.5
    compared = EqualLevel(rows)
    assert compared.level == pytest.approx(6.0)
    assert compared.less("ended_early", "sinusoidal").mean == pytest.approx(0)
    assert compared.less("better", "sinusoidal").mean == pytest.approx(-0.5)


def test_bits_are_read_off_the_line_between_two_checkpoints_seed_by_seed(written):
    slow = [(8.0, 9.0, 9.0), (5.0, 6.0, 6.0)]
    rows, _ = read_rows(written({
        "base": {1: CURVE, 2: CURVE}, "slow": {1: slow, 2: [slow[0], (4.0, 6.0, 6.0)]}
    }))  # fmt: skip
    compared = EqualLevel(rows)
    assert compared.level == pytest.approx(4.5)
    # half way between (6.0, 6.9) and (4.0, 5.4) in seed 1, at (4.0, 5.4) in seed 2
    assert compared.beyond("base").mean == pytest.approx((6.15 + 5.4) / 2)
    assert compared.less("slow", "base").mean == pytest.approx(((6 - 6.15) + (6 - 5.4)) / 2)


def test_what_no_checkpoint_reaches_is_not_told(written):
    """A row whose first checkpoint is already better has no point at the level."""
    fast, slow = [(3.0, 4.0, 4.0), (2.0, 3.0, 3.0)], [(9.0, 9.0, 9.0), (8.0, 8.0, 8.0)]
    rows, names = read_rows(written({"fast": {1: fast, 2: fast}, "slow": {1: slow, 2: slow}}))
    assert EqualLevel(rows).less("slow", "fast").mean is None
    last = bits_table.markdown(rows, names, {"slow": "less"}, margin=0.1).strip().split("\n")[-1]
    assert [cell.strip() for cell in last.split("|")[2:-1]][1::2] == ["-", "-"]


@pytest.mark.parametrize(
    "new, expect, verdict",
    [
        ({1: (2, 2.5, 2.5), 2: (2, 2.6, 2.4)}, "less", "as expected"),
        ({1: (2, 3.5, 3.5), 2: (2, 3.6, 3.4)}, "less", "against it"),
        ({1: (2, 2, 2), 2: (2, 4, 4)}, "less", "cannot tell"),
        ({1: (2, 3.01, 3), 2: (2, 3, 3.01)}, "equal", "as expected"),
        ({1: (2, 2.5, 2.5)}, "less", "cannot tell"),
        # ahead everywhere or behind within, without checkpoints: nobody can tell
        ({1: (1.5, 2.5, 2.5), 2: (1.5, 2.6, 2.4)}, "less", "cannot tell (bits within differ)"),
        ({1: (2.5, 2.5, 2.5), 2: (2.5, 2.6, 2.4)}, "less", "cannot tell (bits within differ)"),
    ],
)
def test_verdicts_without_earlier_checkpoints(written, new, expect, verdict):
    rows, names = read_rows(written({"base": {1: (2, 3, 3), 2: (2, 3, 3)}, "new": new}))
    last = bits_table.markdown(rows, names, {"new": expect}, margin=0.1).strip().split("\n")[-1]
    assert last.split("|")[-2].strip() == verdict


def test_the_interval_knows_sentences(written):
    arguments = written({"base": {1: (2, 3, 4), 2: (2, 3, 4)}})
    path = arguments[0].partition("=")[2]
    with open(path) as stream:
        content = json.load(stream)
    content["sentences"]["9+"] = [[4, 4], [40, 4], [4, 4]]
    with open(path, "w") as stream:
        json.dump(content, stream)
    rows, names = read_rows(arguments)
    alike, uneven = (end(rows["base"], name) for name in ("5-8", "9+"))
    assert alike.high == pytest.approx(alike.mean)
    assert uneven.high > uneven.mean


def test_what_is_no_set_of_trainings_is_refused(written, monkeypatch, capsys):
    arguments = written({"base": {1: (2, 3, 4)}})
    with pytest.raises(UsageError, match="twice"):
        read_rows(arguments * 2)
    with pytest.raises(UsageError, match="is not label"):
        read_rows(["base"])
    monkeypatch.setattr("sys.argv", ["bits_table", *arguments, "--expect", "base", "--output", "x"])
    with pytest.raises(SystemExit):
        bits_table.main()
    assert "--expect: expected KEY=VALUE, not 'base'" in capsys.readouterr().err


def test_the_picture_and_latex_are_written(written, tmp_path, monkeypatch):
    arguments = written(
        {
            "a_b": {1: [(3, 4, 5), (2, 3, 4)], 2: [(3, 4, 5), (2, 3, 5)]},
            "new": {1: [(3, 2, 2), (1, 1, 1)], 2: [(3, 2, 2), (1, 1, 2)]},
        }
    )
    monkeypatch.setattr("sys.argv", ["bits_table", *arguments, "--output", str(tmp_path / "bits")])
    bits_table.main()
    for picture in "bits.png", "bits_level.png":
        assert (tmp_path / picture).stat().st_size > 1000
    assert r"a\_b & 2 & $2.00$ & $3.00$ & $4.50 \pm 6.35$" in (tmp_path / "bits.tex").read_text()


def test_the_picture_of_levels_has_a_line_per_row_and_begins_near_the_level(written, monkeypatch):
    rows, names = read_rows(
        written({
            "base": {1: [(9, 9, 9), (3, 4, 5), (2, 3, 4)], 2: [(9, 9, 9), (2, 3, 5)]},
            "new": {1: [(9, 8, 8), (1, 1, 1)], 2: [(9, 8, 8), (2, 1, 2)]},
        })
    )  # fmt: skip
    figures = []
    monkeypatch.setattr(plots, "save", lambda figure, output: figures.append(figure))
    bits_table.draw_levels(rows, names, 2.0, "level.png")
    [legend], [axes] = figures[0].legends, figures[0].axes
    assert [text.get_text() for text in legend.get_texts()] == ["base", "new"]
    # means of both seeds; those of base have kept unlike checkpoints, and have their ends alone
    means = [list(container.lines[0].get_xdata()) for container in axes.containers]
    assert means == [[2], [1.5]]
    of_rows = {id(container.lines[0]) for container in axes.containers}
    pale = [list(line.get_xdata()) for line in axes.lines if id(line) not in of_rows]
    assert pale[:2] == [[3, 2], [2]] and pale[2:4] == [[1], [2]]

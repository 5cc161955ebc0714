"""Bits per token by length: what the tables say of trainings whose bits are known."""

import json

import pytest

from fairseq_posenc.errors import UsageError
from recipes.claims import bits_table

NAMES = ["1-4", "5-8", "9+"]


@pytest.fixture
def written(tmp_path):
    """Write bits.json of trainings, ``{label: {seed: bits per token by range}}``; their paths."""

    def write(rows, tokens=(4, 4, 4)):
        arguments = []
        for label, seeds in rows.items():
            for seed, bits in seeds.items():
                folder = tmp_path / label / f"seed{seed}"
                folder.mkdir(parents=True, exist_ok=True)
                sentences = {n: [[b * t, t] for t in tokens] for n, b in zip(NAMES, bits)}
                sentences["all"] = [[1.0, 1.0]]
                (folder / "bits.json").write_text(json.dumps({"sentences": sentences}))
                arguments.append(f"{label}={folder}/bits.json")
        return arguments

    return write


def test_differences_are_of_equal_seeds_and_differences_of_differences_take_the_first_range_out(
    written,
):
    rows, names = bits_table.read_rows(
        written(
            {
                "base": {1: (2, 3, 4), 2: (2, 3, 6)},
                "new": {1: (1.5, 2, 2), 2: (1.5, 2, 4), 3: (9, 9, 9)},
            }
        )
    )
    assert names == NAMES
    found = rows["new"].differences(rows["base"], names)
    assert [one.mean for one in found] == pytest.approx([-0.5, -1, -2])
    beyond = rows["new"].beyond(rows["base"], names)
    # as many tokens in both ranges: all beyond the first is the mean of the two
    assert [one.mean for one in beyond] == pytest.approx([-1.0, -0.5, -1.5])
    # equal in both seeds and for all sentences: nothing is uncertain
    assert beyond[0].high == pytest.approx(-1.0)


@pytest.mark.parametrize(
    "new, expect, verdict",
    [
        ({1: (2, 2.5, 2.5), 2: (2, 2.6, 2.4)}, "less", "as the paper says"),
        ({1: (2, 3.5, 3.5), 2: (2, 3.6, 3.4)}, "less", "against it"),
        ({1: (2, 2, 2), 2: (2, 4, 4)}, "less", "cannot tell"),
        ({1: (2, 3.01, 3), 2: (2, 3, 3.01)}, "equal", "as the paper says"),
        ({1: (2, 2.5, 2.5)}, "less", "cannot tell"),
    ],
)
def test_verdicts(written, new, expect, verdict):
    rows, names = bits_table.read_rows(written({"base": {1: (2, 3, 3), 2: (2, 3, 3)}, "new": new}))
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
    rows, names = bits_table.read_rows(arguments)
    alike, uneven = (rows["base"].estimate([(1, rows["base"], name)]) for name in ("5-8", "9+"))
    assert alike.high == pytest.approx(alike.mean)
    assert uneven.high > uneven.mean


def test_what_is_no_set_of_trainings_is_refused(written):
    arguments = written({"base": {1: (2, 3, 4)}})
    with pytest.raises(UsageError, match="twice"):
        bits_table.read_rows(arguments * 2)
    with pytest.raises(UsageError, match="is not label"):
        bits_table.read_rows(["base"])


def test_the_picture_and_latex_are_written(written, tmp_path, monkeypatch):
    arguments = written({"a_b": {1: (2, 3, 4), 2: (2, 3, 5)}, "new": {1: (1, 1, 1), 2: (1, 1, 2)}})
    monkeypatch.setattr("sys.argv", ["bits_table", *arguments, "--output", str(tmp_path / "bits")])
    bits_table.main()
    assert (tmp_path / "bits.png").stat().st_size > 1000
    assert r"a\_b & 2 & $2.00$ & $3.00$ & $4.50 \pm 6.35$" in (tmp_path / "bits.tex").read_text()

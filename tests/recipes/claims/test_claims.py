"""The page of claims: figures by seed, intervals, verdicts."""

import json
import re
from pathlib import Path

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import read_shaped
from recipes.claims import claim_figures, claims

RECIPE = Path(__file__).resolve().parents[3] / "recipes" / "claims" / "claims.json"


@pytest.mark.parametrize(
    "low, high, expect, margin, expected",
    [
        (0.1, 2.0, "more", 1.0, claims.CONFIRMED),
        (-2.0, -0.1, "more", 1.0, claims.OPPOSITE),
        (-0.5, 0.9, "more", 1.0, claims.NOT_CONFIRMED),
        (-0.5, 1.1, "more", 1.0, claims.UNDECIDED),
        (-2.0, -0.1, "less", 1.0, claims.CONFIRMED),
        (0.1, 2.0, "less", 1.0, claims.OPPOSITE),
        (-0.9, 0.5, "less", 1.0, claims.NOT_CONFIRMED),
        (-0.9, 0.9, "equal", 1.0, claims.CONFIRMED),
        (0.2, 0.9, "equal", 1.0, claims.CONFIRMED),
        (-0.9, 1.1, "equal", 1.0, claims.UNDECIDED),
        (1.1, 3.0, "equal", 1.0, claims.NOT_CONFIRMED),
        (-3.0, -1.1, "equal", 1.0, claims.NOT_CONFIRMED),
    ],
)
def test_a_verdict_follows_from_where_the_interval_lies(low, high, expect, margin, expected):
    assert claims.verdict(low, high, expect, margin) == expected


def write_probes(folder, figures):
    for row, values in figures.items():
        for seed, value in values.items():
            (folder / "bert" / row / f"seed{seed}").mkdir(parents=True)
            content = json.dumps({"accuracy": value})
            (folder / "bert" / row / f"seed{seed}" / "probes.json").write_text(content)


def comparison(**changed):
    usual = {"part": "bert", "figure": "probe:accuracy", "row": "a", "base": "b"}
    return {**usual, "expect": "more", "margin": 1.0, **changed}


def test_seeds_are_paired(tmp_path):
    # a is better by 1 to 2 with each seed, which differ by far more than that
    write_probes(tmp_path, {"a": {1: 61, 2: 72, 3: 91.5, 4: 0}, "b": {1: 60, 2: 70, 3: 90, 7: 9}})
    result = claims.compare(str(tmp_path), comparison())
    assert (result.seeds, result.verdict) == (3, claims.CONFIRMED)
    # Student's t with 2 degrees of freedom: 1.5 ± 4.3027 · 0.5 / √3
    assert [result.low, result.high] == pytest.approx([1.5 - 1.24206, 1.5 + 1.24206], abs=1e-4)
    assert (
        claims.compare(str(tmp_path), comparison(base=None, than=99.0)).verdict == claims.UNDECIDED
    )
    less = claim_figures.figures_by_seed(str(tmp_path), "bert", "a less b", "probe:accuracy")
    assert less == pytest.approx({1: 1, 2: 2, 3: 1.5})


@pytest.mark.parametrize("row", ["a", "b", "c"])
def test_what_was_not_run_has_no_figures(tmp_path, row):
    write_probes(tmp_path, {"a": {1: 61}, "b": {1: 60}})
    result = claims.compare(str(tmp_path), comparison(row=row))
    assert result.verdict == claims.MISSING and result.low is None


def test_the_page_has_every_claim_and_its_headline(tmp_path):
    write_probes(tmp_path, {"a": {1: 61, 2: 72, 3: 81.5}, "b": {1: 60, 2: 71, 3: 80}})
    content = {
        "introduction": ["First."],
        "parts": {"bert": {"about": "Small models."}},
        "claims": [
            {
                "claim": "A beats B", "source": "Table 1", "paper": "2 to 1.", "note": "Read so.",
                "ours": [comparison(in_words="{row} with a, {base} with b"), comparison(row="c")],
            }
        ],
    }  # fmt: skip
    text = claims.page(content, str(tmp_path))
    assert "- 71.50 with a, 70.33 with b: +1.17 ± 0.72 (n = 3): confirmed" in text
    assert re.search(r"\| A beats B +\| Table 1 +\| 1 confirmed, 1 not run +\|", text)
    for expected in ("## 1. A beats B", "Table 1: 2 to 1.", "Read so.", "--parts bert`"):
        assert expected in text
    assert "## Which encoding" not in text
    (tmp_path / "bert" / "table.md").write_text("| a |\n\n1-20 words, against sinusoidal: a +1.\n")
    content["parts"]["bert"]["picture"] = "a.png"
    assert "\n\n- 1-20 words, against sinusoidal: a +1.\n\n" in claims.page(content, str(tmp_path))
    (tmp_path / "bert" / "table.md").unlink()
    (tmp_path / "bert" / "curves.md").write_text("| a |\n\nNote.\n\nMore.\n")
    content["parts"]["deep"] = {"about": "Not run."}
    assert claims.tables_page(content, str(tmp_path)).endswith("\n\n## bert\n\n| a |\n\nNote.\n")


def test_a_figure_that_nobody_knows_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no figure is called rouge; known: BLEU, bits"):
        claims.compare(str(tmp_path), comparison(figure="rouge"))


def test_a_figure_that_a_file_lacks_is_refused_in_one_line(tmp_path):
    folder = tmp_path / "part" / "a" / "seed1"
    folder.mkdir(parents=True)
    bins = [{"name": "1-20", "sacrebleu": 31.5, "length_ratio": 0.9}]
    score = {"all": {"sacrebleu": 30.0, "length_ratio": 1.0}, "by_length": {"bins": bins}}
    (folder / "score.json").write_text(json.dumps(score))
    found = [
        claim_figures.figures_by_seed(str(tmp_path), "part", "a", figure)
        for figure in ("BLEU:1-20", "BLEU:all", "ratio:1-20")
    ]
    assert found == [{1: 31.5}, {1: 30.0}, {1: 90.0}]
    with pytest.raises(UsageError, match=r"seed1/score.json has no BLEU:46\+"):
        claim_figures.figures_by_seed(str(tmp_path), "part", "a", "BLEU:46+")


def test_the_recipe_names_figures_and_parts_that_there_are():
    content = read_shaped(str(RECIPE), claims._CLAIMS, "")
    recipe = RECIPE.parents[1].joinpath("claims.sh").read_text(encoding="utf-8")
    for part in content["parts"]:
        assert f"\n{part}() {{" in recipe
    for claim in content["claims"]:
        for one in claim["ours"]:
            assert one["part"] in content["parts"]
            assert one["figure"].partition(":")[0] in claim_figures.FIGURES
            assert one["expect"] in ("more", "less", "equal") and one["margin"] > 0
            assert (one.get("base") is None) != (one.get("than") is None)

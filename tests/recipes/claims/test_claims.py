"""The page of claims: figures by seed, intervals, verdicts."""

import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import read_shaped
from recipes.claims import bits, claim_figures, claims, compared, verdicts
from recipes.claims.pictures import draw_all_rows, draw_differences

RECIPE = Path(__file__).resolve().parents[3] / "recipes" / "claims" / "claims.json"


@pytest.mark.parametrize(
    "low, high, expect, margin, expected",
    [
        (0.1, 2.0, "more", 1.0, verdicts.AS_SAYS),
        (0.1, 0.9, "more", 1.0, verdicts.NO_GAIN),
        (-2.0, -0.1, "more", 1.0, verdicts.AGAINST),
        (-0.5, 0.9, "more", 1.0, verdicts.NO_GAIN),
        (-0.9, -0.1, "more", 1.0, verdicts.NO_GAIN),
        (-0.5, 1.1, "more", 1.0, verdicts.UNDECIDED),
        (-2.0, -0.1, "less", 1.0, verdicts.AS_SAYS),
        (0.1, 2.0, "less", 1.0, verdicts.AGAINST),
        (-0.9, 0.5, "less", 1.0, verdicts.NO_GAIN),
        (-0.9, 0.9, "equal", 1.0, verdicts.AS_SAYS),
        (0.2, 0.9, "equal", 1.0, verdicts.AS_SAYS),
        (-0.9, 1.1, "equal", 1.0, verdicts.UNDECIDED),
        (1.1, 3.0, "equal", 1.0, verdicts.AGAINST),
        (-3.0, -1.1, "equal", 1.0, verdicts.AGAINST),
        (-0.9, 9.0, "not less", 1.0, verdicts.AS_SAYS),
        (-1.1, 9.0, "not less", 1.0, verdicts.UNDECIDED),
        (-3.0, -1.1, "not less", 1.0, verdicts.AGAINST),
        (-9.0, 0.9, "not more", 1.0, verdicts.AS_SAYS),
        (1.1, 3.0, "not more", 1.0, verdicts.AGAINST),
        (1.1, 3.0, "no verdict", 1.0, verdicts.NO_VERDICT),
    ],
)
def test_a_verdict_follows_from_where_the_interval_lies(low, high, expect, margin, expected):
    assert verdicts.verdict(low, high, expect, margin) == expected


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
    result = compared.compare(str(tmp_path), comparison())
    assert (result.seeds, result.verdict) == (3, verdicts.AS_SAYS)
    # Student's t with 2 degrees of freedom: 1.5 ± 4.3027 · 0.5 / √3
    assert [result.low, result.high] == pytest.approx([1.5 - 1.24206, 1.5 + 1.24206], abs=1e-4)
    assert (
        compared.compare(str(tmp_path), comparison(base=None, than=99.0)).verdict
        == verdicts.UNDECIDED
    )
    less = claim_figures.figures_by_seed(str(tmp_path), "bert", "a less b", "probe:accuracy")
    assert less == pytest.approx({1: 1, 2: 2, 3: 1.5})


@pytest.mark.parametrize("row", ["a", "b", "c"])
def test_what_was_not_run_has_no_figures(tmp_path, row):
    write_probes(tmp_path, {"a": {1: 61}, "b": {1: 60}})
    result = compared.compare(str(tmp_path), comparison(row=row))
    assert result.verdict == verdicts.MISSING and result.difference() == "-"


CONTENT = {
    "introduction": ["First."],
    "columns": ["Columns."],
    "parts": {"bert": {"about": "Small models.", "picture": True}},
    "claims": [
        {
            "claim": "A beats B", "source": "Table 1", "paper": "2 to 1.", "note": "Read so.",
            "ours": [
                comparison(), comparison(row="c"),
                comparison(expect="no verdict", base=None, than=50),
            ],
        }
    ],
}  # fmt: skip
TABLES = """# Tables

## bert

Differences to sinusoidal

|   | all | 1-20 | 21-30 | 31-45 | 46+ |
| - | --: | ---: | ----: | ----: | --: |
| a | +1.00 [+0.50, +1.50] * | - | +1.00 [-0.50, +2.50] | - | -1.00 [-1.50, -0.50] * |

1-20 words, against sinusoidal: a +1.

Trainings (seeds): sinusoidal 5, a 5.

### Trained anew

1-20 words, against sinusoidal: b +2.

Trainings (seeds): sinusoidal 3, b 3.

## deep

Old.
"""


def test_the_page_has_every_claim_with_the_verdict_of_its_main_comparison(tmp_path):
    write_probes(tmp_path, {"a": {1: 61, 2: 72, 3: 81.5}, "b": {1: 60, 2: 71, 3: 80}})
    found = [[compared.compare(str(tmp_path), one) for one in CONTENT["claims"][0]["ours"]]]
    text = claims.page(CONTENT, found, TABLES, {"bert": "a.png"})
    assert re.search(
        r"\| A beats B +\| bert: a against b, accuracy \| \+1.17 ± 0.72, median \+1.00 +\| 3 +\|",
        text,
    )
    assert "--parts bert`" in text and "a.png" in text
    assert "1 comparisons, of 1 claims, have a verdict. 1 of these comparisons expect" in text
    for expected in (
        "In `bert` (n: sinusoidal 5, a 5):\n\n- 1-20 words, against sinusoidal: a +1.\n\n",
        "In `bert`, trained anew (n: sinusoidal 3, b 3):\n\n- 1-20 words, against sinusoidal: b",
    ):
        assert expected in text
    assert "[1 to 1](claims_each.md)" in text
    text, second = claims.every_claim(CONTENT, found)
    assert "## " not in second
    for expected in ("Columns.", "## 1. A beats B", "Table 1: 2 to 1.", "Read so."):
        assert expected in text
    assert "expected:\n\n- bert: c against b, accuracy: more, 1 matters\n" in text
    assert "The first comparison alone: `bash recipes/claims.sh --parts bert`.\n" in text
    assert re.search(r"\| a 71.50 \| +50.00 \| .* \| +- \| +- \|\n", text)
    assert draw_all_rows(found, str(tmp_path / "rows.png"))
    assert not draw_all_rows([[compared.Compared({})]], str(tmp_path / "none.png"))
    assert draw_differences(claims.sections(TABLES)["bert"], str(tmp_path / "lengths.png"))
    assert sorted(one.name for one in tmp_path.glob("*.png")) == ["lengths.png", "rows.png"]


def test_tables_of_parts_that_were_not_run_stay(tmp_path):
    content = {"parts": {"bert": {"about": ""}, "deep": {"about": ""}, "plain": {"about": ""}}}
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "curves.md").write_text("| a |\n\nNote.\n\nMore.\n")
    text = claims.tables_page(content, str(tmp_path), TABLES)
    assert text.endswith("\n\n## bert\n\n| a |\n\nNote.\n\n## deep\n\nOld.\n")


def test_tables_of_a_smaller_run_stand_below_those_of_the_earlier_one(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "clauses.md").write_text("Groups.\n")
    content, page = {"parts": {"deep": {"about": ""}}}, "## deep\n\n"
    # (rows and seeds of each run, what is left of them)
    for runs, left in [
        (["a 5, b 5", "a 3, c 3"], ["a 5, b 5", "a 3, c 3"]),
        (["a 5, b 5", "a 3, c 3", "a 4, c 4"], ["a 5, b 5", "a 4, c 4"]),
        (["a 5, b 5", "a 9, b 4"], ["a 5, b 5", "a 9, b 4"]),
        (["a 5, b 5", "a 3", "a 5, b 5, c 5"], ["a 5, b 5, c 5"]),
    ]:
        text = ""
        for run in runs:
            rows = (one.split() for one in run.split(", "))
            table = "".join(f"| {row} | {n} | 2000 | 0.2 ± 0.1 |\n" for row, n in rows)
            (tmp_path / "deep" / "curves.md").write_text(table)
            text = claims.tables_page(content, str(tmp_path), text)
        found = re.findall(r"(?:^\| .+\n?)+", text, re.M)
        words = [re.findall(r"^\| (\w) \| (\d)", one, re.M) for one in found]
        assert [", ".join(map(" ".join, one)) for one in words] == left
        assert text.count(page) == 1 and text.count("### Trained anew\n") == len(left) - 1
        # groups of sentences are those of the first run alone
        assert text.count("Groups.") == 1


def test_of_a_training_under_way_nothing_counts(tmp_path):
    folder = tmp_path / "deep" / "a" / "seed1"
    folder.mkdir(parents=True)
    line = "INFO | valid | epoch 001 | valid on 'valid' subset | nll_loss 4.5 | num_updates 10\n"
    (folder / "train.log").write_text(line)
    assert not claim_figures.figures_by_seed(str(tmp_path), "deep", "a", "bits")
    (folder / "train.done").touch()
    assert claim_figures.figures_by_seed(str(tmp_path), "deep", "a", "bits") == {1: 4.5}


def test_figures_of_earlier_runs_are_kept_where_there_are_no_more_seeds(tmp_path):
    write_probes(tmp_path, {"a": {1: 61, 2: 72}, "b": {1: 60, 2: 71}})
    file = tmp_path / "kept.json"
    kept = {"part": "bert", "figure": "probe:accuracy", "row": "a", "base": "b", "seeds": 2}
    kept = [{**kept, "means": [5.0, 3.0], "interval": [1.0, 3.0]}]
    assert compared.compare(str(tmp_path), comparison(), kept).row == 66.5
    kept[0]["seeds"] = 3
    found = compared.compare(str(tmp_path), comparison(), kept)
    assert (found.row, found.seeds, found.difference()) == (5.0, 3, "+2.00 ± 1.00")
    compared.write_kept(str(file), [found, compared.compare(str(tmp_path), comparison(row="c"))])
    assert compared.read_kept(str(file)) == kept
    # what is computed of the kept means: the brevity penalty of outputs half as long is 1 / e
    kept[0].update(figure="BLEU:all", beside={"ratio": [50.0, 120.0]})
    found = compared.compare(str(tmp_path), comparison(figure="BLEU:all"), kept)
    assert found.beside["penalty_free"] == pytest.approx([5.0 * math.e, 3.0])


def test_a_run_that_is_joined_again_changes_nothing(tmp_path, monkeypatch):
    runs, pages = tmp_path / "runs", tmp_path / "docs"
    (pages / "gallery").mkdir(parents=True)
    (tmp_path / "claims.json").write_text(json.dumps(CONTENT))
    (tmp_path / "kept.json").write_text("[]")
    (pages / "claims_tables.md").write_text(TABLES)
    command = f"claims --claims {tmp_path}/claims.json --runs {runs} --kept {tmp_path}/kept.json"
    monkeypatch.setattr("sys.argv", [*command.split(), "--output", str(pages / "claims.md")])
    with pytest.raises(UsageError, match="runs is no folder: --runs takes"):
        claims.main()
    write_probes(runs, {"a": {1: 61, 2: 72, 3: 81.5}, "b": {1: 60, 2: 71, 3: 80}})
    (runs / "bert" / "curves.md").write_text("| a | 3 | 2400 | 0.2 ± 0.1 |\n")
    written = []
    for _ in range(2):
        claims.main()
        written.append({file.name: file.read_text() for file in pages.glob("*.md")})
        written[-1]["kept"] = (tmp_path / "kept.json").read_text()
    assert written[0] == written[1] and "+1.17 ± 0.72" in written[0]["claims.md"]
    # without its folders the figures are those that were kept
    shutil.rmtree(runs / "bert")
    claims.main()
    assert "+1.17 ± 0.72" in (pages / "claims.md").read_text()
    assert (tmp_path / "kept.json").read_text() == written[0]["kept"]


def test_bits_by_length_are_of_the_references_of_each_range():
    scored = bits.ScoredReferences(
        tokens=np.arange(5), ranks=np.arange(5), positions=np.array([1, 2, 1, 2, 3]),
        scores=np.log(np.array([0.5, 0.5, 0.25, 0.25, 0.25])),
    )  # fmt: skip
    bins = [
        {"name": "1-2", "longer_than": 0, "up_to": 2},
        {"name": "3+", "longer_than": 2, "up_to": None},
    ]
    score = {"by_length": {"bins": bins}, "sentences": {"length": [3, 1]}}
    found = bits.bits_by_length(scored, score)
    assert {name: part.tolist() for name, part in found.items()} == {
        "all": [[2, 2], [6, 3]], "1-2": [[6, 3]], "3+": [[2, 2]],
    }  # fmt: skip
    with pytest.raises(UsageError, match="the score has 1 sentences, the test set of --data 2"):
        bits.bits_by_length(scored, {**score, "sentences": {"length": [3]}})


def test_bits_per_token_are_over_sentences_too(tmp_path):
    # two seeds that differ by 1 bit a token each: their sentences alone are uncertain
    random, tokens = np.random.RandomState(3), 10.0
    gains = random.normal(1, 2, size=(2, 200))
    gains += 1 - gains.mean(axis=1, keepdims=True)
    for seed, gain in enumerate(gains):
        for row, each in (("a", 3 + gain), ("b", 3 + 0 * gain)):
            (folder := tmp_path / "part" / row / f"seed{seed}").mkdir(parents=True)
            sentences = [[tokens * one, tokens] for one in each]
            content = {"bits": {"31-45": float(each.mean())}, "sentences": {"31-45": sentences}}
            (folder / "bits.json").write_text(json.dumps(content))
    result = compared.compare(
        str(tmp_path), comparison(part="part", figure="bits_of:31-45", expect="less", margin=0.1)
    )
    # the mean of both seeds over 200 sentences: 1.96 · s / √200, by the formula instead of by draws
    half = 1.96 * gains.mean(axis=0).std() / math.sqrt(200)
    assert (result.seeds, result.middle) == (2, pytest.approx(1))
    assert result.half == pytest.approx(half, rel=0.05)


def test_a_figure_that_nobody_knows_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no figure is called rouge; known: BLEU, penalty_free"):
        compared.compare(str(tmp_path), comparison(figure="rouge"))


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


@pytest.mark.parametrize(
    "part, row, base, command",
    [
        ("length", "cape", "shape@BLEU:all", "length --rows sinusoidal,cape,shape"),
        ("switch", "shaw", "length/shaw", "length,switch --rows sinusoidal,shaw"),
        ("plain", "shape less sinusoidal", "length/shape less sinusoidal@bits",
         "length,plain --rows sinusoidal,shape"),
        ("deep", "admin", "default",
         "length --rows sinusoidal`, then `bash recipes/claims.sh --parts deep"),
        ("speed", "repeats", None, "speed"),
    ],
)  # fmt: skip
def test_a_claim_tells_how_to_run_it_alone(part, row, base, command):
    parts = read_shaped(str(RECIPE), claims._CLAIMS, "")["parts"]
    about = {"part": part, "row": row, "base": base}
    assert claims._command(about, list(parts)) == f"`bash recipes/claims.sh --parts {command}`"


def test_the_recipe_takes_the_commands_of_the_claims(run, tmp_path):
    pages = (RECIPE.parents[2] / "docs").glob("claims_each*.md")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    commands = set(re.findall(r"`(bash recipes/claims\.sh --parts .*?)`", text))
    assert len(commands) > 10
    for command in commands:
        run(*command.split(), "--stage", "99", "--device", "cpu", "--run-dir", tmp_path / "run")


def test_the_recipe_names_figures_and_parts_that_there_are():
    content = read_shaped(str(RECIPE), claims._CLAIMS, "")
    recipe = RECIPE.parents[1].joinpath("claims.sh").read_text(encoding="utf-8")
    for part in content["parts"]:
        assert f"\n{part}() {{" in recipe
    for claim in content["claims"]:
        for one in claim["ours"]:
            assert one["part"] in content["parts"]
            assert one["figure"].partition(":")[0] in claim_figures.FIGURES
            assert one["expect"] in verdicts.EXPECTED and one["margin"] > 0
            assert (one.get("base") is None) != (one.get("than") is None)

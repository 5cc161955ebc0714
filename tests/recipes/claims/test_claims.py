"""The page of claims: figures by seed, intervals, verdicts."""

import json
import math
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from fairseq_posenc.errors import UsageError
from recipes.claims import bits, claim_figures, claims, compared, pages, rows, verdicts

RECIPE = Path(__file__).resolve().parents[3] / "recipes" / "claims" / "claims.json"


@pytest.mark.parametrize(
    "low, high, expect, expected",
    [
        (0.1, 2.0, "more", verdicts.AS_SAYS), (0.1, 0.9, "more", verdicts.NO_GAIN),
        (-2.0, -0.1, "more", verdicts.AGAINST), (-0.5, 0.9, "more", verdicts.NO_GAIN),
        (-0.9, -0.1, "more", verdicts.NO_GAIN), (-0.5, 1.1, "more", verdicts.UNDECIDED),
        (-2.0, -0.1, "less", verdicts.AS_SAYS), (0.1, 2.0, "less", verdicts.AGAINST),
        (-0.9, 0.5, "less", verdicts.NO_GAIN), (-0.9, 0.9, "equal", verdicts.AS_SAYS),
        (0.2, 0.9, "equal", verdicts.AS_SAYS), (-0.9, 1.1, "equal", verdicts.UNDECIDED),
        (1.1, 3.0, "equal", verdicts.AGAINST), (-3.0, -1.1, "equal", verdicts.AGAINST),
        (-0.9, 9.0, "not less", verdicts.AS_SAYS), (-1.1, 9.0, "not less", verdicts.UNDECIDED),
        (-3.0, -1.1, "not less", verdicts.AGAINST), (-9.0, 0.9, "not more", verdicts.AS_SAYS),
        (1.1, 3.0, "not more", verdicts.AGAINST), (1.1, 3.0, "no verdict", verdicts.NO_VERDICT),
    ],
)  # fmt: skip
def test_a_verdict_follows_from_where_the_interval_lies(low, high, expect, expected):
    assert verdicts.verdict(low, high, expect, 1.0) == expected


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


def test_what_was_not_run_has_no_figures(tmp_path):
    write_probes(tmp_path, {"a": {1: 61}, "b": {1: 60}})
    for name in "abc":
        result = compared.compare(str(tmp_path), comparison(row=name))
        assert result.verdict == verdicts.MISSING and result.difference() == "-"


CONTENT = {
    "parts": {
        "bert": {"about": "Small models.", "short": "BERT"},
        "longer": {"about": "More.", "short": "6 updates", "picture": True, "table": True},
    },
    "names": {"a": "A"},
    "claims": [
        {"claim": "A beats B", "source": "Table 1", "paper": "2 to 1.", "note": "Read so.",
         "judged": "by accuracy",
         "ours": [comparison(), comparison(row="c"),
                  comparison(expect="no verdict", base=None, than=50.0)]},
        {"claim": "C beats B", "source": "Table 2", "paper": "No.", "ours": [comparison(row="c")]},
        {"claim": "A is longer", "source": "Table 2", "paper": "No.",
         "ours": [comparison(part="longer", figure="BLEU:1-20", base="sinusoidal", expect="less")]},
    ],
}  # fmt: skip
for _claim in CONTENT["claims"]:
    _main = list(compared.key(_claim["ours"][0]))
    _claim["registered"] = {"commit": "0000000", "date": "2026-01-01", "main": _main}


def row(name, loss=0.2, run=1, seeds=5, less=None, part="longer"):
    each = {"bleu": [40.0, 39.0, 41.0], "ratio": 90.0}
    lengths = {"all": each, "1-20": {**each, "less_base": less}}
    return rows.Row(part, run, name, seeds, 6, [loss, 0.01], [0.03, 0.01], lengths)


@pytest.mark.parametrize(
    "loss, changed, expected",
    [
        (0.2, {}, verdicts.AS_SAYS),
        # of unequal convergence, whoever is ahead
        (0.179, {}, verdicts.UNDECIDED),
        (0.221, {}, verdicts.UNDECIDED),
        (0.221, {"expect": "no verdict"}, verdicts.NO_VERDICT),
        (0.221, {"budget": True}, verdicts.AS_SAYS),
        # losses are convergence themselves
        (0.25, {"figure": "bits"}, verdicts.AS_SAYS),
        # rows of two parts are not compared
        (0.25, {"base": "length/sinusoidal"}, verdicts.AS_SAYS),
    ],
)
def test_convergence_is_one_rule_for_all_rows(loss, changed, expected):
    about = {**CONTENT["claims"][2]["ours"][0], **changed}
    measured = compared.Compared(about, 5, 38.0, 40.0, -3.0, -1.0)
    doubt = compared.doubt_of([row("sinusoidal", loss), row("a")], measured)
    assert measured._replace(doubt=doubt).verdict == expected


@pytest.mark.parametrize(
    "fall, expected", [(0.02, verdicts.AS_SAYS), (0.04, verdicts.UNDECIDED), (0, verdicts.AS_SAYS)]
)
def test_losses_that_still_fall_by_as_much_as_they_differ_tell_nothing(fall, expected):
    about = comparison(figure="probe:masked_lm_bits", expect="less", margin=0.03)
    measured = compared.Compared(about, 5, 2.0, 2.03, -0.04, -0.02)
    reached = [row(name, part="bert")._replace(fall=[fall, 0.0]) for name in "ab"]
    doubt = compared.doubt_of(reached, measured)
    assert measured._replace(doubt=doubt).verdict == expected


def test_only_what_a_paper_measured_is_as_the_paper_says(tmp_path):
    write_probes(tmp_path, {"a": {1: 61, 2: 72, 3: 91.5}, "b": {1: 60, 2: 70, 3: 90}})
    by_paper, like_it = (
        compared.compare(str(tmp_path), comparison(by_paper=value)).verdict
        for value in (True, False)
    )
    assert (by_paper, like_it) == (verdicts.AS_SAYS, verdicts.AS_EXPECTED)


def test_a_claim_of_which_something_was_measured_is_not_to_be_run():
    """Its first comparison counts; while that is missing, the first other one with a verdict."""
    missing, other = compared.Compared(comparison()), compared.Compared(comparison(row="c"), 3)
    without = compared.Compared(comparison(expect="no verdict"), 3, low=0, high=1)
    measured = compared.Compared(comparison(), 3, low=1, high=2)
    assert compared.main_comparison([missing]) is missing
    assert compared.main_comparison([missing, without, other]) is other
    assert compared.main_comparison([missing, without]) is without
    assert compared.main_comparison([measured, other]) is measured


def test_no_main_comparison_moved_since_its_claim_was_registered():
    """``claims.json`` of that commit has it as the first, too, where the history is there."""
    folder, seen = RECIPE.parents[2], 0
    for claim in json.loads(RECIPE.read_text(encoding="utf-8"))["claims"]:
        registered = claim["registered"]
        assert list(compared.key(claim["ours"][0])) == registered["main"], claim["claim"]
        path = f"{registered['commit']}:recipes/claims/claims.json"
        shown = subprocess.run(["git", "show", path], cwd=folder, capture_output=True, text=True)
        if shown.returncode == 0:
            mains = [one["ours"][0] for one in json.loads(shown.stdout)["claims"]]
            assert registered["main"] in [list(compared.key(main)) for main in mains]
            seen += 1
    assert seen in (0, 32)


@pytest.mark.parametrize(
    "runs, left",
    [
        ("a5b5 a3c3", "1a5 1b5 2a3 2c3"),
        ("a5b5 a3c3 a4c4", "1a5 1b5 2a4 2c4"),
        ("a5b5 a3c3 a3d3", "1a5 1b5 2a3 2c3 2d3"),  # the same a: the run goes on
        ("a5b5 a3c3d3 a3c4", "1a5 1b5 2a3 2c4 2d3"),  # with more seeds of one row
        ("a5b5 a9b4", "1a5 1b5 2a9 2b4"),
        ("a5b5 a3 a5b5c5", "1a5 1b5 1c5"),
        ("a5b5 a3 ", "1a5 1b5 2a3"),
    ],
)
def test_rows_of_a_smaller_run_stand_beside_those_of_the_earlier_one(runs, left, monkeypatch):
    monkeypatch.setattr(rows, "BASE", "a")
    known = []
    for run in runs.split(" "):
        names = zip(run[::2], run[1::2])
        known = rows.merge(known, [row(name, seeds=int(seeds)) for name, seeds in names])
    assert " ".join(f"{one.run}{one.row}{one.seeds}" for one in known) == left


def train(runs, name, seed, part="deep"):
    folder = runs / part / name / f"seed{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    line = "INFO | valid | epoch 001 | valid on 'valid' subset | nll_loss 4.5 | num_updates 10\n"
    (folder / "train.log").write_text(line)
    (folder / "train.done").touch()
    return folder


def test_of_a_training_under_way_nothing_counts(tmp_path):
    folders = [train(tmp_path, "a", seed) for seed in (1, 2, 3)]
    folders[0].joinpath("train.done").unlink()
    figures = claim_figures.figures_by_seed(str(tmp_path), "deep", "a", "bits")
    assert figures == {2: 4.5, 3: 4.5}
    [found] = rows.measure(str(tmp_path), "deep")
    assert (found.seeds, found.updates, found.loss) == (2, 10, (4.5, 0.0))


def test_figures_of_earlier_runs_are_kept_where_there_are_no_more_seeds(tmp_path):
    write_probes(tmp_path, {"a": {1: 61, 2: 72}, "b": {1: 60, 2: 71}})
    file = tmp_path / "kept.json"
    kept = {"part": "bert", "figure": "probe:accuracy", "row": "a", "base": "b", "seeds": 2}
    kept = [{**kept, "means": [5.0, 3.0], "interval": [1.0, 3.0], "doubt": "losses differ"}]
    assert compared.compare(str(tmp_path), comparison(), kept).row == 66.5
    kept[0]["seeds"] = 3
    found = compared.compare(str(tmp_path), comparison(), kept)
    assert (found.row, found.seeds, found.difference()) == (5.0, 3, "+2.00 ± 1.00")
    assert found.verdict == verdicts.UNDECIDED
    asked = compared.compare(str(tmp_path), comparison(budget=True), kept)
    assert asked.verdict == verdicts.AS_SAYS
    missing = compared.compare(str(tmp_path), comparison(row="c"))
    # of 0.1605, pages would print 0.161
    known = [row("sinusoidal", 0.16046), row("a", less=[-2.0, -3.0, -1.0])]
    compared.write_kept(str(file), [found, missing], known)
    assert compared.read_kept(str(file)) == (kept, known)
    file.write_text(file.read_text().replace('"doubt"', '"reason"'))
    with pytest.raises(UsageError, match="comparisons.0.doubt is missing"):  # no doubt is told, too
        compared.read_kept(str(file))
    kept[0].update(figure="BLEU:all", beside={"ratio": [50.0, 120.0], "bits_of": [2.0, 3.0]})
    assert compared.compare(str(tmp_path), comparison(figure="BLEU:all"), kept).bits == [2.0, 3.0]


def test_a_run_that_is_joined_again_changes_nothing(tmp_path, monkeypatch):
    runs, docs = tmp_path / "runs", tmp_path / "docs"
    (tmp_path / "claims.json").write_text(json.dumps(CONTENT))
    (tmp_path / "kept.json").write_text('{"comparisons": [], "rows": []}')
    command = f"claims --claims {tmp_path}/claims.json --runs {runs} --kept {tmp_path}/kept.json"
    monkeypatch.setattr("sys.argv", [*command.split(), "--output", str(docs / "claims.md")])
    with pytest.raises(UsageError, match="runs is no folder: --runs takes"):
        claims.main()
    write_probes(runs, {"a": {1: 61, 2: 72, 3: 81.5}, "b": {1: 60, 2: 71, 3: 80}})
    for seed in (1, 2, 3):
        train(runs, "a", seed, part="bert")
    written = []
    for _ in range(2):
        claims.main()
        written.append({file.name: file.read_text() for file in docs.glob("*.md")})
        written[-1]["kept"] = (tmp_path / "kept.json").read_text()
    assert written[0] == written[1] and "+1.17 ± 0.72" in written[0]["claims.md"]
    assert "\na    3  4.500 ± 0.000  -\n" in written[0]["claims_appendix.md"]
    # without its folders the figures are those that were kept
    shutil.rmtree(runs / "bert")
    claims.main()
    assert {file.name: file.read_text() for file in docs.glob("*.md")}.items() <= written[0].items()
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
            content = {"bits": {"31-45": float(each.mean())}, "earlier": {},
                       "sentences": {"1-30": [[1, 1]], "31-45": sentences}}  # fmt: skip
            (folder / "bits.json").write_text(json.dumps(content))
    result = compared.compare(
        str(tmp_path), comparison(part="part", figure="bits_of:31-45", expect="less", margin=0.1)
    )
    # the mean of both seeds over 200 sentences: 1.96 · s / √200, by the formula instead of by draws
    half = 1.96 * gains.mean(axis=0).std() / math.sqrt(200)
    assert (result.seeds, result.middle) == (2, pytest.approx(1))
    assert result.half == pytest.approx(half, rel=0.05)


def test_a_figure_that_a_file_lacks_is_refused_in_one_line(tmp_path):
    folder = tmp_path / "part" / "a" / "seed1"
    folder.mkdir(parents=True)
    bins = [{"name": "1-20", "sacrebleu": 31.5}]
    score = {"all": {"sacrebleu": 30.0}, "by_length": {"bins": bins}}
    (folder / "score.json").write_text(json.dumps(score))
    found = [
        claim_figures.figures_by_seed(str(tmp_path), "part", "a", figure)
        for figure in ("BLEU:1-20", "BLEU:all")
    ]
    assert found == [{1: 31.5}, {1: 30.0}]
    with pytest.raises(UsageError, match=r"seed1/score.json has no BLEU:46\+"):
        claim_figures.figures_by_seed(str(tmp_path), "part", "a", "BLEU:46+")


def test_the_recipe_takes_the_commands_of_the_claims(run, tmp_path):
    content = claims.read_claims(str(RECIPE))
    main = [claim["ours"][0] for claim in content["claims"]]
    shown = {pages.command(one, list(content["parts"])) for one in main}
    commands = {one for line in shown for one in re.findall("`(.*?)`", line)}
    assert len(commands) > 10
    for command in commands:
        run(*command.split(), "--stage", "99", "--device", "cpu", "--run-dir", tmp_path / "run")


def test_the_pages_are_those_of_the_kept_figures_and_short(tmp_path, monkeypatch):
    docs = RECIPE.parents[2] / "docs"
    kept = shutil.copy(RECIPE.parent / "kept.json", tmp_path)
    command = f"claims --claims {RECIPE} --kept {kept} --output {tmp_path}/"
    monkeypatch.setattr("sys.argv", f"{command}claims.md".split())
    claims.main()
    shown = sorted(docs.glob("claims*.md"))
    for page in shown:
        assert page.read_text() == (tmp_path / page.name).read_text(), "run recipes.claims.claims"
    assert len(shown) == 2 and sum(len(page.read_text().split()) for page in shown) <= 7000


def test_the_recipe_names_figures_and_parts_that_there_are():
    content = claims.read_claims(str(RECIPE))
    recipe = RECIPE.parents[1].joinpath("claims.sh").read_text(encoding="utf-8")
    known = re.search(r"--all-parts (\S+)", recipe)[1].split(",")
    assert set(content["parts"]) <= set(known)
    for claim in content["claims"]:
        for one in claim["ours"]:
            assert one["part"] in content["parts"]
            assert one["figure"].partition(":")[0] in claim_figures.FIGURES
            assert one["expect"] in verdicts.EXPECTED and one["margin"] > 0
            assert (one.get("base") is None) != (one.get("than") is None)

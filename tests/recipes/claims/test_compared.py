"""Comparisons and rows, made of scores and bits by length."""

import json

import pytest

from recipes.claims import compared, rows

FIGURES = {"sentences": 2, "sacrebleu": 50.0, "bleu_without_penalty": 50.0, "length_ratio": 1.0}
SCORE = {
    "all": {**FIGURES, "sentences": 4},
    "by_length": {
        "of": "source",
        "unit": "words",
        "bins": [
            {"name": "1-20", "longer_than": 0, "up_to": 20, **FIGURES},
            {"name": "21+", "longer_than": 20, "up_to": None, **FIGURES},
        ],
    },
    "signatures": {"sacrebleu": "v", "tokenised_bleu": "v"},
}
VALID = "INFO | valid | epoch 001 | valid on 'valid' subset | nll_loss 0.{} | num_updates 10\n"


def train(runs, row, *seeds, part="longer", longest=20):
    """Write what trainings leave, tested on two short sentences and two long ones."""
    for seed in seeds:
        folder = runs / part / row / f"seed{seed}"
        folder.mkdir(parents=True)
        # sacreBLEU's: lengths of output and reference, then right and all n-grams of 1 to 4 words
        counts = [[9, 9, *(n - seed for n in (9, 8, 7, 6)), 9, 8, 7, 6]] * 4
        sentences = {
            "length": [5, 5, 25, 25],
            "statistics": dict.fromkeys(SCORE["signatures"], counts),
        }
        score = {**SCORE, "sentences": sentences, "notes": {"seed": str(seed)}}
        score["longest_trained"] = {"source": longest, "reference": longest}
        (folder / "score.json").write_text(json.dumps(score))
        each = {name: [[18.0 + seed, 10], [22.0 + seed, 10]] for name in ("all", "1-20", "21+")}
        content = {"bits": dict.fromkeys(each, 2 + seed / 10), "sentences": each}
        (folder / "bits.json").write_text(json.dumps(content))
        (folder / "train.log").write_text(VALID.format(seed))
        (folder / "train.done").touch()


def test_bleu_is_compared_with_that_of_a_row_of_another_part(tmp_path):
    # which may have been trained on longer sentences: that may be what is compared
    train(tmp_path, "a", 1, 2, 3, part="switch", longest=40)
    train(tmp_path, "a", 2, 3, 4)
    about = {"part": "switch", "figure": "BLEU:21+", "row": "a", "base": "longer/a"}
    found = compared.compare(str(tmp_path), {**about, "expect": "not less", "margin": 1.0})
    # of the seeds that both have, which are alike
    assert found.seeds == 2 and found.by_seed == [0.0, 0.0]
    assert [found.row, found.base, found.low, found.high] == [50.0, 50.0, 0.0, 0.0]
    assert found.names() == ("a", "longer/a") and found.bits == [2.25, 2.25]


def test_rows_have_what_their_trainings_reached(tmp_path):
    train(tmp_path, "b", 1, 2)
    train(tmp_path, "sinusoidal", 1, 2, 3)
    found = rows.measure(str(tmp_path), "longer")
    assert [(one.row, one.seeds) for one in found] == [("sinusoidal", 3), ("b", 2)]
    # half an interval of two seeds: 12.7 · s / √2
    assert found[1].loss == pytest.approx((0.15, 12.706 * 0.05), abs=1e-3)
    base, row = (one.by_length["21+"] for one in found)
    assert row["bleu"][0] > base["bleu"][0] and row["ratio"] == 100
    mean, low, high = row["less_base"]
    assert mean == pytest.approx(row["bleu"][0] - base["bleu"][0]) and low < mean < high
    assert "less_base" not in base

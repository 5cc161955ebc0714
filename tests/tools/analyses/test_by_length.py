"""BLEU differences by length, and their bootstrap."""

import random
from functools import partial

import pytest
from sacrebleu.metrics import BLEU

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.analyses import by_length as analysis
from fairseq_posenc.tools.results import texts as results
from fairseq_posenc.tools.results.bleu import Scorer
from fairseq_posenc.tools.results.intervals import bootstrap, interval

by_length = partial(analysis.by_length, language="de")

WORDS = "der die das Hund Katze Haus läuft schläft sieht heute , schnell .".split()
LENGTHS = [3, 12, 5, 8, 30, 7, 9, 21, 4, 15, 6, 11]


def sentence(draw, length):
    return " ".join(draw.choice(WORDS) for _ in range(length))


def worse(draw, line, rate):
    return " ".join("xyz" if draw.random() < rate else word for word in line.split())


@pytest.fixture
def texts():
    """Sources, references, and three models' translations of them."""
    draw = random.Random(1)
    references = [sentence(draw, length) for length in LENGTHS]
    texts = {"source": [sentence(draw, length) for length in LENGTHS], "reference": references}
    for name, rate in (("a", 0.3), ("b", 0.1), ("c", 0.4)):
        texts[name] = [worse(draw, line, rate) for line in references]
    return texts


@pytest.fixture
def output(texts, tmp_path):
    """A function that writes an output of fairseq-generate and returns NAME=PATH."""

    def output(model, name=None, **others):
        found, lines = {**texts, **others}, []
        for i, line in enumerate(found[model]):
            lines += [f"S-{i}\t{found['source'][i]}", f"T-{i}\t{found['reference'][i]}"]
            lines += [f"H-{i}\t-1.0\t{line}", f"D-{i}\t-1.0\t{line}"]
        path = tmp_path / f"{name or model}.out"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return f"{name or model}={path}"

    return output


def plain(lines):
    return [line.replace(" ,", ",").replace(" .", ".") for line in lines]


def test_identical_models_differ_by_nothing(output):
    report = by_length(generated=[output("a"), output("a", name="same")], bins=[7])
    for figures in report.data["models"]["same"].values():
        assert [figures[key] for key in ("difference", "low", "high")] == [0, 0, 0]
    assert report.table[2][1] == "+0.00 [+0.00, +0.00]"


def test_exchanged_models_have_opposite_differences(output):
    forth = by_length(generated=[output("a"), output("b")], bins=[7]).data["models"]
    back = by_length(generated=[output("b"), output("a")], bins=[7]).data["models"]
    for part, figures in forth["b"].items():
        other = back["a"][part]
        assert figures["difference"] == pytest.approx(-other["difference"])
        assert figures["low"] == pytest.approx(-other["high"], abs=1e-9)
        assert figures["low"] <= figures["difference"] <= figures["high"]
    assert forth["b"]["all"]["low"] > 0


def test_figures_are_of_the_sentences_of_a_bin(output, texts):
    report = by_length(generated=[output("a"), output("b")], bins=[7, 15, 40], samples=50)
    members = [i for i, length in enumerate(LENGTHS) if 7 < length <= 15]
    of = {key: plain([texts[key][i] for i in members]) for key in ("reference", "a", "b")}
    scores = [BLEU().corpus_score(of[key], [of["reference"]]).score for key in "ab"]
    figures = report.data["models"]["b"]["8-15"]
    assert figures["bleu"] == pytest.approx(scores[1])
    assert figures["difference"] == pytest.approx(scores[1] - scores[0])
    summands = [
        Scorer("de").statistics(
            results.TestSet(of[key], of["reference"], [""], [""]), ["sacrebleu"]
        )
        for key in "ab"
    ]
    drawn = bootstrap("sacrebleu", [[one["sacrebleu"]] for one in summands], 50)
    assert (figures["low"], figures["high"]) == pytest.approx(interval(drawn[1] - drawn[0]))
    assert (figures["bleu_low"], figures["bleu_high"]) == pytest.approx(interval(drawn[1]))
    assert [part["sentences"] for part in report.data["bins"]] == [5, 5, 2, 0]
    assert report.data["models"]["b"]["41+"]["bleu"] is None and [
        line[-1] for line in report.table[1:]
    ] == ["-", "-"]


def test_percentiles_cut_the_references(output):
    report = by_length(generated=[output("a"), output("b")], percentiles=True, samples=10)
    assert report.data["of"] == "reference"
    assert [(p["name"], p["sentences"]) for p in report.data["bins"]] == [
        ("short", 4), ("medium", 4), ("long", 4)
    ]  # fmt: skip


def test_outputs_of_other_test_sets_are_refused(output, texts):
    other = {"source": texts["source"][::-1]}
    with pytest.raises(UsageError, match="b cannot be compared with a: sources differ"):
        by_length(generated=[output("a"), output("b", **other)], bins=[7])
    other = {"reference": texts["reference"][::-1]}
    with pytest.raises(UsageError, match="references differ"):
        by_length(generated=[output("a"), output("b", **other)], bins=[7])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either --bins or --percentiles"),
        ({"bins": [7], "percentiles": True}, "either --bins or --percentiles"),
        ({"bins": [7], "samples": 0}, "--samples must be 1"),
        ({"bins": [9, 7]}, "rising"),
    ],
)
def test_bad_options_are_refused(output, options, message):
    with pytest.raises(UsageError, match=message):
        by_length(generated=[output("a"), output("b")], **options)


def test_names_are_wanted_once_each(output):
    with pytest.raises(UsageError, match="two of the name a"):
        by_length(generated=[output("a"), output("a")], bins=[7])
    with pytest.raises(UsageError, match="expected NAME=FILE"):
        by_length(generated=[output("a").partition("=")[2]], bins=[7])

import csv

import numpy as np
import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import from_json
from fairseq_posenc.tools.scores.intervals import (
    bootstrap,
    drawn_score,
    interval,
    t_interval,
    welch_interval,
)
from fairseq_posenc.tools.scores.metrics import corpus_score
from fairseq_posenc.tools.scores.result import Score
from fairseq_posenc.tools.tables import length_table

LENGTHS = [4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17]
TRAINED = {"source": 12, "reference": 14}


def statistics(right, lengths=LENGTHS):
    """sacreBLEU's numbers of sentences of which the first words are right, by share."""
    rows = []
    for n in lengths:
        correct = [max(round(right * n) - order, 0) for order in range(4)]
        rows.append([n, n, *correct, *(n - order for order in range(4))])
    return rows


def bleu(rows):
    return corpus_score("sacrebleu", np.array(rows).sum(axis=0))


def score(right, **changes):
    """A result of posenc score: all sentences are translated right to some share."""
    rows = statistics(right)
    bins = [
        {"name": name, "longer_than": low, "up_to": up, "sentences": n, "within": w}
        for name, low, up, n, w in (("1-10", -1, 10, 5, 5), ("11+", 10, None, 7, 2))
    ]
    chrf = [[9, 9, 3] * 6] * len(rows)
    result = {
        "all": {"sentences": 12, "sacrebleu": bleu(rows), "within": 7},
        "by_length": {"of": "source", "unit": "words", "bins": bins},
        "sentences": {"length": LENGTHS, "statistics": {"sacrebleu": rows, "chrf": chrf}},
        "longest_trained": TRAINED,
        "signatures": {"sacrebleu": "tok:13a|version:2.6.0", "chrf": "nc:6"},
        "language": "de",
        "test_set": {"source": "a", "reference": "b"},
    }
    return {**result, **changes}


def by_length(runs, metric="sacrebleu"):
    read = {name: [from_json(Score, one, "", "") for one in seeds] for name, seeds in runs.items()}
    return length_table.by_length(read, metric)


def test_rows_are_runs_and_columns_are_bins_with_their_sentences():
    table = by_length({"shape": [score(0.8)], "cape": [score(0.9)]})
    header = table.markdown().splitlines()[2]
    assert [text.strip() for text in header.split("|")[2:-1]] == (
        ["all (n=12)", "1-10 (n=5)", "11+ (n=7)"]
    )
    parts = (slice(None), slice(5), slice(5, None))
    for name, right in (("shape", 0.8), ("cape", 0.9)):
        means = [estimate.mean for estimate in table.rows[name]]
        assert means == pytest.approx([bleu(statistics(right)[part]) for part in parts])
    assert table.title == "sacreBLEU by source length (words)"
    other = by_length({"shape": [score(0.8)]}, "chrf")
    assert other.title.startswith("chrF") and "nc:6" in other.notes[-1]


def test_rows_of_unlike_precision_are_told_of():
    runs = {
        name: [score(0.8, precision={"generation": "float32", "training": f"{trained} on CPU"})]
        for name, trained in (("shape", "float32"), ("cape", "amp bfloat16"), ("t5", "float32"))
    }
    words = "Precision of training differs: float32 (shape, t5), amp bfloat16 (cape)."
    assert words in by_length(runs).markdown()
    unknown = {"generation": None, "training": None}
    runs["cape"] = [score(0.9, precision=unknown)]
    assert "Precision of" not in by_length({**runs, "old": [score(0.7)]}).markdown()


def test_every_figure_has_its_interval_and_every_difference():
    table = by_length({"shape": [score(0.8)], "cape": [score(0.9)], "same": [score(0.8)]})
    for row in (*table.rows.values(), *table.differences.values()):
        assert all(one.low <= one.mean <= one.high for one in row)
    assert all(one[:3] == (0, 0, 0) for one in table.differences["same"])
    text = table.markdown()
    for one in table.rows["shape"]:
        assert f"| {one.mean:.2f} [{one.low:.2f}, {one.high:.2f}] |" in text
    first, rest = text.split("Differences to shape")
    assert "| same " in first and "| shape " not in rest
    assert rest.count(" * |") == sum(one.low > 0 for one in table.differences["cape"]) > 0
    assert "+0.00 [+0.00, +0.00] |" in rest
    for part in (first, rest):
        lines = [line for line in part.splitlines() if line.startswith("|")]
        assert len({len(line) for line in lines}) == 1 and set(lines[1]) == set("|-: ")


def test_one_training_is_not_ranked_and_the_table_says_so():
    one, two = [score(0.8)], [score(0.8), score(0.9)]
    warning = "intervals are over sentences only and say nothing about other seeds"
    texts = [
        by_length({"a": a, "b": b}).markdown() for a, b in ((one, one), (one, two), (two, two))
    ]
    assert f"One training per row: {warning}" in texts[0]
    assert f"Some rows are of one training: their {warning}" in texts[1]
    assert warning not in texts[2] and "Trainings (seeds): a 2, b 2." in texts[2]


def test_seeds_are_averaged_and_widen_the_interval():
    seeds = [score(right) for right in (0.7, 0.8, 0.95)]
    values = [bleu(statistics(right)) for right in (0.7, 0.8, 0.95)]
    found, alone = (by_length({"a": runs}).rows["a"][0] for runs in (seeds, seeds[1:2]))
    assert found.mean == pytest.approx(sum(values) / 3)
    assert found.spread == pytest.approx(np.std(values, ddof=1)) and alone.spread is None
    assert found.high - found.low > alone.high - alone.low


def by_seed(rights):
    """Results that note their seeds."""
    return [score(right, notes={"seed": seed}) for seed, right in rights.items()]


A = {"1": 0.7, "2": 0.8, "3": 0.95}


@pytest.mark.parametrize(
    ("other", "order"),
    [
        (by_seed({"1": 0.6, "2": 0.75, "3": 0.8}), (0, 1, 2)),
        (by_seed({"3": 0.8, "1": 0.6, "2": 0.75}), (1, 2, 0)),
        (by_seed({"1": 0.6, "2": 0.75, "4": 0.8}), None),
        (by_seed({"1": 0.6, "2": 0.75}), None),
        (by_seed({"1": 0.6}), None),
        ([score(0.6), score(0.75), score(0.8)], None),
    ],
)
def test_differences_are_of_pairs_of_equal_seeds_or_welchs(other, order):
    runs = {"a": by_seed(A), "b": other}
    found = by_length(runs).differences["b"][0]
    rows = [[one["sentences"]["statistics"]["sacrebleu"] for one in run] for run in runs.values()]
    figures = [[drawn_score("sacrebleu", one) for one in run] for run in rows]
    a, b = (bootstrap(run, 12).mean(axis=0) for run in figures)
    first, second = [[bleu(one) for one in run] for run in rows]
    variance = np.var(b - a, ddof=1)
    expected = welch_interval(second, first, variance)
    if order:
        pairs = [second[place] - one for place, one in zip(order, first)]
        expected = t_interval(pairs, variance)
    assert found[1:3] == pytest.approx(expected)
    assert found.mean == pytest.approx(np.mean(second) - np.mean(first))


def test_one_training_per_row_has_percentiles_of_the_bootstrap():
    rows = [np.array(statistics(right)) for right in (0.8, 0.9)]
    table = by_length({"a": by_seed({"1": 0.8}), "b": by_seed({"2": 0.9})})
    a, b = bootstrap([drawn_score("sacrebleu", one) for one in rows], 12)
    assert table.rows["b"][0][1:3] == interval(b)
    assert table.differences["b"][0][1:3] == interval(b - a)


def test_sentences_within_the_trained_length_are_counted_or_left_out():
    lines = by_length({"shape": [score(0.8)]}).markdown().splitlines()
    found = next(line for line in lines if "within" in line)
    assert [cell.strip() for cell in found.split("|")[2:-1]] == ["7/12", "5/5", "2/7"]
    assert any("source of at most 12 and target of at most 14 subwords" in line for line in lines)
    unknown = score(0.8, longest_trained=None)
    for part in (unknown["all"], *unknown["by_length"]["bins"]):
        del part["within"]
    assert "within" not in by_length({"shape": [unknown]}).markdown().lower()


def test_a_model_that_learned_nothing_is_named():
    bad, fine = score(0.3), score(0.8)
    bad["all"].update(sacrebleu=0.2, chance=0.19, above_chance=False)
    fine["all"].update(chance=0.2, above_chance=True)
    text = by_length({"shape": [fine], "cape": [bad]}).markdown()
    assert "cape has hardly learned anything: its sacreBLEU is 0.20, and 0.19 with" in text
    assert "shape has learned" not in text
    # before all that compares it
    runs = {"shape": [fine, fine, fine], "cape": [fine, bad, fine]}
    first, *others = by_length(runs).words
    assert first.startswith("cape, seed 2 of 3, has hardly") and others


def test_old_results_tell_bleu_without_penalty_and_length_beside_bleu():
    short = [[n // 2, n, *row] for n, (_, _, *row) in zip(LENGTHS, statistics(0.8))]
    runs = {"a": [score(0.8), score(0.9)], "b": [score(0.8)]}
    for one, rows in zip([*runs["a"], *runs["b"]], (short, statistics(0.9), statistics(0.8))):
        one["sentences"]["statistics"].update(sacrebleu=rows, tokenised_bleu=rows)
        one["signatures"]["tokenised_bleu"] = "tok:none"
    table = by_length(runs)
    whole, *_, last = table.outputs["a"]
    ratio = sum(n // 2 for n in LENGTHS) / sum(LENGTHS)
    assert whole == pytest.approx(((bleu(statistics(0.8)) + bleu(statistics(0.9))) / 2,
                                   (ratio + 1) / 2))  # fmt: skip
    assert last.without_penalty == by_length(runs, "bleu_without_penalty").rows["a"][2].mean
    assert last.length_ratio == by_length(runs, "length_ratio").rows["a"][2].mean
    assert f"| {last.without_penalty:.2f}, {last.length_ratio:.3f} |" in table.markdown()
    assert f",{last.length_ratio}" in table.csv()
    assert table.rows["a"][0].mean < whole.without_penalty


def test_csv_has_a_line_per_figure_with_its_interval():
    table = by_length({"shape": [score(0.8)], "cape": [score(0.9)]})
    lines = list(csv.DictReader(table.csv().splitlines()))
    assert len(lines) == 6
    found, own, other = lines[5], table.rows["cape"][2], table.differences["cape"][2]
    assert list(found.values())[:4] == ["cape", "11+", "7", "2"]
    for name, value in (("mean", own.mean), ("low", own.low), ("difference high", other.high)):
        assert float(found[name]) == value
    assert found["standard deviation"] == ""


def other_bins(of="source", sentences=7):
    by_length = score(0.8)["by_length"]
    by_length["bins"][1]["sentences"] = sentences
    return {"by_length": {**by_length, "of": of}}


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (other_bins(sentences=8), "sentences per bin differ"),
        (other_bins(of="reference"), "lengths differ"),
        ({"signatures": {"sacrebleu": "tok:intl"}}, "signatures differ"),
        ({"language": "fr"}, "target languages differ"),
        ({"test_set": {"source": "a", "reference": "x"}}, "references differ"),
        ({"test_set": {"source": "x", "reference": "b"}}, "sources differ"),
        ({"longest_trained": {"source": 99, "reference": 99}}, "longest .*subwords: plain text"),
    ],
)
def test_results_that_cannot_be_compared_are_refused(other, what):
    with pytest.raises(UsageError, match=f"cape cannot be compared with shape: {what}"):
        by_length({"shape": [score(1)], "cape": [score(1, **other)]})


def test_rows_that_declare_other_training_text_are_compared_and_its_lengths_told():
    longer = score(1, longest_trained={"source": 99, "reference": 98}, notes={"longest": "none"})
    table = by_length({"shape": [score(1)], "shape-all": [longer]})
    assert [note for note in table.notes if "99 and target of at most 98 subwords" in note]


def sentences(rows, lengths=LENGTHS):
    return {"sentences": {"length": lengths, "statistics": rows}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"by_length": None}, "has no bins"),
        ({"signatures": {"chrf": "nc:6"}}, "score it again with --metrics chrf,sacrebleu"),
        ({"sentences": None}, "score it again"),
        (sentences({}), "score it again"),
        (sentences({"sacrebleu": statistics(1)[1:]}), "other sentences"),
        (sentences({"sacrebleu": statistics(1)}, LENGTHS[::-1] + [1]), "other sentences"),
        (sentences({"sacrebleu": statistics(1)}, [30] * 12), "other sentences"),
        (sentences({"sacrebleu": [[1, 2]] * 12}), "other sentences"),
        (sentences({"sacrebleu": [[-1, *[9] * 9]] * 12}), "other sentences"),
    ],
)
def test_results_without_bins_or_whole_statistics_are_refused(changes, message):
    with pytest.raises(UsageError, match=f"shape .*{message}"):
        by_length({"shape": [score(1, **changes)]})


def test_clear_differences_are_reported_in_words_of_rows_with_several_seeds():
    runs = {
        "sinusoidal": [score(0.5), score(0.52)],
        "cape": [score(0.9), score(0.92)],
        "shape": [score(0.3), score(0.9)],
        "t5": [score(0.9)],
    }
    table = by_length(runs)
    [line] = [note for note in table.words if note.startswith("11+ words")]
    mean, low, high, _ = table.differences["cape"][2]
    clear = f"cape {mean:+.1f} ± {(high - low) / 2:.1f}"
    assert low > 0
    assert line == f"11+ words, against sinusoidal: {clear}; no clear difference: shape."
    assert not any("against" in note for note in by_length({"a": [score(0.5)], **runs}).words)

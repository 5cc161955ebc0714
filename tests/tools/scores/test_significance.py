"""Figures and p-values against sacreBLEU's own command."""

import json
import random
import re
import subprocess
import sys

import numpy as np
import pytest

from fairseq_posenc.tools.scores.metrics import METRICS, SACREBLEU_METRICS
from fairseq_posenc.tools.scores.score import evaluate
from fairseq_posenc.tools.scores.significance import paired_bootstrap

RANDOM = random.Random(1)
# international tokenisation parts „ and €, which 13a leaves
WORDS = "Der die „das Hund Katze“ Haus läuft schläft, sieht heute €5 gern".split()
REFERENCES = [" ".join(RANDOM.choices(WORDS, k=RANDOM.randint(4, 12))) + "." for _ in range(60)]
OF_SACREBLEU = {
    "sacrebleu": ["-m", "bleu"],
    "sacrebleu_lowercase": ["-m", "bleu", "-lc"],
    "sacrebleu_lowercase_intl": ["-m", "bleu", "-lc", "--tokenize", "intl"],
    "chrf": ["-m", "chrf"],
    "chrf++": ["-m", "chrf", "--chrf-word-order", "2"],
    "ter": ["-m", "ter"],
}


def translated(right):
    def word(one):
        return one if RANDOM.random() < right else RANDOM.choice(WORDS)

    return [" ".join(map(word, line.split())) for line in REFERENCES]


OUTPUTS = {"base": translated(0.8), "good": translated(0.9), "alike": translated(0.8)}


@pytest.fixture
def command(write):
    """sacreBLEU's own command, run on OUTPUTS; what it prints."""

    def command(*words):
        files = [write(f"{name}.txt", lines) for name, lines in OUTPUTS.items()]
        given = [sys.executable, "-m", "sacrebleu", write("reference.txt", REFERENCES)]
        done = subprocess.run([*given, "-i", *files, *words], check=True, stdout=subprocess.PIPE)
        return done.stdout.decode()

    return command


@pytest.mark.parametrize("metric", OF_SACREBLEU)
def test_figures_and_p_values_are_those_of_sacrebleus_command(metric, command, write):
    options = OF_SACREBLEU[metric]
    scores = json.loads(command(*options, "--format", "json", "-w", "12"))
    for row, lines in zip(scores, OUTPUTS.values()):
        files = {"hypothesis": write("h", lines), "reference": write("r", REFERENCES)}
        found = evaluate(**files, language="de", metrics=[metric]).all.metrics
        [printed] = [value for name, value in row.items() if name != "system"]
        assert f"{found[metric]:.12f}" == f"{float(printed):.12f}"
    values, signature = paired_bootstrap(metric, [*OUTPUTS.items()], [REFERENCES], "de")
    # multiples of 1/1001, which four digits tell apart
    printed = re.findall(r"\(p = ([0-9.]+)\)", command(*options, "--paired-bs", "-f", "text"))
    assert values[0] is None and [f"{p:.4f}" for p in values[1:]] == printed
    assert values[1] < 0.05 < values[2]
    assert "bs:1000|seed:12345" in signature or "seed:12345|bs:1000" in signature


def test_every_metric_of_sacrebleu_is_tested():
    assert {*OF_SACREBLEU} == {name for name in SACREBLEU_METRICS if METRICS[name].has_plain_text}


def test_scores_of_sentences_have_p_values_of_the_same_samples(write):
    by_sentence = {
        name: evaluate(
            hypothesis=write("h", lines),
            reference=write("r", REFERENCES),
            language="de",
            bins=[5],
            length_of="reference",
        ).sentences.statistics["sacrebleu"]
        for name, lines in OUTPUTS.items()
    }
    # shares of right words: a mean, so that slow loops are short
    rows = {name: [[row[2] / row[6], 1] for row in all] for name, all in by_sentence.items()}
    values, _ = paired_bootstrap("COMET", [*rows.items()], None, "de")
    draw = np.random.default_rng(12345).choice(60, size=(1000, 60), replace=True)
    first = np.array(rows["base"])[:, 0]
    for name, p in zip(list(rows)[1:], values[1:]):
        other = np.array(rows[name])[:, 0]
        drawn = np.abs(other[draw].mean(axis=1) - first[draw].mean(axis=1))
        beyond = np.sum(drawn - drawn.mean() > abs(other.mean() - first.mean()))
        assert p == pytest.approx((beyond + 1) / 1001, abs=0.002)


def test_equal_scores_are_equal_and_not_significant(write):
    outputs = [("one", OUTPUTS["base"]), ("again", OUTPUTS["base"])]
    assert paired_bootstrap("chrf", outputs, [REFERENCES], "de")[0] == [None, "equal"]
    rows = [("one", [[0.5, 1]] * 9), ("again", [[0.5, 1]] * 9)]
    assert paired_bootstrap("COMET", rows, None, "de")[0] == [None, "equal"]

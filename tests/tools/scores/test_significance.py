"""Figures and p-values against sacreBLEU's own command."""

import json
import random
import re
import subprocess
import sys

import numpy as np
import pytest

from fairseq_posenc.tools.scores import texts
from fairseq_posenc.tools.scores.metrics import METRICS, SACREBLEU_METRICS
from fairseq_posenc.tools.scores.score import evaluate
from fairseq_posenc.tools.scores.scorer import Scorer
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


def statistics(lines, metric):
    test_set = texts.TestSet(lines, REFERENCES, lines, REFERENCES)
    return Scorer("de", [metric]).statistics(test_set)[metric]


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
    base, *others = (statistics(lines, metric) for lines in OUTPUTS.values())
    tests = [paired_bootstrap(metric, base, rows) for rows in others]
    values = [value for value, _ in tests]
    # multiples of 1/1001, which four digits tell apart
    printed = command(*options, "--paired-bs", "-f", "text")
    assert values == re.findall(r"\(p = ([0-9.]+)\)", printed)
    assert float(values[0]) < 0.05 < float(values[1])
    assert all(signature.startswith("bs:1000|seed:12345|version:") for _, signature in tests)


def test_every_metric_of_sacrebleu_is_tested():
    assert {*OF_SACREBLEU} == {name for name in SACREBLEU_METRICS if METRICS[name].has_plain_text}


def test_scores_of_sentences_have_p_values_of_the_same_samples():
    # shares of right words: a mean, so that slow loops are short
    rows = [
        [[row[2] / row[6], 1] for row in statistics(lines, "sacrebleu")]
        for lines in OUTPUTS.values()
    ]
    draw = np.random.default_rng(12345).choice(60, size=(1000, 60), replace=True)
    first, *others = (np.array(of_output)[:, 0] for of_output in rows)
    for other, own in zip(others, rows[1:]):
        drawn = np.abs(other[draw].mean(axis=1) - first[draw].mean(axis=1))
        beyond = np.sum(drawn - drawn.mean() > abs(other.mean() - first.mean()))
        p_value = float(paired_bootstrap("COMET", rows[0], own)[0])
        assert p_value == pytest.approx((beyond + 1) / 1001, abs=0.002)


def test_equal_scores_are_equal_and_not_significant():
    rows = statistics(OUTPUTS["base"], "chrf")
    assert paired_bootstrap("chrf", rows, rows)[0] == "equal"
    assert paired_bootstrap("COMET", [[0.5, 1]] * 9, [[0.5, 1]] * 9)[0] == "equal"

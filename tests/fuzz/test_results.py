"""Damaged outputs of fairseq-generate and fairseq-train, and references."""

import pytest

from fairseq_posenc.tools.results.generated import read_generated
from fairseq_posenc.tools.results.score import evaluate, render
from fairseq_posenc.tools.results.training_log import read_log

COUNT = 6
# two hypotheses for each sentence
HYPOTHESES = {-0.9: "a do@@ g {} .", -0.5: "the do@@ g {} ."}
GENERATED = "".join(
    f"S-{i}\tder Hu@@ nd {i} .\nT-{i}\tthe do@@ g {i} .\n"
    + "".join(
        f"{kind}-{i}\t{score}\t{text.format(i)}\n"
        for score, text in HYPOTHESES.items()
        for kind in "HD"
    )
    for i in range(COUNT)
)
TIME = "2026-11-21 03:59:00 | INFO |"
LOG = f"""{TIME} fairseq_cli.train | {{'common': {{'cpu': True}}}}
{TIME} fairseq_posenc.models.transformer | position:shape|max-shift:40|version:1
{TIME} fairseq_cli.train | num. shared model params: 1,768,960 (num. trained: 7)
{TIME} fairseq.utils | rank   0: capabilities =  7.0  ; total memory = 31.7 GB ; name = V100
{TIME} fairseq_cli.train | training on 1 devices (GPUs/TPUs)
{TIME} fairseq.trainer | Loaded checkpoint c.pt (epoch 2 @ 50 updates)
{TIME} train_inner | epoch 001:    100 / 265 loss=11.1, wps=3631.3, num_updates=100, wall=51
{TIME} train_inner | epoch 001:    200 / 265 loss=11.1, wps=3641.3, num_updates=200, wall=99
{TIME} train | epoch 014 | loss 4.349 | wps 3485.9 | num_updates 265 | train_wall 133 | wall 150
{TIME} fairseq_cli.train | done training in 149.5 seconds
"""


def write(path, content):
    path.write_text(content)
    return path


def output(folder):
    path = write(folder / "test.out", GENERATED)
    return path, lambda: read_generated(str(path))


def scored_output(folder):
    path = write(folder / "test.out", GENERATED)
    return path, lambda: render(evaluate(generated=str(path), bins=[3, 5], language="en"))


def reference(folder):
    output(folder)
    path = write(folder / "reference", "the dog.\n" * COUNT)
    files = {"generated": str(folder / "test.out"), "reference": str(path)}
    return path, lambda: render(evaluate(**files, bins=[3, 5], language="en"))


def log(folder):
    path = write(folder / "train.log", LOG * 2)
    return path, lambda: read_log(str(path))


def hypotheses_of_one_beam(found, data):
    return len(found.hypotheses) != len(found.decoded) and "sentences without text"


# makes a file, and returns it and how to read it; how many cases; what is wrong with a result
READERS = {
    output: (1000, hypotheses_of_one_beam),
    scored_output: (80, lambda text, data: "tokenised" not in text),
    reference: (80, lambda text, data: f" {COUNT} " not in text and "another number of lines"),
    log: (1000, lambda facts, data: not 0 <= facts["seconds"] < 1e16 and "no time"),
}


@pytest.mark.parametrize("make", READERS, ids=lambda make: make.__name__)
def test_damaged_results_are_told_or_read_right(fuzz, tmp_path, make):
    path, read = make(tmp_path)
    cases, wrong = READERS[make]
    others = [LOG.encode(), GENERATED.encode(), b'{"scores": {}}', b"[1]", b"{}", b"3"]
    fuzz(make.__name__, path, read, wrong, cases, others)

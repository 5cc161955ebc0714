"""Damaged results: outputs, scores, logs and profiles, and the tables that are made of them."""

import argparse
import json

import pytest

from fairseq_posenc.attention import admin
from fairseq_posenc.tools.benchmark.record import Record
from fairseq_posenc.tools.results import cells, comparison, papers, translations
from fairseq_posenc.tools.results.generated import read_generated
from fairseq_posenc.tools.results.plan import plan
from fairseq_posenc.tools.results.score import evaluate, render
from fairseq_posenc.tools.results.score_cell import score_cell
from fairseq_posenc.tools.results.tables import by_length, read_runs
from fairseq_posenc.tools.results.training_log import read_log

COUNT = 6
TESTS = [f"newstest{year}" for year in range(2010, 2017)]
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
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
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


def score_by_length(folder):
    output(folder)
    score = evaluate(generated=str(folder / "test.out"), bins=[3, 5], language="en")
    path = write(folder / "score.json", score)

    def read():
        table = by_length(read_runs([str(path)]), samples=5)
        return table.markdown(), table.csv()

    return path, read


def log(folder):
    path = write(folder / "train.log", LOG * 2)
    return path, lambda: read_log(str(path))


def profile(folder):
    shape = {f"{side}_layers": 2 for side in ("encoder", "decoder")}
    shape.update({f"{side}_embed_dim": 8 for side in ("encoder", "decoder")})
    path = write(folder / "admin.json", json.loads(admin.unit_profile(argparse.Namespace(**shape))))
    return path, lambda: admin.load_profile(argparse.Namespace(admin_profile=str(path), **shape))


def record(folder):
    figures = dict.fromkeys(("seconds", "megabytes", "base", "base_low", "base_high"), 1.5)
    contestants = {"shaw": figures, "t5": None}
    content = {"cells": [{"cell": {"group": "a"}, "batch": 2, "contestants": contestants}]}
    path = write(folder / "cost.json", content)
    return path, lambda: Record(str(path)).results


def translation_runs(folder, tables):
    """Cells of two rows, and a function that makes the papers' tables and plans of them."""
    runs = folder / "runs"
    for row in ("sinusoidal", "shape"):
        cell = runs / "vanilla" / row / "seed1"
        write(cell.parent / "row", f"{row}\n")
        write(cell / "train.log", LOG)
        for test in TESTS:
            write(cell / f"{test}.out", GENERATED)
        score_cell(str(cell), dict.fromkeys(TESTS), language="en")
    figures = {"original": 30.0, "swapped": 28.0, "drop": 2.0}
    write(runs / "vanilla" / "swap.json", {"models": {"shape": figures}})

    def read():
        found = translations.find_cells(str(runs))
        for name in tables:
            table = papers.load(name)
            for made in translations.compare(table, found), plan(table, found, str(runs)):
                made.markdown(), made.csv()

    return runs / "vanilla", read


def translation_score(folder):
    runs, read = translation_runs(folder, ["shape-5", "cape-2", "chen2021-6"])
    return runs / "shape" / "seed1" / "score.json", read


def translation_row(folder):
    runs, read = translation_runs(folder, ["shape-2"])
    return runs / "shape" / "row", read


def swapped(folder):
    runs, read = translation_runs(folder, ["shape-1"])
    return runs / "swap.json", read


def fine_tuning_score(folder):
    runs = folder / "runs"
    scores = {"RTE": {"valid": {"accuracy": 70.0}}}
    scores["MNLI"] = {"valid": {"accuracy": 80.0}, "valid1": {"accuracy": 81.0}}
    for row in ("shaw", "rel_scalar --position-segments per_head"):
        write(runs / row.split()[0] / "row", f"{row}\n")
        for task, score in scores.items():
            for lr in ("1e-05", "2e-05"):
                cell = runs / row.split()[0] / task / f"lr{lr}" / "seed1"
                path = write(cell / "score.json", {"scores": score, "notes": {}})

    def read():
        made = comparison.compare(papers.load("chen2021-4"), cells.read_cells(str(runs)))
        return made.markdown(), made.csv()

    return path, read


def hypotheses_of_one_beam(found, data):
    return len(found.hypotheses) != len(found.decoded) and "sentences without text"


# makes a file, and returns it and how to read it; how many cases; what is wrong with a result
READERS = {
    output: (1000, hypotheses_of_one_beam),
    scored_output: (80, lambda text, data: "tokenised" not in text),
    reference: (80, lambda text, data: f" {COUNT} " not in text and "another number of lines"),
    score_by_length: (1000, None),
    log: (1000, lambda facts, data: not 0 <= facts["seconds"] < 1e16 and "no time"),
    profile: (1000, None),
    record: (1000, None),
    translation_score: (150, None),
    translation_row: (80, None),
    swapped: (200, None),
    fine_tuning_score: (400, None),
}


@pytest.mark.parametrize("make", READERS, ids=lambda make: make.__name__)
def test_damaged_results_are_told_or_read_right(fuzz, tmp_path, make):
    path, read = make(tmp_path)
    cases, wrong = READERS[make]
    others = [LOG.encode(), GENERATED.encode(), b'{"scores": {}}', b"[1]", b"{}", b"3"]
    fuzz(make.__name__, path, read, wrong, cases, others)

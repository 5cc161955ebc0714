"""Results that are cut, counted twice, of other versions, or whose names are odd."""

import copy
import json
import os
import random

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.score import evaluate
from fairseq_posenc.tools.tables.length_table import by_length
from fairseq_posenc.tools.tables.report import write_report
from fairseq_posenc.tools.tables.report_content import read_report
from fairseq_posenc.tools.tables.runs import read_runs
from fairseq_posenc.tools.text_tables import csv_table, markdown_table


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two results of posenc score, as dictionaries: of seed 1, and of seed 2."""
    folder, draw = tmp_path_factory.mktemp("results"), random.Random(1)
    references = [" ".join(draw.choices("abcdefgh", k=draw.randint(3, 14))) for _ in range(12)]
    (folder / "reference").write_text("\n".join(references) + "\n")
    found = []
    for seed in "12":
        spoilt = (["x" if draw.random() < 0.3 else c for c in line] for line in references)
        (folder / "hypothesis").write_text("\n".join(map("".join, spoilt)) + "\n")
        files = {name: str(folder / name) for name in ("hypothesis", "reference")}
        bins = {"bins": [8], "length_of": "reference", "metrics": ["chrf"]}
        score = evaluate(**files, language="de", **bins, notes={"seed": seed})
        found.append(json.loads(json.dumps(score.to_json())))
    return found


@pytest.mark.parametrize(
    "names, seeds, said, notes",
    [
        (["p", "p"], "11", "seed 1 of p, as ", {}),
        (["p", "p"], "12", "the same outputs, as ", {}),
        (["p", "copy"], "12", "the same outputs, as ", {}),
        (["p", "p"], "11", "seed 1 of p, as ", {"one-model": "yes"}),
        (["p", "copy"], "12", "the same outputs, as ", {"one-model": "yes"}),
    ],
)
def test_a_training_is_not_counted_twice(results, write, names, seeds, said, notes):
    own = [{**results[0], "notes": {"seed": seed, **notes}} for seed in seeds]
    paths = [f"{n}={write(f'{i}/score.json', one)}" for i, (n, one) in enumerate(zip(names, own))]
    with pytest.raises(UsageError, match=f"has {said}.*give each training once"):
        read_runs(paths)


def test_seeds_that_are_noted_to_be_one_model_are_no_mistake(results, write):
    own = [{**results[0], "notes": {"seed": seed, "one-model": "yes"}} for seed in "123"]
    paths = [f"before={write(f'{i}/score.json', one)}" for i, one in enumerate(own)]
    with pytest.raises(UsageError, match="has the same outputs, as .*/2/score.json"):
        read_runs([*paths, f"p={write('p/score.json', {**results[0], 'notes': {}})}"])
    paths += [f"p={write('q/score.json', results[1])}"]
    runs = read_runs(paths)
    assert [len(runs[name]) for name in ("before", "p")] == [3, 1] and by_length(runs)


def test_models_without_mistakes_or_without_sense_may_agree(results, write):
    right, empty = copy.deepcopy(results[:2])
    right["all"]["sacrebleu"] = 100.0
    empty["sentences"]["hypothesis"] = [""] * 12
    for number, one in enumerate((right, empty)):
        path = write(f"{number}.json", one)
        assert len(read_runs([f"a={path}", f"b={path}"])) == 2


CUT = [("sentences", name) for name in ("hypothesis", "reference")]
CUT += [("sentences", "statistics", name) for name in ("chrf", "tokenised_bleu", "sacrebleu")]


@pytest.mark.parametrize("place", CUT, ids=" ".join)
@pytest.mark.parametrize("spoil", [lambda _: [], lambda own: own[:-1]], ids=["empty", "cut"])
def test_cut_results_are_refused(results, write, tmp_path, place, spoil):
    cut = copy.deepcopy(results[1])
    inner = cut
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = spoil(inner[place[-1]])
    paths = [f"p={write('p.json', results[0])}", f"q={write('q.json', cut)}"]
    with pytest.raises(UsageError, match="q has statistics that are damaged"):
        read_report(paths)
    if "statistics" in place:
        inner[place[-1]] = [row[:-1] for row in results[1]["sentences"]["statistics"][place[-1]]]
        with pytest.raises(UsageError, match="q has statistics that are damaged"):
            read_report([paths[0], f"q={write('q.json', cut)}"])


def test_a_pipe_is_not_waited_for(results, write, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="pipe is a pipe or a device; give a file of JSON"):
        read_runs([f"p={tmp_path / 'pipe'}"])
    paths = [f"{n}={write(f'{n}/score.json', one)}" for n, one in zip("pq", results)]
    os.mkfifo(tmp_path / "p" / "train.log")
    write_report(read_report(paths), str(tmp_path / "report"))


def test_every_signature_of_a_column_is_shown(results, write, tmp_path):
    other = copy.deepcopy(results[1])
    for name, text in other["signatures"].items():
        other["signatures"][name] = text.replace("version:", "version:9.")
    paths = [f"p={write('p.json', results[0])}", f"q={write('q.json', other)}"]
    report = read_report(paths)
    table = report.table
    write_report(report, str(tmp_path / "report"))
    shown = (tmp_path / "report" / "report.html").read_text()
    for one in (results[0], other):
        assert one["signatures"]["sacrebleu"] in table.notes[-1]
        assert all(text in shown for text in one["signatures"].values())


def test_names_of_others_are_plain_text(results, write, posenc, tmp_path):
    name = "a|b<i>\x1b[31m"
    paths = [f"{name}={write('p.json', results[0])}", f"q={write('q.json', results[1])}"]
    printed = posenc("table", "--by-length", *paths, "--output", tmp_path / "table.md").out
    posenc("compare", *paths, "--output", tmp_path / "report")
    for text in (
        printed,
        (tmp_path / "table.md").read_text(),
        (tmp_path / "report/table.md").read_text(),
    ):
        assert "\x1b" not in text and r"| a\|b\<i>\x1b[31m" in text
        assert text.count("<") == text.count(r"\<") > 1
    assert list(by_length(read_runs(paths)).rows) == [r"a|b<i>\x1b[31m", "q"]


def test_cells_are_no_markup():
    assert markdown_table([["a", "x|<"], ["b\n", "1"]]).splitlines()[0] == r"| a   | x\|\< |"


@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", "+x", "-x", " =1"])
def test_spreadsheets_run_nothing(text):
    [row] = csv_table([[text, -1.5, "-1.5", "+2e-05", "a=b", None]]).splitlines()
    assert row.startswith("'") and row.endswith(",-1.5,-1.5,+2e-05,a=b,")

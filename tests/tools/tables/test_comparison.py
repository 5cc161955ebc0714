"""Our figures in the papers' tables: medians and means, learning rates, places, differences."""

import csv
import json
import re
import statistics

import pytest

from fairseq_posenc.tools.tables.cells import Cell
from fairseq_posenc.tools.tables.comparison import compare, summarise
from fairseq_posenc.tools.tables.papers import CHOICES, FINE_TUNING, Measure, load

BLEU = Measure(["a", "b"], "sacrebleu")
SPEED = Measure(["training"], "tokens_per_second", relative=True)
LEARNED = "learned --position-segments input"
REL_SCALAR = "rel_scalar --position-segments per_head"


def cell(seed, tests=None, options="sinusoidal", setting="vanilla", row=None, **training):
    """A cell of translation; without tests and training it has not finished."""
    row, figures = row or options.split()[0], {}
    if tests or training:
        metrics = ("sacrebleu", "tokenised_bleu")
        figures = {name: dict.fromkeys(metrics, value) for name, value in (tests or {}).items()}
        for name in figures:
            figures[name]["sacrebleu_lowercase"] = figures[name]["sacrebleu"] + 1
            figures[name]["sacrebleu_lowercase_intl"] = figures[name]["sacrebleu"] + 2
        figures["training"] = {"updates": 200000, "gpus": 8, "hardware": "V100", **training}
    state = "finished" if figures else "begun"
    place = f"{setting}/{row}/seed{seed}"
    return Cell(place, setting, row, options, str(seed), state=state, figures=figures)


def news(figure):
    """Scores of newstest2010-2016: this figure, and one more each year."""
    return {f"newstest{year}": figure + year - 2010 for year in range(2010, 2017)}


def tuned(lr, seed, *figures, task="MNLI", row="a", options=LEARNED, **scores):
    """A fine-tuning whose subsets valid, valid1 … have these figures; without, not finished."""
    metric = CHOICES[task][1]
    scores.update({s: {metric: v} for s, v in zip(("valid", "valid1", "valid2"), figures)})
    place, state = f"{row}/{task}/lr{lr}/seed{seed}", "finished" if scores else "open"
    return Cell(place, task, row, options, str(seed), lr, state, scores)


def glue_row(row, options, value):
    return [
        tuned("1e-5", 1, *[value] * (1 + (task == "MNLI")), task=task, row=row, options=options)
        for task in ("MNLI", "QQP", "QNLI", "SST-2", "CoLA", "STS-B")
    ]


def xtreme_row(options, left_out=""):
    """Finished cells of a row with 50 on every language but one."""
    cells = []
    for task in ("XNLI", "SQuAD"):
        scores = {CHOICES[task][0]: {CHOICES[task][1]: 50.0}}
        for measure in FINE_TUNING.values():
            for subset in set(measure.sets) - {left_out} if measure.setting == task else ():
                scores.setdefault(subset, {})[measure.metric] = 50.0
        cells.append(Cell("", task, "b", options, "1", "1e-5", "finished", scores))
    return cells


def lines_of(comparison):
    table = [line for line in comparison.markdown().splitlines() if line.startswith("|")]
    assert len({len(line) for line in table}) == 1
    return [[text.strip() for text in line.strip("|").split("|")] for line in table]


def rows_of(comparison):
    """The names of our rows, in the order of the table, None where the paper's stands alone."""
    return [entry.our_row and str(entry.our_row) for entry in comparison.entries]


def test_seeds_are_averaged_over_their_means_of_test_sets():
    cells = [cell(1, {"a": 20, "b": 30}), cell(2, {"a": 21, "b": 33}), cell(3)]
    found = summarise(cells, BLEU, cells)
    half = 12.7062 * statistics.stdev([25, 27]) / 2**0.5  # t of one degree of freedom
    assert found[:4] == (26.0, pytest.approx(half, rel=1e-5), 2, 1)
    assert summarise(cells[:1], BLEU, cells).half is None
    # seeds of the paper that are not there are open
    assert summarise(cells, BLEU, cells, planned_seeds=5).unfinished == 3


def test_a_mean_of_translation_lacks_no_test_set():
    assert summarise([cell(1, {"a": 20}), cell(2)], BLEU, []).value is None


def test_speed_is_relative_to_the_mean_of_the_baseline_of_that_setting():
    base = [cell(1, tokens_per_second=100), cell(2, tokens_per_second=300)]
    ours = [cell(1, options="shaw", tokens_per_second=150)]
    everything = [*base, *ours, cell(1, setting="interpolate", tokens_per_second=7)]
    assert summarise(ours, SPEED, everything).value == 0.75
    half = 12.7062 * statistics.stdev([0.5, 1.5]) / 2**0.5
    assert summarise(base, SPEED, everything)[:2] == (1, pytest.approx(half, rel=1e-5))


@pytest.mark.parametrize(
    "other",
    [
        {"gpus": 4},
        {"hardware": "H200"},
        {"setting": "extrapolate"},
        {"options": "sinusoidal --position-source-scale auto"},
    ],
)
def test_speeds_on_other_hardware_or_data_are_not_compared(other):
    ours = [cell(1, options="shaw", tokens_per_second=150)]
    everything = [*ours, cell(1, **{"tokens_per_second": 1, **other})]
    assert summarise(ours, SPEED, everything).value is None


def test_fine_tuning_reports_the_median_over_seeds_with_the_interval_of_their_mean():
    values = [70.0, 90.0, 71.0, 73.0, 72.0]
    cells = [tuned("1e-5", seed, value) for seed, value in enumerate(values)]
    found = summarise(cells, FINE_TUNING["MNLI-m"], cells)
    half = 2.77645 * statistics.stdev(values) / 5**0.5
    assert found[:5] == (72.0, pytest.approx(half, rel=1e-5), 5, 0, "1e-5")


@pytest.mark.parametrize(
    ("figures", "lr"),
    [
        # the best median, not the best run
        ({"4e-5": [60.0, 60.0, 99.0], "2e-5": [70.0, 71.0, 72.0]}, "2e-5"),
        # of equals the smallest, as a number
        ({"3e-5": [70.0], "1e-4": [70.0], "9e-6": [70.0]}, "9e-6"),
    ],
)
def test_the_learning_rate_with_the_best_median_is_taken(figures, lr):
    cells = [tuned(rate, seed, v) for rate, vs in figures.items() for seed, v in enumerate(vs)]
    assert summarise(cells, FINE_TUNING["MNLI-m"], cells).lr == lr


def test_every_figure_is_of_the_learning_rate_that_english_development_data_choose():
    cells = [tuned("1e-5", 1, 80.0, 10.0), tuned("2e-5", 1, 70.0, 99.0)]
    assert summarise(cells, FINE_TUNING["MNLI-mm"], cells).value == 10.0
    languages = dict(zip(("test-de", "test-ur", "test-th"), (30.0, 40.0, 50.0)), **{"test-ro": 99})
    cells = [
        tuned(lr, 1, task="XNLI", **{name: {"accuracy": v} for name, v in scores.items()})
        for lr, scores in (
            ("1e-5", {**languages, "valid-en": 80.0}),
            ("2e-5", {**dict.fromkeys(languages, 90.0), "valid-en": 70.0}),
        )
    ]
    found = summarise(cells, FINE_TUNING["XNLI"], cells)
    # XNLI has no Romanian
    assert (found.value, found.part) == (40.0, "3 of 15")


def test_unfinished_fine_tunings_of_any_learning_rate_are_counted():
    cells = [tuned("1e-5", 1, 70.0), tuned("1e-5", 2), tuned("2e-5", 1)]
    cells.append(tuned("2e-5", 1, task="QQP"))
    assert summarise(cells, FINE_TUNING["MNLI-m"], cells)[:4] == (70.0, None, 1, 2)
    assert summarise(cells, FINE_TUNING["QQP"], cells).value is None


def test_table_2_of_shape_has_ours_below_the_papers():
    cells = [cell(1, news(20), tokens_per_second=100), cell(2, news(22), tokens_per_second=100)]
    cells += [cell(1, news(30), "shape --position-max-shift 40", "extrapolate", "k40")]
    cells += [cell(1, news(25), "shaw --position-shared-tables", tokens_per_second=80)]
    lines = lines_of(compare(load("shape-2"), cells))
    at = lines.index(["VANILLA", "APE", "paper", "23.61", "30.46", "1.00"])
    assert [line[2:] for line in lines[at + 1 : at + 4]] == [
        ["vanilla/sinusoidal", "22.50 ± 12.71", "26.00 ± 12.71", "1.00 ± 0.00"],
        ["difference", "-1.11", "-4.46", "+0.00"],
        ["seeds", *["2 (3 open)"] * 3],
    ]
    assert lines[at + 4] == ["VANILLA", "RPE", "paper", "23.67", "30.54", "0.91"]
    assert lines[at + 5][2:] == ["vanilla/shaw", "26.50", "30.00", "0.80"]
    at = lines.index(["EXTRAPOLATE", "SHAPE, K = 40 (section 3.3)", "paper", "23.12", "29.86", "-"])
    assert lines[at + 1][2:] == ["extrapolate/k40", "31.50", "35.00", "missing"]
    assert lines[at + 3][2:] == ["seeds", "1", "1", ""]
    assert [line[2:] for line in lines].count(["ours", *["missing"] * 3]) == 7


def test_table_4_of_chen_has_ours_below_the_papers():
    ours = [*glue_row("mine", "shaw --position-segments input", 90.0)]
    ours.append(tuned("2e-5", 1, task="QQP", row="mine", options=ours[0].options))
    lines = lines_of(compare(load("chen2021-4"), ours))
    at = lines.index(
        ["Shaw et al. [14]", "per-head", "input", "paper"]
        + ["86.3 / 86.0", "91.2", "90.5", "93.2", "59.8", "89.3", "85.2"]
    )
    assert [line[3:] for line in lines[at + 1 : at + 4]] == [
        ["mine", "90.00 / 90.00", *["90.00"] * 6],
        ["difference", "+3.7 / +4.0", "-1.2", "-0.5", "-3.2", "+30.2", "+0.7", "+4.8"],
        ["lr, seeds", "1e-5, 1", "1e-5, 1 (1 open)", *["1e-5, 1"] * 4, ""],
    ]
    assert ["", "", "", "ours", "missing / missing", *["missing"] * 6] in lines


def test_test_sets_without_labels_are_not_just_missing():
    """Those of XTREME's own download."""
    cells = xtreme_row(LEARNED)
    assert not any("not scored" in note for note in compare(load("chen2021-5"), cells).notes)
    for one in cells:
        tests = [name for name in one.figures if name.startswith(("test-", "xquad"))]
        one.figures.update({name: {} for name in tests})
    notes = compare(load("chen2021-5"), cells).notes
    assert "XNLI, XQuAD F1, XQuAD EM: predicted, not scored, as without labels." in notes


def test_means_over_some_languages_are_marked_and_not_compared():
    whole = compare(load("chen2021-9"), xtreme_row(REL_SCALAR))
    partial = compare(load("chen2021-9"), xtreme_row(REL_SCALAR, "xquad-th"))
    for table, figure, difference, average in (
        (whole, "50.00 / 50.00", "-19.2 / -4.4", "50.00"),
        (partial, "50.00 (10 of 11) / 50.00 (10 of 11)", "- / -", "missing"),
    ):
        lines = lines_of(table)
        at = next(number for number, line in enumerate(lines) if line[3] == "b")
        assert lines[at][4:] == ["50.00", figure, "50.00 / 50.00", "50.00 / 50.00", average]
        assert lines[at + 1][4:6] == ["-18.4", difference]
        assert ("of a benchmark's languages" in table.markdown()) == (table is partial)
    assert "10 of 11" in partial.csv() and "10 of 11" not in whole.csv()


@pytest.mark.parametrize(
    ("name", "cells", "rows"),
    [
        # options in another order; two rows of ours of one encoding; one of the paper's not trained
        ("chen2021-8", glue_row("b", REL_SCALAR.replace(" ", " --position-sharing none ", 1), 1.0),
         [None, None, "b"]),
        ("chen2021-4", glue_row("a", LEARNED, 1.0) + glue_row("b", LEARNED, 1.0),
         ["a", "b", None, None, None]),
        ("shape-7", [cell(1, news(20))], [None, "vanilla/sinusoidal"]),
        # rows that the paper lacks are appended if they are of its settings and have a figure
        ("chen2021-4", glue_row("b", "alibi", 1.0), [None] * 4 + ["b"]),
        ("shape-2", [cell(1, news(1), "alibi"), cell(1, news(1), "alibi", "elsewhere"),
                     cell(1, None, "t5")], [None] * 10 + ["vanilla/alibi"]),
    ],
)  # fmt: skip
def test_rows_of_ours_find_their_place(name, cells, rows):
    table = load(name)
    comparison = compare(table, cells)
    assert rows_of(comparison) == rows
    for entry in comparison.entries:
        printed = entry.row.figures if entry.row else [None] * len(table.measures)
        assert [entry.figures[figure].paper for figure in table.measures] == printed


def test_tasks_that_the_paper_lacks_are_columns_at_the_end():
    cells = [tuned("1", 1, 60.0, task="RTE"), tuned("1", 1, 50.0, task="CoLA")]
    comparison = compare(load("chen2021-4"), cells)
    assert lines_of(comparison)[0][-2:] == ["Avg", "RTE"]
    figures = comparison.entries[0].figures
    assert figures["RTE"].value == 60.0 and figures["CoLA"].value == 50.0
    assert figures["QQP"].value is None and figures["Avg"].value is None


def test_settings_are_columns_of_chens_table_6():
    cells = [
        cell(1, {"newstest2015": bleu}, "rel_scalar", setting, updates=100000)
        for setting, bleu in (("en-de", 20), ("en-cs", 10))
    ]
    entry = compare(load("chen2021-6"), cells).entries[3]
    ours = {name: figure.value for name, figure in entry.figures.items()}
    assert str(entry.our_row) == "rel_scalar"
    # Tensor2Tensor's tokenisation is compared with the paper, 13a stands beside it
    assert ours == {"EN-DE": 22, "DE-EN": None, "EN-CS": 12,
                    "EN-DE, 13a": 21, "DE-EN, 13a": None, "EN-CS, 13a": 11}  # fmt: skip
    assert entry.figures["EN-DE, 13a"].paper is None


def cape(shift, *bleu):
    options = f"cape --position-source-scale auto --position-global-shift {shift}"
    tests = dict(zip(("valid", "newstest2014"), bleu))
    return cell(1, tests, f"{options} --prepend-source-bos", "de6", f"cape_{shift}")


@pytest.mark.parametrize(
    ("cells", "best"),
    [
        ([cape(5, 26.0, 29.0), cape(10, 27.0, 25.0), cape(50, 25.0, 28.0)], "de6/cape_10"),
        ([cape(5, 26.0, 29.0), cape(50)], "de6/cape_5"),
        ([cape(50)], "de6/cape_50"),
    ],
)
def test_of_capes_shifts_the_best_on_validation_data_is_compared(cells, best):
    entries = {str(entry.our_row): entry for entry in compare(load("cape-2"), cells).entries}
    assert entries[best].row.labels == ["CAPE, 6L-6L", "DE"]
    others = {f"de6/{one.row}" for one in cells} - {best}
    assert all(entries[name].row is None for name in others)
    if best == "de6/cape_10":
        assert entries[best].figures["Test BLEU"].difference() == pytest.approx(25 - 27.81)


def test_other_lengths_of_training_and_the_hardware_are_reported():
    cells = [cell(1, news(1), updates=60), cell(2, news(1)), cell(1, news(1), "shape")]
    updates = "vanilla: ours made {} updates, the paper's 200000."
    assert compare(load("shape-2"), cells, ["Tiny."]).notes == [
        "Tiny.", updates.format("60, 200000"), "Ours were trained on: 8 × V100."
    ]  # fmt: skip
    assert compare(load("shape-7"), cells[1:]).notes == []
    assert compare(load("shape-7"), cells[:1]).notes == [updates.format(60)]


def test_models_of_a_papers_table_that_learned_nothing_are_named(tmp_path, posenc):
    """Of a task the best learning rate alone; subsets alike in one sentence."""
    for seed, predicted in (("1", [1, 1]), ("2", [0, 1])):
        for lr, accuracy in (("1e-5", 50.0), ("9e-5", 20.0)):
            folder = tmp_path / "mine" / "MNLI" / f"lr{lr}" / f"seed{seed}"
            folder.mkdir(parents=True)
            about = {"setting": "MNLI", "row": "mine", "options": LEARNED, "seed": seed, "lr": lr}
            (folder / "cell.json").write_text(json.dumps(about))
            examples = {"target": [0, 1], "prediction": predicted if lr == "1e-5" else [0, 0]}
            result = {
                "task": "MNLI", "labels": ["yes", "no"],
                "scores": dict.fromkeys(("valid", "valid1"), {"accuracy": accuracy}),
                "per_example": dict.fromkeys(("valid", "valid1"), examples),
            }  # fmt: skip
            (folder / "score.json").write_text(json.dumps(result))
    printed = posenc("table", "--paper", "chen2021-4", "--runs", tmp_path).out
    sentence = "mine, seed 1, predicts one class, 'no', for every example of MNLI valid, valid1"
    assert f"\n{sentence}: it has learned nothing.\n" in printed.replace("\\", "")
    assert printed.count("learned nothing") == 1


def test_script_prints_markdown_and_writes_it_and_csv(tmp_path, posenc):
    folder = tmp_path / "runs" / "mine" / "CoLA" / "lr1e-5" / "seed1"
    folder.mkdir(parents=True)
    about = {"setting": "CoLA", "row": "mine", "options": LEARNED, "seed": "1", "lr": "1e-5"}
    (folder / "cell.json").write_text(json.dumps(about))
    (folder / "score.json").write_text(json.dumps({"scores": {"valid": {"matthews": 50.5}}}))
    words = f"--paper chen2021-4 --runs {tmp_path}/runs --note Tiny. --output".split()
    outputs = [tmp_path / "table.md", tmp_path / "table.csv", tmp_path / "table.tex"]
    printed = posenc("table", *words, *outputs).out
    assert "\nTiny.\n" in printed and outputs[0].read_text(encoding="utf-8") == printed
    with outputs[1].open(encoding="utf-8", newline="") as stream:
        lines = list(csv.DictReader(stream))
    (found,) = [one for one in lines if (one["row"], one["figure"]) == ("mine", "CoLA")]
    expected = {"median": "50.5", "seeds": "1", "lr": "1e-5", "unfinished": "0", "paper": "58.7"}
    assert expected.items() <= found.items() and len(lines) == 4 * 8
    assert float(found["difference"]) == pytest.approx(50.5 - 58.7)
    text = outputs[2].read_text(encoding="utf-8")
    assert text.startswith("% Table 4 of ") and "\\toprule\n" in text and "\n% Tiny.\n" in text
    assert re.search(r"& difference &.* & \$-\$8\.2 & .* \\\\\n", text)

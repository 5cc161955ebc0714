"""The reader of folders of runs: what is complete, begun, missing, foreign or damaged."""

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.tables.cells import read_cells


def score(sentences=3, signature="tok:13a|version:2.6.0"):
    figures = {"sentences": sentences, "sacrebleu": 1.5}
    return {"all": figures, "signatures": {"sacrebleu": signature}}


def result(training=None, **tests):
    return {"tests": tests, "training": training or {"updates": 9, "gpus": 8, "hardware": "V100"}}


ABOUT = {"setting": "vanilla", "row": "a", "options": "shape --x 1", "seed": "1", "lr": ""}
TUNED = {**ABOUT, "setting": "CoLA", "lr": "1e-5"}


@pytest.fixture
def runs(tmp_path, write):
    """A function that writes a cell, with a result where it has one, and returns the folder."""

    def runs(place, content=None, about=ABOUT, **others):
        write(f"{place}/cell.json", {**about, **others})
        if content is not None:
            write(f"{place}/score.json", content)
        return str(tmp_path)

    return runs


def test_cells_of_translation_are_what_they_say_they_are(runs, write):
    runs("x/seed10", seed="10")
    runs("x/seed9", seed="9")
    write("x/seed9/checkpoint_last.pt", "")
    write("text/wmt16_en_de/train.raw.de", "")
    runs("fine/tuned", about=TUNED)
    cells = read_cells(runs("x/seed1", result(news=score())))
    assert [(one.folder, one.seed, one.state) for one in cells] == [
        ("x/seed1", "1", "finished"), ("x/seed9", "9", "begun"), ("x/seed10", "10", "open"),
    ]  # fmt: skip
    assert {(one.setting, one.row, one.options) for one in cells} == {
        ("vanilla", "a", "shape --x 1")
    }
    assert cells[0].figures["news"]["sacrebleu"] == 1.5
    assert cells[0].hardware == ("V100", 8) and cells[1].training == {}


def test_translation_that_is_not_above_chance_is_said_once(runs):
    low, high = ({"chance": 1.25, "above_chance": above} for above in (False, True))
    tests = {"news": {**score(), "all": {**score()["all"], **low}}}
    [cell] = read_cells(runs("a", result(**tests, more=tests["news"])))
    [sentence] = cell.failures
    assert sentence.startswith("vanilla/a, seed 1, has hardly learned anything: its sacreBLEU is")
    assert sentence.endswith("1.50, and 1.25 with the references of other sentences of news.")
    tests["news"]["all"].update(high)
    assert read_cells(runs("a", result(**tests)))[0].failures == []


def test_cells_of_fine_tuning_are_what_they_say_they_are(runs):
    runs("pretrain/learned/seed1", setting="")
    scores = {"valid": {"matthews": 50.0}}
    runs("x/1", {"scores": scores}, TUNED, row="mine", seed="2")
    done, open_ = read_cells(runs("x/2", about=TUNED, lr="3e-5", seed="11"), fine_tuning=True)
    assert (done.folder, done.row, done.setting, done.lr, done.seed, done.state, done.figures) == (
        ("x/1", "mine", "CoLA", "1e-5", "2", "finished", scores)
    )
    assert (open_.lr, open_.seed, open_.state, open_.figures) == ("3e-5", "11", "open", {})


def test_swapped_sentences_are_read_from_their_analysis(runs, write):
    figures = {"original": 30.0, "swapped": 28.5, "drop": 1.5}
    write("interpolate/swap.json", {"models": {"mine": figures}, "pairs": 10})
    folder = runs("x", setting="interpolate", row="mine")
    swap = read_cells(folder)[1]
    assert (swap.setting, swap.row, swap.options, swap.seed) == (
        ("interpolate", "mine", "shape --x 1", "")
    )
    assert swap.figures == {"swap": figures}
    write("interpolate/swap.json", {"models": {"other": figures}})
    with pytest.raises(UsageError, match="swap.json has a row 'other', of which"):
        read_cells(folder)


@pytest.mark.parametrize(
    ("about", "content", "message"),
    [
        (ABOUT, "{", "not JSON"),
        (ABOUT, {"all": {}, "by_length": None, "signatures": {}}, "not from score_cell"),
        (ABOUT, {"scores": {"valid": {}}}, "not from score_cell"),
        (ABOUT, {"tests": {"n": {"sacrebleu": 3}}}, "tests.n.all is missing"),
        (ABOUT, {"tests": {}, "training": {"gpus": 1}}, "damaged: training.updates is"),
        (TUNED, "{", "not JSON"),
        (TUNED, {"all": 1}, "not from posenc predict"),
        ({**ABOUT, "seed": 1}, None, "cell.json is not from a recipe, or damaged: seed should be"),
        ({**ABOUT, "options": ""}, None, "cell.json is damaged: expected `encoding"),
        ({**ABOUT, "options": "--position-max-shift 40"}, None, "expected `encoding"),
        ({**ABOUT, "options": "shape 40"}, None, "expected `encoding"),
        ({**ABOUT, "row": "a\nb"}, None, "characters that cannot be printed"),
        ({**TUNED, "setting": "Cola"}, None, "no task is called Cola"),
        ({**TUNED, "lr": "x"}, None, "cell.json is damaged: could not convert .* 'x'"),
        ({**TUNED, "lr": "inf"}, None, "'inf' is not a learning rate"),
    ],
)
def test_foreign_and_damaged_cells_are_refused(runs, about, content, message):
    with pytest.raises(UsageError, match=message):
        read_cells(runs("v/a/seed1", content, about), fine_tuning=bool(about["lr"]))


@pytest.mark.parametrize("other", [score(sentences=4), score(signature="tok:intl|version:2.6.0")])
def test_translations_that_cannot_be_compared_are_refused(runs, other):
    runs("v/a/seed1", result(news=score()))
    folder = runs("v/b/seed2", result(news=other), row="b")
    with pytest.raises(UsageError, match="v/b/seed2 cannot be compared with v/a/seed1"):
        read_cells(folder)


def test_other_settings_and_versions_may_differ(runs):
    runs("1", result(news=score()))
    runs("2", {"tests": {"news": score(signature="tok:13a|version:2.4")}}, seed="2")
    assert len(read_cells(runs("3", result(news=score(1)), setting="interpolate"))) == 3


EN = {"valid-en": {"accuracy": 1.0}}


@pytest.mark.parametrize("other", [{**EN, "test-th": {"accuracy": 1.0}}, {"valid-en": {"f1": 1.0}}])
def test_fine_tunings_scored_on_other_data_are_not_compared(runs, other):
    xnli = {**TUNED, "setting": "XNLI"}
    runs("a/seed1", {"scores": EN}, xnli)
    folder = runs("a/seed2", {"scores": {**EN, "test": {}}}, xnli, seed="2")
    assert len(read_cells(folder, fine_tuning=True)) == 2
    runs("b/seed1", {"scores": other}, xnli, row="b")
    with pytest.raises(UsageError, match="b/seed1 cannot be compared with a/seed1"):
        read_cells(folder, fine_tuning=True)


@pytest.mark.parametrize(
    "about, note, message",
    [
        (ABOUT, {"seed": "2"}, "v/a/score.json is of seed 2, and cell.json beside it of 1"),
        (ABOUT, {"row": "b=t5"}, "is of row b=t5, and cell.json beside it of a=shape --x 1"),
        (TUNED, {"lr": "1e-4"}, "is of lr 1e-4, and cell.json beside it of 1e-5"),
    ],
)
def test_the_result_of_another_training_is_refused(runs, about, note, message):
    def content(**notes):
        notes = {"row": "a=shape --x 1", "seed": "1", "lr": about["lr"], **notes}
        return {**result(), "scores": {}, "notes": notes}

    folder = runs("v/a", content(), about)
    runs("v/plain", content(row="shape"), about, row="shape", options="shape")
    assert len(read_cells(folder, fine_tuning=bool(about["lr"]))) == 2
    runs("v/a", content(**note), about)
    with pytest.raises(UsageError, match=message):
        read_cells(folder, fine_tuning=bool(about["lr"]))
    runs("v/a", content(), about)
    runs("v/copy", content(), about)
    with pytest.raises(UsageError, match="v/copy in .* is seed 1 of a, as v/a: give each"):
        read_cells(folder, fine_tuning=bool(about["lr"]))


@pytest.mark.parametrize("fine_tuning, kind", [(True, "fine-tuning"), (False, "translation")])
def test_a_folder_without_cells_is_refused(runs, fine_tuning, kind):
    folder = runs("x", about=ABOUT if fine_tuning else TUNED)
    with pytest.raises(UsageError, match=f"no {kind} has a cell.json below it"):
        read_cells(folder, fine_tuning)

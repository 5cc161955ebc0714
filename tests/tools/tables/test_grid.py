"""The reader of folders of runs: what is complete, begun, missing, foreign or damaged."""

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.tables.grid import read_cells


def score(sentences=3, signature="tok:13a|version:2.6.0"):
    figures = {"sentences": sentences, "sacrebleu": 1.5}
    return {"all": figures, "signatures": {"sacrebleu": signature}}


def result(training=None, **tests):
    return {"tests": tests, "training": training or {"updates": 9, "gpus": 8, "hardware": "V100"}}


@pytest.fixture
def runs(tmp_path, write):
    """A function that writes a file of a folder of runs, and the row of its cell."""

    def runs(place, content="", options="shape --x 1"):
        path = tmp_path / write(place, content)
        if path.parent.name.startswith("seed"):
            row = path.parents[3 if path.parents[1].name.startswith("lr") else 1]
            (row / "row").write_text(options + "\n")
        return str(tmp_path)

    return runs


def test_cells_of_translation_are_read_from_their_folders(runs):
    runs("vanilla/a/seed10/settings")
    runs("vanilla/a/seed9/checkpoint_last.pt")
    runs("text/wmt16_en_de/train.raw.de")
    cells = read_cells(runs("vanilla/a/seed1/score.json", result(news=score())))
    assert [(one.place, one.seed, one.state) for one in cells] == [
        ("vanilla/a/seed1", "1", "finished"),
        ("vanilla/a/seed9", "9", "begun"),
        ("vanilla/a/seed10", "10", "open"),
    ]
    assert {(one.setting, one.row, one.options) for one in cells} == {
        ("vanilla", "a", "shape --x 1")
    }
    assert cells[0].figures["news"]["sacrebleu"] == 1.5
    assert cells[0].hardware == ("V100", 8) and cells[1].training == {}


def test_cells_of_fine_tuning_are_read_from_their_folders(runs):
    runs("pretrain/learned/seed1/x")
    scores = {"valid": {"matthews": 50.0}}
    runs("mine/CoLA/lr1e-5/seed2/score.json", {"scores": scores})
    done, open_ = read_cells(runs("mine/CoLA/lr3e-5/seed11/settings"), fine_tuning=True)
    assert (done.place, done.row, done.task, done.lr, done.seed, done.state, done.figures) == (
        ("mine/CoLA/lr1e-5/seed2", "mine", "CoLA", "1e-5", "2", "finished", scores)
    )
    assert (open_.lr, open_.seed, open_.state, open_.figures) == ("3e-5", "11", "open", {})


def test_swapped_sentences_are_read_from_their_analysis(runs):
    runs("interpolate/mine/seed1/checkpoint_last.pt")
    figures = {"original": 30.0, "swapped": 28.5, "drop": 1.5}
    folder = runs("interpolate/swap.json", {"models": {"mine": figures}, "pairs": 10})
    swap = read_cells(folder)[1]
    assert (swap.setting, swap.row, swap.seed) == ("interpolate", "mine", "")
    assert swap.figures == {"swap": figures}
    runs("interpolate/swap.json", {"models": {"other": figures}})
    with pytest.raises(UsageError, match="swap.json has a row 'other', which"):
        read_cells(folder)


@pytest.mark.parametrize(
    ("place", "content", "message"),
    [
        ("v/a/seed1", "{", "not JSON"),
        ("v/a/seed1", {"all": {}, "by_length": None, "signatures": {}}, "not from score_cell"),
        ("v/a/seed1", {"scores": {"valid": {}}}, "not from score_cell"),
        ("v/a/seed1", {"tests": {"n": {"sacrebleu": 3}}}, "tests.n.all is missing"),
        ("v/a/seed1", {"tests": {}, "training": {"gpus": 1}}, "damaged: training.updates is"),
        ("a/CoLA/lr1/seed1", "{", "not JSON"),
        ("a/CoLA/lr1/seed1", {"all": 1}, "not from posenc predict"),
        ("a/Cola/lr1/seed1", {"scores": {}}, "no task is called Cola"),
        ("a/CoLA/lrx/seed1", {"scores": {}}, "'x' is not a learning rate"),
        ("a/CoLA/lrinf/seed1", {"scores": {}}, "'inf' is not a learning rate"),
    ],
)
def test_foreign_and_damaged_results_are_refused(runs, place, content, message):
    folder = runs(f"{place}/score.json", content)
    with pytest.raises(UsageError, match=message):
        read_cells(folder, fine_tuning="lr" in place)


@pytest.mark.parametrize("options", ["", "--position-max-shift 40", "shape 40"])
def test_a_row_without_encoding_is_refused(runs, options):
    with pytest.raises(UsageError, match="v/a/row: expected `encoding"):
        read_cells(runs("v/a/seed1/settings", options=options))


def test_a_row_without_its_file_is_refused(runs, tmp_path):
    folder = runs("v/a/seed1/settings")
    (tmp_path / "v" / "a" / "row").unlink()
    with pytest.raises(UsageError, match="cannot read .*v/a/row"):
        read_cells(folder)


@pytest.mark.parametrize("other", [score(sentences=4), score(signature="tok:intl|version:2.6.0")])
def test_translations_that_cannot_be_compared_are_refused(runs, other):
    runs("vanilla/a/seed1/score.json", result(news=score()))
    folder = runs("vanilla/b/seed2/score.json", result(news=other))
    with pytest.raises(UsageError, match="vanilla/b/seed2 cannot be compared with vanilla/a/seed1"):
        read_cells(folder)


def test_other_settings_and_versions_may_differ(runs):
    runs("vanilla/a/seed1/score.json", result(news=score()))
    runs("vanilla/a/seed2/score.json", {"tests": {"news": score(signature="tok:13a|version:2.4")}})
    assert len(read_cells(runs("interpolate/a/seed1/score.json", result(news=score(1))))) == 3


EN = {"valid-en": {"accuracy": 1.0}}


@pytest.mark.parametrize("other", [{**EN, "test-th": {"accuracy": 1.0}}, {"valid-en": {"f1": 1.0}}])
def test_fine_tunings_scored_on_other_data_are_not_compared(runs, other):
    runs("a/XNLI/lr1/seed1/score.json", {"scores": EN})
    assert (
        len(read_cells(runs("a/XNLI/lr1/seed2/score.json", {"scores": {**EN, "test": {}}}), True))
        == 2
    )
    folder = runs("b/XNLI/lr1/seed1/score.json", {"scores": other})
    with pytest.raises(UsageError, match="b/XNLI/lr1/seed1 cannot be compared with a/XNLI/lr1/se"):
        read_cells(folder, fine_tuning=True)


def test_a_folder_without_cells_is_refused(tmp_path):
    with pytest.raises(UsageError, match="has no cells <setting>/<row>/seed<n>"):
        read_cells(str(tmp_path))
    with pytest.raises(UsageError, match="has no cells <row>/<task>/lr<lr>/seed<n>"):
        read_cells(str(tmp_path), fine_tuning=True)

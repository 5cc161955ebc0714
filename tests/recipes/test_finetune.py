"""The fine-tuning recipes' grid of cells, with stand-ins for what trains and predicts."""

import json
import shutil
from itertools import groupby

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert.xtreme import BENCHMARKS, SENTENCE_PAIRS, find_questions
from fairseq_posenc.tools.tables.cells import read_cells


@pytest.fixture
def recipe(finetuning):
    return finetuning("first")


@pytest.fixture
def other(finetuning):
    return finetuning("second")


def test_a_grid_has_a_cell_per_row_task_learning_rate_and_seed(recipe):
    recipe("--lrs", "1e-5,2e-5", "--seeds", "1,2", "--tasks", "CoLA,RTE")
    assert len(list(recipe.runs.rglob("score.json"))) == 8
    cells = read_cells(str(recipe.runs), fine_tuning=True)
    assert {(one.setting, one.row, one.options, one.lr, one.seed) for one in cells} == {
        (task, "a", "learned", lr, seed)
        for task in ("CoLA", "RTE") for lr in ("1e-5", "2e-5") for seed in "12"
    }  # fmt: skip


def test_a_finished_grid_runs_nothing_and_grows_by_what_is_new(recipe):
    recipe()
    before, score = recipe.updates(), recipe.score()
    assert "1 finished before" in recipe()
    assert recipe.updates() == before
    recipe("--seeds", "1,2")
    assert {folder for folder, *_ in recipe.updates()[len(before) :]} == {"a/CoLA/lr1e-5/seed2"}
    assert recipe.score() == score


@pytest.mark.parametrize("update", [2, 5, 8])
def test_a_killed_cell_ends_with_the_same_result_and_repeats_no_checkpoint(recipe, other, update):
    recipe()
    other.kill_at(update)
    assert "see" in other(status=1)
    assert not (other.runs / "a/CoLA/lr1e-5/seed1/score.json").exists()
    other()
    assert other.score() == recipe.score()
    again = update // 3 * 3 + 1 if update % 3 else update - 2
    assert [int(done) for _, done, *_ in other.updates()] == [
        *range(1, update + 1), *range(again, 9)
    ]  # fmt: skip


def test_half_a_last_checkpoint_starts_the_cell_afresh(recipe, other):
    recipe()
    other.kill_at(5)
    other(status=1)
    folder = other.runs / "a/CoLA/lr1e-5/seed1"
    (folder / "checkpoint_last.pt").write_text("half")
    (folder / "checkpoint_best.pt").write_text("newer than the last")
    other()
    assert other.score() == recipe.score()
    aside = {path.read_text() for path in folder.glob("*.unusable")}
    assert aside == {"half", "newer than the last"}


def test_an_error_of_a_moment_stops_the_recipe_and_loses_nothing(recipe, other):
    recipe()
    other.kill_at(5)
    other(status=1)
    folder = other.runs / "a/CoLA/lr1e-5/seed1"
    before = {path.name: path.read_bytes() for path in folder.glob("checkpoint*")}
    (other.home / "out of memory").touch()
    printed = other(status=1).splitlines()
    assert printed[-2].endswith("cannot read checkpoint: Cannot allocate memory")
    assert {path.name: path.read_bytes() for path in folder.glob("checkpoint*")} == before
    (other.home / "out of memory").unlink()
    other()
    assert other.score() == recipe.score() and len(other.updates()) == len(recipe.updates()) + 2


def test_a_killed_cell_is_continued_elsewhere_and_on_another_device(recipe, other):
    recipe()
    other.kill_at(5)
    other(status=1)
    moved = other.runs.rename(other.home / "run2")
    other.runs.symlink_to("run2")
    (other.home / "text").rename(other.home / "text2")
    other("--run-dir", f"{moved}/", "--text", other.home / "text2", "--device", "cuda",
          CUDA_VISIBLE_DEVICES="3")  # fmt: skip
    assert other.score() == recipe.score() and len(other.updates()) == len(recipe.updates()) + 2


def test_other_data_or_subwords_do_not_mix_into_a_grid(recipe):
    (recipe.home / "CoLA").mkdir()
    (recipe.home / "CoLA" / "train.tsv").write_text("a")
    recipe()
    for name in ("CoLA/train.tsv", "text/dict.txt"):
        before = (recipe.home / name).read_text()
        (recipe.home / name).write_text("another")
        assert "data/CoLA was made with other settings (then: --raw-files" in recipe(status=1)
        (recipe.home / name).write_text(before)
    assert "1 finished before" in recipe()


def test_a_cell_killed_while_predicting_is_not_trained_again(recipe):
    recipe()
    before, score = recipe.updates(), recipe.score()
    folder = recipe.runs / "a/CoLA/lr1e-5/seed1"
    (folder / "score.json").unlink()
    (folder / "checkpoint_best.pt").write_text(score["of"])
    recipe()
    assert recipe.updates() == before and recipe.score() == score


def test_checkpoints_of_finished_cells_go_unless_they_are_to_be_kept(recipe, other):
    recipe()
    assert not list(recipe.runs.rglob("checkpoint*.pt"))
    other("--keep-checkpoints", "yes")
    assert len(list(other.runs.rglob("checkpoint*.pt"))) == 2


def test_a_submission_predicts_the_test_sets_of_all_tasks_or_says_what_is_missing(recipe):
    recipe("--keep-checkpoints", "yes")
    before = recipe.updates()
    assert set(recipe.score()["scores"]) == {"valid"}
    recipe("--submission")
    assert set(recipe.score()["scores"]) == {"valid", "test"} and recipe.updates() == before
    last = recipe("--submission", "--stage", "6", "--stop-stage", "6", status=1).splitlines()[-1]
    assert "no submission of a: the leaderboard wants all, CoLA (1 rows in" in last
    assert "instead of 1063), SST-2 (no model of SST-2)" in last
    assert not list(recipe.runs.glob("a/submission*"))


def test_what_a_deleted_model_should_predict_is_refused_before_anything_is_run(recipe):
    recipe()
    told = recipe("--submission", "--seeds", "2,1", status=1)
    assert "error: 1 finished cells lack predictions, and have no model any more" in told
    assert not (recipe.runs / "a/CoLA/lr1e-5/seed2").exists()


@pytest.mark.parametrize(
    "options",
    [["--batch", "16"], ["--interval", "7"], ["--epochs", "9"], ["--", "--dropout", "0.2"],
     ["--encodings", "a=shaw"]],
)  # fmt: skip
def test_other_settings_do_not_mix_into_a_grid(recipe, options):
    recipe()
    before = recipe.updates()
    assert "was made with other settings" in recipe(*options, status=1)
    assert recipe.updates() == before


def test_seeds_of_other_epochs_are_not_of_one_table(recipe):
    twice = "--", "--dropout", "0.2"
    recipe(*twice)
    assert len(read_cells(str(recipe.runs), fine_tuning=True)) == 1
    recipe("--seeds", "2", "--epochs", "9", *twice)
    with pytest.raises(UsageError, match=r"--max-epoch on CoLA differ \(9 and 8\); fine-tune"):
        read_cells(str(recipe.runs), fine_tuning=True)


def test_another_model_does_not_mix_into_a_row(recipe):
    recipe()
    (recipe.home / "model.pt").write_text("another model")
    assert "was made with other settings" in recipe(status=1)


@pytest.mark.parametrize("downloads", [False, True])
def test_raw_files_may_go_once_the_data_are_made(finetuning, downloads):
    recipe = finetuning("home", "recipes/xtreme/run.sh")
    raw = recipe.runs / "raw" if downloads else recipe.home / "xtreme"
    files = [file.path for file in find_questions("", official=True)[0]]
    for name in (*files, "squad/train-v1.1.json", "squad/dev-v1.1.json",
                 *(places[0] for places in SENTENCE_PAIRS.values())):  # fmt: skip
        (raw / name).parent.mkdir(exist_ok=True, parents=True)
        (raw / name).write_text(name)
    options = "--raw-dir", raw, "--tasks", "XNLI,SQuAD", "--stop-stage", "3"
    recipe(*options)
    shutil.rmtree(raw)
    if downloads:
        options = "--raw-dir", "", *options[2:]
    count = len(recipe.commands())
    recipe(*options)
    assert [program for program, *_ in recipe.commands()[count:]] == ["lib"]


def test_a_row_without_a_model_is_named(recipe):
    printed = recipe("--encodings", "a=learned,b=shaw", status=1)
    assert "there is no model of b" in printed and "--pretrain" in printed
    assert "--pretrained a=…: the rows are c" in recipe("--encodings", "c=learned", status=1)


def test_a_pretraining_that_has_not_finished_is_told(recipe):
    folder = recipe.home / "pre/b/seed1"
    folder.mkdir(parents=True)
    for place in (recipe.home, folder):
        (place / "cell.json").write_text("{}")
    (folder / "checkpoint_last.pt").write_text("model")
    words = "--encodings", "a=learned,b=shaw", "--pretrain-dir", str(recipe.home / "pre")
    printed = recipe(*words, status=1)
    assert f"warning: the pre-training in {recipe.home} has not finished" in printed
    assert f"the pre-training in {folder} has not finished: start recipes/rel_scalar" in printed
    for place in (recipe.home, folder):
        (place / "train.done").touch()
    assert "has not finished" not in recipe(*words)


def test_each_gpu_has_one_cell_at_a_time(recipe):
    seeds = "1,2,3,4,5"
    recipe("--device", "cuda", "--seeds", seeds, CUDA_VISIBLE_DEVICES="3,7")
    lines = recipe.updates()
    assert {gpu for _, _, gpu, _ in lines} == {"3", "7"}
    for gpu in "37":
        runs = [folder for folder, _ in groupby(line[0] for line in lines if line[2] == gpu)]
        assert len(runs) == len(set(runs))


def test_questions_are_learned_in_english_and_asked_in_every_language(finetuning):
    recipe = finetuning("home", "recipes/xtreme/run.sh")
    for name in (
        "squad/train-v1.1.json", "squad/dev-v1.1.json",
        "xquad/xquad.de.json", "xquad/xquad.ro.json",
        "mlqa/test/test-context-zh-question-zh.json", "mlqa/test/test-context-zh-question-en.json",
        "tydiqa/tydiqa.goldp.ar.dev.json",
    ):  # fmt: skip
        (recipe.home / name).parent.mkdir(exist_ok=True, parents=True)
        (recipe.home / name).touch()
    assert "XQuAD: 1 of 11 languages" in recipe("--tasks", "SQuAD")
    splits = {path.stem: json.loads(path.read_text()) for path in recipe.runs.glob("data/*/*.json")}
    prepared = {name: (about["language"], about["metric"]) for name, about in splits.items()}
    assert prepared == {
        "train": ("en", "squad"),
        "valid": ("en", "squad"),
        "xquad-de": ("de", "squad"),
        "mlqa-zh": ("zh", "mlqa"),
        "tydiqa-ar": ("ar", "squad"),
    }
    assert set(recipe.score("SQuAD")["scores"]) == set(prepared) - {"train"}


def test_raw_files_that_are_not_where_they_should_be_end_the_recipe(finetuning):
    recipe = finetuning("home", "recipes/xtreme/run.sh")
    assert "holds none of MNLI/train.tsv, " in recipe("--tasks", "XNLI", status=1)
    (recipe.home / "squad").mkdir()
    (recipe.home / "squad" / "train-v1.1.json").touch()
    assert "no files of XQuAD, MLQA or TyDiQA-GoldP in" in recipe("--tasks", "SQuAD", status=1)
    assert not (recipe.runs / "data").exists()


@pytest.mark.parametrize(
    "mnli, xnli", [*zip(SENTENCE_PAIRS["MNLI"][:2] * 2, SENTENCE_PAIRS["XNLI"]),
                   (SENTENCE_PAIRS["MNLI"][-1], SENTENCE_PAIRS["XNLI"][-1])],
)  # fmt: skip
def test_xnli_is_learned_from_mnli(finetuning, mnli, xnli):
    recipe = finetuning("home", "recipes/xtreme/run.sh")
    for name in mnli, xnli:
        (recipe.home / name).parent.mkdir(parents=True, exist_ok=True)
        (recipe.home / name).touch()
    printed = recipe("--tasks", "XNLI")
    assert "valid-en: accuracy 33.33\n" in printed and "it has learned nothing\n" in printed
    tests = ", ".join(sorted(BENCHMARKS["XNLI"].splits()))
    assert f"predicted, not scored, as without labels: {tests}\n" in printed
    assert {data for *_, data in recipe.updates()} == {"MNLI"}
    assert recipe.score("XNLI")["data"] == "XNLI"
    assert set(recipe.score("XNLI")["scores"]) == {"valid-en", *BENCHMARKS["XNLI"].splits()}

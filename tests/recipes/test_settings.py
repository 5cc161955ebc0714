"""What a run folder was made from: other text, options or lost parts never pass for what is there.

The recipes are real; what prepares, trains and scores is a stand-in that leaves the files behind.
"""

import gzip
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fairseq_posenc.version import __version__
from recipes.lib import settings
from tests.recipes.conftest import OWN, STAND_IN, log, texts_in, trainings

ODD = ["a b", "it's'a\"b\t$(touch pwned)x{seed}é`id`;&|<>*?\\", "-lead"]


@pytest.mark.parametrize(
    "options, change, told",
    [
        ([], "train.en", "--text"),
        (["--stage", "3"], "test.fr", "--text"),
        (["--bins", "3,7"], "", "--bins 3,7"),
        (["--test", "other"], "", "--text"),
        (["--stage", "3", "--test", "other"], "", "--text"),
        (["--longest", "9"], "", "--max-length 9"),
        (["--bpe", "300"], "", "--bpe 300"),
        (["--", "--lr", "0.1"], "", "--lr 0.1"),
        (["--encodings", "shaw=t5"], "", "t5"),
    ],
)  # fmt: skip
def test_started_again_with_something_else_it_says_what_differs_and_stops(
    own, tmp_path, options, change, told
):
    printed, status = own()
    assert status == 0 and "1 cells, 0 finished before" in printed, printed
    before = len(log(tmp_path))
    options = [tmp_path / word if word == "other" else word for word in options]
    if change:
        (tmp_path / change).write_text("changed\n")
        shutil.rmtree(tmp_path / "run/bin")
    printed, status = own(*options)
    assert status == 1 and "was made with other settings" in printed and told in printed
    assert len(trainings(tmp_path)) == 1 and len(log(tmp_path)) <= before + 1


def test_started_again_as_before_it_repeats_nothing_but_the_report(own, tmp_path):
    own()
    printed, status = own(run="run/")
    assert status == 0 and "1 cells, 1 finished before" in printed
    assert len(trainings(tmp_path)) == 1
    moved = (tmp_path / "run").rename(tmp_path / "moved")
    assert "1 finished before" in own(run=moved.name)[0]
    (tmp_path / "test.en").unlink()  # what is prepared needs it no more
    assert "1 finished before" in own("--stage", "3", run=moved.name)[0]


def test_a_cell_that_was_finished_without_bits_per_token_gains_them_and_a_score(own, tmp_path):
    own()
    cell = tmp_path / "run/shaw/seed1"
    (cell / "references.out").unlink()
    assert "--score-reference" not in (cell / "settings").read_text()
    before = len(log(tmp_path))
    printed, status = own()
    assert status == 0, printed
    forced, score, *_ = log(tmp_path)[before:]
    assert forced[0] == "fairseq-generate" and "--score-reference" in forced
    assert score[score.index("--reference-scores") + 1] == str(cell / "references.out")
    assert (cell / "references.out").exists() and len(trainings(tmp_path)) == 1


def test_with_more_epochs_a_run_goes_on_and_its_scores_are_made_again(own, tmp_path):
    own("--epochs", "3")
    cell = tmp_path / "run/shaw/seed1"
    (cell / "train.log").write_text("before\n")
    printed, status = own("--epochs", "7", "--seeds", "1,2", "--stop-stage", "3")
    assert status == 0 and "1 of them go on from fewer epochs" in printed, printed
    again = next(
        words for words in trainings(tmp_path)[1:] if words[words.index("--seed") + 1] == "1"
    )
    assert again[again.index("--max-epoch") + 1] == "7"
    assert (cell / "train.log").read_text().startswith("before\n")
    assert not (cell / "score.json").exists() and not (cell / "average.pt").exists()
    printed, status = own("--epochs", "7", "--seeds", "1,2")
    assert status == 0 and (cell / "score.json").exists() and len(trainings(tmp_path)) == 3
    [score] = [words for words in log(tmp_path) if words[:2] == ["posenc", "score"]][-1:]
    assert "epochs=7" in score


def test_jobs_of_a_cell_go_on_with_more_epochs_one_by_one(own, work, tmp_path):
    own("--epochs", "3", "--seeds", "1,2")
    words = [*OWN[:-4], *texts_in(tmp_path), "--epochs", "7", "--seeds", "1,2", "--slurm"]
    script, status = work(*words, "--run-dir", tmp_path / "run")
    assert status == 0 and script.count("--epochs 7 ") == 4, script
    more = "--epochs", "7", "--seeds", "1,2"
    job = *more, "--stage", "3", "--stop-stage", "5", "--hours", "24", "--cell"
    printed, status = own(*job, "1")
    assert status == 0 and "1 of them go on from fewer epochs" in printed, printed
    # a job of before that SLURM starts late
    printed, status = own("--epochs", "3", "--seeds", "1,2", *job[len(more) :], "1")
    assert status == 1 and "was made with other settings (then: --max-epoch 7" in printed
    printed, status = own(*more, "--stage", "6")
    assert status == 0 and "note: 1 of 2 cells are not finished" in printed, printed
    assert own(*job, "2")[1] == 0 and own(*more, "--stage", "6")[1] == 0
    made = [(words[words.index("--seed") + 1], words[words.index("--max-epoch") + 1])
            for words in trainings(tmp_path)]  # fmt: skip
    assert sorted(made[:2]) == [("1", "3"), ("2", "3")] and made[2:] == [("1", "7"), ("2", "7")]
    compared = [words for words in log(tmp_path) if words[:2] == ["posenc", "compare"]]
    assert [sum("score.json" in word for word in words) for words in compared] == [2, 1, 2]


@pytest.mark.parametrize("options, told", [
    (["--epochs", "2"], "was made with other settings (then: --max-epoch 3"),
    # a table alone, too
    (["--epochs", "2", "--stage", "6"], "was made with other settings (then: --max-epoch 3"),
    (["--epochs", "3", "--stage", "6", "--", "--lr", "1"], "was made with other settings"),
    (["--epochs", "3", "--stage", "6", "--encodings", "shaw=shaw --position-max-distance 3"],
     "was made with other settings"),
    (["--epochs", "4", "--stage", "6"], "no cell is finished"),
    (["--epochs", "4", "--keep", "1"], "was made with other settings"),
    (["--epochs", "4", "--", "--lr", "1"], "was made with other settings"),
])  # fmt: skip
def test_results_of_other_epochs_are_not_taken_for_these(own, tmp_path, options, told):
    own("--epochs", "3", "--keep", "2")
    options = options if "--keep" in options else ["--keep", "2", *options]
    printed, status = own(*options)
    assert status == 1 and told in printed, printed
    assert (tmp_path / "run/shaw/seed1/score.json").exists() and len(trainings(tmp_path)) == 1


def test_a_score_notes_the_epochs_that_the_training_has(own, tmp_path):
    own("--epochs", "3", "--keep", "2", "--", "--max-epoch=9")
    [score] = [words for words in log(tmp_path) if words[:2] == ["posenc", "score"]]
    assert "epochs=9" in score and "epochs=3" not in score


def test_how_many_pairs_longest_leaves_out_is_told_and_goes_into_the_report(own, tmp_path):
    prepare = tmp_path / "bin" / "posenc"
    told = "train: 3,120 of 6,000 pairs kept; 2,880 (48.0%) left out: 2,880 too long"
    prepare.write_text(f"{STAND_IN}print({told!r})\n")
    printed, status = own("--longest", "40")
    words = "2,880 (48.0%) of 6,000 training pairs were left out: 2,880 too long (--longest 40)"
    assert status == 0 and f"note: {words}" in printed, printed
    [data] = [words for words in log(tmp_path) if words[:3] == ["posenc", "prepare", "translation"]]
    assert "--clean-valid" in data
    [score] = [words for words in log(tmp_path) if words[:2] == ["posenc", "score"]]
    assert score[score.index("--bins") + 1] == "40,auto"
    assert score[score.index("--length-of") + 1] == "longer"
    [report] = [words for words in log(tmp_path) if words[:2] == ["posenc", "compare"]]
    assert report[report.index("--remark") + 1].startswith(words)
    assert "--longest 40,none has both" in report[report.index("--remark") + 1]
    # of a preparation that was cut short, the rest says nothing of pairs
    (tmp_path / "run/data.done").unlink()
    prepare.write_text(STAND_IN)
    assert f"note: {words}" in own("--longest", "40")[0]


def test_each_encoding_is_trained_on_all_lengths_too_and_stands_in_the_same_report(own, tmp_path):
    own("--longest", "40")
    before = len(log(tmp_path))
    settings_of_first = (tmp_path / "run/settings").read_text()
    printed, status = own("--longest", "40, none")
    assert status == 0 and "2 cells, 1 finished before" in printed, printed
    words = log(tmp_path)[before:]
    limited, everything = [
        line for line in words if line[:3] == ["posenc", "prepare", "translation"]
    ]
    assert limited[limited.index("--max-length") + 1] == "40" and "--max-length" not in everything
    assert everything[everything.index("--subwords") + 1] == limited[limited.index("--output") + 1]
    [train] = [line for line in words if line[0] == "fairseq-train"]
    assert train[1] == everything[everything.index("--output") + 1]
    [score] = [line for line in words if line[:2] == ["posenc", "score"]]
    assert "longest=none" in score and score[score.index("--bins") + 1] == "40,auto"
    [report] = [line for line in words if line[:2] == ["posenc", "compare"]]
    assert [word.partition("=")[0] for word in report if "score.json" in word] == [
        "shaw",
        "shaw-all",
    ]
    assert (tmp_path / "run/settings").read_text() == settings_of_first


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("train: 60 pairs", 1),
        ("train: 58 of 60 pairs kept; 2 (3.3%) left out: 2 with an empty side", 1),
        (
            "train: 58 of 60 pairs kept; 2 (3.3%) left out: 2 longer than --max-length 40 subwords",
            0,
        ),
    ],
)
def test_a_limit_that_leaves_nothing_out_trains_nothing_twice(own, tmp_path, line, status):
    (tmp_path / "bin" / "posenc").write_text(f"{STAND_IN}print({line!r})\n")
    printed, found = own("--longest", "40,none")
    assert found == status and printed.count("would be the same") == status, printed
    assert len(trainings(tmp_path)) == (0 if status else 2)
    assert own("--longest", "40,none", "--plan")[1] == 0


@pytest.mark.parametrize("longest", ["none", "40,50", "0", "40,none,none"])
def test_a_limit_of_another_form_is_refused(own, longest):
    printed, status = own("--longest", longest)
    assert status == 1 and "--longest is N or N,none" in printed and printed.count("\n") == 1


@pytest.mark.parametrize("recipe", ["lm", "python_docs"])
def test_other_text_in_the_same_folder_is_refused(work, tmp_path, recipe):
    other = tmp_path / "other"
    other.mkdir()
    for file in tmp_path.glob("*.*"):
        (other / file.name).write_text(f"another {file.name}\n")
    command = [f"recipes/{recipe}.sh", "--run-dir", tmp_path / "run", "--seeds", "1"]
    command += ["--language", "en"] if recipe == "lm" else []
    command += ["--encodings", "shaw", "--stage", "2", "--stop-stage", "5", "--data-dir"]
    printed, status = work(*command, tmp_path)
    assert status == 0, printed
    printed, status = work(*command, other)
    assert status == 1 and "was made with other settings (then: --text" in printed


def test_a_setting_and_other_files_have_a_folder_of_their_own(work, tmp_path):
    for name in ("raw", "other"):
        (tmp_path / name).mkdir()
        for split in ("train", "val", "test_2016_flickr"):
            for language in ("en", "de"):
                path = tmp_path / name / f"{split}.{language}.gz"
                path.write_bytes(gzip.compress(f"{name} {split}\n".encode()))
    command = ["recipes/multi30k.sh", "--stage", "2", "--stop-stage", "2"]
    command += ["--run-dir", tmp_path / "run", "--raw-dir"]
    assert work(*command, tmp_path / "raw")[1] == 0
    for options in (["--setting", "interpolate"], ["--setting", "extrapolate"]):
        printed, status = work(*command, tmp_path / "raw", *options)
        assert status == 1 and printed.count("\n") == 1
        assert f"(then: --setting vanilla; now: {options[0]} {options[1]}" in printed
        assert "give another --run-dir" in printed and "delete" not in printed
    printed, status = work(*command, tmp_path / "other")
    assert status == 1 and printed.count("\n") == 1 and "(then: --text " in printed


def test_other_subwords_in_the_same_folder_are_refused(work, tmp_path):
    command = ["recipes/longer_inputs.sh", "--source-lang", "en", "--target-lang", "fr"]
    command += texts_in(tmp_path)
    command += ["--model", tmp_path / "test.txt", "--run-dir", tmp_path / "run", "--seeds", "1"]
    command += ["--encodings", "shaw", "--stage", "2", "--stop-stage", "4", "--subwords"]
    for name in "one", "two":
        (tmp_path / name).mkdir()
        (tmp_path / name / "sentencepiece.model").write_text(name)
    printed, status = work(*command, tmp_path / "one")
    assert status == 0, printed
    printed, status = work(*command, tmp_path / "two")
    assert status == 1 and "was made with other settings (then: --subwords" in printed


def test_an_old_score_without_what_it_was_made_from_is_made_again(own, tmp_path):
    own()
    cell = tmp_path / "run/shaw/seed1"
    for path in (*cell.glob("checkpoint*"), *cell.glob("*.done")):
        path.unlink()
    assert "no cell is finished" in own("--stage", "6")[0]
    printed, status = own()
    assert status == 0 and "1 cells, 0 finished before" in printed
    assert len(trainings(tmp_path)) == 2


@pytest.mark.parametrize("name", ["settings", "shaw/settings", "shaw/seed1/settings"])
def test_emptied_settings_are_not_taken_for_those_of_now(own, tmp_path, name):
    own()
    settings_file = tmp_path / "run" / name
    before = settings_file.read_text()
    settings_file.write_text("")
    printed, status = own("--", "--lr", "0.1")
    assert status == 1 and f"{settings_file} is empty, which says with what" in printed, printed
    assert settings_file.read_text() == "" and len(trainings(tmp_path)) == 1
    settings_file.unlink()  # as the message advises
    printed, status = own()
    assert status == 0 and "1 finished before" in printed and settings_file.read_text() == before


@pytest.mark.parametrize("name", ["data.done", "shaw/seed1/cell.json"])
def test_other_emptied_files_are_made_again_and_no_cell_is(own, tmp_path, name):
    own()
    file = tmp_path / "run" / name
    before = file.read_text()
    file.write_text("")
    printed, status = own()
    assert status == 0 and file.read_text() == before, printed
    assert "1 finished before" in printed and len(trainings(tmp_path)) == 1
    assert ("stage 2: data: finished in" in printed) == (name == "data.done")


@pytest.mark.parametrize("name", ODD)
def test_odd_names_of_folders_work(own, tmp_path, name):
    printed, status = own(run=name, LC_ALL="C")
    place = Path(name if name.startswith("-") else tmp_path / name)
    assert status == 0, printed
    (words,) = trainings(tmp_path)
    folder = words[words.index("--save-dir") + 1]
    assert (
        folder == f"{'./' * name.startswith('-')}{place}/shaw/seed1" and not Path("pwned").exists()
    )
    assert Path(folder, "score.json").exists()
    if name.startswith("-"):
        shutil.rmtree(f"./{name}")


@pytest.mark.parametrize("name", ["a\nb", "a:b", "a,b"])
def test_a_folder_that_fairseq_would_divide_is_refused_in_one_line(own, name):
    printed, status = own(run=name)
    assert (
        status == 1 and printed.count("\n") == 1 and "a run folder has no colon, comma" in printed
    )


@pytest.mark.parametrize("name", [name for name in ODD if name != "-lead"])
def test_a_plan_with_odd_names_run_by_a_shell_makes_what_the_recipe_makes(
    own, environment, tmp_path, name
):
    printed, status = own("--plan", run=name)
    assert status == 0 and not (tmp_path / name).exists()
    subprocess.run(["bash", "-e", "-c", printed], check=True, env={**os.environ, **environment})
    planned = log(tmp_path)
    (tmp_path / "log").unlink()
    shutil.rmtree(tmp_path / name)
    own(run=name)
    assert planned == log(tmp_path) and not Path("pwned").exists()


def test_odd_names_of_text_work(own, work, tmp_path):
    odd = tmp_path / "é {seed} '$(touch pwned)"
    odd.mkdir()
    for file in tmp_path.glob("*.*"):
        shutil.copy(file, odd)
    printed, status = work(*OWN, *texts_in(odd), "--run-dir", tmp_path / "run", "--stage", "2")
    assert status == 0 and not Path("pwned").exists(), printed
    prepare = next(words for words in log(tmp_path) if words[1:3] == ["prepare", "translation"])
    assert prepare[prepare.index("--train") + 1] == str(odd / "train")


def test_a_run_keeps_its_version(own, tmp_path):
    own()
    assert f"--version {__version__}" in settings.read_lines(str(tmp_path / "run/settings"))

"""Cells of a recipe: their order, folders and commands, and what is run of them and when."""

import re
import subprocess
import sys
import time

import pytest

from recipes.lib import cells

LIBRARY = """set -euo pipefail; source recipes/lib/stages.sh; source recipes/lib/rows.sh
source recipes/lib/cells.sh; DEVICE=cpu JOBS=2 PLAN=no"""


@pytest.fixture
def sheet(tmp_path):
    """A function that writes the lines of a sheet, and returns its cells."""

    def sheet(*lines, folder="{row}/seed{seed}"):
        path = tmp_path / "sheet"
        path.write_text("\n".join([*lines, f"folder '{tmp_path}/{folder}'"]))
        return cells.read_sheet(str(path))

    return sheet


@pytest.fixture
def recipe(tmp_path):
    """A function that makes a script of a recipe with rows a and b and these steps, and its end."""

    def recipe(*steps, end="all_cells train", before=""):
        lines = [f"sheet step {step}" for step in steps]
        return "\n".join([
            LIBRARY, f"RUN_DIR={tmp_path}/run ROWS=(a=shaw b=t5) SEEDS=1", before,
            'open_run_dir "$RUN_DIR"', "new_sheet; describe_rows", *lines, end,
        ])  # fmt: skip

    return recipe


def test_a_table_that_is_cut_short_has_whole_seeds(sheet):
    block = "seeds {}", "row shaw shaw", "row k shape --position-max-shift 40"
    en_de = ["block en-de", block[0].format("1 2"), *block[1:], "folder en-de/{row}/{seed}"]
    found = sheet(*en_de, "block de-en", block[0].format("1"), *block[1:])
    assert [cell.name for cell in found] == [
        "en-de shaw seed 1", "en-de k seed 1", "de-en shaw seed 1", "de-en k seed 1",
        "en-de shaw seed 2", "en-de k seed 2",
    ]  # fmt: skip


def test_words_of_a_command_are_those_of_the_cell(sheet, tmp_path):
    (cell,) = sheet(
        "block ''", "seeds 7", "lrs 1e-5", "row k shape --position-max-shift 40",
        "value k model m.pt", "settings {encoding} {model}",
        "step train x train {spec} '{\"a\": 1}' --e {encoding} --s {seed} {lr} {model} '>' x.out",
    )  # fmt: skip
    (step,) = cell.steps
    assert step.output == "x.out" and cell.folder == tmp_path / "k/seed7"
    assert step.command == [
        "train", "k=shape --position-max-shift 40", '{"a": 1}', "--e", "shape",
        "--position-max-shift", "40", "--s", "7", "1e-5", "m.pt",
    ]  # fmt: skip
    assert cell.settings == ["shape", "--position-max-shift", "40", "m.pt"]
    assert cell.row_folder == tmp_path / "k"
    *_, command = cells.plan([cell])
    typed = subprocess.check_output(["bash", "-c", f"printf '%s\\n' {command.split(' >')[0]}"])
    assert typed.decode().splitlines() == step.command


def test_what_stands_before_a_mark_that_is_there_is_not_repeated(run, recipe, tmp_path):
    log = tmp_path / "log"
    steps = [f"train {name} bash -c 'echo {name}-{{row}} >>{log}; touch {{folder}}/{name}'"
             for name in ("one", "two", "three")]  # fmt: skip
    script = recipe(*steps, f"train - bash -c 'echo tidy-{{row}} >>{log}'")
    run("bash", "-c", script)
    names = ["one", "two", "three", "tidy"]
    for row in "ab":
        lines = [line for line in log.read_text().split() if line.endswith(row)]
        assert lines == [f"{name}-{row}" for name in names]
    log.unlink()
    (tmp_path / "run/a/seed1/one").unlink()
    (tmp_path / "run/a/seed1/three").unlink()
    run("bash", "-c", script)
    assert sorted(log.read_text().split()) == ["three-a", "tidy-a", "tidy-b"]


def test_a_failure_is_named_ends_the_recipe_and_leaves_the_other_cells_and_no_half_output(
    start, recipe, tmp_path
):
    step = "train x.out bash -c 'echo half; echo told why >&2; [[ {row} == b ]]' '>' x.out"
    process = start("bash", "-c", recipe(step, end="all_cells train; echo behind"))
    printed = process.communicate()[0]
    assert process.returncode == 1 and "behind" not in printed
    assert re.search(r"\[a seed 1\] error: bash failed, see .*/a/seed1/bash.log: told why", printed)
    assert "not all cells are done" in printed
    assert (tmp_path / "run/b/seed1/x.out").read_text() == "half\n"
    assert not list((tmp_path / "run/a/seed1").glob("x.out*"))


def test_a_training_that_diverges_is_stopped_in_one_line_if_that_is_asked(start, recipe, tmp_path):
    program = tmp_path / "fairseq-train"
    log = "| train_inner | epoch 001: loss=%s, wps=1.0, num_updates=%s,\\n"
    program.write_text(f"""#!/bin/bash
        printf '{log}' 7 100; [[ -z $1 ]] || printf '{log}' 9 200; [[ -z $1 ]] || exec sleep 60""")
    program.chmod(0o755)
    step = f"train train.done {program} {{}} --warmup-updates 100"
    ask = "export POSENC_STOP_DIVERGED=yes"

    def train(given, before):
        process = start("bash", "-c", recipe(step.format(given), before=before))
        return process.communicate()[0], process.returncode

    printed, status = train("diverge", ask)
    assert status == 1 and "[a seed 1] error: the loss is 9.00 at update 200, after" in printed
    assert "training failed" not in printed and not list(tmp_path.glob("run/*/*/train.done"))
    assert train("''", "")[1] == 0  # the same log goes on


def test_a_later_stage_waits_for_the_one_before(run, recipe):
    steps = "train x.done true", "score score.json touch {folder}/score.json"
    printed = run(
        "bash", "-c", recipe(*steps, end="all_cells score; all_cells train; all_cells score")
    )
    assert printed.count("not yet: true comes before") == 2
    assert "2 cells, 0 finished before" in printed and printed.count("] touch") == 2


def test_a_cell_by_its_number_is_the_only_one(run, fails, recipe, tmp_path):
    step = "train x.done true"
    run("bash", "-c", recipe(step, before="CELL=2"))
    assert not (tmp_path / "run/a").exists() and (tmp_path / "run/b/seed1/x.done").exists()
    assert "--cell is 3, and there are 2" in fails("bash", "-c", recipe(step, before="CELL=3"))


def test_a_second_recipe_in_the_folder_is_refused_in_one_line(start, fails, run, recipe, tmp_path):
    first = start("bash", "-c", recipe("train x.done bash -c 'touch {folder}/begun; sleep 8'"))
    while not (tmp_path / "run/a/seed1/begun").exists():
        assert first.poll() is None
        time.sleep(0.05)
    other = recipe("train x.done true")
    told = "another recipe is at work in"
    assert told in fails("bash", "-c", other) and told in fails("bash", "-c", f"CELL=2; {other}")
    first.kill()
    first.wait()
    # its programs still work
    assert fails("bash", "-c", other).count("\n") == 1


def test_cells_by_their_numbers_run_beside_each_other_but_none_twice(
    start, fails, run, recipe, tmp_path
):
    wait = recipe("train x.done bash -c 'touch {folder}/begun; sleep 15'", before="CELL=1")
    first = start("bash", "-c", wait)
    while not (tmp_path / "run/a/seed1/begun").exists():
        assert first.poll() is None
        time.sleep(0.05)
    assert "[a seed 1] error: another run has this cell in hand" in fails("bash", "-c", wait)
    run("bash", "-c", recipe("train x.done true", before="CELL=2"))
    first.kill()


def test_without_file_locks_a_recipe_runs_and_says_so(run, recipe, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/flock").write_text("#!/bin/sh\nexit 71\n")
    (tmp_path / "bin/flock").chmod(0o755)
    before = f"PATH={tmp_path}/bin:$PATH"
    printed = run("bash", "-c", recipe("train x.done true", before=before))
    assert "note: there are no file locks in" in printed and "] true" in printed


# A training that counts to 4 and says what it was given.
TRAIN = """#!/bin/bash
echo "given $*"
echo "2026 | INFO | x | position:stand-in"
echo "2026 | valid | epoch 001 | valid on 'valid' subset | loss 5 | nll_loss 4.5 | num_updates 3"
[[ " $* " != *" --stop-time-hours "* ]] || echo "Stopping due to cumulative_training_time: 1"
"""


@pytest.fixture
def training(recipe, run, start, tmp_path):
    """A function that runs a recipe with stand-ins for what trains and finds checkpoints."""
    (tmp_path / "bin").mkdir()
    found = f"""#!/bin/bash
[[ $2 != *newest_checkpoint ]] || {{ echo asked $* >&2; cat {tmp_path}/newest; exit; }}"""
    for name, text in {
        "fairseq-train": TRAIN,
        "python": f'{found}\nexec {sys.executable} "$@"',
    }.items():
        (tmp_path / "bin" / name).write_text(text + "\n")
        (tmp_path / "bin" / name).chmod(0o755)

    def training(words="", newest="", before=""):
        (tmp_path / "newest").write_text(newest)
        (tmp_path / "run/a/seed1").mkdir(parents=True, exist_ok=True)
        (tmp_path / "run/a/seed1/checkpoint1.pt").touch()
        step = f"train train.done fairseq-train data {words}"
        process = start(
            "bash", "-c", recipe(step, before=f"PATH={tmp_path}/bin:$PATH CELL=1 {before}")
        )
        printed = process.communicate()[0]
        return printed, process.returncode, (tmp_path / "run/a/seed1/train.log").read_text()

    return training


def test_a_training_says_what_one_wants_to_watch(training, tmp_path):
    printed, status, _ = training()
    assert status == 0 and (tmp_path / "run/a/seed1/train.done").exists()
    assert "[a seed 1] position:stand-in\n" in printed
    assert "[a seed 1] update 3: validation nll_loss 4.5\n" in printed


@pytest.mark.parametrize("words, asked", [
    ("", ""), ("--update-freq 4", " --update-freq 4"),
    ("--best-checkpoint-metric bleu --update-freq 4", " --best --update-freq 4"),
])  # fmt: skip
def test_a_training_goes_on_from_its_newest_checkpoint(training, tmp_path, words, asked):
    printed, status, log = training(f"{words} --finetune-from-model m.pt", "some/last.pt\t60\n")
    assert f"newest_checkpoint {tmp_path}/run/a/seed1{asked}\n" in printed and status == 0
    assert log.splitlines()[0] == " ".join(
        f"given data {words} --restore-file some/last.pt".split()
    )


def test_a_training_that_begins_puts_aside_checkpoints_that_fairseq_would_load(training, tmp_path):
    folder = tmp_path / "run/a/seed1"
    folder.mkdir(parents=True)
    (folder / "checkpoint_last.pt").write_text("half")
    log = training("--finetune-from-model m.pt")[2]
    assert log.splitlines()[0] == "given data --finetune-from-model m.pt"
    assert (folder / "checkpoint_last.pt.unusable").exists()


def test_a_training_ends_in_time_with_a_status_of_its_own(training, tmp_path):
    printed, status, log = training(newest="last.pt\t7200\n", before="HOURS=2")
    assert status == 75 and not (tmp_path / "run/a/seed1/train.done").exists()
    # two hours before, and two of this job, of which a quarter is left for what is behind
    hours = float(re.search(r"--stop-time-hours (\S+)", log)[1])
    assert 3.7 < hours <= 3.75 and "the time of this job is up" in printed

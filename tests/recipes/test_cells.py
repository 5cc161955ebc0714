"""Cells of a recipe: their order, words and settings, what is run of them and when."""

import os
import re
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from fairseq_posenc.errors import UsageError
from recipes.lib import runner
from recipes.lib.cell import PlannedCell, Step, placement, plan, shell, variable
from recipes.lib.config import Config, read_options, read_script
from recipes.lib.devices import Devices
from recipes.lib.recipe import TIME_IS_UP
from recipes.lib.rows import read_row
from recipes.lib.running import CellRun


def cell(folder, *steps, row="a", seed="1", setting="", options=("shaw",)):
    place = f"{folder}/{row}/seed{seed}"
    return PlannedCell(setting, row, list(options), seed, "", place, f"{folder}/{row}", steps)


def bash(line, *marks, stage="train", output=""):
    return Step(stage, ["bash", "-c", line], marks, output)


def recipe(jobs=2, number=0, said=None):
    lines = said if said is not None else []
    return SimpleNamespace(
        cell=number, devices=Devices("cpu", jobs), deadline=None, say=lines.append
    )


def test_a_table_that_is_cut_short_has_whole_seeds():
    both = ("en-de", "12"), ("de-en", "1")
    cells = [cell("run", seed=seed, setting=setting, row=row)
             for setting, seeds in both for row in "ab" for seed in seeds]  # fmt: skip
    assert [one.name for one in runner.in_order(cells)] == [
        "en-de a seed 1", "en-de b seed 1", "de-en a seed 1", "de-en b seed 1",
        "en-de a seed 2", "en-de b seed 2",
    ]  # fmt: skip


def test_settings_are_the_words_that_say_what_is_done():
    train = Step(
        "train", ["train", *placement("bin"), "--lr", "1", *placement("--save-dir", "x")], ("a",)
    )
    tidy = Step("train", ["find", "-delete"])
    one = cell("run", train, tidy)._replace(data_fingerprint=["--text", "12"])
    assert one.fingerprint == ["train", "--lr", "1", "--text", "12"]


def test_words_are_typed_for_a_shell_and_variables_of_loops_stay_variables():
    words = ["a b", "it's", "$x", "é", f"lr{variable('lr')}/$(x) {variable('seed')}", "", "-"]
    script = f"lr=1e-5 seed='2 3'; printf '%s\\0' {shell(words)}"
    expected = [*words[:4], "lr1e-5/$(x) 2 3", *words[5:]]
    assert subprocess.check_output(["bash", "-c", script]).decode().split("\0")[:-1] == expected
    lines = list(plan([cell("run/$(x)", seed=variable("seed"))]))
    assert lines[0] == "# cell a, a seed $seed" and """'run/$(x)/a/seed'"$seed" """[:-1] in lines[1]
    told = subprocess.check_output(["bash", "-c", f"seed=7; {lines[2].rpartition(' >')[0]}"])
    assert b'"seed": "7"' in told


def test_what_is_done_is_not_repeated_and_what_was_made_of_something_lost_is(tmp_path, capsys):
    log = tmp_path / "log"
    steps = [bash(f"echo {name} >>{log}; touch {tmp_path}/a/seed1/{name}", name)
             for name in ("one", "two", "three")]  # fmt: skip
    one = cell(tmp_path, *steps, bash(f"echo tidy >>{log}"))
    cell_run = CellRun(one, ["train"], "1 of 1", dict(os.environ))
    assert cell_run.run() == 0 and one.is_finished
    assert log.read_text().split() == ["one", "two", "three", "tidy"]
    log.unlink()
    (tmp_path / "a/seed1/two").unlink()
    assert not one.is_finished and cell_run.run() == 0
    assert log.read_text().split() == ["two", "three", "tidy"]


def test_a_failure_is_named_and_leaves_the_other_cells_and_no_half_output(tmp_path, capsys):
    line = "echo half; echo told why >&2; [[ {} == b ]]"
    cells = [
        cell(tmp_path, bash(line.format(row), "x.out", output="x.out"), row=row) for row in "ab"
    ]
    with pytest.raises(UsageError, match="not all cells are done"):
        runner.run_cells(recipe(), cells, ["train"])
    printed = capsys.readouterr().out
    assert re.search(r"\[a seed 1\] error: bash failed, see .*/a/seed1/bash.log: told why", printed)
    assert (tmp_path / "b/seed1/x.out").read_text() == "half\n"
    assert not list((tmp_path / "a/seed1").glob("x.out*"))


def test_a_later_stage_waits_for_the_one_before(tmp_path, capsys):
    steps = bash("true", "x.done"), bash(f"touch {tmp_path}/a/seed1/y", "y", stage="score")
    one, said = cell(tmp_path, *steps), []
    for stages in ["score"], ["train"], ["score"]:
        runner.run_cells(recipe(said=said), [one], stages)
    assert capsys.readouterr().out.count("not yet: bash comes before") == 1
    assert said == ["1 cells, 0 finished before"] * 3 and one.is_finished


def test_when_the_time_is_up_no_further_cell_begins(tmp_path):
    late = recipe()
    late.deadline = time.time() - 1
    with pytest.raises(SystemExit, match=str(TIME_IS_UP)):
        runner.run_cells(late, [cell(tmp_path, bash("true", "x.done"))], ["train"])
    assert not (tmp_path / "a/seed1/x.done").exists()


def test_a_cell_by_its_number_is_the_only_one(tmp_path):
    cells = [cell(tmp_path, bash("true", "x.done"), row=row) for row in "ab"]
    runner.run_cells(recipe(number=2), cells, ["train"])
    assert not (tmp_path / "a").exists() and cells[1].is_finished
    with pytest.raises(UsageError, match="--cell is 3, and there are 2"):
        runner.run_cells(recipe(number=3), cells, ["train"])


def test_no_cell_is_run_twice_at_a_time(tmp_path, capsys):
    one = cell(tmp_path, bash(f"touch {tmp_path}/begun; sleep 2", "x.done"))
    cell_run = CellRun(one, ["train"], "1 of 1", dict(os.environ))
    thread = threading.Thread(target=cell_run.run)
    thread.start()
    while not (tmp_path / "begun").exists():
        time.sleep(0.05)
    code = (
        "from fairseq_posenc.tools.locks import locked\n"
        f"with locked({one.path('lock')!r}, 0, 'another run has this cell'): pass"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert "another run has this cell" in told.stderr
    thread.join()
    assert one.is_finished


def test_another_job_of_a_cell_leaves_the_settings_as_they_are(tmp_path, capsys):
    """Whatever made what will be there stands beside it."""
    one = cell(tmp_path, bash(f"touch {tmp_path}/begun; sleep 3", "x.done"))
    thread = threading.Thread(target=CellRun(one, ["train"], "1 of 1", dict(os.environ)).run)
    thread.start()
    while not (tmp_path / "begun").exists():
        time.sleep(0.05)
    then = [(tmp_path / name / "settings").read_text() for name in ("a", "a/seed1")]
    others = (
        cell(tmp_path, bash("true", "x.done"), seed="2", options=("t5",)),
        cell(tmp_path, bash("touch $0; : --lr 2", "x.done")),
    )
    for other in others:
        runner.check_cells(recipe(), [other])
    for other in others:
        assert CellRun(other, ["train"], "1 of 1", dict(os.environ)).run() == 1
    assert capsys.readouterr().out.count("was made with other settings") == 2
    assert then == [(tmp_path / name / "settings").read_text() for name in ("a", "a/seed1")]
    thread.join()
    assert one.is_finished and not others[0].is_finished


def test_a_table_that_fails_stops_no_training(tmp_path):
    def fail(done):
        raise UsageError("no table")

    cells = [cell(tmp_path, bash("true", "x.done"), row=row) for row in "abc"]
    said = []
    runner.run_cells(recipe(jobs=1, said=said), cells, ["train"], fail)
    assert all(one.is_finished for one in cells)
    assert said.count("note: no table; the trainings go on") == 3


# A training that counts to 4 and says what it was given.
TRAIN = """#!/bin/bash
echo "given $*"
echo "2026 | INFO | x | position:stand-in"
for n in 100 200; do
    loss=$((n / 100 + 6))
    echo "| INFO | train_inner | epoch 001:  $n / 200 loss=$loss, wps=1.5, num_updates=$n, lr=1"
done
echo "2026 | valid | epoch 001 | valid on 'valid' subset | loss 5 | nll_loss 4.5 | num_updates 200"
[[ " $* " != *" --stop-time-hours "* ]] || echo "Stopping due to cumulative_training_time: 1"
"""


@pytest.fixture
def training(tmp_path, monkeypatch, capfd):
    """A function that trains a stand-in, with one for what finds checkpoints."""
    found = f'#!/bin/bash\necho asked $* >&2; cat "{tmp_path}/newest"\n'
    for name, text in {"fairseq-train": TRAIN, "python": found}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def training(words="", newest="", **options):
        (tmp_path / "newest").write_text(newest)
        one = cell(
            tmp_path, Step("train", ["fairseq-train", "data", *words.split()], ("train.done",))
        )
        os.makedirs(one.folder, exist_ok=True)
        with open(one.path("checkpoint1.pt"), "a"):
            pass
        status = CellRun(one, ["train"], "2 of 18", dict(os.environ), **options).run()
        with open(one.path("train.log")) as stream:
            return "".join(capfd.readouterr()), status, stream.read()

    return training


def test_a_training_says_what_one_wants_to_watch(training, tmp_path):
    printed, status, _ = training("--max-epoch 9 --max-update 1000")
    assert status == 0 and (tmp_path / "a/seed1/train.done").exists()
    assert "[a seed 1] position:stand-in\n" in printed
    assert "cell 2 of 18, update 100 of 1,000: loss 7, 2 tokens/s\n" in printed
    assert re.search(r"update 200 of 1,000: loss 8, 2 tokens/s, \d+ seconds left\n", printed)
    assert "[a seed 1] update 200: validation nll_loss 4.5\n" in printed


@pytest.mark.parametrize("words, asked", [
    ("", ""), ("--best-checkpoint-metric bleu", " --best"),
    ("--best-checkpoint-metric=bleu", " --best"),
])  # fmt: skip
@pytest.mark.parametrize("equals", [" ", "="])
def test_a_training_goes_on_from_its_newest_checkpoint(training, tmp_path, words, asked, equals):
    model = f"--finetune-from-model{equals}m.pt"
    printed, status, log = training(f"{words} {model}", "some/la st.pt\t60\n")
    assert f"newest_checkpoint {tmp_path}/a/seed1{asked}\n" in printed and status == 0
    first = log.splitlines()[0]
    assert first.split() == f"given data {words} --restore-file some/la st.pt".split()


def test_a_training_that_begins_puts_aside_checkpoints_that_fairseq_would_load(training, tmp_path):
    log = training("--finetune-from-model m.pt")[2]
    assert log.splitlines()[0] == "given data --finetune-from-model m.pt"
    assert (tmp_path / "a/seed1/checkpoint1.pt.unusable").exists()


def test_a_training_ends_in_time_with_a_status_of_its_own(training, tmp_path):
    printed, status, log = training(newest="last.pt\t7200\n", deadline=time.time() + 6300)
    assert status == 75 and not (tmp_path / "a/seed1/train.done").exists()
    hours = float(re.search(r"--stop-time-hours (\S+)", log)[1])
    assert 3.7 < hours <= 3.75 and "the time of this job is up" in printed


def test_a_training_that_diverges_is_stopped_in_one_line_if_that_is_asked(training, tmp_path):
    printed, status, _ = training("--warmup-updates 100", stop_diverged=True)
    assert status == 1 and "[a seed 1] error: the loss is 8.00 at update 200, after" in printed
    assert "training failed" not in printed and not list(tmp_path.glob("*/*/train.done"))
    assert training("--warmup-updates 100")[1] == 0


def page(*words, **arrays):
    told = ["kind", "recipes/quickstart.sh", "/here"]
    for name, several in arrays.items():
        told += [name, str(len(several)), *several]
    return read_script([*told, "--", *words])


def test_the_users_words_go_before_presets_settings_and_defaults():
    about, arguments = page(
        "--b", "9", "--preset", "gpu", "--", "--fp16",
        defaults=["--a", "1", "--b", "2", "--c", "3"],
        gpu=["--b", "5", "--c", "6"], gpu_train=["--bf16", "--update-freq", "2"], presets=["gpu"],
    )  # fmt: skip
    given = read_options(about, "  --b N  x\n  --preset NAME  x\n", arguments)
    values = given.config.with_overrides({"a": "7", "c": "8"})
    assert [values[name] for name in "abcd"] == ["7", "9", "6", ""]
    words = {"--b": ["--b", "9"], "--preset": ["--preset", "gpu"]}
    assert (given.words, given.passthrough) == (words, ["--fp16"])
    assert given.extra == ["--update-freq", "2", "--fp16"]


def test_an_empty_value_is_refused_as_an_empty_run_folder_would_be_the_root():
    for value in "", " ":
        about, arguments = page("--run-dir", value, defaults=["--run-dir", "runs/x"])
        with pytest.raises(UsageError, match="--run-dir needs a value, and has an empty one"):
            read_options(about, "  --run-dir DIR  x\n", arguments)


def test_a_folder_may_have_an_equals_sign_in_its_name():
    forms = "--run-dir DIR", "--train PREFIX", "--text TEXT", "--pretrained ROW=CHECKPOINT"
    text = "".join(f"  {form}  x\n" for form in forms)
    words = ["--run-dir", "lr=0.1", "--train", "of=en/train", "--text", "en=a,fr=b"]
    about, arguments = page(*words, "--pretrained", "shaw=m.pt")
    values = read_options(about, text, arguments).config
    assert (values["run-dir"], values["train"]) == ("/here/lr=0.1", "/here/of=en/train")
    assert (values["text"], values["pretrained"]) == ("en=/here/a,fr=/here/b", "shaw=/here/m.pt")


def test_values_are_filled_in_once_and_an_option_without_a_value_is_left_out():
    layers = [{"folder": "x{seed}"}, {"seed": "1", "updates": "10", "warmup": "0.25"}]
    values = Config(layers, ["none"])
    words = ["--save", "{folder}/{seed}", "--max", "{none}", '{"beam":{seed}}', "{warmup-updates}"]
    assert values.interpolate(words) == ["--save", "x{seed}/1", '{"beam":1}', "2"]
    values.overrides[0]["warmup"] = "8000"
    assert values["warmup-updates"] == "5"


def test_a_field_of_a_page_that_nothing_declares_is_an_error():
    with pytest.raises(UsageError, match="the script has {learning-rate}, which is neither"):
        Config([{}, {"lr": "1"}], ["updates"]).interpolate(["--lr", "{learning-rate}"])


def test_blanks_beside_commas_of_lists_are_left_out():
    text = "  --seeds LIST  x\n  --encodings LIST  x\n"
    words = ["--seeds", "1, 2 ,3", "--encodings", "shaw, a=cape --position-source-scale auto"]
    given = read_options(*[page(*words)[0], text, words])
    assert given.config["seeds"] == "1,2,3"
    assert given.config["encodings"] == "shaw,a=cape --position-source-scale auto"


def test_paths_behind_are_named_from_where_the_recipe_was_started():
    behind = ["--finetune-from-model", "m.pt", "--tensorboard-logdir=tb", "--lr", "1", "--log-file"]
    about, arguments = page("--", *behind, "/log")
    assert read_options(about, "", arguments).passthrough == [
        "--finetune-from-model", "/here/m.pt", "--tensorboard-logdir=/here/tb", "--lr", "1",
        "--log-file", "/log",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text, label, options",
    [("shaw", "shaw", "shaw"), ("a.b=t5 --x 4", "a.b", "t5 --x 4"),
     ("shape --position-max-shift 40", "shape_max-shift-40", "shape --position-max-shift 40")],
)  # fmt: skip
def test_a_row_has_a_label_and_the_words_behind_position_encoding(text, label, options):
    assert read_row(text) == (label, options.split())

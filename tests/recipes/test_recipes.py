"""Stages, plans and notes of recipes. What they train is tested end to end."""

import json
import os
import shlex
import sys
from functools import partial
from pathlib import Path

import pytest

from fairseq_posenc.errors import UsageError
from recipes.lib import devices, figures
from recipes.lib.anchors import BertAnchor
from recipes.lib.config import Config, ParsedArguments, RecipeScript
from recipes.lib.experiment import Experiment
from recipes.lib.pretrain import Pretraining
from recipes.lib.recipe import Recipe

OWN_TEXT = "--source-lang en --target-lang fr --train train --valid valid --test test"


@pytest.fixture
def recipe(tmp_path):
    """A function that makes a recipe in the temporary folder, from values of its options."""

    def recipe(*extra, **values):
        page = RecipeScript("kind", "recipes/quickstart.sh", "/", {})
        words = {name.replace("_", "-"): value for name, value in values.items()}
        layers = [{"run-dir": str(tmp_path / "run"), **words}, {}]
        return Experiment(page, ParsedArguments(Config(layers), [], [], list(extra)))

    return recipe


def test_a_stage_is_skipped_when_it_is_done_and_repeated_when_it_failed(recipe, tmp_path, capsys):
    mark, one, calls = str(tmp_path / "mark"), recipe(), []

    def work():
        calls.append(1)
        if len(calls) == 1:
            raise UsageError("failed")

    with pytest.raises(UsageError, match="failed"):
        one.stage(1, "work", work, mark, ["--a", "1"])
    assert not os.path.exists(mark)
    for _ in range(2):
        one.stage(1, "work", work, mark, ["--a", "1"])
    assert len(calls) == 2 and "stage 1: work: done before" in capsys.readouterr().out
    with pytest.raises(UsageError, match=r"from something else \(then: --a 1; now: --a 2\)"):
        one.stage(1, "work", work, mark, ["--a", "2"])
    # what it has made is gone
    one.stage(1, "work", work, mark, ["--a", "1"], makes=str(tmp_path / "gone"))
    assert len(calls) == 3


def test_stages_outside_the_range_do_not_run_and_with_a_cell_those_of_cells_alone(recipe):
    for values, expected in ({"stage": "2", "stop_stage": "3"}, [2, 3]), ({"cell": "1"}, [4]):
        calls, one = [], recipe(**values)
        for number in range(1, 5):
            one.stage(number, "t", partial(calls.append, number), of_cells=number == 4)
        assert calls == expected


@pytest.mark.parametrize("values", [{}, {"cell": "1"}])
def test_a_recipe_makes_its_environment_and_starts_again_in_it(recipe, monkeypatch, values):
    calls = []
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(Recipe, "_make_environment", lambda self: calls.append("made"))
    monkeypatch.setattr(os, "execvp", lambda program, words: calls.append("started again"))
    recipe(**values).set_up()
    assert calls == ["made", "started again"]


def test_a_figure_whose_files_are_gone_is_drawn_again(recipe, tmp_path):
    output = tmp_path / "figure"
    draw = ["bash", "-c", 'echo drawn >>"$2"', "draw"]
    for _ in range(2):
        figures.once(recipe(), str(output), draw)
    assert output.read_text() == "drawn\n"
    output.unlink()
    figures.once(recipe(), str(output), draw)
    assert output.read_text() == "drawn\n"


def test_text_that_is_gone_is_known_by_what_was_made_of_it(tmp_path):
    page = RecipeScript("pretrain", "x", "/", {"kind": ["--kind", "wordpiece"]})
    texts = {name: str(tmp_path / name) for name in ("text", "valid")}
    values = {"run-dir": str(tmp_path / "run"), "warmup": "0.1", "encodings": "shaw", **texts}
    for name, path in texts.items():
        Path(path).write_text(name)

    def opened():
        pretraining = Pretraining(page, ParsedArguments(Config([values, {}]), [], [], []))
        pretraining.open_folder(*pretraining.data_fingerprint())
        return pretraining.data_fingerprint()

    before = opened()
    for path in texts.values():
        os.unlink(path)
    assert opened() == before


@pytest.fixture
def anchor(tmp_path):
    """The anchor of BERT, on GPUs, with seed 2."""
    arrays = {"row": ["learned"], "glue": [], "known": ["MRPC", "86.7"]}
    values = {"run-dir": str(tmp_path), "seeds": "2", "device": "cuda"}
    parsed = ParsedArguments(Config([values, {}]), [], [], [])
    return BertAnchor(RecipeScript("anchors", "recipes/anchors.sh", "/", arrays), parsed, "bert")


def test_anchors_fine_tune_as_many_at_a_time_as_there_are_gpus(anchor, monkeypatch):
    commands = []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    monkeypatch.setattr(anchor, "execute", commands.append)
    anchor.choose_devices()
    anchor.fine_tune()
    [words] = commands
    assert words[words.index("--jobs") + 1] == "3"


def test_an_anchors_median_is_of_the_seeds_that_it_names(anchor, tmp_path, capsys):
    for seed, accuracy in ("1", 80.0), ("2", 90.0), ("3", 80.0):
        folder = tmp_path / f"bert/glue/bert/MRPC/lr2e-5/seed{seed}"
        folder.mkdir(parents=True)
        (folder / "score.json").write_text(
            json.dumps({"scores": {"valid": {"accuracy": accuracy}}})
        )
    anchor.compare()
    assert "median of seeds 2: accuracy 90.0; " in capsys.readouterr().out


def test_half_an_output_is_never_taken_for_a_whole_one(recipe, tmp_path):
    output = tmp_path / "out"
    output.write_text("old")
    with pytest.raises(UsageError, match="bash -c echo half; exit 3 failed"):
        recipe().execute(["bash", "-c", "echo half; exit 3"], output=str(output))
    assert os.listdir(tmp_path) == ["out"] and output.read_text() == "old"
    for name in "ab":
        (tmp_path / name).write_text(name)
    recipe().execute(["cat"], inputs=[str(tmp_path / name) for name in "ab"], output=str(output))
    assert output.read_text() == "ab"


def test_a_second_recipe_in_the_folder_is_refused_but_cells_go_beside_each_other(
    recipe, run, start
):
    first = recipe()
    first.open_folder("--a", "1")
    code = "import sys; from fairseq_posenc.tools.locks import locked\n"
    code += "with locked(sys.argv[1], 0, 'busy'): pass"
    told = start(sys.executable, "-c", code, first.path("lock")).communicate()[0]
    assert told.endswith("error: busy\n")
    cell = recipe(cell="2", run_dir=first.path("other"))
    cell.open_folder("--a", "1")
    run(sys.executable, "-c", code, cell.path("lock"))


@pytest.mark.parametrize(
    "recipe, megabytes", [("shape/run", 1651), ("iwslt14", 19), ("glue/run", 400)]
)
def test_a_full_disk_ends_a_recipe_before_it_downloads(start, tmp_path, recipe, megabytes):
    (tmp_path / "sitecustomize.py").write_text(
        "import shutil\nshutil.disk_usage = lambda path: shutil._ntuple_diskusage(0, 0, 0)\n"
    )
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    options = "--stage", "2", "--stop-stage", "2", "--device", "cpu", "--run-dir", tmp_path / "run"
    process = start("bash", f"recipes/{recipe}.sh", *options, PATH=programs, PYTHONPATH=tmp_path)
    *_, last = process.communicate()[0].splitlines()
    assert process.returncode == 1 and f" 0 MB left; archives of {megabytes} MB need four" in last
    assert not list((tmp_path / "run").glob("raw/*"))


TEXT = {"posenc prepare tokenise ": 6, "subword-nmt apply-bpe ": 6, "posenc prepare binarise ": 1}
SCORES = {"fairseq-generate ": 4, "posenc score ": 4, "posenc table ": 1}


# of own.sh, fairseq-generate scores references, too
@pytest.mark.parametrize(
    "recipe, options, trainings, lines",
    [("quickstart", "", 4, {**TEXT, **SCORES}),
     ("multi30k", "", 4, {**TEXT, **SCORES}),
     ("python_docs", "", 4, {"posenc prepare translation ": 2, **SCORES}),
     ("own", "--stop-stage 2", 0, {"fairseq-generate ": 0}),
     ("own", "--stop-stage 3", 4, {"fairseq-generate ": 0}),
     ("own", "--stage 4 --stop-stage 4", 0, {"fairseq-generate ": 8}),
     ("own", "--stage 6", 0, {"fairseq-generate ": 0}),
     ("own", "--cell 2", 1, {"fairseq-generate ": 2}),
     ("shape/run", "--stop-stage 5", 0, {"posenc prepare binarise ": 3}),
     ("shape/run", "--cell 2", 1, {"posenc prepare ": 0, "fairseq-generate ": 1}),
     ("shape/run", "--stage 7 --stop-stage 7", 0, {"posenc ": 0, "fairseq-generate ": 21}),
     ("shape/run", "--stage 10", 0, {"posenc table ": 5, "posenc plot ": 0}),
     ("rel_scalar/pretrain_english", "--stop-stage 3", 0, {"posenc prepare text ": 1}),
     ("rel_scalar/pretrain_english", "--cell 2", 1, {"posenc ": 0}),
     ("rel_scalar/pretrain_english", "--stage 5", 0, {"posenc analyse attention ": 1})],
)  # fmt: skip
def test_a_plan_has_the_stages_and_the_cell_that_would_run_and_does_nothing(
    run, tmp_path, recipe, options, trainings, lines
):
    command = f"recipes/{recipe}.sh --plan --device cpu --run-dir {tmp_path}/run {options}"
    if "/" not in recipe:
        command += " --encodings shaw,t5 --seeds 1,2"
    if recipe == "own":
        command += f" {OWN_TEXT}"
    printed = run("bash", *command.split()).splitlines()
    for start, count in {"fairseq-train ": trainings, **lines}.items():
        assert sum(line.startswith(start) for line in printed) == count, start
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("recipe", ["own", "multi30k"])
def test_no_more_checkpoints_are_averaged_than_there_are_epochs(run, tmp_path, recipe):
    command = ["bash", f"recipes/{recipe}.sh", *OWN_TEXT.split() * (recipe == "own"), "--plan"]
    command += ["--device", "cpu", "--seeds", "1", "--run-dir", tmp_path / "run"]
    for epochs, kept in ("3", "3"), ("9", "5"):
        assert f" --last {kept} " in run(*command, "--epochs", epochs)


def test_a_test_set_of_a_single_range_is_cut_by_its_own_lengths(run, tmp_path):
    command = ["bash", "recipes/quickstart.sh", "--plan", "--run-dir", tmp_path / "run"]
    for lengths, bins in ("4-12", "--percentiles --length-of source"), ("4-9,10-12", "--bins 9"):
        scoring = run(*command, "--test-lengths", lengths).partition("\nposenc score ")[2]
        assert f" {bins} " in f"{scoring.partition(' >')[0]} "


def test_each_bin_has_the_sentences_of_a_range_of_the_grammar(run, tmp_path):
    """The grammar counts words and marks, and raw text has marks glued to words."""
    made = f"{tmp_path}/corpus"
    sizes = "--train 1 --valid 1 --test 20 --train-length 4-20 --test-lengths 4-20,21-30,31-45"
    run(*f"python -m recipes.corpus --output {made} --seed 1 --quiet".split(), *sizes.split())
    plan = ["bash", "recipes/quickstart.sh", "--plan", "--run-dir", tmp_path / "run"]
    printed = run(*plan, "--test-lengths", "4-20,21-30,31-45")
    scoring = shlex.split(printed.partition("\nposenc score ")[2].partition("\n")[0])
    edges = scoring[scoring.index("--bins") + 1]
    unit = scoring[scoring.index("--length-unit") + 1]
    run("posenc", "score", "--hypothesis", f"{made}/test.de", "--reference", f"{made}/test.de",
        "--language", "de", "--source", f"{made}/test.en", "--source-language", "en",
        "--bins", edges, "--length-unit", unit, "--output", tmp_path / "score.json")  # fmt: skip
    score = json.loads((tmp_path / "score.json").read_text())
    parts = {part["name"]: part["sentences"] for part in score["by_length"]["bins"]}
    assert parts == {"1-20": 20, "21-30": 20, "31+": 20}


@pytest.mark.parametrize("plan", ["", "yes"])
@pytest.mark.parametrize("extra, told", [
    ("", 1), ("--adam-eps 1e-6 --patience 3", 1), ("--bf16", 0), ("--amp", 0),
    ("--patience 3 --fp16 --fp16-scale-window 256", 0), ("--memory-efficient-fp16", 0),
])  # fmt: skip
def test_what_float32_costs_on_a_gpu_is_reported_once(
    recipe, monkeypatch, capsys, plan, extra, told
):
    monkeypatch.setenv("POSENC_PRECISION_TOLD", "")
    monkeypatch.delenv("POSENC_PRECISION_TOLD")
    monkeypatch.setattr(devices, "list_gpus", lambda requested: ("0",))
    for device in "cpu", "cuda", "cuda":
        recipe(*extra.split(), device=device, plan=plan).choose_devices()
    lines = [line for line in capsys.readouterr().out.splitlines() if "5 to 10 times" in line]
    assert len(lines) == told
    assert all(line.startswith("# note: in float32") == bool(plan) for line in lines)

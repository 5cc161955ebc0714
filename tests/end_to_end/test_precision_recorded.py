"""Precision and its hardware: in the log, in checkpoints, in score.json; no option for nothing."""

import json
import re
from argparse import Namespace

import pytest
import torch
from fairseq import options

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards.precision import checkpoint_record
from fairseq_posenc.tools.scores.generate_output import read_generate_output
from fairseq_posenc.tools.scores.score import evaluate

MODELS = {"float32": "", "amp bfloat16": "--amp"}


@pytest.fixture
def train(trains, training):
    """Train so many updates into a folder with further flags, and return what is logged."""

    def train(folder, updates, flags):
        words = f"--max-update {updates} --disable-validation {flags}".split()
        return trains(*training(*words, "--save-dir", folder))

    return train


@pytest.mark.parametrize("name", MODELS)
def test_log_checkpoint_and_score_say_the_precision(
    train, translates, binarised, tmp_path, caplog, name
):
    logged, path = train(tmp_path, 1, MODELS[name]), tmp_path / "checkpoint_last.pt"
    line = re.search(r"precision: (.*?), on (CPU.*)", logged)
    record = load_checkpoint(str(path))["computed_in"]
    assert f"torch: {torch.__version__}\n" in logged
    assert line.groups() == (name, record["hardware"]) and record["precision"] == name
    output = tmp_path / "test.out"
    words = f"--path {path} --task posenc_translation --source-lang en --target-lang de --cpu"
    command = ["fairseq-generate", binarised, "--user-dir", "fairseq_posenc", *words.split()]
    caplog.clear()
    lines = translates(*command, "--max-len-b", "2", "--beam", "1")
    # here pytest takes the log, which the program prints
    log = "".join(f"| {one.name} | {one.getMessage()}\n" for one in caplog.records)
    output.write_text(log + lines, encoding="utf-8")
    expected = {"generation": "float32", "training": f"{name} on {record['hardware']}"}
    assert read_generate_output(str(output)).precision == expected
    score = evaluate(generated=str(output), source_language="en", language="de")
    assert json.loads(json.dumps(score.to_json()))["precision"] == expected


@pytest.mark.parametrize("name", MODELS)
def test_a_training_that_goes_on_in_another_precision_is_told_in_a_line(train, tmp_path, name):
    train(tmp_path, 1, MODELS[name])
    for flags in MODELS.values():
        logged = train(tmp_path, 2, f"--no-save {flags}")
        goes_on = [line for line in logged.splitlines() if "its training goes on in" in line]
        assert len(goes_on) == (flags != MODELS[name])
        assert all(f"was trained in {name}" in line for line in goes_on)


@pytest.mark.parametrize(
    ("state", "precision"),
    [
        ({"cfg": {"common": {"fp16": True}}}, "float16"),
        ({"cfg": {"common": {"memory_efficient_bf16": True}}}, "bfloat16"),
        ({"cfg": {"common": {"amp": True}}}, "amp float16"),
        ({"cfg": {"common": {"amp": True, "cpu": True}}}, "float32"),
        ({"cfg": {"common": {"amp": True, "cpu": True}}, "trained_on": {}}, None),
        ({"args": Namespace(fp16=True)}, "float16"),
        ({"args": Namespace(arch="transformer")}, "float32"),
        ({}, None),
        # an imported model
        ({"cfg": {"model": {"arch": "transformer"}, "task": {}}}, None),
        ({"computed_in": {"precision": 3}}, "3"),
    ],
)  # fmt: skip
def test_of_stock_checkpoints_the_options_tell_it(state, precision):
    assert checkpoint_record(state) == {"precision": precision, "hardware": None}


@pytest.mark.parametrize(
    "program", ["generation", "interactive_generation", "validation", "eval_lm"]
)
@pytest.mark.parametrize("flag", ["--amp", "--bf16", "--memory-efficient-bf16"])
def test_a_precision_without_effect_is_refused(binarised, program, flag):
    words = [str(binarised), "--path", "no.pt", "--user-dir", "fairseq_posenc", flag]
    with pytest.raises(UsageError, match=f"{flag} has no effect here"):
        options.parse_args_and_arch(getattr(options, f"get_{program}_parser")(), words)

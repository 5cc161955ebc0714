"""What a stranger's checkpoint asks for in its options: refused in one line, and nothing is run."""

import argparse
import ast
import copy
import logging
import os
import sys
from pathlib import Path

import fairseq
import pytest
import torch
from fairseq import checkpoint_utils, file_utils

from fairseq_posenc import checkpoint_check
from fairseq_posenc.errors import UsageError
from fairseq_posenc.evaluation.predict import load_any
from fairseq_posenc.export import trained as export
from fairseq_posenc.models.bert import PosencBertModel
from fairseq_posenc.models.transformer import PosencTransformerModel

# names of fairseq's that are not in our models' options, and that some model or task evaluates
EVALUATED = sorted(checkpoint_check.EVALUATED)


@pytest.fixture
def command(tmp_path):
    """Python that leaves a file, `command.witness`, when it is evaluated."""

    class Command(str):
        witness = tmp_path / "witness"

    return Command(f"__import__('pathlib').Path({str(Command.witness)!r}).touch()")


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """No log, no user's command line, and an error for whoever asks the web."""
    logging.disable(logging.CRITICAL)
    monkeypatch.setattr(sys, "argv", ["program"])

    def fetch(url, *_, **__):
        raise AssertionError(f"{url} was asked for")

    monkeypatch.setattr(file_utils, "get_from_cache", fetch)
    yield
    logging.disable(logging.NOTSET)


def set_option(cfg, place, value):
    """Return a copy of options with one of them changed; `place` is its path."""
    cfg = copy.deepcopy(cfg)
    holder = cfg
    for key in place[:-1]:
        holder = vars(holder)[key] if isinstance(holder, argparse.Namespace) else holder[key]
    holder = vars(holder) if isinstance(holder, argparse.Namespace) else holder
    holder[place[-1]] = value
    return cfg


def places(options, place=()):
    """Yield the paths of all options, and of those that some model of fairseq evaluates."""
    options = vars(options) if isinstance(options, argparse.Namespace) else options
    for name, value in options.items():
        if isinstance(value, (dict, argparse.Namespace)):
            yield from places(value, (*place, name))
        else:
            yield (*place, name)


def from_transformer(trained):
    PosencTransformerModel.from_pretrained(trained.folder, "model.pt", trained.folder)


def from_bert(trained):
    PosencBertModel.from_pretrained(trained.folder, "model.pt", trained.folder)


def analyse_or_predict(trained):
    load_any(trained.path, trained.folder)


def export_it(trained):
    export.read(trained.path)


def generate(trained):
    checkpoint_utils.load_model_ensemble([trained.path])


WAYS = [from_transformer, from_bert, analyse_or_predict, export_it, generate]
CALL = "__import__('os').getcwd()"
HOSTILE = {
    ("model", "adaptive_softmax_cutoff"): CALL,
    ("model", "arch"): "fconv",
    ("model", "encoder_layers"): CALL,
    ("model", "encoder_embed_dim"): 10**9,
    ("model", "max_source_positions"): 10**12,
    ("model", "decoder_input_dim"): "9**9**9**9",
    ("model", "admin_profile"): "/etc/passwd",
    ("model", "__class__"): "x",
    ("task", "_name"): "multilingual_translation",
    ("task", "left_pad_source"): CALL,
    ("task", "source_lang"): "en;touch x",
    ("task", "target_lang"): "../../de",
    ("task", "dataset_impl"): "fasta",
    ("task", "eval_bleu_args"): '{"a": "${oc.env:HOME}"}',
    ("task", "eval_bleu_detok_args"): '{"tokenizer": "x"}',
    ("task", "eval_bleu_detok"): "other",
    ("criterion", "_name"): "ctc",
    ("optimizer", "_name"): "other",
    ("optimizer", "adam_betas"): CALL,
    ("common", "seed"): "${oc.env:HOME}",
    ("common", "tensorboard_logdir"): ["${oc.env:HOME}"],
    ("checkpoint", "save_dir"): "https://example.org/x",
    ("checkpoint", "restore_file"): "S3://example.org/x",
    ("bpe",): {"_name": "sentencepiece", "sentencepiece_model": "http://a.b/${oc.env:HOME}"},
    ("tokenizer",): {"_name": "other"},
}  # fmt: skip


@pytest.mark.parametrize("place", HOSTILE, ids=".".join)
@pytest.mark.parametrize("read", WAYS, ids=lambda read: read.__name__)
def test_hostile_options_are_refused_in_one_line(translation, read, place):
    if HOSTILE[place] == "9**9**9**9":
        place, value = ("model", "adaptive_softmax_cutoff"), HOSTILE[place]
    else:
        value = HOSTILE[place]
    cfg = set_option(translation.cfg, place, value)
    if place[0] == "bpe":
        # files are not taken from a checkpoint, whatever their names
        cfg["bpe"]["other"] = cfg["bpe"]["sentencepiece_model"]
    translation.save(cfg=cfg)
    with pytest.raises(UsageError, match="refused") as caught:
        read(translation)
    assert "\n" not in str(caught.value)
    if place[0] not in ("task", "criterion", "optimizer"):
        return
    # checkpoints before fairseq 0.10.2 have all options in one namespace
    name = {"_name": place[0]}.get(place[1], place[1])
    args = argparse.Namespace(**{**vars(translation.args), name: value})
    translation.save(args=args, cfg=None)
    with pytest.raises(UsageError):
        read(translation)


def test_a_command_in_any_option_is_not_run(trained, command):
    cfg, places_ = trained.cfg, list(places(trained.cfg))
    places_ += [(group, name) for group in ("model", "task") for name in EVALUATED]
    for place in places_:
        trained.save(cfg=set_option(cfg, place, str(command)))
        try:
            load_any(trained.path, trained.folder)
        except UsageError as error:
            assert "\n" not in str(error)
        assert not command.witness.exists(), place


def test_a_command_in_any_old_option_is_not_run(trained, command):
    for name in {*vars(trained.args), *EVALUATED}:
        args = argparse.Namespace(**{**vars(trained.args), name: str(command)})
        trained.save(args=args, cfg=None)
        try:
            load_any(trained.path, trained.folder)
        except UsageError as error:
            assert "\n" not in str(error)
        assert not command.witness.exists(), name


@pytest.mark.parametrize("value", ["${oc.env:HOME}", "http://127.0.0.1:9/x", "\thttp:x"])
def test_no_option_reads_the_environment_or_the_web(trained, value):
    for place in places(trained.cfg):
        if place[-1] in checkpoint_check.NOT_TAKEN:
            continue
        trained.save(cfg=set_option(trained.cfg, place, value))
        with pytest.raises(UsageError, match="refused"):
            load_any(trained.path, trained.folder)


def test_files_that_a_checkpoint_names_are_not_opened(translation, tmp_path):
    fifo = tmp_path / "fifo"  # whoever opens it hangs
    os.mkfifo(fifo)
    cfg = set_option(translation.cfg, ("generation", "replace_unk"), str(fifo))
    for name in ("encoder_embed_path", "decoder_embed_path"):
        cfg = set_option(cfg, ("model", name), str(fifo))
    cfg = set_option(cfg, ("common", "user_dir"), str(tmp_path))
    cfg["bpe"] = {"_name": "sentencepiece", "sentencepiece_model": str(fifo)}
    translation.save(cfg=cfg)
    _, found, _ = checkpoint_utils.load_model_ensemble_and_task([translation.path])
    assert found.common.user_dir is None and found.bpe.sentencepiece_model == ""


def test_what_the_command_line_or_the_caller_names_is_allowed(translation, monkeypatch):
    cfg = set_option(translation.cfg, ("criterion", "_name"), "ctc")
    translation.save(cfg=cfg)
    with pytest.raises(UsageError, match="asks for --criterion 'ctc'"):
        checkpoint_utils.load_checkpoint_to_cpu(translation.path)
    checkpoint_utils.load_checkpoint_to_cpu(translation.path, {"criterion": "ctc"})
    for words in (["--criterion", "ctc"], ["--criterion=ctc"]):
        monkeypatch.setattr(sys, "argv", ["fairseq-train", *words])
        checkpoint_utils.load_checkpoint_to_cpu(translation.path)


@pytest.mark.parametrize("text, literal", [
    ("[(512, 3)] * 20 + [(1024, 1)]", True), ("(0.9, 0.98)", True), ("-1", True), ("None", True),
    ("{'a': [1, True]}", True), ("[1] * 9**9", False), ("[1] * 100000", False), ("1 * 9", False),
    ("a", False), ("[a]", False), ("a.b", False), ("a[0]", False), ("f'{a}'", False),
    ("[x for x in ()]", False), ("lambda: 0", False), ("(x := 1)", False), ("", False),
    ("(" * 10000, False),
])  # fmt: skip
def test_what_a_literal_is(text, literal):
    try:
        assert checkpoint_check._is_literal(text) == literal
    except checkpoint_check.Refused:
        assert not literal


def options_evaluated(tree):
    """Yield the names of options (attributes) that a module hands to eval."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Attribute):
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            if name in ("eval", "exec", "eval_str_list", "eval_str_dict", "eval_bool"):
                yield call.args[0].attr


def test_all_options_that_fairseq_evaluates_are_known():
    found = set()
    for path in Path(fairseq.__file__).parent.rglob("*.py"):
        if "examples" not in path.parts:
            found.update(options_evaluated(ast.parse(path.read_text(encoding="utf-8"))))
    assert {"adam_betas", "left_pad_source", "encoder_layers"} <= found
    assert found <= checkpoint_check.EVALUATED


def test_generating_does_not_begin_with_a_hostile_checkpoint(translation, command, start):
    cfg = set_option(translation.cfg, ("model", "adaptive_softmax_cutoff"), str(command))
    path = translation.save(cfg=cfg)
    arguments = "--user-dir fairseq_posenc --task posenc_translation -s en -t de --cpu --path"
    process = start("fairseq-generate", translation.folder, *arguments.split(), path)
    printed = process.communicate()[0]
    assert process.returncode == 1 and not command.witness.exists()
    assert printed.splitlines()[-1].startswith("fairseq_posenc: error: checkpoint")


def test_a_checkpoint_of_our_own_loads(trained):
    trained.save()
    model, _, _ = load_any(trained.path, trained.folder)
    for name, weights in trained.weights.items():
        assert torch.equal(model.state_dict()[name], weights)

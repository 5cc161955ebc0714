"""What a stranger's checkpoint asks for in its options: refused in one line, and nothing is run."""

import argparse
import ast
import copy
import logging
import os
import re
import sys
from pathlib import Path

import fairseq
import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils, file_utils

from fairseq_posenc.checkpoints import option_checks
from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.bert import PosencBertModel
from fairseq_posenc.models.transformer import PosencTransformerModel
from fairseq_posenc.tools.export.source import read_checkpoint
from fairseq_posenc.tools.predict import load_any

# names of fairseq's that are not in our models' options, and that some model or task evaluates
EVALUATED = sorted(option_checks.EVALUATED)


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


def as_dict(options):
    return vars(options) if isinstance(options, argparse.Namespace) else options


def set_option(cfg, place, value):
    """Return a copy of options with one of them changed; `place` is its path."""
    cfg = holder = copy.deepcopy(cfg)
    for key in place[:-1]:
        holder = as_dict(holder)[key]
    as_dict(holder)[place[-1]] = value
    return cfg


def places(options, place=()):
    """Yield the paths of all options."""
    for name, value in as_dict(options).items():
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
    read_checkpoint(trained.path)


def generate(trained):
    checkpoint_utils.load_model_ensemble([trained.path])


WAYS = [from_transformer, from_bert, analyse_or_predict, export_it, generate]
CALL = "__import__('os').getcwd()"
HOSTILE = [
    (("model", "adaptive_softmax_cutoff"), CALL),
    (("model", "arch"), "fconv"),
    (("model", "encoder_layers"), CALL),
    (("model", "encoder_embed_dim"), 10**9),
    (("model", "decoder_ffn_embed_dim"), 10**5000),
    (("model", "layers"), 10**9),
    (("model", "encoder_xformers_att_config"), "9**9**9"),
    (("model", "activation_fn"), "a" + ".a" * 10**6),
    (("model", "position_num_buckets"), 10**9),
    (("model", "max_source_positions"), 10**12),
    (("model", "adaptive_softmax_cutoff"), "9**9**9**9"),
    (("model", "adaptive_input_cutoff"), "1" + "+1" * 1200),
    (("model", "admin_profile"), "/etc/passwd"),
    (("model", "__class__"), "x"),
    (("task", "_name"), "multilingual_translation"),
    (("task", "left_pad_source"), CALL),
    (("task", "source_lang"), "en;touch x"),
    (("task", "target_lang"), "../../de"),
    (("task", "dataset_impl"), "fasta"),
    (("task", "eval_bleu_args"), '{"a": "${oc.env:HOME}"}'),
    (("task", "eval_bleu_detok_args"), '{"tokenizer": "x"}'),
    (("task", "eval_bleu_detok"), "other"),
    (("criterion", "_name"), "composite_loss"),  # builds any other
    (("optimizer", "_name"), "other"),
    (("optimizer", "adam_betas"), CALL),
    (("common", "seed"), "${oc.env:HOME}"),
    (("common", "tensorboard_logdir"), ["${oc.env:HOME}"]),
    (("checkpoint", "save_dir"), "https://example.org/x"),
    (("checkpoint", "restore_file"), "S3://example.org/x"),
    (("bpe",), {"_name": "sentencepiece", "other": "http://a.b/${oc.env:HOME}"}),
    (("tokenizer",), {"_name": "other"}),
]  # fmt: skip


@pytest.mark.parametrize(
    "place, value", HOSTILE, ids=lambda part: ".".join(part) if isinstance(part, tuple) else ""
)
@pytest.mark.parametrize("read", WAYS, ids=lambda read: read.__name__)
def test_hostile_options_are_refused_in_one_line(translation, read, place, value):
    translation.save(cfg=set_option(translation.cfg, place, value))
    with pytest.raises(UsageError, match="refused") as caught:
        read(translation)
    assert "\n" not in str(caught.value)
    if place[0] in ("task", "criterion", "optimizer"):
        # checkpoints before fairseq 0.10.2 have all options in one namespace
        name = {"_name": place[0]}.get(place[1], place[1])
        args = argparse.Namespace(**{**vars(translation.args), name: value})
        translation.save(args=args, cfg=None)
        with pytest.raises(UsageError):
            read(translation)


def check_and_load(trained, **parts):
    """Load a checkpoint; write it only if the first thing that loading does lets it pass."""
    try:
        option_checks.check_options(copy.deepcopy(trained.state(**parts)), "a.pt")
        trained.save(**parts)
        load_any(trained.path, trained.folder)
    except UsageError as error:
        assert "\n" not in str(error)


def test_a_command_in_any_option_is_not_run(trained, command):
    cfg, places_ = trained.cfg, list(places(trained.cfg))
    places_ += [(group, name) for group in ("model", "task") for name in EVALUATED]
    for place in places_:
        check_and_load(trained, cfg=set_option(cfg, place, str(command)))
        assert not command.witness.exists(), place


def test_a_command_in_any_old_option_is_not_run(trained, command):
    for name in {*vars(trained.args), *EVALUATED}:
        args = argparse.Namespace(**{**vars(trained.args), name: str(command)})
        check_and_load(trained, args=args, cfg=None)
        assert not command.witness.exists(), name


@pytest.mark.parametrize("value", ["${oc.env:HOME}", "http://127.0.0.1:9/x", "\x01ht\ntp:x"])
def test_no_option_reads_the_environment_or_the_web(trained, value):
    for place in places(trained.cfg):
        if place[-1] in option_checks.CLEARED:
            continue
        state = trained.state(cfg=set_option(trained.cfg, place, value))
        with pytest.raises(UsageError, match="refused"):
            option_checks.check_options(state, "a.pt")


def test_files_that_a_checkpoint_names_are_not_opened(translation, tmp_path):
    fifo = tmp_path / "fifo"  # whoever opens it hangs
    os.mkfifo(fifo)
    cfg = set_option(translation.cfg, ("generation", "replace_unk"), str(fifo))
    for name in ("embed_path", "encoder_embed_path", "decoder_embed_path"):
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
        assert option_checks.is_literal(text) == literal
    except option_checks.Refused:
        assert not literal


PARTS = {
    "last_optimizer_state": {"param_groups": 5}, "extra_state": {}, "optimizer_history": [{}],
    "model": {"a": 1}, "task_state": 5, "args": 5, "cfg": 5,
}  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("read", WAYS, ids=lambda read: read.__name__)
def test_other_parts_end_well_or_in_one_line(translation, read, part):
    translation.save(**{part: PARTS[part]})
    try:
        read(translation)
    except UsageError as error:
        assert "\n" not in str(error)


def test_a_model_is_no_larger_than_its_weights(translation):
    cfg = translation.cfg
    for name in vars(cfg["model"]):
        if re.fullmatch("..coder_(ffn_)?embed_dim|decoder_(in|out)put_dim", name):
            cfg = set_option(cfg, ("model", name), 30000)
    translation.save(cfg=cfg, model={**translation.weights, "long": torch.zeros(30000)})
    for read in (generate, export_it):
        with pytest.raises(UsageError, match="far larger than its weights"):
            read(translation)


def test_a_checkpoint_does_not_say_how_to_generate_nor_how_to_optimise(translation):
    cfg = set_option(translation.cfg, ("generation", "max_len_b"), 10**9)
    groups = {"param_groups": [{"fused": True}]}
    translation.save(cfg=cfg, last_optimizer_state={"a": groups, **groups})
    state = checkpoint_utils.load_checkpoint_to_cpu(translation.path)
    assert state["cfg"].generation.max_len_b == 200
    assert "True" not in str(state["last_optimizer_state"])


@pytest.mark.parametrize("options", [
    {"data": "data:data2"}, {"data": ["/a b/c", "/d"]}, {"save_dir": "runs (1)/a[2]/lr=(0.1)"},
    {"source_lang": "tok.bpe.en"}, {"source_lang": "zh_Hans"}, {"lr": [0.5]}, {"lr": 0.5},
    {"distributed_init_method": "tcp://learn0814:58461"}, {"adam_betas": (0.9, 0.98)},
    {"distributed_init_method": "tcp://[::1]:5000"}, {"adam_betas": "0.9,0.98"},
    {"adaptive_softmax_cutoff": "20000,60000"}, {"user_dir": "/x(1)"}, {"left_pad_source": "True"},
    {"eval_bleu_args": '{"beam": 5, "max_len_a": 1.2}'}, {"lang_pairs": "en-de,en-fr"},
    {"gpt2_encoder_json": "https://a.b/encoder.json"}, {"arch": "transformer_wmt_en_de"},
    {"arch": "transformer_lm_gbw", "task": "language_modeling"}, {"num_classes": 3},
    {"arch": "roberta_large", "task": "masked_lm", "criterion": "masked_lm"}, {"remove_bpe": "@@ "},
    {"position_max_distance": 128, "position_num_buckets": 32}, {"lr_scheduler": "cosine"},
    {"max_tokens": 3584.0, "max_epoch": float("inf"), "weights": np.float32(1)},
], ids=str)  # fmt: skip
def test_options_of_honest_checkpoints_are_let_pass(options):
    known = {"arch": "transformer", "task": "translation", "optimizer": "adam", **options}
    state = {"args": argparse.Namespace(**known), "model": {"a": torch.ones(2, 2)}}
    option_checks.check_options(state, "a.pt")


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
    assert found <= option_checks.EVALUATED


def test_a_checkpoint_of_our_own_loads(trained):
    trained.save()
    model, _, _ = load_any(trained.path, trained.folder)
    for name, weights in trained.weights.items():
        assert torch.equal(model.state_dict()[name], weights)

"""Options that fairseq evaluates as Python: all are known, and none of a stranger's is run."""

import argparse
import ast
from pathlib import Path

import fairseq
import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards import option_checks
from fairseq_posenc.tools.bert.predict import load_any
from tests.security.ways import of_task

# by some model or task of fairseq's
EVALUATED = """adafactor_eps adam_betas adamax_betas adaptive_input_cutoff adaptive_softmax_cutoff
    character_filters conv_aggregator_layers conv_feature_layers decoder_attention decoder_layers
    decoder_xformers_att_config downsample encoder_attention encoder_layers
    encoder_xformers_att_config feature_encoder_spec gated_attention lamb_betas left_pad_source
    left_pad_target pipeline_balance pipeline_decoder_balance pipeline_decoder_devices
    pipeline_devices pipeline_encoder_balance pipeline_encoder_devices pretrained project_input
    self_attention wer_args xformers_att_config""".split()


@pytest.fixture
def witness(tmp_path):
    """A file that a command would leave, if an option with it were evaluated."""
    return tmp_path / "witness"


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
    assert found <= set(EVALUATED)


@pytest.mark.usefixtures("defaults_once")
def test_a_command_in_an_option_that_is_evaluated_is_not_run(trained, witness, quiet):
    command = f"__import__('pathlib').Path({str(witness)!r}).touch()"
    cfg, args = trained.cfg, vars(trained.args)
    for name in EVALUATED:
        changed = {**cfg, "model": {**vars(cfg["model"]), name: command}}
        changed["model"] = argparse.Namespace(**changed["model"])
        try:
            option_checks.check_options(trained.state(cfg=changed), "a.pt")
        except UsageError:
            continue  # it must be a number
        cfg = {**changed, "task": {**cfg["task"], **of_task(cfg, {name: command})}}
        args = {**args, name: command}
    assert command in str(args)
    for parts in ({"cfg": cfg}, {"args": argparse.Namespace(**args), "cfg": None}):
        trained.save(**parts)
        load_any(trained.path, trained.folder)
        assert not witness.exists()

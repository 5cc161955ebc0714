"""Options that fairseq evaluates as Python: none of a stranger's is run."""

import argparse
import ast
from pathlib import Path

import fairseq
import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards import option_checks
from fairseq_posenc.tools.bert.predict import load_any
from tests.security.ways import of_task


def options_evaluated():
    """Yield the names of options (attributes) that some module of fairseq's hands to eval."""
    for path in Path(fairseq.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Attribute):
                name = getattr(call.func, "id", getattr(call.func, "attr", ""))
                if name in ("eval", "exec", "eval_str_list", "eval_str_dict", "eval_bool"):
                    yield call.args[0].attr


@pytest.mark.usefixtures("defaults_once")
def test_a_command_in_an_option_that_is_evaluated_is_not_run(trained, tmp_path, quiet):
    witness, evaluated = tmp_path / "witness", {*options_evaluated()}
    assert {"adam_betas", "left_pad_source", "encoder_layers"} <= evaluated
    command = f"__import__('pathlib').Path({str(witness)!r}).touch()"
    cfg, args = trained.cfg, vars(trained.args)
    for name in sorted(evaluated):
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

"""scripts/gpu.sh, without a GPU: all parts with tiny sizes, and what its verdicts follow from."""

import importlib
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairseq_posenc.attention import plain
from fairseq_posenc.encodings import names

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
PARTS = ["kernels", "encodings", "attention", "tables", "quickstart"]
RIGHT = {"kind": "shaw", "verdict": "right"}
TIMES = [{"length": 128, "way": "shaw, plain", "seconds": 2.0},
         {"length": 128, "way": "shaw, Triton", "seconds": 1.0}]  # fmt: skip


@pytest.fixture
def script(monkeypatch):
    """A function that imports a file of scripts/."""
    monkeypatch.syspath_prepend(SCRIPTS)
    return importlib.import_module


@pytest.mark.slow
def test_the_dry_run_goes_through_every_part(run, tmp_path):
    command = ["bash", "scripts/gpu.sh", "--dry-run", "--output", tmp_path, "--minutes"]
    run(*command, 0.5)  # cut somewhere; the next one goes on
    printed = run(*command, 30)
    content = json.loads((tmp_path / "gpu.json").read_text())
    assert list(content["parts"]) == PARTS
    assert {part["state"] for part in content["parts"].values()} == {"done"}
    assert {row["verdict"] for row in content["parts"]["kernels"]["rows"]} == {"right"}
    assert f"Triton's kernels: {len(content['parts']['kernels']['rows'])} cases right" in printed
    assert all(f"\n{name}: right, " in printed for name in names())
    page = (tmp_path / "gpu.md").read_text()
    assert all(verdict in page for verdict in content["verdicts"])
    assert "CAPE" in page and "sacreBLEU by source length" in page


def test_parts_that_are_cut_leave_a_page_that_says_so(run, tmp_path):
    printed = run("bash", "scripts/gpu.sh", "--dry-run", "--minutes", 0.01, "--output", tmp_path)
    assert [f"{part}: cut" in printed for part in PARTS] == [True] * 5
    assert (tmp_path / "gpu.md").read_text().count("This part: cut after") == 5
    assert "cape: not tested, not timed" in printed and "default: off" in printed


def test_without_a_gpu_one_line_says_so(fails, tmp_path):
    printed = fails("bash", "scripts/gpu.sh", "--output", tmp_path, CUDA_VISIBLE_DEVICES="")
    assert "there is no GPU here; --dry-run" in printed.splitlines()[-1]


@pytest.mark.parametrize(
    ("rows", "state", "times", "said"),
    [
        ([RIGHT], "done", TIMES, "1 cases right, 0 wrong or failed, .* default: on"),
        ([RIGHT], "cut", TIMES, "default: off"),
        ([RIGHT], "done", [], "not timed; default: off"),
        ([RIGHT], "done", [{**x, "seconds": 1.0} for x in TIMES], "default: off"),
        ([RIGHT, {**RIGHT, "verdict": "wrong"}], "done", TIMES, "1 wrong or failed.*default: off"),
        ([RIGHT, {**RIGHT, "verdict": "failed"}], "done", TIMES, "default: off"),
        ([], "done", TIMES, "default: off"),
    ],
)
def test_kernels_are_on_by_default_only_if_all_are_right_and_faster(
    rows, state, times, said, script, tmp_path
):
    check = script("gpu_check")
    results = check.Results(tmp_path / "none.json")
    results.content["parts"] = {
        "kernels": {"state": state, "rows": rows}, "attention": {"state": "done", "rows": times},
    }  # fmt: skip
    assert re.search(said, check.verdicts(results)[0])


def plainly(inputs):
    return plain.attend(inputs)[0]


def wrong_scores(inputs):
    return plainly(inputs._replace(queries=inputs.queries * 1.1))


def other_mask_in_the_backward_pass(inputs):
    first, second = plainly(inputs), plainly(inputs)
    return first + (second - first).detach()


@pytest.mark.parametrize("kind", ["shaw", "transformer_xl"])
@pytest.mark.parametrize(
    ("attend", "dropout", "verdict"),
    [
        (plainly, False, "right"),
        (plainly, True, "right"),
        (wrong_scores, False, "wrong"),
        (other_mask_in_the_backward_pass, True, "wrong"),
        (lambda inputs: plainly(inputs) * float("nan"), False, "wrong"),
    ],
)
def test_wrong_kernels_are_found(kind, attend, dropout, verdict, script, monkeypatch):
    monkeypatch.delattr("fairseq_posenc.attention.gpu.relative", raising=False)
    stand_in = SimpleNamespace(attend=attend)
    monkeypatch.setitem(sys.modules, "fairseq_posenc.attention.gpu.relative", stand_in)
    kernels = script("gpu_kernels")
    for padding in ("left", "all"):
        case = {"kind": kind, **kernels.TINY, "dropout": dropout, "padding": padding}
        assert kernels.check(case, tiny=True)["verdict"] == verdict

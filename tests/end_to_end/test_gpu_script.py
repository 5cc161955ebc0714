"""scripts/gpu.sh, without a GPU: all parts with tiny sizes, and what its verdicts follow from."""

import importlib
import json
from pathlib import Path

import pytest

from fairseq_posenc.attention import core, plain
from fairseq_posenc.encodings import names

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
PARTS = ["encodings", "attention", "programs", "quickstart"]


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
    assert "torch's own attention: 20 of 20 cases right" in printed
    assert "fairseq-train: 17 of 17 encodings" in printed
    assert all(f"\n{name}: right, " in printed for name in names())
    page = (tmp_path / "gpu.md").read_text()
    assert all(verdict in page for verdict in content["verdicts"])
    assert "sacreBLEU by source length" in page


def test_parts_that_are_cut_leave_a_page_that_says_so(run, tmp_path):
    command = (
        f'cd "{tmp_path}" && bash {SCRIPTS}/gpu.sh --dry-run --minutes 0.01 --output "my runs"'
    )
    printed = run("bash", "-c", command)
    assert [f"{part}: cut" in printed for part in PARTS] == [True] * len(PARTS)
    page = (tmp_path / "my runs" / "gpu.md").read_text()
    assert page.count("This part: cut after") == len(PARTS)
    assert "cape: not tested, not timed" in printed


def test_the_folder_of_the_results_may_have_a_blank_in_its_name(script, tmp_path, monkeypatch):
    commands = []
    programs = script("gpu_programs")
    monkeypatch.setattr(programs.subprocess, "run", lambda words, **_: commands.append(words))
    monkeypatch.setattr(programs, "trained", lambda *_: {"cpu": {}})
    monkeypatch.setattr(programs, "names", list)
    results = script("gpu_check").Results(tmp_path / "my runs" / "gpu.json", "programs")
    results.content["parts"]["programs"] = {}
    programs.programs(results, tiny=True)
    assert tmp_path / "my runs" / "programs" in commands[0]


def test_without_a_gpu_one_line_says_so(fails, tmp_path):
    printed = fails("bash", "scripts/gpu.sh", "--output", tmp_path, CUDA_VISIBLE_DEVICES="")
    assert "there is no GPU here; --dry-run" in printed.splitlines()[-1]


def bfloat16(inputs):
    rounded = inputs.queries + (inputs.queries.bfloat16() - inputs.queries).detach()
    return plain.attend(inputs._replace(queries=rounded))[0]


def seeing_the_future(inputs):
    return plain.attend(inputs._replace(causal=False))[0]


def without_gradient(inputs):
    return plain.attend(inputs._replace(keys=inputs.keys.detach() + 0 * inputs.keys))[0]


@pytest.mark.parametrize("wrong", [bfloat16, seeing_the_future, without_gradient])
def test_attention_that_is_wrong_is_found(wrong, script, monkeypatch, tmp_path):
    check = script("gpu_check")
    rows = {}
    for way in (core.SHARED_MASK_SDPA.attend, wrong):
        monkeypatch.setattr(core, "SHARED_MASK_SDPA", core.SHARED_MASK_SDPA._replace(attend=way))
        results = check.Results(tmp_path / f"{len(rows)}.json", "attention")
        results.content["parts"] = {"attention": {"rows": []}}
        script("gpu_attention").attention(results, tiny=True)
        rows[way] = [row["verdict"] for row in results.rows("attention")]
    right, found = rows.values()
    assert right == ["right"] * 20 and "wrong" in found
    assert check.attention_verdict(results).startswith(
        f"torch's own attention: {found.count('right')} of 20 cases right"
    )

"""torch.compile of encoders and of a step of decoders."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fairseq_posenc.encodings import names

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "speed.md"
SCRIPT = Path(__file__).with_name("count_graphs.py")

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13):
    pytest.skip("the counts are those of torch 2.13", allow_module_level=True)


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """All counts, by model and case, and the table that was printed."""
    output = tmp_path_factory.mktemp("graphs") / "graphs.json"
    process = subprocess.run(
        [sys.executable, SCRIPT, output], cwd=REPOSITORY, encoding="utf-8", check=True,
        env={**os.environ, "PYTHONPATH": "."}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return json.loads(output.read_text(encoding="utf-8")), process.stdout


@pytest.mark.parametrize("name", names())
def test_all_layers_are_in_one_graph_and_nothing_changes(counted, name):
    for case, found in counted[0][name].items():
        assert found["of layers"] == 1, case
        assert found["error"] < 1e-5, case


@pytest.mark.parametrize("name", names())
def test_graphs_break_no_more_often_than_stock_fairseqs(counted, name):
    draws = name in ("shape", "unifpe", "randomized", "cape")
    for case, stock in counted[0]["stock"].items():
        assert (draws and case == "encoder") or counted[0][name][case]["graphs"] < stock["graphs"]


def test_the_page_shows_what_is_counted(counted):
    assert counted[1] in PAGE.read_text(encoding="utf-8")

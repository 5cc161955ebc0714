"""What attention asks of a GPU, counted without one."""

import importlib.util
import sys
from pathlib import Path

import pytest

from fairseq_posenc.encodings import names
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.benchmark import counting
from fairseq_posenc.tools.benchmark.settings import Setting
from fairseq_posenc.tools.commands import benchmark

PAGE = Path(__file__).resolve().parents[3] / "docs" / "speed.md"
LENGTHS = (128, 512)
HAS_TRITON = importlib.util.find_spec("triton") is not None
COUNTED = [name for name in names() if HAS_TRITON or name not in counting.NEED_KERNELS]


def setting(length, *contestants):
    return Setting("base", contestants, length, 4096 // length, dropout=0.1, dtype="bfloat16")


def test_masked_attention_passes_over_its_tensors_as_often_as_flash_attention_does():
    """12 tensors like the queries, the mask twice, and one float32 per query three times."""
    found = counting.cost(setting(64), counting.MASKED)
    tensor, per_query = 2 * 64 / 64, 4 / 64
    expected = (2, 12 * tensor + 2 * 2 + 3 * per_query, tensor + per_query)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("name", ["none", "sinusoidal", "rotary"])
def test_without_a_bias_nothing_has_the_size_of_the_scores(name):
    short, long = (counting.cost(setting(length), name) for length in (64, 256))
    assert 4 * long.bytes == pytest.approx(short.bytes, rel=0.1)
    assert 4 * long.kept == pytest.approx(short.kept, rel=0.1)


@pytest.mark.skipif(not HAS_TRITON, reason="the kernels need Triton")
@pytest.mark.parametrize("name", counting.NEED_KERNELS)
def test_kernels_move_little_more_than_torchs_masked_attention_and_keep_no_scores(name):
    short, long, masked = (
        counting.cost(setting(length), of)
        for length, of in ((128, name), (512, name), (512, counting.MASKED))
    )
    assert long.bytes <= 1.3 * masked.bytes
    assert 4 * long.kept <= 1.5 * short.kept


def test_the_page_shows_what_is_counted():
    page = PAGE.read_text(encoding="utf-8").splitlines()
    printed = counting.table([setting(length, *COUNTED) for length in LENGTHS]).splitlines()
    assert [line for line in printed if line not in page] == []


def test_without_triton_one_line_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    for name in ("relative", "kernels"):
        monkeypatch.delitem(sys.modules, f"fairseq_posenc.attention.gpu.{name}", raising=False)
    monkeypatch.delattr("fairseq_posenc.attention.gpu.relative", raising=False)
    with pytest.raises(UsageError, match="shaw needs Triton: pip install triton"):
        counting.cost(setting(64), "shaw")


def test_the_command_counts(monkeypatch, capsys):
    line = "attention --count --quick --lengths 8 --encodings alibi"
    monkeypatch.setattr("sys.argv", ["posenc benchmark", *line.split()])
    benchmark.main()
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| torch's, masked", "| alibi"]
    with pytest.raises(UsageError, match="only prints"):
        benchmark.parse(["--count", "--output", "x.json"])

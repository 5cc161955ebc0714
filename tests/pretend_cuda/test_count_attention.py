"""What attention asks of a GPU, counted without one."""

import importlib.util
from pathlib import Path

import pytest

from fairseq_posenc.encodings import names
from tests.pretend_cuda import count_attention as counting
from tests.pretend_cuda.count_attention import MASKED, TRITON, setting

PAGE = Path(__file__).resolve().parents[2] / "docs" / "speed.md"
HAS_TRITON = importlib.util.find_spec("triton") is not None
COUNTED = [name for name in names() if HAS_TRITON or name not in counting.HAVE_KERNELS]


def test_masked_attention_passes_over_its_tensors_as_often_as_flash_attention_does():
    """12 tensors like the queries, the mask twice, and one float32 per query three times."""
    found = counting.cost(setting(64), MASKED)
    tensor, per_query = 2 * 64 / 64, 4 / 64
    expected = (2, 12 * tensor + 2 * 2 + 3 * per_query, tensor + per_query)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("name", ["none", "sinusoidal", "rotary"])
def test_without_a_bias_nothing_has_the_size_of_the_scores(name):
    short, long = (counting.cost(setting(length), name) for length in (64, 256))
    assert 4 * long.bytes == pytest.approx(short.bytes, rel=0.1)
    assert 4 * long.kept == pytest.approx(short.kept, rel=0.1)


@pytest.mark.skipif(not HAS_TRITON, reason="the kernels need Triton")
@pytest.mark.parametrize("name", counting.HAVE_KERNELS)
def test_kernels_move_little_more_than_torchs_masked_attention_and_keep_no_scores(name):
    short, long, masked = (
        counting.cost(setting(length), of)
        for length, of in ((128, name + TRITON), (512, name + TRITON), (512, MASKED))
    )
    assert long.bytes <= 1.3 * masked.bytes
    assert 4 * long.kept <= 1.5 * short.kept


def test_the_page_shows_what_is_counted():
    page = PAGE.read_text(encoding="utf-8").splitlines()
    assert [line for line in counting.table(COUNTED).splitlines() if line not in page] == []

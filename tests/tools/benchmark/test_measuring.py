"""What does not fit into memory is answered in one line."""

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.benchmark.timing import SUBJECTS, measure

WORDS = [
    "CUDA out of memory. Tried to allocate 20.00 MiB",
    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes.",
    "shapes do not fit",
]


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("building", [True, False])
def test_too_little_memory_is_told_and_other_errors_are_not_hidden(
    monkeypatch, settings_of, words, building
):
    setting = settings_of("cape-9", "--quick")[0]

    def fail():
        raise RuntimeError(words)

    monkeypatch.setitem(
        SUBJECTS, setting.subject, lambda s: fail() if building else {"stock": fail}
    )
    with pytest.raises(RuntimeError if words == WORDS[-1] else UsageError) as caught:
        measure(setting)
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert words == WORDS[-1] or "6 sentences of 10 tokens" in str(caught.value)

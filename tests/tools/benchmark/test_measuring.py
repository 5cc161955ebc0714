"""A setting is measured with the batch that fits into memory."""

import pytest

from fairseq_posenc.tools.benchmark import timing
from fairseq_posenc.tools.benchmark.markdown import render
from fairseq_posenc.tools.benchmark.measuring import SUBJECTS, measure
from fairseq_posenc.tools.benchmark.tables import load

WORDS = {
    "cuda": "CUDA out of memory. Tried to allocate 20.00 MiB",
    "library": "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "cpu": "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes.",
}


@pytest.fixture
def setting(settings_of):
    """The first column of CAPE's table, to be measured with batches of 12."""
    return settings_of("cape-9", "--batch 12 --tokens 120 --quick")[0]


@pytest.fixture
def subject(monkeypatch, setting):
    """A function that replaces what is timed by something that needs memory.

    A sentence takes as much as it says for a contestant, 1 if it does not; 3 are at hand.
    """

    def replace(needs, error, building=0):
        batches = []

        def prepare(given):
            batches.append(given.batch)
            if given.batch * building > 3:
                raise error

            def step(name):
                if given.batch * needs.get(name, 1) > 3:
                    raise error

            return {name: lambda name=name: step(name) for name in ["stock", *given.contestants]}

        monkeypatch.setitem(SUBJECTS, setting.subject, prepare)
        monkeypatch.setattr(timing, "peak_memory", lambda step, device: 0)
        return batches

    return replace


@pytest.mark.parametrize("error", [RuntimeError(words) for words in WORDS.values()])
def test_a_batch_that_does_not_fit_is_halved(setting, subject, error):
    batches = subject({}, error)
    result = measure(setting)
    assert batches == [12, 6, 3] and result["batch"] == 3
    assert all(figures["seconds"] > 0 for figures in result["contestants"].values())
    assert "3 x 10 tokens, 12 did not fit" in render(
        load("cape-9"), [{"cell": setting.to_json(), **result}]
    )


def test_who_does_not_fit_with_one_sentence_is_left_out(setting, subject):
    large = "shaw --position-max-distance 1000"
    subject({large: 4}, RuntimeError(WORDS["cuda"]))
    result = measure(setting)
    assert result["batch"] == 1 and result["contestants"][large] is None
    assert result["contestants"]["none"]["base"] == 1
    text = render(load("cape-9"), [{"cell": setting.to_json(), **result}])
    assert f"relpos, 1000 context, `{large}` | out of memory; paper 2.1 |" in text


def test_without_the_base_there_are_no_ratios(setting, subject):
    subject({"none": 4}, MemoryError())
    result = measure(setting)
    text = render(load("cape-9"), [{"cell": setting.to_json(), **result}])
    assert "no positions, `none` | out of memory |" in text
    assert "`shaw --position-max-distance 100` | -; paper 2.1 |" in text


def test_models_that_do_not_fit_at_all_are_told(setting, subject):
    batches = subject({}, RuntimeError(WORDS["cuda"]), building=4)
    result = measure(setting)
    assert batches == [12, 6, 3, 1]
    assert set(result["contestants"]) == {"stock", *setting.contestants}
    assert not any(result["contestants"].values())


def test_other_errors_are_not_hidden(setting, subject):
    subject({}, RuntimeError("shapes do not fit"))
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        measure(setting)

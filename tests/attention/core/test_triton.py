"""Triton's kernels, interpreted where there is no GPU, against the plain core in float64."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fairseq_posenc.attention import core, plain
from fairseq_posenc.errors import UsageError

for needed in ("torch.compiler", "triton.backends"):
    pytest.importorskip(
        needed, reason="Triton's kernels, here and in test_dropout.py, need Triton 3 and torch 2.1"
    )

kinds = pytest.mark.parametrize("kind", ["relative", "relative_keys", "shared", "distances"])
causal_or_not = pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])


@pytest.fixture
def relative(triton_attend):
    from fairseq_posenc.attention.gpu import relative

    return relative


def errors(case, attend, dtype, expected, slopes):
    """Largest error of the outputs and of each gradient, relative to the largest entry."""
    found, gradients = case.outputs_and_gradients(attend, dtype)
    assert all(gradients[name].dtype == dtype for name in slopes)
    pairs = {"outputs": (found, expected), **{n: (gradients[n], x) for n, x in slopes.items()}}
    return {n: float((x - y).abs().max() / y.abs().max()) for n, (x, y) in pairs.items()}


@kinds
@causal_or_not
@pytest.mark.parametrize(
    ("batch", "heads", "length", "width", "side", "k"),
    [(2, 1, 70, 24, "left", 5), (2, 2, 33, 8, "right", 40), (1, 1, 96, 16, None, 2)],
)
def test_outputs_and_gradients_are_those_of_the_plain_core(
    kind, causal, batch, heads, length, width, side, k, make_case, plain_attend, triton_attend
):
    case = make_case(kind, batch, heads, length, length, width, side, causal, k)
    expected = case.outputs_and_gradients(plain_attend, torch.float64)
    found = errors(case, triton_attend, torch.float32, *expected)
    assert max(found.values()) <= 5e-6, found


@kinds
def test_there_may_be_more_keys_than_queries(kind, make_case, plain_attend, triton_attend):
    case = make_case(kind, 2, 2, length=20, keys=41, width=5, side="left", k=3)
    expected = case.outputs_and_gradients(plain_attend, torch.float64)
    found = errors(case, triton_attend, torch.float32, *expected)
    assert max(found.values()) <= 5e-6, found


@kinds
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_as_good_as_the_plain_cores(
    kind, dtype, make_case, plain_attend, triton_attend
):
    case = make_case(kind, 2, 1, length=70, width=32, side="left", causal=True, k=5)
    expected = case.outputs_and_gradients(plain_attend, torch.float64)
    ours, theirs = (errors(case, x, dtype, *expected) for x in (triton_attend, plain_attend))
    assert sum(ours.values()) <= 1.1 * sum(theirs.values())


@kinds
def test_what_is_kept_grows_with_the_length_alone(kind, make_case, triton_attend):
    def kept(length):
        sizes = []
        case = make_case(kind, length=length, side="right")
        with torch.autograd.graph.saved_tensors_hooks(lambda x: sizes.append(x.numel()) or x, id):
            case.run(triton_attend, case.leaves(torch.float32), 0.1)
        return sum(sizes)

    assert kept(64) <= 2 * kept(32)


@kinds
def test_a_row_of_padding_alone_does_no_harm(kind, make_case, triton_attend):
    case = make_case(kind, heads=1, length=40, side="right")
    expected = case.outputs_and_gradients(triton_attend, torch.float32)[0]
    case.padding[1] = True
    tensors = case.leaves(torch.float32)
    found = case.run(triton_attend, tensors)[0]
    found.square().sum().backward()
    assert torch.equal(found[0], expected[0])
    assert not bool(found[1].any())
    assert all(bool(x.grad.isfinite().all()) for x in tensors.values())


def test_what_kernels_do_not_take_is_for_the_plain_core(relative, make_case, monkeypatch):
    monkeypatch.setattr(relative, "_check", lambda *_: None)

    def taken(kind, dtype=torch.bfloat16, dropout_p=0.1, drop=(), **others):
        case = make_case(kind, **{"length": 20, "width": 64, **others})
        tensors = {n: x.to(dtype) for n, x in case.tensors.items() if n not in drop}
        heads, terms = case.heads_and_terms(tensors)
        return relative.supports(plain.Inputs(*heads, terms, None, case.causal, dropout_p))

    for kind in ("relative", "relative_keys", "shared", "distances"):
        assert taken(kind) and taken(kind, causal=True) and taken(kind, width=50)
        assert not taken(kind, length=15) and not taken(kind, width=129)
        assert not taken(kind, dtype=torch.float32) and not taken(kind, dtype=torch.float64)
        assert not taken(kind, dropout_p=1.0) and not taken(kind + "+bias")
        assert not taken(kind + "+segments")
    assert not taken("none") and not taken("u") and not taken("relative_values")
    assert not taken("relative+distances") and not taken("distances", drop=["content_query"])
    monkeypatch.setattr(relative, "_tf32_is_allowed", lambda: True)
    assert taken("distances", dtype=torch.float32)
    assert not taken("distances", dtype=torch.float32, width=65)


@pytest.mark.parametrize("distances", [False, True])
def test_kernels_that_fail_end_the_run(distances, relative, monkeypatch):
    if not torch.cuda.is_available():
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (8, 0))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    arguments = (device, torch.bfloat16, 16, True, distances, not distances)
    check = relative._check.__wrapped__
    check(*arguments)

    def fails(inputs):
        raise RuntimeError("no C compiler\nand a long story")

    right = relative.attend

    def wrong(inputs):
        return right(inputs._replace(terms=replace(inputs.terms, scale=0.2)))

    for attend, reason in ((fails, "RuntimeError: no C compiler"), (wrong, "error is ")):
        monkeypatch.setattr(relative, "attend", attend)
        with pytest.raises(UsageError, match=reason) as failed:
            check(*arguments)
        assert "long story" not in str(failed.value)


@pytest.mark.parametrize("missing", ["triton", "torch.compiler"])
def test_kernels_that_are_wanted_need_triton_and_torch_2_1(missing, monkeypatch):
    monkeypatch.setenv("POSENC_ATTENTION", "triton")
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delattr("fairseq_posenc.attention.gpu.relative", raising=False)
    for name in ("relative", "kernels"):
        monkeypatch.delitem(sys.modules, f"fairseq_posenc.attention.gpu.{name}", raising=False)
    with pytest.raises(UsageError, match=f"needs Triton 3 and torch 2.1 .*{missing}"):
        core._fused_relative.__wrapped__()


def printed(script, *arguments):
    """Lines that a script beside this one prints, in a process without Triton's interpreter."""
    path = Path(__file__).with_name(script)
    done = subprocess.run(
        [sys.executable, str(path), *arguments],
        cwd=path.parents[3], encoding="utf-8", stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


@pytest.mark.parametrize("kind", ["shaw", "transformer_xl"])
def test_kernels_compile_for_gpus_that_are_not_here(kind):
    """Registers suffice and shared memory is that of the smallest GPU of each generation."""
    rows = [line.split() for line in printed("compile_kernels.py", kind)]
    assert len(rows) == 4 * 2
    for kernel, _, shared, spilled in rows:
        assert int(shared) <= 99 * 1024, kernel
        assert int(spilled) <= 512, kernel

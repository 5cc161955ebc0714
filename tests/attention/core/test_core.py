"""The core that layers call, fast where it can be, against the plain core in float64."""

import pytest
import torch

from fairseq_posenc.attention import core, fused, plain

ALONE = "none bias one_bias row one_row index segments relative_keys relative shared distances"
JOINT = "bias+segments relative+bias relative+segments distances+bias+segments+relative "
JOINT += "row+index distances+row+one_index"
KINDS = [*ALONE.split(), *JOINT.split()]
kinds = pytest.mark.parametrize("kind", KINDS)
# segments and rows of scalars are for whole sequences
kinds_of_steps = pytest.mark.parametrize(
    "kind", [k for k in KINDS if "segments" not in k and "row" not in k]
)


@pytest.fixture(scope="module")
def check(plain_attend):
    """Function that compares outputs up to 2e-5, gradients up to 1e-4 of the largest entry."""

    def check(case, attend=core.attend):
        expected, slopes = case.outputs_and_gradients(plain_attend, torch.float64)
        found, gradients = case.outputs_and_gradients(attend, torch.float32)
        assert found.dtype == torch.float32
        assert float((found - expected).abs().max()) <= 2e-5
        assert gradients.keys() == slopes.keys()
        for name, slope in slopes.items():
            assert gradients[name].shape == slope.shape
            error = float((gradients[name] - slope).abs().max())
            # one key alone: the weights are constant, and what depends on them has no gradient
            assert error <= 1e-4 * float(slope.abs().max()) + 1e-6, name

    return check


@kinds
@pytest.mark.parametrize("length", [1, 5, 33, 130, 300])
@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
@pytest.mark.parametrize("side", [None, "left", "right"])
def test_outputs_and_gradients_are_those_of_the_plain_core(
    kind, length, causal, side, make_case, check
):
    heads = 1 if length == 300 else 2
    check(make_case(kind, heads=heads, length=length, side=side, causal=causal))


@pytest.mark.parametrize("kind", "none bias one_bias segments one_segments bias+segments".split())
@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
@pytest.mark.parametrize("side", [None, "left", "right"])
def test_torchs_attention_on_a_gpu_gets_one_mask_for_all(
    kind, causal, side, make_case, check, monkeypatch
):
    """And without a mask one width, as flash attention refuses several."""
    seen, torchs = [], torch.nn.functional.scaled_dot_product_attention

    def one_width(*tensors, attn_mask, **options):
        assert attn_mask is not None or len({x.size(-1) for x in tensors}) == 1
        return torchs(*tensors, attn_mask=attn_mask, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", one_width)

    def attend(*arguments):
        inputs = fused.with_one_mask(plain.Inputs(*arguments[:-1]))
        seen.append(plain.additive_bias(inputs.terms, torch.float32))
        assert inputs.padding_mask is None or (kind == "none" and not causal)
        return fused.attend(inputs), None

    check(make_case(kind, batch=3, length=9, side=side, causal=causal), attend)
    assert all((mask is not None) == ("bias" in kind) for mask in seen)
    assert all(mask is None or mask.size(0) == 1 for mask in seen)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "relative" not in kind.split("+")
                                  and "shared" not in kind])  # fmt: skip
@pytest.mark.parametrize("length", [1, 5, 33])
@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
@pytest.mark.parametrize("side", [None, "left", "right"])
def test_torchs_attention_on_a_gpu_gets_a_mask_of_what_depends_on_queries(
    kind, length, causal, side, make_case, check
):
    def attend(*arguments):
        inputs = plain.Inputs(*arguments[:-1])
        assert fused.supports_queries(inputs)
        return fused.attend(inputs), None

    check(make_case(kind, batch=3, length=length, side=side, causal=causal), attend)


@pytest.mark.parametrize("k", [1, 15, 16, 17, 40])
@pytest.mark.parametrize("length", [15, 16, 17, 31, 32, 33, 34, 35, 81])
@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
def test_relative_tables_are_right_at_every_edge(k, length, causal, make_case, check):
    check(make_case("relative", heads=1, length=length, causal=causal, k=k))
    check(make_case("shared", batch=1, heads=1, length=length, causal=causal, k=k))


@pytest.mark.parametrize("kind", "none bias one_bias bias+segments relative distances".split())
@pytest.mark.parametrize("shape", [(3, 8, 130), (45, 8, 33), (2, 3, 257), (1, 9, 256)], ids=str)
@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
def test_work_in_portions_leaves_nothing_out(kind, shape, causal, make_case, check):
    """More scores than one portion holds, and numbers that portions do not divide."""
    batch, heads, length = shape
    check(make_case(kind, batch, heads, length, side="right", causal=causal))


@pytest.mark.parametrize("kind", "none bias bias+segments relative distances".split())
@pytest.mark.parametrize("length", [2, 15, 16, 63, 64, 255, 256, 1030])
@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
@pytest.mark.parametrize("side", [None, "left"])
def test_every_length_is_right_in_evaluation_and_in_training(
    kind, length, causal, side, make_case, check, plain_attend
):
    case = make_case(kind, heads=1, length=length, side=side, causal=causal)
    if length <= 256 or kind == "none":
        check(case)
    expected = case.run(plain_attend, {n: t.double() for n, t in case.tensors.items()})[0]
    found = case.run(core.attend)[0]
    assert float(((found - expected) * case.sighted()).abs().max()) <= 2e-5


@kinds_of_steps
@pytest.mark.parametrize("keys", [1, 2, 7, 40])
def test_a_step_of_decoding_has_one_query(kind, keys, make_case, check):
    for side in (None, "left"):
        check(make_case(kind, length=1, keys=keys, side=side))


@kinds
@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
def test_a_row_of_padding_alone_does_no_harm(kind, causal, make_case):
    case = make_case(kind, length=5, side="right", causal=causal)
    expected, slopes = case.outputs_and_gradients(core.attend, torch.float32)
    case.padding[1] = True
    tensors = case.leaves(torch.float32)
    found = case.run(core.attend, tensors)[0]
    found.square().sum().backward()
    assert bool(found.isfinite().all())
    assert torch.equal(found[0], expected[0])
    assert all(bool(t.grad.isfinite().all()) for t in tensors.values() if t.requires_grad)


@kinds
@pytest.mark.parametrize("length", [5, 33, 150])
def test_a_query_that_sees_nothing_disturbs_no_other(kind, length, make_case):
    """Whatever gradient comes back to such queries, others' gradients are as without."""
    case = make_case(kind, heads=1, length=length, side="left", causal=True)
    sighted = case.sighted()
    assert not bool(sighted.all())
    found = []
    for outer in (sighted.float(), torch.where(sighted, 1.0, 100.0)):
        tensors = case.leaves(torch.float32)
        (case.run(core.attend, tensors)[0] * outer).sum().backward()
        found.append(tensors["queries"].grad * sighted)
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["none", "bias", "relative", "distances"])
@pytest.mark.parametrize("length", [5, 300])
def test_hidden_keys_get_no_weight_however_bad_the_others_are(kind, length, make_case):
    case = make_case(kind, length=length, side="left")
    real = ~case.padding
    real[:, length // 2] = True
    case.padding = ~real
    case.tensors["queries"] = torch.ones_like(case.tensors["queries"])
    case.tensors["keys"] = case.tensors["keys"].abs() * -2000
    case.tensors["values"] = real[:, None, :, None].float().expand_as(case.tensors["values"])
    case.tensors.pop("relative_values", None)
    found = case.run(core.attend)[0]
    torch.testing.assert_close(found, torch.ones_like(found))


@kinds
@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
def test_weights_are_those_before_dropout(kind, causal, make_case, plain_attend):
    case = make_case(kind, length=9, side="right", causal=causal)
    expected = case.run(plain_attend, case.leaves(torch.float64), need_weights=True)[1].detach()
    for dropout_p in (0.0, 0.4):
        found = case.run(core.attend, dropout_p=dropout_p, need_weights=True)[1]
        assert float((found - expected).abs().max()) <= 1e-6
    assert case.run(core.attend)[1] is None


@kinds
@pytest.mark.parametrize("length", [5, 130])
def test_what_comes_in_stays_as_it_was(kind, length, make_case):
    case = make_case(kind, length=length, side="left", causal=True)
    tensors = case.leaves(torch.float32)
    case.run(core.attend, tensors)[0].square().sum().backward()
    case.run(core.attend)
    for name, before in case.tensors.items():
        assert torch.equal(tensors[name], before)
    assert torch.equal(
        case.padding, make_case(kind, length=length, side="left", causal=True).padding
    )


@kinds
@pytest.mark.parametrize("length", [5, 130])
def test_frozen_inputs_get_no_gradient_and_change_none(kind, length, make_case, plain_attend):
    case = make_case(kind, length=length, side="right", causal=True)
    _, slopes = case.outputs_and_gradients(plain_attend, torch.float64)
    whole = case.outputs_and_gradients(core.attend, torch.float32)
    with torch.no_grad():
        assert float((case.run(core.attend)[0] - whole[0]).abs().max()) <= 2e-5
    outer = torch.randn(whole[0].shape, generator=torch.Generator().manual_seed(5))
    for learned in slopes:
        tensors = {name: t.detach() for name, t in case.leaves(torch.float32).items()}
        tensors[learned].requires_grad_()
        (case.run(core.attend, tensors)[0] * outer).sum().backward()
        error = float((tensors[learned].grad - slopes[learned]).abs().max())
        assert error <= 1e-4 * float(slopes[learned].abs().max())
        assert all(t.grad is None for name, t in tensors.items() if name != learned)


@kinds
def test_other_precisions_are_those_of_the_plain_core(kind, make_case, plain_attend):
    case = make_case(kind, length=33, side="right")
    for dtype in (torch.float64, torch.bfloat16):
        tensors = case.leaves(dtype)
        found, expected = (case.run(way, tensors)[0] for way in (core.attend, plain_attend))
        assert found.dtype == dtype and torch.equal(found, expected)


@pytest.mark.parametrize(
    ("kind", "case", "backend"),
    [
        ("none", {"length": 32}, core.CPU_SDPA),
        ("none", {"length": 100}, core.CPU_CHUNKS),
        ("none", {"length": 1024, "learns": False}, core.CPU_SDPA),
        ("none", {"length": 1024, "causal": True}, core.CPU_CHUNKS),
        ("none", {"length": 32, "dropout_p": 0.1}, core.CPU_CHUNKS),
        ("none", {"length": 9, "learns": False}, core.PLAIN),
        ("bias", {"length": 32}, core.CPU_CHUNKS),
        ("relative", {"length": 32}, core.CPU_CHUNKS),
        ("relative", {"length": 32, "dtype": torch.bfloat16}, core.PLAIN),
    ],
)
def test_each_case_has_its_backend(kind, case, backend, make_case):
    """As the table of the entrance says."""
    case = {"causal": False, "learns": True, "dropout_p": 0.0, "dtype": torch.float32, **case}
    made = make_case(kind, heads=1, length=case["length"], causal=case["causal"])
    heads, terms = made.heads_and_terms(made.leaves(case["dtype"]))
    inputs = plain.Inputs(*heads, terms, None, case["causal"], case["dropout_p"])
    with torch.set_grad_enabled(case["learns"]):
        assert next(x for x in core.BACKENDS if x.supports(inputs)) is backend

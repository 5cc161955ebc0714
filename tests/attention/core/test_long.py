"""Long sequences on a CPU: weights are computed again, and no bias is made as a matrix."""

import pytest
import torch

from fairseq_posenc.attention import core
from fairseq_posenc.attention.cpu import autograd
from fairseq_posenc.encodings import Positions, StackConfig, build, by_distance

KINDS = "none bias row one_row index row+one_index bias+segments relative shared distances"
MADE_IN_PIECES = ["rel_scalar", "kerple", "t5", "alibi", "tupe", "abs_scalar"]


@pytest.mark.parametrize("kind", [*KINDS.split(), "relative+row"])
@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
@pytest.mark.parametrize("dropout_p", [0.0, 0.3])
def test_computing_weights_again_changes_no_bit(kind, causal, dropout_p, make_case, monkeypatch):
    case = make_case(kind, batch=3, heads=3, length=270, side="right", causal=causal)
    outcomes = []
    for limit in (10_000, 1):
        monkeypatch.setattr(autograd, "LONG", limit)
        torch.manual_seed(1)
        outcomes.append(case.outputs_and_gradients(core.attend, torch.float32, dropout_p))
    (kept, slopes), (again, repeated) = outcomes
    assert torch.equal(kept, again)
    for name, slope in slopes.items():
        assert torch.equal(slope, repeated[name]), name


def test_computing_weights_again_draws_nothing(make_case):
    case = make_case("relative", batch=1, heads=1, length=autograd.LONG)
    output = case.run(core.attend, case.leaves(torch.float32), dropout_p=0.1)[0]
    before = torch.get_rng_state()
    output.sum().backward()
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("name", [*MADE_IN_PIECES, "shaw"])
@pytest.mark.parametrize("dropout_p", [0.0, 0.1])
def test_what_is_kept_for_the_backward_pass_grows_with_the_length_alone(name, dropout_p):
    """Counted at 1,024 and 2,048 tokens: one head's weights alone would be 4 and 16 MB."""
    sizes = []
    for length in (1024, 2048):
        encoding = build(name, StackConfig(16, max_length=length, layers=1, heads=2))
        size = 0

        def count(tensor):
            nonlocal size
            size += tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            terms = encoding(Positions.of_length(length)).attention[0]
            heads = [torch.randn(1, 2, length, 8, requires_grad=True) for _ in range(3)]
            output = core.attend(*heads, terms, dropout_p=dropout_p)[0]
        sizes.append(size)
        output.sum().backward()
        assert all(p.grad is not None for p in encoding.parameters())
    assert sizes[1] < 2.1 * sizes[0] < 2 * 2**20


@pytest.mark.parametrize("name", MADE_IN_PIECES)
@pytest.mark.parametrize("decoder", [False, True], ids=["encoder", "decoder"])
def test_a_bias_in_pieces_is_the_matrix_they_make(name, decoder, monkeypatch):
    torch.manual_seed(1)
    encoding = build(name, StackConfig(16, decoder, layers=2, heads=2))
    parameters = list(encoding.parameters())
    heads = [torch.randn(2, 2, 40, 8, requires_grad=True) for _ in range(3)]
    outcomes = []
    for limit in (10_000, 40):
        monkeypatch.setattr(by_distance, "LONG", limit)
        terms = encoding(Positions.of_length(40)).attention
        assert set(terms) == {0, 1}
        assert (terms[1].bias is None) == (limit == 40)
        outputs = [core.attend(*heads, terms[n], causal=decoder)[0] for n in (0, 1)]
        total = torch.cat(outputs).square().sum()
        outcomes.append([total, *torch.autograd.grad(total, [*heads, *parameters])])
    for expected, found in zip(*outcomes):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)

"""Attention modules: fairseq's parameters, and one meaning step by step and for whole sequences."""

import pytest
import torch
from fairseq.modules import MultiheadAttention

from fairseq_posenc.attention import cache
from fairseq_posenc.attention.attention import CrossAttention, SelfAttention
from fairseq_posenc.encodings.base import AttentionTerms

CHANNELS, HEADS, WIDTH, LONGEST = 12, 3, 4, 9


def rand(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def mask(*lengths):
    return torch.arange(max(lengths)) >= torch.tensor(lengths).unsqueeze(1)


ROWS = rand(2 * LONGEST - 1, CHANNELS, seed=1)
BIAS = rand(HEADS, LONGEST, LONGEST, seed=2)
TABLES = rand(2, 7, WIDTH, seed=3)
ANGLES = rand(LONGEST, 1, WIDTH // 2, seed=4)  # the same for all sentences

# for each kind of term: the terms of the last `queries` of `keys` tokens
KINDS = {
    "none": lambda queries, keys: AttentionTerms(),
    "bias": lambda queries, keys: AttentionTerms(bias=BIAS[:, keys - queries : keys, :keys]),
    "scale": lambda queries, keys: AttentionTerms(scale=0.1, bias=BIAS[:1, :1, :keys]),
    "relative": lambda queries, keys: AttentionTerms(
        relative_keys=TABLES[0], relative_values=TABLES[1]
    ),
    "distances": lambda queries, keys: AttentionTerms(
        distances=ROWS[LONGEST - keys : LONGEST + queries - 1],
        content_query=TABLES[0, :HEADS],
        position_query=TABLES[1, :HEADS],
    ),
    "rotation": lambda queries, keys: AttentionTerms(
        rotation=torch.stack([ANGLES.cos(), ANGLES.sin()])[:, keys - queries : keys]
    ),
}
each_kind = pytest.mark.parametrize("terms", KINDS.values(), ids=KINDS)


@pytest.fixture
def attention():
    torch.manual_seed(5)
    return SelfAttention(CHANNELS, HEADS).eval()


@pytest.fixture
def cross():
    torch.manual_seed(6)
    return CrossAttention(CHANNELS, HEADS).eval()


@pytest.mark.parametrize("key_channels", [CHANNELS, 8])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_parameters_are_drawn_as_in_fairseq(key_channels, noise):
    torch.manual_seed(1)
    ours = CrossAttention(
        CHANNELS, HEADS, key_channels=key_channels, q_noise=noise, qn_block_size=4
    )
    torch.manual_seed(1)
    sizes = {"kdim": key_channels, "vdim": key_channels, "encoder_decoder_attention": True}
    theirs = MultiheadAttention(CHANNELS, HEADS, q_noise=noise, qn_block_size=4, **sizes)
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    for name, parameter in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], parameter), name
    x, source = rand(1, 2, CHANNELS), rand(6, 2, key_channels)
    torch.manual_seed(2)
    expected = theirs(x, source, source, incremental_state={}, static_kv=True)[0]
    torch.manual_seed(2)
    assert torch.allclose(ours(x, source)[0], expected, atol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
def test_without_terms_it_is_fairseqs_attention(attention, causal):
    theirs = MultiheadAttention(CHANNELS, HEADS, self_attention=True).eval()
    theirs.load_state_dict(attention.state_dict())
    x, padding = rand(7, 3, CHANNELS), mask(7, 4, 6)
    future = torch.full((7, 7), -float("inf")).triu(1) if causal else None
    expected, expected_weights = theirs(x, x, x, key_padding_mask=padding, attn_mask=future)
    found, weights = attention(x, AttentionTerms(), padding, causal, need_weights=True)
    assert torch.allclose(found, expected, atol=1e-6)
    assert torch.allclose(weights.mean(dim=1), expected_weights, atol=1e-6)


@each_kind
@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_step_by_step_is_as_whole_sequences(attention, terms, gradients, padded, monkeypatch):
    """Capacity grows twice; hypotheses change places, double, vanish and, at last, come back."""
    monkeypatch.setattr(cache, "FIRST_CAPACITY", 2)
    orders = {2: [1, 0, 2, 3], 3: [0, 1, 2, 3], 4: [3, 3, 1], 6: [1, 0], 7: [0, 0, 1, 1]}
    batch, state, prefix = 4, {}, torch.empty(0, 4, CHANNELS)
    padding = torch.zeros(4, 0, dtype=torch.bool)
    with torch.set_grad_enabled(gradients):
        for step in range(LONGEST):
            if step in orders:
                order = torch.tensor(orders[step])
                state = attention.reorder_incremental_state(state, order)
                prefix, padding, batch = prefix[:, order], padding[order], len(order)
            newest = torch.arange(batch).eq(1 if padded and step in (3, 5) else -1).unsqueeze(1)
            prefix = torch.cat([prefix, rand(1, batch, CHANNELS, seed=step)])
            padding = torch.cat([padding, newest], dim=1)
            found, _ = attention(
                prefix[-1:], terms(1, step + 1), padding if padding.any() else None,
                incremental_state=state,
            )  # fmt: skip
            whole, _ = attention(prefix, terms(step + 1, step + 1), padding, causal=True)
            seen = slice(None) if terms is not KINDS["scale"] else slice(0)
            assert torch.allclose(found[0][seen], whole[-1][seen], atol=1e-6)
    assert found.requires_grad == gradients


def test_step_by_step_gradients_are_those_of_whole_sequences(attention):
    x, state, steps = rand(4, 2, CHANNELS).requires_grad_(), {}, []
    attention(x, KINDS["bias"](4, 4), causal=True)[0].square().sum().backward()
    expected, x.grad = x.grad, None
    for step in range(4):
        steps += attention(x[step : step + 1], KINDS["bias"](1, step + 1), None, False, state)[:1]
        if step == 1:
            for _ in range(2):
                attention.reorder_incremental_state(state, torch.tensor([1, 0]))
    torch.cat(steps).square().sum().backward()
    assert torch.allclose(x.grad, expected, atol=1e-5)


def test_a_step_projects_the_newest_distance_alone(attention):
    state, x = {}, rand(1, 2, CHANNELS)
    for keys in range(1, 5):
        rows = ROWS[LONGEST - keys : LONGEST].clone()
        rows[1:] = float("nan")
        found, _ = attention(x, AttentionTerms(distances=rows), incremental_state=state)
        attention.reorder_incremental_state(state, torch.tensor([1, 0]))
    assert found.isfinite().all()


@torch.no_grad()
def test_torch_compile_takes_a_step_whole(attention):
    """As tests/models/test_compiled.py of whole decoders, which takes minutes."""
    state = {}
    attention(rand(1, 2, CHANNELS), AttentionTerms(), incremental_state=state)
    compiled = torch.compile(attention, backend="eager", fullgraph=True)
    found, _ = compiled(rand(1, 2, CHANNELS, seed=1), AttentionTerms(), incremental_state=state)
    x = torch.cat([rand(1, 2, CHANNELS), rand(1, 2, CHANNELS, seed=1)])
    expected, _ = attention(x, AttentionTerms(), causal=True)
    assert torch.allclose(found[0], expected[1], atol=1e-6)


@torch.no_grad()
def test_memory_is_reused(attention):
    """It grows rarely, and an order that changes nothing copies nothing."""
    state, places = {}, set()
    for _ in range(70):
        attention(rand(1, 3, CHANNELS), AttentionTerms(), incremental_state=state)
        keys = attention.own_state(state)["cache"].keys
        place = keys.all.data_ptr()
        attention.reorder_incremental_state(state, torch.arange(3))
        assert keys.all.data_ptr() == place
        attention.reorder_incremental_state(state, torch.tensor([1, 2, 0]))
        places.add(keys.all.data_ptr())
    assert len(places) <= 6
    attention.reorder_incremental_state(state, torch.arange(2))
    assert keys.all.shape == (70, 2, CHANNELS)


def test_dropout_is_for_training_unless_it_is_retained(attention):
    attention.dropout_module.p = 0.5
    x = rand(LONGEST, 2, CHANNELS)
    first, second = (attention(x, AttentionTerms())[0] for _ in range(2))
    assert torch.equal(first, second)
    attention.dropout_module.make_generation_fast_("", retain_dropout=True)
    assert not torch.equal(attention(x, AttentionTerms())[0], first)
    attention.dropout_module.apply_during_inference = False
    assert not torch.equal(attention.train()(x, AttentionTerms())[0], first)


@pytest.mark.parametrize("gradients", [False, True])
def test_hypotheses_look_at_their_sentence(cross, gradients):
    """Orders as beam searches give them: within sentences, and with sentences that are done."""
    source, padding = rand(6, 3, CHANNELS), mask(6, 3, 5)
    rows, state = [0, 1, 2], {}
    orders = [[0, 0, 1, 1, 2, 2], [1, 0, 2, 2, 5, 5], [0, 1, 5, 4], [1, 1, 2, 3], [3, 2]]
    with torch.set_grad_enabled(gradients):
        for step in range(6):
            x = rand(1, len(rows), CHANNELS, seed=step)
            given = source[:, rows], padding[rows]
            whole, whole_weights = cross(x, *given, need_weights=True)
            found, weights = cross(x, *given, incremental_state=state, need_weights=True)
            assert torch.allclose(found, whole, atol=1e-6)
            assert torch.allclose(weights, whole_weights, atol=1e-6)
            assert weights.shape == (len(rows), HEADS, 1, 6)
            if step < 5:
                rows = [rows[i] for i in orders[step]]
                cross.reorder_incremental_state(state, torch.tensor(orders[step]))
    assert cross.own_state(state)["cache"].beam == 2


@pytest.mark.parametrize("order", [[1, 2, 3, 4], [2, 0], [0, 3, 1], [3, 3, 0, 0, 1, 1]])
def test_any_other_order_is_followed_too(cross, order):
    source, padding, state = rand(6, 3, CHANNELS), mask(6, 3, 5), {}
    cross(rand(1, 3, CHANNELS), source, padding, state)
    cross.reorder_incremental_state(state, torch.tensor([0, 0, 1, 1, 2, 2]))
    cross.reorder_incremental_state(state, torch.tensor(order))
    rows, x = [i // 2 for i in order], rand(1, len(order), CHANNELS)
    found = cross(x, source[:, rows], padding[rows], state)[0]
    assert torch.allclose(found, cross(x, source[:, rows], padding[rows])[0], atol=1e-6)


def test_hypotheses_of_a_sentence_share_its_source(cross):
    seen, state = [], {}
    cross.k_proj.register_forward_hook(lambda module, inputs, output: seen.append(output.size(1)))
    source, rows = rand(6, 2, CHANNELS), [0, 0, 0, 1, 1, 1]
    cross(rand(1, 2, CHANNELS), source, None, state)
    keys = cross.own_state(state)["cache"].keys
    for order in (rows, [2, 0, 0, 3, 5, 4]):
        cross.reorder_incremental_state(state, torch.tensor(order))
        cross(rand(1, 6, CHANNELS), source[:, rows], None, state)
        assert cross.own_state(state)["cache"].keys is keys
    assert seen == [2]

"""The plain core against loops over the formula of :class:`AttentionTerms`."""

import itertools

import pytest
import torch

ALONE = "none bias one_bias segments one_segments relative_keys relative_values relative shared u"
ALONE += " index one_index"
JOINT = "distances bias+segments relative+bias distances+bias+one_segments"
EVERYTHING = "bias+segments+relative+distances"
KINDS = [*ALONE.split(), *JOINT.split(), EVERYTHING]
kinds = pytest.mark.parametrize("kind", KINDS)
# segments are for whole sequences
kinds_of_steps = pytest.mark.parametrize("kind", [k for k in KINDS if "segments" not in k])


def dot(a, b):
    return (a * b).sum()


def score(terms, query, key, where):
    """Score of one query and one key; ``where`` is batch element, head, indices, all keys."""
    b, h, i, j, row, keys = where
    total = terms.scale * dot(query, key)
    if terms.content_query is not None:
        total = total + terms.scale * dot(terms.content_query[h], key)
    if terms.distance_keys is not None:
        distance = terms.distance_keys[h, keys - 1 - (i - j)]
        total = total + terms.scale * dot(query + terms.position_query[h], distance)
    if terms.relative_keys is not None:
        k = len(terms.relative_keys) // 2
        relative = terms.relative_keys[k + max(-k, min(k, i - j))]
        total = total + terms.scale * dot(query, relative)
    if terms.bias is not None:
        total = total + terms.bias[h % len(terms.bias), row, j]
    if terms.index_queries is not None:
        vectors = h % len(terms.index_queries)
        total = total + dot(terms.index_queries[vectors, row], terms.index_keys[vectors, j])
    if terms.segments is not None:
        scalars = terms.segment_scalars[h % len(terms.segment_scalars)]
        total = total + terms.segments[b, i] @ scalars @ terms.segments[b, j]
    return total


def row_of(terms, heads, padding, causal, where):
    """Output of one query of one head, and its weights of all keys; dropout is left to others."""
    (queries, keys, values), (b, h, row) = heads, where
    total = keys.shape[2]
    i = total - queries.shape[2] + row
    seen = [j for j in range(total) if padding is None or not padding[b, j]]
    seen = [j for j in seen if j <= i or not causal]
    query, output = queries[b, h, row], torch.zeros_like(values[b, h, 0])
    weights = [torch.zeros_like(output[0])] * total
    scores = [score(terms, query, keys[b, h, j], (b, h, i, j, row, total)) for j in seen]
    for j, one in zip(seen, scores):
        weights[j] = one.exp() / sum(other.exp() for other in scores)
        value = values[b, h, j]
        if terms.relative_values is not None:
            k = len(terms.relative_values) // 2
            value = value + terms.relative_values[k + max(-k, min(k, i - j))]
        output = output + weights[j] * value
    return output, torch.stack(weights)


def loops(queries, keys, values, terms, padding, causal, dropout_p, need_weights):
    """Attention, one query of one head at a time."""
    batch, heads, length, _ = queries.shape
    rows = [
        row_of(terms, (queries, keys, values), padding, causal, where)
        for where in itertools.product(range(batch), range(heads), range(length))
    ]
    outputs, weights = (torch.stack(part) for part in zip(*rows))
    return outputs.view(queries.shape), weights.view(batch, heads, length, -1)


def same(found, expected, limit=1e-10):
    torch.testing.assert_close(found, expected, rtol=0, atol=limit)


def check(case, plain_attend):
    expected, slopes = case.outputs_and_gradients(loops, torch.float64)
    found, gradients = case.outputs_and_gradients(plain_attend, torch.float64)
    same(found, expected)
    assert gradients.keys() == slopes.keys()
    for name in slopes:
        same(gradients[name], slopes[name])


@kinds
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("side", [None, "left", "right"])
def test_outputs_and_gradients_are_those_of_the_formula(
    kind, causal, side, make_case, plain_attend
):
    check(make_case(kind, length=5, width=4, side=side, causal=causal, k=2), plain_attend)


@kinds_of_steps
@pytest.mark.parametrize("queries, keys", [(1, 1), (1, 2), (1, 8), (3, 8)])
def test_queries_for_more_keys_are_the_last_ones(kind, queries, keys, make_case, plain_attend):
    check(make_case(kind, length=queries, keys=keys, width=4, side="left", k=2), plain_attend)


@pytest.mark.parametrize("causal", [False, True])
def test_the_weights_are_those_of_the_formula(causal, make_case, plain_attend):
    case = make_case(EVERYTHING, side="right", causal=causal)
    tensors = case.leaves(torch.float64)
    found = case.run(plain_attend, tensors, need_weights=True)[1]
    same(found, case.run(loops, tensors)[1])
    assert case.run(plain_attend, tensors)[1] is None


@pytest.mark.parametrize("kind", ["none", "bias+segments", "relative", "distances"])
def test_gradients_of_gradients_are_right(kind, make_case, plain_attend):
    case = make_case(kind, batch=1, length=3, width=2, causal=True, k=1)
    tensors = case.leaves(torch.float64)
    names = [name for name, t in tensors.items() if t.requires_grad]

    def output(*leaves):
        return case.run(plain_attend, {**tensors, **dict(zip(names, leaves))})[0]

    assert torch.autograd.gradgradcheck(output, tuple(tensors[name] for name in names))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["none", EVERYTHING])
def test_low_precision_is_right_up_to_its_rounding(kind, dtype, make_case, plain_attend):
    case = make_case(kind, length=9, side="right")
    expected = case.run(plain_attend)[0]
    found = case.run(plain_attend, {n: t.to(dtype) for n, t in case.tensors.items()})[0]
    assert found.dtype == dtype
    same(found.float(), expected, limit=20 * torch.finfo(dtype).eps)

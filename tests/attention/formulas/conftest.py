"""Slow references: attention with every encoding, in loops straight from the papers' formulas.

A reference gives the score of one query and one key, as a function of batch element ``b``, head
``h``, index ``i`` of the query and ``j`` of the key; :func:`attention` does the rest. Equation
numbers are those of Chen et al. 2021.
"""

import math
from dataclasses import dataclass
from typing import Any, Dict, Optional

import pytest
import torch
from torch import Tensor

from fairseq_posenc.encodings import StackConfig


@dataclass
class Heads:
    """What the heads of one layer get; ``queries``, ``keys``, ``values``: ``(B, H, T, d)``."""

    queries: Tensor
    keys: Tensor
    values: Tensor
    key_weight: Tensor
    padding: Tensor
    decoder: bool


@dataclass
class Encoded:
    """An encoding as the references see it: ``p`` has its parameters by name."""

    p: Dict[str, Tensor]
    options: Dict[str, Any]
    stack: StackConfig
    layer: int
    segments: Optional[Tensor] = None

    def table(self, name, h):
        """Part of a table ``(layers or 1, heads or 1, ...)`` that serves a head of this layer."""
        table, sharing = self.p[name], self.options["sharing"]
        return table[0 if sharing == "layers" else self.layer][0 if sharing == "heads" else h]


def dot(a, b):
    return (a * b).sum()


def attention(x, score, value=None):
    """Softmax over the keys that a query may see, and the weighted sum of the values."""
    batch, heads, length, width = x.queries.shape
    rows = []
    for b in range(batch):
        for h in range(heads):
            for i in range(length):
                seen = [j for j in range(length) if not x.padding[b, j]]
                seen = [j for j in seen if j <= i or not x.decoder]
                row = torch.zeros(width, dtype=x.values.dtype)
                if seen:
                    powers = torch.stack([score(b, h, i, j) for j in seen]).exp()
                    for j, weight in zip(seen, powers / powers.sum()):
                        row = row + weight * (value(b, h, i, j) if value else x.values[b, h, j])
                rows.append(row)
    return torch.stack(rows).view(batch, heads, length, width)


def shaw(e, x):
    k, width = e.options["max_distance"], x.queries.shape[-1]
    keys = e.p["keys"][e.layer]
    values = keys if e.options["shared_tables"] else e.p["values"][e.layer]

    def clip(distance):
        return k + max(-k, min(k, distance))

    def score(b, h, i, j):
        key = x.keys[b, h, j] + keys[clip(i - j)]
        return dot(x.queries[b, h, i], key) / math.sqrt(width)

    return attention(x, score, lambda b, h, i, j: x.values[b, h, j] + values[clip(i - j)])


def transformer_xl(e, x):
    """Section 2.2.2, with sinusoids of section 2.2.1."""
    width, channels = x.queries.shape[-1], e.stack.channels

    def sinusoid(distance):
        row = []
        for c in range(0, channels, 2):
            angle = distance / 10000 ** (c / channels)
            row += [math.sin(angle), math.cos(angle)]
        return torch.tensor(row[:channels], dtype=torch.float64)

    def score(b, h, i, j):
        query, key = x.queries[b, h, i], x.keys[b, h, j]
        distance = x.key_weight[h * width : (h + 1) * width] @ sinusoid(i - j)
        u, v = e.p["content_query"][e.layer, h], e.p["position_query"][e.layer, h]
        total = dot(query, key) + dot(query, distance) + dot(u, key) + dot(v, distance)
        return total / math.sqrt(width)

    return attention(x, score)


def bucket(distance, buckets, longest, decoder):
    """T5's bucket of query index minus key index (Raffel et al. 2020, section 2.1).

    A bucket after the exact ones begins at ``exact · (longest / exact) ** (m / count)``, m = 0, 1
    ...; both sides are raised to the power ``count``, so that whole numbers are compared.
    """
    if not decoder:
        half = buckets // 2
        past = bucket(abs(distance), half, longest, decoder=True)
        return past + half if distance < 0 else past
    n, exact = max(0, distance), buckets // 2
    if n < exact:
        return n
    count, m = buckets - exact, 0
    while m + 1 < count and n**count * exact ** (m + 1) >= exact**count * longest ** (m + 1):
        m += 1
    return exact + m


def bucket_of(e, i, j):
    buckets, longest = e.options["num_buckets"], e.options["max_distance"]
    return bucket(i - j, buckets, longest, e.stack.decoder)


def added(e, x, bias):
    """Attention with ``bias(h, i, j)`` added to the scaled product of query and key.

    With ``e.segments``, segment numbers ``(B, T)``, the scalars of eq. (9) are added too.
    """
    scale = 1 / math.sqrt(x.queries.shape[-1])

    def score(b, h, i, j):
        total = scale * dot(x.queries[b, h, i], x.keys[b, h, j]) + bias(h, i, j)
        if e.segments is not None:
            pair = e.segments[b, i], e.segments[b, j]
            total = total + e.table("segment scalars", h)[pair]
        return total

    return attention(x, score)


def t5(e, x):
    """Eq. (4), with the bias after the scale, as in eq. (8)."""
    return added(e, x, lambda h, i, j: e.table("scalars", h)[bucket_of(e, i, j)])


def rel_scalar(e, x):
    """Eq. (8); a distance beyond the table, or the largest, has the last scalar of its side."""
    n = e.stack.max_length
    if e.options["max_distance"]:
        n = min(n, e.options["max_distance"] + 1)

    def bias(h, i, j):
        distance = max(1 - n, min(n - 1, i - j))
        return e.table("scalars", h)[distance if e.stack.decoder else n - 1 + distance]

    return added(e, x, bias)


def abs_scalar(e, x):
    """Eq. (7); an index beyond the table has the last row."""
    last = e.stack.max_length - 1

    def bias(h, i, j):
        return dot(e.table("table", h)[min(i, last)], e.table("table", h)[min(j, last)])

    return added(e, x, bias)


def tupe(e, x):
    """Eq. (5), scaled as the authors scale it (Ke et al. 2020)."""
    width, last = x.queries.shape[-1], e.stack.max_length - 1
    scale = 1 / math.sqrt(2 * width)

    def projected(name, h, i):
        row = e.p["table"][min(i, last)]
        row = row - row.mean()
        row = row / (row.square().mean() + 1e-5).sqrt() * e.p["norm.weight"] + e.p["norm.bias"]
        head = slice(h * width, (h + 1) * width)
        return e.p[f"{name}.weight"][head] @ row + e.p[f"{name}.bias"][head]

    def score(b, h, i, j):
        content = scale * dot(x.queries[b, h, i], x.keys[b, h, j])
        if e.stack.has_cls and i == 0:
            return content + e.p["reset"][0, h]
        if e.stack.has_cls and j == 0:
            return content + e.p["reset"][1, h]
        absolute = scale * dot(projected("query", h, i), projected("key", h, j))
        return content + absolute + e.p["scalars"][h, bucket_of(e, i, j)]

    return attention(x, score)


def rotary(e, x):
    """Pair c of query i and key j turned by i·θ and j·θ, written by their distance (Su et al.).

    Longer sequences: Peng et al. 2024, sections 3.1 to 3.4, and transformers' rounding of yarn's
    first and last pair.
    """
    width, base, scale = x.queries.shape[-1], e.options["base"], e.options["scale"]
    method, trained = e.options["scale_method"], e.options["original_length"]

    def pair_of(turns):
        return width * math.log(trained / (2 * math.pi * turns)) / (2 * math.log(base))

    def speed(b, c):
        """θ of pair c, for the sentence b."""
        if method == "yarn":
            first, last = math.floor(pair_of(32)), math.ceil(pair_of(1))
            first, last = max(first, 0), min(last, width - 1)
            ramp = min(1, max(0, (c - first) / ((last - first) or 0.001)))
            return base ** (-2 * c / width) * (1 - ramp + ramp / scale)
        length = int((~x.padding[b]).sum()) if not x.decoder else e.stack.max_length
        longer = max(1, scale * length / trained - scale + 1) if method == "dynamic" else 1
        growth = {"ntk": scale, "dynamic": longer}.get(method, 1)
        higher = base * growth ** (width / (width - 2))
        return higher ** (-2 * c / width) / (scale if method == "linear" else 1)

    def score(b, h, i, j):
        query, key, total = x.queries[b, h, i], x.keys[b, h, j], 0
        for c in range(width // 2):
            angle = (i - j) * speed(b, c)
            one, two = 2 * c, 2 * c + 1
            total = total + math.cos(angle) * (query[one] * key[one] + query[two] * key[two])
            total = total + math.sin(angle) * (query[one] * key[two] - query[two] * key[one])
        stretch = 0.1 * math.log(scale) + 1 if method == "yarn" else 1
        return total * stretch**2 / math.sqrt(width)

    return attention(x, score)


def alibi(e, x):
    """Press et al. 2022, for a power of two of heads; symmetric where the future is seen."""
    heads = e.stack.heads
    return added(e, x, lambda h, i, j: -(2 ** (-8 * (h + 1) / heads)) * abs(i - j))


def kerple(e, x):
    """Chi et al. 2022, the log kernel; symmetric where the future is seen."""

    layer = 0 if e.options["sharing"] == "layers" else e.layer

    def bias(h, i, j):
        r1, r2 = e.p["log_scalars"][layer, :, 0 if e.options["sharing"] == "heads" else h].exp()
        return -r1 * torch.log(1 + r2 * abs(i - j))

    return added(e, x, bias)


REFERENCES = (shaw, transformer_xl, t5, tupe, abs_scalar, rel_scalar, rotary, alibi, kerple)


@pytest.fixture(scope="session")
def reference():
    """Function from a module in float64, what it gets, and an encoding to the module's output.

    Hidden states are ``(T, B, channels)``, tokens ``(B, T)`` with padding 1.
    """
    table = {function.__name__: function for function in REFERENCES}

    def run(name, encoded, attention, hidden, tokens):
        projections = (attention.q_proj, attention.k_proj, attention.v_proj)
        heads = [attention.split(project(hidden)) for project in projections]
        padding, decoder = tokens.eq(1), encoded.stack.decoder
        x = Heads(*heads, attention.k_proj.weight, padding, decoder)
        return attention.join(table[name](encoded, x))

    return run


@pytest.fixture(scope="session")
def encoded():
    """Function that shows a module to the references, with leaves of its own in float64."""

    def show(encoding, options, layer=0):
        p = {n: w.detach().double().requires_grad_() for n, w in encoding.named_parameters()}
        return Encoded(p, options, encoding.stack, layer)

    return show


@pytest.fixture(scope="session")
def t5_bucket():
    return bucket

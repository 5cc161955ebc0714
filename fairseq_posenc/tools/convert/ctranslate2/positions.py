"""CTranslate2's tables of positions, and how ours are written into them.

A stack has one kind of these, in its encoder as in its decoder (its sources, version 4.8; the tests
compare the numbers):

- a table of vectors that are added to the embeddings, which ends somewhere;
- T5's relative bias: a scalar per bucket of distances and head. Its buckets of single distances
  are half of all, so with twice as many buckets as distances it holds any bias by distance. All
  layers use that of the first one.
- Shaw's relative keys and values, clipped, per layer. With as many further channels in every head
  as there are heads, where the queries of head h are 1 at h and the keys are 0, they hold any bias
  by distance per layer and head.
- rotary positions of any base, divided by any number.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor

from fairseq_posenc.encodings.base import ExportedPositions, StackConfig
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.convert.checkpoint import ExportSource


@dataclass
class Ct2Tables:
    """What to fill into CTranslate2's specification of one stack.

    ``options`` are of its constructor; ``input``, ``(n, channels)``, is added to the embeddings;
    ``layers`` has attributes of each layer's self-attention; ``added_channels`` are of each head,
    for biases per layer and head, see the module.
    """

    options: Dict[str, Any] = field(default_factory=dict)
    input: Optional[Tensor] = None
    layers: List[Dict[str, Any]] = field(default_factory=list)
    added_channels: int = 0


def to_ct2_tables(exported: ExportedPositions, stack: StackConfig, length: int) -> Ct2Tables:
    """Return what an encoding computes for up to ``length`` tokens as CTranslate2 has it."""
    tables = (exported.input, exported.bias, exported.relative_keys, exported.rotation)
    without_keys = exported.relative_values is not None and exported.relative_keys is None
    if without_keys or sum(table is not None for table in tables) > 1:
        raise UsageError("CTranslate2 has no place for positions of several kinds in one model")
    if exported.bias is not None:
        return _bias(exported.bias, stack)
    if exported.relative_keys is not None:
        return _relative(exported.relative_keys, exported.relative_values)
    if exported.rotation is not None:
        return _rotation(exported.rotation, stack.head_channels)
    none = torch.zeros(length, stack.channels)
    return Ct2Tables(input=none if exported.input is None else exported.input)


def fits_ctranslate2(source: ExportSource) -> bool:
    """Return whether CTranslate2 has a place for the positions of a model, which must translate."""
    try:
        for side, module in source.stacks.items():
            to_ct2_tables(source.exported_positions(side, 8), module.embed_positions.stack, 8)
    except UsageError:
        return False
    return len(source.stacks) == 2


def _rotation(speeds: Tensor, width: int) -> Ct2Tables:
    """Return rotary positions, if their speeds fall geometrically as CTranslate2's do."""
    scale, speeds = 1 / float(speeds[0]), speeds.double() / speeds[0].double()
    base = float(speeds[1] ** (-width / 2)) if width > 2 else 10_000.0
    expected = base ** (torch.arange(width // 2).double() * (-2 / width))
    if not torch.allclose(speeds, expected, rtol=1e-5):
        raise UsageError("CTranslate2 turns queries and keys at other speeds than this encoding")
    options = {"rotary_dim": 0, "rotary_interleave": True, "rotary_base": round(base, 2)}
    if scale != 1:
        from ctranslate2.specs.attention_spec import RotaryScalingType

        options["rotary_scaling_type"] = RotaryScalingType.Linear
        options["rotary_scaling_factor"] = scale
    return Ct2Tables(options)


def _relative(keys: Tensor, values: Optional[Tensor] = None, added_channels: int = 0) -> Ct2Tables:
    """Return Shaw's tables, whose rows CTranslate2 orders by key minus query."""
    layers: List[Dict[str, Any]] = [{"relative_position_keys": table} for table in keys.flip(1)]
    for number, layer in enumerate(layers):
        layer["relative_position_values"] = None if values is None else values[number].flip(0)
    return Ct2Tables({"relative_position": True}, None, layers, added_channels)


def _bias(bias: Tensor, stack: StackConfig) -> Ct2Tables:
    bias = clip_distances(bias, stack.decoder)
    bias = bias.expand(bias.size(0), stack.heads, -1)
    if all(torch.equal(layer, bias[0]) for layer in bias):
        table, farthest = t5_buckets(bias[0], stack.decoder)
        layer = {
            "relative_attention_bias": table.transpose(0, 1),
            "relative_attention_max_distance": 2 * farthest,
        }
        return Ct2Tables({"relative_attention_bias": True}, layers=[layer] * stack.layers)
    # what is added to scaled scores must stand before the scale there
    unscaled = bias.transpose(1, 2) * math.sqrt(stack.head_channels)
    content = unscaled.new_zeros(*unscaled.shape[:2], stack.head_channels)
    return _relative(torch.cat([content, unscaled], dim=-1), added_channels=stack.heads)


def clip_distances(bias: Tensor, decoder: bool) -> Tensor:
    """Leave out the distances at the ends of ``(…, 2 n - 1)`` that have what the last ones have.

    Args:
        bias: middle entry for distance 0, then for rising ones.
        decoder: whether only distances from 0 on are used.

    Returns:
        ``(…, 2 k + 1)``, k at least 1: distances beyond k have the entries at the ends.
    """
    zero = bias.size(-1) // 2
    halves = [bias[..., zero:]] if decoder else [bias[..., zero:], bias.flip(-1)[..., zero:]]
    k = 1
    for half in halves:
        differs = (half != half[..., -1:]).flatten(0, -2).any(dim=0).nonzero()
        k = max(k, int(differs.max()) + 1 if len(differs) else 0)
    k = min(k, zero)
    return bias[..., zero - k : zero + k + 1]


def t5_buckets(bias: Tensor, decoder: bool) -> Tuple[Tensor, int]:
    """Return the scalars of T5's buckets that do what a bias by distance does, and ``k``.

    T5 has ``N`` buckets for the past, in an encoder as many again for the future. The first
    ``N / 2`` are for one distance each, the others for more and more; they all get the scalar of
    distance k, with ``N = 2 k``.

    Args:
        bias: ``(heads, 2 k + 1)``, by rising distance.
        decoder: whether there is no future.

    Returns:
        ``(heads, 2 k)``, in an encoder ``(heads, 4 k)``; and k.
    """
    k = bias.size(-1) // 2
    halves = [bias[:, k:]] if decoder else [bias[:, k:], bias[:, : k + 1].flip(-1)]
    table = [torch.cat([half[:, :k], half[:, k:].expand(-1, k)], dim=-1) for half in halves]
    return torch.cat(table, dim=-1), k

"""Which positions a model has, of those that classes of transformers know."""

from typing import Any, Optional

import torch
from torch import Tensor

from fairseq_posenc.encodings.alibi import slope_exponents
from fairseq_posenc.encodings.base import ExportedPositions
from fairseq_posenc.encodings.sinusoidal import sinusoid
from fairseq_posenc.encodings.t5 import Buckets
from fairseq_posenc.tools.convert.checkpoint import ExportSource


def input_table(source: ExportSource, stack: str, unused: bool = True) -> Tensor:
    """Return the vectors ``(n, channels)`` that are added at the input, zeros without any.

    With ``unused`` rows before them, as many as fairseq has: padding index + 1.
    """
    module, length = source.stacks[stack], source.max_positions
    vectors = source.exported_positions(stack, length).input
    if vectors is None:
        vectors = torch.zeros(length, module.embed_tokens.embedding_dim)
    first = module.padding_idx + 1 if unused else 0
    return torch.cat([vectors.new_zeros(first, vectors.size(1)), vectors])


def position_type(source: ExportSource) -> Optional[str]:
    """Return ``sinusoids`` (fairseq's), ``table``, ``rotary``, ``t5``, ``alibi``; or ``None``."""
    position_types = {
        _type_of_stack(source.exported_positions(name, source.limits[name]), stack)
        for name, stack in source.stacks.items()
    }
    if position_types == {"sinusoids", "table"}:
        return "table"  # CAPE scales the positions of the source alone
    return position_types.pop() if len(position_types) == 1 else None


def _type_of_stack(exported: ExportedPositions, stack: Any) -> Optional[str]:
    if exported.attention:
        encoding, [term, *more_terms] = stack.embed_positions, exported.attention
        if more_terms or exported.input is not None:
            return None
        if term == "rotation":
            return "rotary"
        if term == "bias" and _has_alibi_slopes(exported.bias, encoding.stack.heads):
            return "alibi"
        return "t5" if _has_t5_buckets(encoding.in_evaluation) else None
    if exported.input is None:
        return "table"
    numbers = torch.arange(len(exported.input)).float() + stack.padding_idx + 1
    same = torch.equal(exported.input, sinusoid(numbers, exported.input.size(1)))
    return "sinusoids" if same else "table"


def _has_alibi_slopes(bias: Any, heads: int) -> bool:
    """Return whether a bias ``(layers or 1, heads or 1, 2 n - 1)`` falls with distance as ALiBi."""
    slopes = torch.pow(2.0, -torch.tensor(slope_exponents(heads)))
    length = bias.size(-1) // 2 + 1
    wanted = slopes.unsqueeze(1) * -torch.arange(length)  # (heads, n), of the past
    return torch.allclose(bias[..., length - 1 :].float(), wanted, rtol=1e-5, atol=0)


def _has_t5_buckets(encoding: Any) -> bool:
    """Return whether an encoding has T5's own buckets, whose scalars all layers share."""
    buckets, scalars = getattr(encoding, "buckets", None), getattr(encoding, "scalars", None)
    if buckets is None or scalars is None or scalars.shape[:2] != (1, encoding.stack.heads):
        return False
    usual = Buckets(False, 32, 128)
    return torch.equal(buckets.starts, usual.starts) and buckets.future == usual.future

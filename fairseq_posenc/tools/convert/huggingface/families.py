"""The table of all model types of transformers that are read or written, and the choice of one.

A new one is an ``Adapter`` in the module of its kind, and its name here.
"""

from typing import Any, Dict, Optional, Tuple

import torch

from fairseq_posenc.encodings.alibi import slope_exponents
from fairseq_posenc.encodings.base import ExportedPositions
from fairseq_posenc.encodings.sinusoidal import sinusoid
from fairseq_posenc.encodings.t5 import Buckets
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.convert.checkpoint import SIDES, ExportSource
from fairseq_posenc.tools.convert.ctranslate2.positions import fits_ctranslate2
from fairseq_posenc.tools.convert.huggingface.adapters import (
    ACTIVATIONS,
    EMBEDDINGS_TOO,
    Adapter,
)
from fairseq_posenc.tools.convert.huggingface.bert import (
    BERT,
    MPNET,
    ROBERTA,
    ROFORMER,
    XLM_ROBERTA,
)
from fairseq_posenc.tools.convert.huggingface.folder import HfConfig
from fairseq_posenc.tools.convert.huggingface.language_models import BLOOM, GPT_NEOX, OPT, XGLM
from fairseq_posenc.tools.convert.huggingface.multilingual import M2M100, MBART
from fairseq_posenc.tools.convert.huggingface.translation import BLENDERBOT, FSMT

FAMILIES: Dict[str, Adapter] = {
    adapter.model_type: adapter
    for adapter in (
        *(FSMT, ROBERTA, XLM_ROBERTA, BERT, ROFORMER, M2M100, MBART),
        *(BLENDERBOT, MPNET, XGLM, OPT, GPT_NEOX, BLOOM),
    )
}
# the model's name in fairseq, where LayerNorms are, kind of positions
EXPORTED: Dict[Tuple[str, str, str], Adapter] = {
    model: adapter for adapter in FAMILIES.values() for model in adapter.exported
}
_REASONS = {
    "marian": "its output has a bias, and its decoder starts with padding, which fairseq has not",
}


def imported_family(config: HfConfig) -> Adapter:
    """Return the adapter that reads a model of transformers."""
    model_type = config.fields["model_type"]
    adapter = FAMILIES.get(model_type)
    if adapter and adapter.read:
        return adapter
    names = ", ".join(name for name, entry in FAMILIES.items() if entry.read)
    reason = f"only {names} and what posenc export writes are imported"
    reason = _REASONS.get(model_type, reason)
    raise UsageError(
        f"{config.folder} is a model of type {model_type:.40}, which is not imported: {reason}"
    )


def choose_adapter(source: ExportSource) -> Adapter:
    """Return how a model is written."""
    options = source.options
    norms = {
        bool(getattr(options, f"{stack.split('.')[0]}_normalize_before", False))
        for stack in source.stacks
    }
    encoding = f"--position-encoding {options.position_encoding}"
    positions = position_type(source)
    norm_order = "before" if norms == {True} else "after"
    normed = [getattr(stack, "layernorm_embedding", None) for stack in source.stacks.values()]
    if norm_order == "before" and len(normed) == 2 and None not in normed:
        norm_order = EMBEDDINGS_TOO
    adapter = EXPORTED.get((source.model_name, norm_order, positions or ""))
    if adapter is None or len(norms) > 1:
        norm_place = "before each sub-layer of one side alone"
        if len(norms) == 1:
            norm_place = f"{norm_order} each sub-layer"
        advice = "; --to safetensors keeps any model"
        if fits_ctranslate2(source):
            advice = ", which CTranslate2 takes: --to ctranslate2"
        raise source.refusal(
            f"transformers has no class for {encoding} and LayerNorm {norm_place}{advice}"
        )
    for option in ("cross_self_attention", "no_cross_attention"):
        if getattr(options, option, False):
            raise source.refusal(f"{adapter.model_class} has no --{option.replace('_', '-')}")
    if options.activation_fn not in ACTIVATIONS:
        raise source.refusal(f"transformers has no --activation-fn {options.activation_fn}")
    accepted = adapter.accepted_values.get("hidden_act")
    if accepted and ACTIVATIONS[options.activation_fn] not in accepted:
        names = " or ".join(accepted)
        raise source.refusal(f"the head of {adapter.model_class} needs --activation-fn {names}")
    widths = [getattr(options, f"{side}_embed_dim", None) for side in SIDES]
    if None not in widths and widths[0] != widths[1]:
        raise source.refusal(f"{adapter.model_class} has one width for both sides")
    if adapter.needs(source):
        raise source.refusal(f"{adapter.model_class} needs a model with {adapter.needs(source)}")
    if norm_order != "after" and any(stack.layer_norm is None for stack in source.stacks.values()):
        raise source.refusal(
            f"{adapter.model_class} needs a last LayerNorm (--no-decoder-final-norm)"
        )
    return adapter


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
    expected = slopes.unsqueeze(1) * -torch.arange(length)  # (heads, n), of the past
    return torch.allclose(bias[..., length - 1 :].float(), expected, rtol=1e-5, atol=0)


def _has_t5_buckets(encoding: Any) -> bool:
    """Return whether an encoding has T5's own buckets, whose scalars all layers share."""
    buckets, scalars = getattr(encoding, "buckets", None), getattr(encoding, "scalars", None)
    if buckets is None or scalars is None or scalars.shape[:2] != (1, encoding.stack.heads):
        return False
    usual = Buckets(False, 32, 128)
    return torch.equal(buckets.starts, usual.starts) and buckets.future == usual.future

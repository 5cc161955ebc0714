"""Language models: XGLM, OPT, GPT-NeoX and BLOOM.

XGLM multiplies embeddings by √channels as fairseq does; the others do not, so that an export does,
and embeddings are then other weights than the output's.
"""

from dataclasses import replace
from typing import Any, Dict, List

import torch
from torch import Tensor

from fairseq_posenc.tools.convert.checkpoint import LANGUAGE_MODEL, ExportSource
from fairseq_posenc.tools.convert.huggingface.adapters import (
    ACTIVATIONS,
    SPECIAL_IDS,
    Adapter,
    FusedAttention,
    KeyMap,
    input_table,
)

_OUTPUT = ("decoder.output_projection", "lm_head")
_EMBEDDINGS = ("decoder.embed_tokens.weight", "decoder.output_projection.weight")


def _config(source: ExportSource, **specific: Any) -> Dict[str, Any]:
    options = source.options
    return {
        **SPECIAL_IDS,
        "bos_token_id": source.first_token,
        "vocab_size": source.vocab_sizes["decoder"],
        "hidden_size": options.decoder_embed_dim,
        "num_hidden_layers": options.decoder_layers,
        "num_attention_heads": options.decoder_attention_heads,
        "max_position_embeddings": source.max_positions,
        "attention_dropout": options.attention_dropout,
        **specific,
    }


def _like_fairseq(source: ExportSource) -> Dict[str, Any]:
    options = source.options
    return _config(
        source,
        ffn_dim=options.decoder_ffn_embed_dim,
        activation_function=ACTIVATIONS[options.activation_fn],
        dropout=options.dropout,
    )


def _fairseq_key_map(body: str, last_norm: str) -> KeyMap:
    """Return the names of a class that has fairseq's own below ``body``."""
    parts = ("self_attn", "self_attn_layer_norm", "fc1", "fc2", "final_layer_norm")
    modules = ("embed_tokens", *(f"layers.#.{part}" for part in parts))
    same = ((f"decoder.{name}", f"{body}.{name}") for name in modules)
    return (_OUTPUT, ("decoder.layer_norm", f"{body}.{last_norm}"), *same)


def _fused_key_map(fused: FusedAttention, names: Dict[str, str]) -> KeyMap:
    """Return the names of GPT-NeoX and BLOOM, with the ``names`` that differ between the two."""
    layers, _, attention = fused.module.rpartition(".")
    body = fused.module.partition(".")[0]
    layer = {
        "self_attn.out_proj": f"{attention}.dense",
        "self_attn": "",
        "self_attn_layer_norm": "input_layernorm",
        "fc1": "mlp.dense_h_to_4h",
        "fc2": "mlp.dense_4h_to_h",
        "final_layer_norm": "post_attention_layernorm",
    }
    return (
        _OUTPUT,
        *((f"decoder.{module}", f"{body}.{hf_module}") for module, hf_module in names.items()),
        *(
            (f"decoder.layers.#.{module}", hf_module and f"{layers}.{hf_module}")
            for module, hf_module in layer.items()
        ),
    )


def _scaled_embeddings(source: ExportSource, name: str) -> Dict[str, Tensor]:
    """Return the embeddings as the first layer gets them, if they are multiplied."""
    decoder = source.model.decoder
    scaled = decoder.embed_scale * decoder.embed_tokens.weight
    return {} if decoder.embed_scale == 1 else {name: scaled}


def _fuse(source: ExportSource, fused: FusedAttention) -> Dict[str, Tensor]:
    """Return queries, keys and values of all layers as one projection each."""
    projections = {}
    for number, layer in enumerate(source.model.decoder.layers):
        for ending in ("weight", "bias"):
            # each (heads, head channels, …)
            queries, keys, values = (
                getattr(getattr(layer.self_attn, f"{part}_proj"), ending).unflatten(
                    0, (source.options.decoder_attention_heads, -1)
                )
                for part in "qkv"
            )
            if fused.half_split:
                # ours turns channels 2c and 2c + 1 together, theirs c and c + half a head
                queries, keys = (torch.cat([x[:, ::2], x[:, 1::2]], 1) for x in (queries, keys))
            name = f"{fused.module.replace('#', str(number))}.query_key_value.{ending}"
            # (heads, 3, head channels, …) -> (3 channels, …)
            projections[name] = torch.stack([queries, keys, values], 1).flatten(0, 2)
    return projections


def separate(weight: Tensor, heads: int, half_split: bool) -> List[Tensor]:
    """Return queries, keys and values of a ``FusedAttention``, ``(channels, …)`` each."""
    queries, keys, values = weight.unflatten(0, (heads, 3, -1)).unbind(1)
    if half_split:
        # channels c and c + d / 2 of a head, side by side again
        queries, keys = (torch.stack(x.chunk(2, dim=1), 2).flatten(1, 2) for x in (queries, keys))
    return [part.flatten(0, 1) for part in (queries, keys, values)]


def _opt_weights(source: ExportSource) -> Dict[str, Tensor]:
    table = {"model.decoder.embed_positions.weight": input_table(source, "decoder")}
    return {**table, **_scaled_embeddings(source, "model.decoder.embed_tokens.weight")}


def _gpt_neox_config(source: ExportSource) -> Dict[str, Any]:
    options = source.options
    encoding = source.model.decoder.embed_positions.in_evaluation
    scale = {"rope_type": "linear", "factor": encoding.scale}
    return _config(
        source,
        intermediate_size=options.decoder_ffn_embed_dim,
        hidden_act=ACTIVATIONS[options.activation_fn],
        hidden_dropout=options.dropout,
        use_parallel_residual=False,
        rope_parameters={
            "rope_theta": encoding.base,
            "partial_rotary_factor": 1.0,
            **(scale if encoding.scale != 1 else {"rope_type": "default"}),
        },
    )


def _bloom_needs(source: ExportSource) -> str:
    options, width = source.options, 4 * source.options.decoder_embed_dim
    has = {
        "--layernorm-embedding": options.layernorm_embedding,
        "--activation-fn gelu_accurate": ACTIVATIONS[options.activation_fn] == "gelu_new",
        f"--decoder-ffn-embed-dim {width}": options.decoder_ffn_embed_dim == width,
    }
    return ", ".join(option for option, is_met in has.items() if not is_met)


_NEOX_ATTENTION = FusedAttention("gpt_neox.layers.#.attention", half_split=True)
_BLOOM_ATTENTION = FusedAttention("transformer.h.#.self_attention", half_split=False)
XGLM = Adapter(
    "xglm",
    ("XGLMForCausalLM",),
    _fairseq_key_map("model", "layer_norm"),
    _EMBEDDINGS,
    ("lm_head.weight", "model.embed_tokens.weight"),
    exported=((LANGUAGE_MODEL, "before", "sinusoids"),),
    to_config=lambda source: {
        **_like_fairseq(source),
        "activation_dropout": getattr(source.options, "activation_dropout", 0.0),
        "scale_embedding": not source.options.no_scale_embedding,
    },
    may_be_untied=True,
)
OPT = replace(
    XGLM,
    model_type="opt",
    classes=("OPTForCausalLM",),
    key_map=_fairseq_key_map("model.decoder", "final_layer_norm"),
    shared_weights=("lm_head.weight", "model.decoder.embed_tokens.weight"),
    position_tables={"decoder": "model.decoder.embed_positions.weight"},
    exported=((LANGUAGE_MODEL, "before", "table"),),
    to_config=_like_fairseq,
    extra_weights=_opt_weights,
    scales_embeddings=False,
)
GPT_NEOX = Adapter(
    "gpt_neox",
    ("GPTNeoXForCausalLM",),
    _fused_key_map(_NEOX_ATTENTION, {"embed_tokens": "embed_in", "layer_norm": "final_layer_norm"}),
    _EMBEDDINGS,
    ("lm_head.weight", "gpt_neox.embed_in.weight"),
    exported=((LANGUAGE_MODEL, "before", "rotary"),),
    to_config=_gpt_neox_config,
    extra_weights=lambda source: {
        **_fuse(source, _NEOX_ATTENTION),
        **_scaled_embeddings(source, "gpt_neox.embed_in.weight"),
    },
    may_be_untied=True,
    scales_embeddings=False,
    fused_attention=_NEOX_ATTENTION,
)
BLOOM = replace(
    GPT_NEOX,
    model_type="bloom",
    classes=("BloomForCausalLM",),
    key_map=_fused_key_map(
        _BLOOM_ATTENTION,
        {
            "embed_tokens": "word_embeddings",
            "layernorm_embedding": "word_embeddings_layernorm",
            "layer_norm": "ln_f",
        },
    ),
    shared_weights=("lm_head.weight", "transformer.word_embeddings.weight"),
    exported=((LANGUAGE_MODEL, "before", "alibi"),),
    to_config=lambda source: _config(source, hidden_dropout=source.options.dropout),
    extra_weights=lambda source: {
        **_fuse(source, _BLOOM_ATTENTION),
        **_scaled_embeddings(source, "transformer.word_embeddings.weight"),
    },
    needs=_bloom_needs,
    notes=(
        "keep it in float32: in half precision transformers rounds ALiBi's biases more the longer "
        "the text is, and near tokens become equally near",
    ),
    fused_attention=_BLOOM_ATTENTION,
)

"""Language models of ours as classes of Hugging Face's transformers; see ``adapters``.

XGLM multiplies embeddings by √channels as fairseq does; the others do not, so that theirs are
multiplied here, and are then other weights than the output's. GPT-NeoX and BLOOM have queries, keys
and values as one projection, head by head.
"""

from typing import Any, Dict, List, Tuple

import torch
from torch import Tensor

from fairseq_posenc.tools.convert.checkpoint import LANGUAGE_MODEL, ExportSource
from fairseq_posenc.tools.convert.huggingface.adapters import (
    ACTIVATIONS,
    SPECIAL_IDS,
    Layout,
    Rules,
)
from fairseq_posenc.tools.convert.huggingface.positions import input_table, most_positions

_OUTPUT = ("decoder.output_projection", "lm_head")
# classes with one projection: its module, and whether pairs of channels are turned
FUSED: Dict[str, Tuple[str, bool]] = {
    "gpt_neox": ("gpt_neox.layers.#.attention", True),
    "bloom": ("transformer.h.#.self_attention", False),
}
# classes that do not multiply embeddings
SCALED = ("opt", *FUSED)


def _config(source: ExportSource, **specific: Any) -> Dict[str, Any]:
    options = source.options
    return {
        **SPECIAL_IDS,
        "bos_token_id": source.beginning,
        "vocab_size": source.model.decoder.embed_tokens.num_embeddings,
        "hidden_size": options.decoder_embed_dim,
        "num_hidden_layers": options.decoder_layers,
        "num_attention_heads": options.decoder_attention_heads,
        "max_position_embeddings": most_positions(source),
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


def _fairseq_rules(body: str, last_norm: str) -> Rules:
    """Return the rules of a class that has fairseq's own names below ``body``."""
    parts = ("self_attn", "self_attn_layer_norm", "fc1", "fc2", "final_layer_norm")
    modules = ("embed_tokens", *(f"layers.#.{part}" for part in parts))
    same = ((f"decoder.{name}", f"{body}.{name}") for name in modules)
    return (_OUTPUT, ("decoder.layer_norm", f"{body}.{last_norm}"), *same)


def _fused_rules(body: str, layers: str, attention: str, names: Dict[str, str]) -> Rules:
    """Return the rules of GPT-NeoX and BLOOM, with the ``names`` that only one of them has."""
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
            (f"decoder.layers.#.{module}", hf_module and f"{body}.{layers}.#.{hf_module}")
            for module, hf_module in layer.items()
        ),
    )


def _scaled_embeddings(source: ExportSource, name: str) -> Dict[str, Tensor]:
    """Return the embeddings as the first layer gets them, if they are multiplied."""
    decoder = source.model.decoder
    scaled = decoder.embed_scale * decoder.embed_tokens.weight
    return {} if decoder.embed_scale == 1 else {name: scaled}


def _fused(source: ExportSource, attention: str, turned: bool) -> Dict[str, Tensor]:
    """Return queries, keys and values of all layers as one projection each.

    Args:
        source: the model.
        attention: its name there, ``#`` being the number of the layer.
        turned: whether pairs of channels are turned: ``2c`` and ``2c + 1`` with us, and there ``c``
            and ``c + d / 2`` of the d channels of a head.
    """
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
            if turned:
                queries, keys = (torch.cat([x[:, ::2], x[:, 1::2]], 1) for x in (queries, keys))
            name = f"{attention.replace('#', str(number))}.query_key_value.{ending}"
            projections[name] = torch.stack([queries, keys, values], 1).flatten(0, 2)
    return projections


def separate(weight: Tensor, heads: int, turned: bool) -> List[Tensor]:
    """Return queries, keys and values of one projection, ``(channels, …)`` each; see ``_fused``."""
    queries, keys, values = weight.unflatten(0, (heads, 3, -1)).unbind(1)
    if turned:
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
    return ", ".join(option for option, there in has.items() if not there)


XGLM = Layout(
    "XGLMForCausalLM",
    "xglm",
    _fairseq_rules("model", "layer_norm"),
    ("lm_head.weight", "model.embed_tokens.weight"),
    lambda source: {
        **_like_fairseq(source),
        "activation_dropout": getattr(source.options, "activation_dropout", 0.0),
        "scale_embedding": not source.options.no_scale_embedding,
    },
    lambda source: {},
    may_differ=True,
)
OPT = Layout(
    "OPTForCausalLM",
    "opt",
    _fairseq_rules("model.decoder", "final_layer_norm"),
    ("lm_head.weight", "model.decoder.embed_tokens.weight"),
    _like_fairseq,
    _opt_weights,
    may_differ=True,
)
GPT_NEOX = Layout(
    "GPTNeoXForCausalLM",
    "gpt_neox",
    _fused_rules(
        "gpt_neox",
        "layers",
        "attention",
        {"embed_tokens": "embed_in", "layer_norm": "final_layer_norm"},
    ),
    ("lm_head.weight", "gpt_neox.embed_in.weight"),
    _gpt_neox_config,
    lambda source: {
        **_fused(source, *FUSED["gpt_neox"]),
        **_scaled_embeddings(source, "gpt_neox.embed_in.weight"),
    },
    may_differ=True,
)
BLOOM = Layout(
    "BloomForCausalLM",
    "bloom",
    _fused_rules(
        "transformer",
        "h",
        "self_attention",
        {
            "embed_tokens": "word_embeddings",
            "layernorm_embedding": "word_embeddings_layernorm",
            "layer_norm": "ln_f",
        },
    ),
    ("lm_head.weight", "transformer.word_embeddings.weight"),
    lambda source: _config(source, hidden_dropout=source.options.dropout),
    lambda source: {
        **_fused(source, *FUSED["bloom"]),
        **_scaled_embeddings(source, "transformer.word_embeddings.weight"),
    },
    may_differ=True,
    needs=_bloom_needs,
)
LANGUAGE_MODELS: Dict[Tuple[str, str, str], Layout] = {
    (LANGUAGE_MODEL, "before", "sinusoids"): XGLM,
    (LANGUAGE_MODEL, "before", "table"): OPT,
    (LANGUAGE_MODEL, "before", "rotary"): GPT_NEOX,
    (LANGUAGE_MODEL, "before", "alibi"): BLOOM,
}

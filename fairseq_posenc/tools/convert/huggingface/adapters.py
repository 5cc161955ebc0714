"""Which class of Hugging Face's transformers computes what one of our models does.

``TABLE`` has a :class:`Layout` for each kind of model, place of the LayerNorms and kind of
positions. All names and settings are those of transformers 5.23; the tests compare the numbers.
MarianMTModel has tables too, but does not save them, so it is not used.
"""

import re
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from fairseq_posenc.tools.convert.checkpoint import BERT, ExportSource
from fairseq_posenc.tools.convert.huggingface.positions import input_table, most_positions

Rules = Tuple[Tuple[str, str], ...]
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_accurate": "gelu_new",
    "gelu_fast": "gelu_new",
    "swish": "swish",
    "tanh": "tanh",
}
# the special types of every dictionary
SPECIAL_IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
# sines, then cosines, of the angles by which each position turns queries and keys
ROFORMER_ANGLES = "roformer.encoder.embed_positions.weight"


class Layout(NamedTuple):
    """How a model of ours is written for a class of transformers.

    Attributes:
        model: the class.
        model_type: its name in ``config.json``.
        rules: what names of our weights begin with, and those of theirs instead; the first that
            fits counts, and ``#`` is the number of a layer. What has no name there alone, as it is
            part of a ``computed`` weight, has the name ``""``.
        shared: weights that are one there (names of theirs), the first being the one in the file.
        config: what ``config.json`` says besides.
        computed: weights that the model has not, or not so: positions, and what is put together.
        may_differ: whether the ``shared`` weights may also be different ones.
        needs: the options that the class needs and the model was trained without.
        notes: what its user should know.
    """

    model: str
    model_type: str
    rules: Rules
    shared: Tuple[str, ...]
    config: Callable[[ExportSource], Dict[str, Any]]
    computed: Callable[[ExportSource], Dict[str, Tensor]]
    may_differ: bool = False
    needs: Callable[[ExportSource], str] = lambda source: ""
    notes: Tuple[str, ...] = ()


def rename(name: str, rules: Rules) -> Optional[str]:
    """Return what rules make of a weight's name, ``""`` for a part; ``None`` if none fits."""
    for prefix, hf_prefix in rules:
        match = re.match(re.escape(prefix).replace(r"\#", r"(\d+)") + r"(?=\.|$)", name)
        if match:
            return (
                hf_prefix and hf_prefix.replace("#", "".join(match.groups())) + name[match.end() :]
            )
    return None


def _common(source: ExportSource) -> Dict[str, Any]:
    return {**SPECIAL_IDS, "vocab_size": next(iter(_vocabulary_sizes(source)))}


def _vocabulary_sizes(source: ExportSource) -> Tuple[int, ...]:
    return tuple(module.embed_tokens.num_embeddings for module in source.stacks.values())


def _translation_config(source: ExportSource) -> Dict[str, Any]:
    options, eos = source.options, SPECIAL_IDS["eos_token_id"]
    sides = {}
    for side in ("encoder", "decoder"):
        sides[f"{side}_layers"] = getattr(options, f"{side}_layers")
        sides[f"{side}_ffn_dim"] = getattr(options, f"{side}_ffn_embed_dim")
        sides[f"{side}_attention_heads"] = getattr(options, f"{side}_attention_heads")
    return {
        **_common(source),
        **sides,
        "d_model": options.encoder_embed_dim,
        "activation_function": ACTIVATIONS[options.activation_fn],
        "scale_embedding": not options.no_scale_embedding,
        "max_position_embeddings": most_positions(source),
        "dropout": options.dropout,
        "attention_dropout": options.attention_dropout,
        "activation_dropout": options.activation_dropout,
        "is_encoder_decoder": True,
        "decoder_start_token_id": eos,
        "forced_eos_token_id": eos,
    }


def _fsmt_config(source: ExportSource) -> Dict[str, Any]:
    config = _translation_config(source)
    del config["vocab_size"]  # there a name for that of the target
    config["src_vocab_size"], config["tgt_vocab_size"] = _vocabulary_sizes(source)
    languages = [source.task.get("source_lang"), source.task.get("target_lang")]
    return {**config, "langs": [str(language) for language in languages]}


def _tables(source: ExportSource, unused: bool) -> Dict[str, Tensor]:
    return {
        f"model.{stack}.embed_positions.weight": input_table(source, stack, unused)
        for stack in source.stacks
    }


def _translation_rules(output: str, *modules: str) -> Rules:
    """Return rules for fairseq's own names; ``modules`` are of each side, beside its layers."""
    parts = ("self_attn", "encoder_attn", "fc1", "fc2", "final_layer_norm")
    norms = ("self_attn_layer_norm", "encoder_attn_layer_norm")
    layers = [f"layers.#.{part}" for part in (*parts, *norms)]
    names = [f"{side}.{n}" for side in ("encoder", "decoder") for n in [*modules, *layers]]
    return (("decoder.output_projection", output), *((name, f"model.{name}") for name in names))


_EMBEDDINGS = tuple(f"model.{side}.embed_tokens.weight" for side in ("decoder", "encoder"))
FSMT = Layout(
    "FSMTForConditionalGeneration",
    "fsmt",
    _translation_rules("model.decoder.output_projection", "embed_tokens"),
    (*_EMBEDDINGS, "model.decoder.output_projection.weight"),
    _fsmt_config,
    lambda source: _tables(source, unused=True),
    may_differ=True,
)
M2M100 = Layout(
    "M2M100ForConditionalGeneration",
    "m2m_100",
    _translation_rules("lm_head", "embed_tokens", "layer_norm"),
    ("model.shared.weight", *_EMBEDDINGS, "lm_head.weight"),
    _translation_config,
    lambda source: {},
)
BLENDERBOT = M2M100._replace(
    model="BlenderbotForConditionalGeneration",
    model_type="blenderbot",
    computed=lambda source: {
        **_tables(source, unused=False),
        "final_logits_bias": torch.zeros(1, *_vocabulary_sizes(source)[-1:]),
    },
)
MBART = BLENDERBOT._replace(
    model="MBartForConditionalGeneration",
    model_type="mbart",
    rules=_translation_rules("lm_head", "embed_tokens", "layer_norm", "layernorm_embedding"),
    # which CTranslate2 asks for: mBART-50's decoder starts with EOS
    config=lambda source: {
        **_translation_config(source),
        "normalize_before": True,
        "normalize_embedding": True,
        "tokenizer_class": "MBart50Tokenizer",
    },
    computed=lambda source: {
        **_tables(source, unused=True),
        "final_logits_bias": torch.zeros(1, *_vocabulary_sizes(source)[-1:]),
    },
)


def bert_rules(body: str, layer: Dict[str, str], head: Rules) -> Rules:
    """Return the rules of a class like BERT.

    Args:
        body: name of the module without the language model's head.
        layer: names of a layer's parts, ours and theirs.
        head: rules of the head.
    """
    embeddings = {
        "embed_tokens": "word_embeddings",
        "layernorm_embedding": "LayerNorm",
        "segments": "token_type_embeddings",
    }
    return (
        *((f"{BERT}.{module}", f"{body}.embeddings.{name}") for module, name in embeddings.items()),
        *((f"{BERT}.layers.#.{o}", f"{body}.encoder.layer.#.{t}") for o, t in layer.items()),
        *head,
    )


_FEED_FORWARD = {
    "fc1": "intermediate.dense",
    "fc2": "output.dense",
    "final_layer_norm": "output.LayerNorm",
}
BERT_LAYER = {
    "self_attn.q_proj": "attention.self.query",
    "self_attn.k_proj": "attention.self.key",
    "self_attn.v_proj": "attention.self.value",
    "self_attn.out_proj": "attention.output.dense",
    "self_attn_layer_norm": "attention.output.LayerNorm",
    **_FEED_FORWARD,
}
_MPNET_LAYER = {
    **{f"self_attn.{name}_proj": f"attention.attn.{name}" for name in "qkv"},
    "self_attn.out_proj": "attention.attn.o",
    "self_attn_layer_norm": "attention.LayerNorm",
    **_FEED_FORWARD,
}
ROBERTA_HEAD = (
    ("encoder.lm_head.weight", "lm_head.decoder.weight"),
    ("encoder.lm_head", "lm_head"),
)
BERT_HEAD = (
    ("encoder.lm_head.dense", "cls.predictions.transform.dense"),
    ("encoder.lm_head.layer_norm", "cls.predictions.transform.LayerNorm"),
    ("encoder.lm_head.weight", "cls.predictions.decoder.weight"),
    ("encoder.lm_head.bias", "cls.predictions.bias"),
)


def _bert_config(source: ExportSource, unused: int = 0) -> Dict[str, Any]:
    options = source.options
    return {
        **_common(source),
        "hidden_size": options.encoder_embed_dim,
        "num_hidden_layers": options.encoder_layers,
        "num_attention_heads": options.encoder_attention_heads,
        "intermediate_size": options.encoder_ffn_embed_dim,
        "hidden_act": ACTIVATIONS[options.activation_fn],
        "hidden_dropout_prob": options.dropout,
        "attention_probs_dropout_prob": options.attention_dropout,
        "layer_norm_eps": getattr(options, "layer_norm_eps", None) or 1e-5,
        "max_position_embeddings": most_positions(source) + unused,
        "type_vocab_size": 1 + source.has_segments,
    }


def _token_types(source: ExportSource, embeddings: str) -> Dict[str, Tensor]:
    """Return a vector of zeros for the only segment, if the model has no segments."""
    none = torch.zeros(1, source.options.encoder_embed_dim)
    return {} if source.has_segments else {f"{embeddings}.token_type_embeddings.weight": none}


def _roberta_positions(source: ExportSource) -> Dict[str, Tensor]:
    table = {"roberta.embeddings.position_embeddings.weight": input_table(source, BERT)}
    return {**table, **_token_types(source, "roberta.embeddings")}


def _roformer_positions(source: ExportSource) -> Dict[str, Tensor]:
    speeds: Any = source.portable(BERT, most_positions(source)).rotation
    # (positions, pairs of channels)
    angles = torch.arange(most_positions(source)).float().unsqueeze(1) * speeds
    table = torch.cat([angles.sin(), angles.cos()], 1)
    return {ROFORMER_ANGLES: table, **_token_types(source, "roformer.embeddings")}


def _mpnet_positions(source: ExportSource) -> Dict[str, Tensor]:
    scalars = source.stacks[BERT].embed_positions.in_evaluation.scalars  # (1, heads, buckets)
    return {
        "mpnet.embeddings.position_embeddings.weight": torch.zeros_like(input_table(source, BERT)),
        "mpnet.encoder.relative_attention_bias.weight": scalars[0].t(),
    }


def _frozen(module: str) -> str:
    """Return the note on a table that transformers trains and our encoding has not."""
    freeze = f"model.{module}.requires_grad_(False)"
    return f"to train it on in transformers and import it again: {freeze}"


ROBERTA = Layout(
    "RobertaForMaskedLM",
    "roberta",
    bert_rules("roberta", BERT_LAYER, ROBERTA_HEAD),
    ("roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight"),
    # transformers 5 knows no other type, CTranslate2 wants it named
    lambda source: {**_bert_config(source, unused=2), "position_embedding_type": "absolute"},
    _roberta_positions,
)
ROFORMER = Layout(
    "RoFormerForMaskedLM",
    "roformer",
    bert_rules("roformer", BERT_LAYER, BERT_HEAD),
    ("roformer.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"),
    lambda source: {
        **_bert_config(source),
        "embedding_size": source.options.encoder_embed_dim,
        "rotary_value": False,
    },
    _roformer_positions,
    notes=(_frozen("roformer.encoder.embed_positions"),),
)
MPNET = Layout(
    "MPNetForMaskedLM",
    "mpnet",
    tuple(r for r in bert_rules("mpnet", _MPNET_LAYER, ROBERTA_HEAD) if "segments" not in r[0]),
    ("mpnet.embeddings.word_embeddings.weight", "lm_head.decoder.weight"),
    lambda source: {**_bert_config(source, unused=2), "relative_attention_num_buckets": 32},
    _mpnet_positions,
    notes=(_frozen("mpnet.embeddings.position_embeddings"),),
)

# where LayerNorms are: of translation models with --layernorm-embedding
EMBEDDINGS_TOO = "on embeddings and before"
# kind of model, LayerNorm before or after each sub-layer, kind of positions
TABLE: Dict[Tuple[str, str, str], Layout] = {
    ("posenc_transformer", "after", "sinusoids"): FSMT,
    ("posenc_transformer", "after", "table"): FSMT,
    ("posenc_transformer", "before", "sinusoids"): M2M100,
    ("posenc_transformer", "before", "table"): BLENDERBOT,
    ("posenc_transformer", EMBEDDINGS_TOO, "sinusoids"): MBART,
    ("posenc_transformer", EMBEDDINGS_TOO, "table"): MBART,
    ("posenc_bert", "after", "sinusoids"): ROBERTA,
    ("posenc_bert", "after", "table"): ROBERTA,
    ("posenc_bert", "after", "rotary"): ROFORMER,
    ("posenc_bert", "after", "t5"): MPNET,
}

"""The BERT family: BERT and XLM-R are read, RoBERTa and RoFormer also written, MPNet is written
alone.
"""

from dataclasses import replace
from typing import Any, Dict, Mapping

import torch
from torch import Tensor

from fairseq_posenc.data.subwords import DICTIONARY, MASK, SPECIALS
from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Maybe
from fairseq_posenc.tools.convert.checkpoint import BERT_ENCODER, ExportSource
from fairseq_posenc.tools.convert.huggingface.adapters import (
    ANY_CLASS,
    SPECIAL_IDS,
    Adapter,
    ConfigField,
    HfWeights,
    KeyMap,
    input_table,
    write_fields,
)
from fairseq_posenc.tools.convert.huggingface.bert_tokenizers import (
    WORDPIECE,
    add_subwords,
    read_vocabulary,
    wordpiece_case,
)
from fairseq_posenc.tools.convert.huggingface.folder import (
    HfConfig,
    ImportedModel,
    dictionary_of,
    fairseq_order,
    refuse_unexpected,
    reorder,
    with_signatures,
)

_FIELDS = (
    ConfigField("hidden_size", "encoder_embed_dim"),
    ConfigField("num_hidden_layers", "encoder_layers"),
    ConfigField("num_attention_heads", "encoder_attention_heads"),
    ConfigField("intermediate_size", "encoder_ffn_embed_dim"),
    ConfigField("hidden_act", "activation_fn"),
    ConfigField("hidden_dropout_prob", "dropout", 0.1),
    ConfigField("attention_probs_dropout_prob", "attention_dropout", 0.1),
    ConfigField("layer_norm_eps", "layer_norm_eps", 1e-12),
    ConfigField("max_position_embeddings", "max_source_positions"),
)
_EMBEDDINGS = (f"{BERT_ENCODER}.embed_tokens.weight", "encoder.lm_head.weight")
_FEED_FORWARD = {
    "fc1": "intermediate.dense",
    "fc2": "output.dense",
    "final_layer_norm": "output.LayerNorm",
}
_LAYER = {
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
_ROBERTA_HEAD = (
    ("encoder.lm_head.weight", "lm_head.decoder.weight"),
    ("encoder.lm_head", "lm_head"),
)
_BERT_HEAD = (
    ("encoder.lm_head.dense", "cls.predictions.transform.dense"),
    ("encoder.lm_head.layer_norm", "cls.predictions.transform.LayerNorm"),
    ("encoder.lm_head.weight", "cls.predictions.decoder.weight"),
    ("encoder.lm_head.bias", "cls.predictions.bias"),
)
# sines, then cosines, of the angles by which each position rotates queries and keys
_ANGLES = "roformer.encoder.embed_positions.weight"
_MPNET_TABLE = "mpnet.embeddings.position_embeddings.weight"
_MPNET_SCALARS = "mpnet.encoder.relative_attention_bias.weight"
# parts that a masked language model does not use, and positions, which are read by themselves
_IGNORED = (
    *("pooler", "seq_relationship", "position_ids", "decoder.bias"),
    *("embed_positions", "position_embeddings"),
)


def _key_map(body: str, layer: Dict[str, str], head: KeyMap, segments: bool = True) -> KeyMap:
    """Return the names of weights of a class like BERT; ``body`` is its module without the head."""
    embeddings = {"embed_tokens": "word_embeddings", "layernorm_embedding": "LayerNorm"}
    if segments:
        embeddings["segments"] = "token_type_embeddings"
    return (
        *((f"{BERT_ENCODER}.{own}", f"{body}.embeddings.{hf}") for own, hf in embeddings.items()),
        *(
            (f"{BERT_ENCODER}.layers.#.{own}", f"{body}.encoder.layer.#.{hf}")
            for own, hf in layer.items()
        ),
        *head,
    )


def _to_config(source: ExportSource, unused: int = 0) -> Dict[str, Any]:
    return {
        **SPECIAL_IDS,
        "vocab_size": source.vocab_sizes[BERT_ENCODER],
        **write_fields(_FIELDS, source.options),
        "layer_norm_eps": getattr(source.options, "layer_norm_eps", None) or 1e-5,
        "max_position_embeddings": source.max_positions + unused,
        "type_vocab_size": 1 + source.has_segments,
    }


def _roformer_config(source: ExportSource) -> Dict[str, Any]:
    width = source.options.encoder_embed_dim
    return {**_to_config(source), "embedding_size": width, "rotary_value": False}


def _roberta_config(source: ExportSource) -> Dict[str, Any]:
    # transformers 5 knows no other type, CTranslate2 wants it named
    return {**_to_config(source, unused=2), "position_embedding_type": "absolute"}


def _mpnet_config(source: ExportSource) -> Dict[str, Any]:
    return {**_to_config(source, unused=2), "relative_attention_num_buckets": 32}


def _token_types(source: ExportSource, embeddings: str) -> Dict[str, Tensor]:
    """Return a vector of zeros for the only segment, if the model has no segments."""
    none = torch.zeros(1, source.options.encoder_embed_dim)
    return {} if source.has_segments else {f"{embeddings}.token_type_embeddings.weight": none}


def _roberta_positions(source: ExportSource) -> Dict[str, Tensor]:
    table = {"roberta.embeddings.position_embeddings.weight": input_table(source, BERT_ENCODER)}
    return {**table, **_token_types(source, "roberta.embeddings")}


def _roformer_positions(source: ExportSource) -> Dict[str, Tensor]:
    speeds: Any = source.exported_positions(BERT_ENCODER, source.max_positions).rotation
    # (positions, pairs of channels)
    angles = torch.arange(source.max_positions).float().unsqueeze(1) * speeds
    table = torch.cat([angles.sin(), angles.cos()], 1)
    return {_ANGLES: table, **_token_types(source, "roformer.embeddings")}


def _mpnet_positions(source: ExportSource) -> Dict[str, Tensor]:
    scalars = source.stacks[
        BERT_ENCODER
    ].embed_positions.in_evaluation.scalars  # (1, heads, buckets)
    return {
        _MPNET_TABLE: torch.zeros_like(input_table(source, BERT_ENCODER)),
        _MPNET_SCALARS: scalars[0].t(),
    }


def _frozen(module: str) -> str:
    """Return the note on a table that transformers trains and our encoding has not."""
    freeze = f"model.{module}.requires_grad_(False)"
    return f"to train it on in transformers and import it again: {freeze}"


def _restore_mpnet(adapter: Adapter, weights: HfWeights, options: Mapping[str, Any]) -> None:
    """Give T5's encoding the scalars that transformers has trained."""
    inner = "inner." if options.get("position_encoding") == "randomized" else ""
    scalars = weights.get(_MPNET_SCALARS).t().unsqueeze(0)  # (1, heads, buckets)
    weights.fairseq[f"{BERT_ENCODER}.embed_positions.{inner}scalars"] = scalars


def _read(adapter: Adapter, config: HfConfig) -> ImportedModel:
    """Read a BERT; those without a table of positions have rotary ones."""
    fields, folder, is_rotary = config.fields, config.folder, not adapter.position_tables
    width, heads = fields["hidden_size"], fields["num_attention_heads"]
    if config.get("embedding_size", width) != width:
        raise UsageError(f"{config.path}: embeddings of another width")
    weights = HfWeights(folder, adapter.key_map)
    _tie(weights, adapter.shared_weights[0], config.get("tie_word_embeddings", True))
    length = fields["max_position_embeddings"] - adapter.unused_rows
    model = {
        "arch": "posenc_bert",
        **adapter.options_of(config),
        "pooler_activation_fn": "tanh",
        "max_positions": length,
        "max_source_positions": length,
        "position_encoding": "rotary" if is_rotary else "learned",
    }
    if is_rotary:
        _check_rotary(weights, width // heads)
    weights.fairseq.update(adapter.tables(weights, required=True))
    model["position_segments"] = _segments(weights)
    symbols = read_vocabulary(folder, fields["vocab_size"])
    specials = adapter.special_tokens if adapter.special_tokens[0] in symbols else SPECIALS
    order, renamed = fairseq_order(symbols, specials, folder), weights.fairseq
    reorder(renamed, ["encoder.lm_head.bias", *reversed(adapter.embeddings)], order, folder)
    embeddings, output = (renamed[name] for name in adapter.embeddings)
    model["untie_weights_roberta"] = not torch.equal(embeddings, output)
    dictionary = dictionary_of(symbols, order, True, folder)
    with_mask = dictionary_of(symbols, order, True, folder)
    # as the task does when it reads dict.txt: hashes of dictionaries are of what is trained with
    with_mask.add_symbol(MASK)
    unexpected = [name for name in weights.unexpected if not any(part in name for part in _IGNORED)]
    refuse_unexpected(folder, unexpected)
    imported = ImportedModel(
        with_signatures(model, with_mask),
        {"_name": "posenc_masked_lm", "tokens_per_sample": length},
        renamed,
        {DICTIONARY: dictionary},
        hf_ids=[order],
    )
    # RoFormer's own tokenizer has Chinese words besides
    case = wordpiece_case(folder, named=is_rotary)
    add_subwords(imported, folder, [symbols[number] for number in order[4:-1]], case)
    return imported


def _tie(weights: HfWeights, embeddings: str, tied: bool) -> None:
    """Keep the output's weights that transformers uses, of those that a file may have twice."""
    renamed = weights.fairseq
    first = weights.get(embeddings)
    renamed.pop("encoder.lm_head.decoder.bias", None)
    if tied or "encoder.lm_head.weight" not in renamed:
        renamed["encoder.lm_head.weight"] = first
    own = [name for name in weights.hf if name.endswith(".decoder.bias")]
    if own and not (tied and "encoder.lm_head.bias" in renamed):
        renamed["encoder.lm_head.bias"] = weights.hf[own[0]]


def _segments(weights: HfWeights) -> str:
    """Return the kind of segments; a single one is added to all positions."""
    name, table = f"{BERT_ENCODER}.segments.weight", f"{BERT_ENCODER}.embed_positions.weight"
    segments = weights.fairseq.get(name)
    if segments is None or len(segments) == 2:
        return "none" if segments is None else "input"
    if len(segments) > 2 or (bool(segments.any()) and table not in weights.fairseq):
        raise UsageError(f"{weights.folder}: it has {len(segments)} types of segments")
    del weights.fairseq[name]
    if bool(segments.any()):
        weights.fairseq[table][2:] += segments
    return "none"


def _check_rotary(weights: HfWeights, width: int) -> None:
    """Check that queries and keys are rotated as those of fairseq_posenc are."""
    table = weights.hf.get(_ANGLES)
    if table is None:
        return
    numbers = torch.arange(len(table)).double().unsqueeze(1)
    angles = numbers * 10_000 ** (torch.arange(width // 2).double() * (-2 / width))
    ours = torch.cat([angles.sin(), angles.cos()], 1)
    if table.shape != ours.shape or not torch.allclose(ours, table.double(), atol=1e-3):
        raise UsageError(
            f"{weights.folder}: its rotary positions are of other angles than those of a head of "
            f"{width} channels are here"
        )


BERT = Adapter(
    "bert",
    ("BertForMaskedLM", "BertForPreTraining"),
    _key_map("bert", _LAYER, _BERT_HEAD),
    _EMBEDDINGS,
    ("bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"),
    _FIELDS,
    {BERT_ENCODER: "bert.embeddings.position_embeddings.weight"},
    unused_rows=0,
    read=_read,
    more_fields={
        "vocab_size": int,
        "embedding_size": Maybe(int),
        "tie_word_embeddings": Maybe(bool),
    },
    accepted_values={
        **ANY_CLASS,
        "is_encoder_decoder": (False,),
        "position_embedding_type": ("absolute",),
        "rotary_value": (False,),
    },
    ignored_fields=frozenset({*SPECIAL_IDS, "sep_token_id"}),
    special_tokens=("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"),
    tokenizers=WORDPIECE,
)
ROFORMER = replace(
    BERT,
    model_type="roformer",
    classes=("RoFormerForMaskedLM",),
    key_map=_key_map("roformer", _LAYER, _BERT_HEAD),
    shared_weights=(
        "roformer.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.weight",
    ),
    position_tables={},
    exported=(("posenc_bert", "after", "rotary"),),
    to_config=_roformer_config,
    extra_weights=_roformer_positions,
    fixed_weights=(_ANGLES,),
    notes=(_frozen("roformer.encoder.embed_positions"),),
)
ROBERTA = replace(
    BERT,
    model_type="roberta",
    classes=("RobertaForMaskedLM",),
    key_map=_key_map("roberta", _LAYER, _ROBERTA_HEAD),
    shared_weights=("roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight"),
    position_tables={BERT_ENCODER: "roberta.embeddings.position_embeddings.weight"},
    unused_rows=2,
    exported=tuple(("posenc_bert", "after", positions) for positions in ("sinusoids", "table")),
    to_config=_roberta_config,
    extra_weights=_roberta_positions,
    accepted_values={**BERT.accepted_values, "pad_token_id": (1,), "hidden_act": ("gelu",)},
    ignored_fields=BERT.ignored_fields - {"pad_token_id"},
    special_tokens=SPECIALS,
    tokenizers=("XLMRobertaTokenizer", *WORDPIECE),
)
XLM_ROBERTA = replace(
    ROBERTA,
    model_type="xlm-roberta",
    classes=("XLMRobertaForMaskedLM", "RobertaForMaskedLM"),
    exported=(),
    tokenizers=("XLMRobertaTokenizer", "XLMRobertaTokenizerFast"),
)
MPNET = replace(
    ROBERTA,
    model_type="mpnet",
    classes=("MPNetForMaskedLM",),
    key_map=_key_map("mpnet", _MPNET_LAYER, _ROBERTA_HEAD, segments=False),
    shared_weights=("mpnet.embeddings.word_embeddings.weight", "lm_head.decoder.weight"),
    position_tables={},
    exported=(("posenc_bert", "after", "t5"),),
    to_config=_mpnet_config,
    extra_weights=_mpnet_positions,
    restore_positions=_restore_mpnet,
    fixed_weights=(_MPNET_TABLE,),
    read=None,
    notes=(_frozen("mpnet.embeddings.position_embeddings"),),
)

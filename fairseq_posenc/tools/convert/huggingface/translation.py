"""Translation models of one pair of languages: FSMT, read and written, and Blenderbot, written.

MarianMTModel has tables too, but does not save them, so it is not used.
"""

import json
import os
import re
from typing import Any, Dict, Tuple

import torch
from torch import Tensor

from fairseq_posenc.data.segmentation import CODES, TOKENIZER
from fairseq_posenc.data.subwords import SPECIALS
from fairseq_posenc.encodings.sinusoidal import sinusoid
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.json_files import Each, load_json
from fairseq_posenc.tools.convert.checkpoint import LIMITS, SIDES, ExportSource
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
from fairseq_posenc.tools.convert.huggingface.folder import (
    HfConfig,
    ImportedModel,
    dictionary_of,
    fairseq_order,
    refuse_unexpected,
    reorder,
    tokenizer_field,
    with_signatures,
)

EMBEDDINGS = tuple(f"{side}.embed_tokens.weight" for side in SIDES)
HF_EMBEDDINGS = tuple(f"model.{name}" for name in reversed(EMBEDDINGS))
OUTPUT = "decoder.output_projection.weight"
# where the two sides have tables of positions
POSITION_TABLES = {side: f"model.{side}.embed_positions.weight" for side in SIDES}


def translation_fields(
    scale_embedding: bool, attention_dropout: float = 0.0
) -> Tuple[ConfigField, ...]:
    """Return the fields of a class with these defaults."""
    layer_fields = {"layers": "layers", "ffn_dim": "ffn_embed_dim"}
    layer_fields["attention_heads"] = "attention_heads"
    return (
        *(
            ConfigField(f"{side}_{name}", f"{side}_{option}")
            for side in SIDES
            for name, option in layer_fields.items()
        ),
        *(ConfigField("d_model", f"{side}_embed_dim") for side in SIDES),
        ConfigField("activation_function", "activation_fn"),
        ConfigField("scale_embedding", "no_scale_embedding", scale_embedding),
        *(ConfigField("max_position_embeddings", LIMITS[side]) for side in SIDES),
        ConfigField("dropout", "dropout", 0.1),
        ConfigField("attention_dropout", "attention_dropout", attention_dropout),
        ConfigField("activation_dropout", "activation_dropout", 0.0),
    )


_FIELDS = translation_fields(scale_embedding=True)


def translation_config(source: ExportSource) -> Dict[str, Any]:
    """Return what all classes for translation say in ``config.json``."""
    eos = SPECIAL_IDS["eos_token_id"]
    return {
        **SPECIAL_IDS,
        "vocab_size": source.vocab_sizes["encoder"],
        **write_fields(_FIELDS, source.options),
        "max_position_embeddings": source.max_positions,
        "is_encoder_decoder": True,
        "decoder_start_token_id": eos,
        "forced_eos_token_id": eos,
    }


def _fsmt_config(source: ExportSource) -> Dict[str, Any]:
    config = translation_config(source)
    del config["vocab_size"]  # there a name for that of the target
    config["src_vocab_size"], config["tgt_vocab_size"] = source.vocab_sizes.values()
    languages = [source.task.get("source_lang"), source.task.get("target_lang")]
    # a call that keeps a cache has no causal mask; generate() keeps one all the same
    return {**config, "langs": [str(language) for language in languages], "use_cache": False}


def position_tables(source: ExportSource, unused: bool = True) -> Dict[str, Tensor]:
    """Return the tables of positions of both sides, by their names in transformers."""
    return {POSITION_TABLES[side]: input_table(source, side, unused) for side in SIDES}


def output_bias(source: ExportSource) -> Dict[str, Tensor]:
    """Return the bias of the output, which fairseq has not."""
    return {"final_logits_bias": torch.zeros(1, source.vocab_sizes["decoder"])}


def translation_key_map(output: str, *modules: str) -> KeyMap:
    """Return a map of fairseq's own names; ``modules`` are of each side, beside its layers."""
    parts = ("self_attn", "encoder_attn", "fc1", "fc2", "final_layer_norm")
    norms = ("self_attn_layer_norm", "encoder_attn_layer_norm")
    layers = [f"layers.#.{part}" for part in (*parts, *norms)]
    names = [f"{side}.{name}" for side in SIDES for name in [*modules, *layers]]
    return (("decoder.output_projection", output), *((name, f"model.{name}") for name in names))


def _read_fsmt(adapter: Adapter, config: HfConfig) -> ImportedModel:
    """Read a translation model in the layout of facebook/wmt19-en-de."""
    folder, languages = config.folder, config.fields["langs"]
    if len(set(languages)) != 2 or len(languages) != 2:
        raise UsageError(f"{config.path} does not name two languages")
    for language in languages:
        if not re.fullmatch(r"[\w-]{1,40}", language):
            raise UsageError(f"{config.path}: {language!r:.60} is not the name of a language")
    weights = HfWeights(folder, adapter.key_map)
    refuse_unexpected(
        folder, [name for name in weights.unexpected if "embed_positions" not in name]
    )
    renamed, dictionaries, hf_ids = weights.fairseq, {}, []
    target_embeddings = weights.get(HF_EMBEDDINGS[0])
    for name in adapter.embeddings:
        renamed.setdefault(name, target_embeddings)
    for stack, side, language in zip(SIDES, ("src", "tgt"), languages):
        numbers = load_json(os.path.join(folder, f"vocab-{side}.json"), Each(int), "FSMTTokenizer")
        symbols = [_subword(symbol) for symbol in sorted(numbers, key=numbers.__getitem__)]
        order = fairseq_order(symbols, SPECIALS[:4], folder)
        reorder(renamed, [n for n in adapter.embeddings if n.startswith(stack)], order, folder)
        dictionaries[f"dict.{language}.txt"] = dictionary_of(symbols, order, False, folder)
        hf_ids.append(order)
    model = {
        "arch": "posenc_transformer",
        **adapter.options_of(config),
        "position_encoding": _fsmt_positions(
            adapter, weights, config.fields["max_position_embeddings"]
        ),
    }
    source, target = dictionaries.values()
    source_embeddings, target_embeddings, output = (renamed[name] for name in adapter.embeddings)
    tied = torch.equal(target_embeddings, output)
    model["share_decoder_input_output_embed"] = tied
    if tied and source.symbols == target.symbols:
        model["share_all_embeddings"] = torch.equal(target_embeddings, source_embeddings)
    task = {"_name": "posenc_translation", "source_lang": languages[0], "target_lang": languages[1]}
    signed = with_signatures(model, source, target)
    return ImportedModel(
        signed, task, renamed, dictionaries, texts=_subword_files(folder), hf_ids=hf_ids
    )


def _subword_files(folder: str) -> Dict[str, str]:
    """Return the files that cut text, as ``FSMTTokenizer`` does."""
    merges = os.path.join(folder, "merges.txt")
    if not os.path.exists(merges):
        return {}
    lines = [line for line in read_lines(merges) if line and not line.startswith("#version")]
    pairs = (" ".join(line.split()[:2]) for line in lines)
    lower = tokenizer_field(folder, "do_lower_case", False)
    # what FSMTTokenizer asks of sacremoses
    moses = dict(normalise=True, printable=True, aggressive=True, escape=True)
    return {
        CODES: "".join(f"{line}\n" for line in ["#version: 0.2", *pairs]),
        TOKENIZER: json.dumps({**moses, "plain_quotes": False, "lowercase": lower}),
    }


def _subword(symbol: str) -> str:
    """Return a type as subword-nmt writes it."""
    if symbol in SPECIALS:
        return symbol
    return symbol[: -len("</w>")] if symbol.endswith("</w>") else f"{symbol}@@"


def _fsmt_positions(adapter: Adapter, weights: HfWeights, length: int) -> str:
    """Return the encoding of a model; tables that are not sinusoids become learned ones."""
    tables = adapter.tables(weights)
    # fairseq counts positions from padding index + 1
    numbers = torch.arange(length).float() + 2
    vectors = sinusoid(numbers, weights.get(HF_EMBEDDINGS[0]).size(1))
    if all(
        len(t) == length + 2 and torch.allclose(t[2:].float(), vectors, atol=1e-4)
        for t in tables.values()
    ):
        return "sinusoidal"
    weights.fairseq.update(tables)
    return "learned"


TRANSLATION_VALUES = {
    **ANY_CLASS,
    "is_encoder_decoder": (True,),
    "pad_token_id": (1,),
    "bos_token_id": (0,),
    "eos_token_id": (2,),
    "add_bias_logits": (False,),
}
FSMT = Adapter(
    "fsmt",
    ("FSMTForConditionalGeneration",),
    translation_key_map("model.decoder.output_projection", "embed_tokens"),
    (*EMBEDDINGS, OUTPUT),
    (*HF_EMBEDDINGS, f"model.{OUTPUT}"),
    _FIELDS,
    POSITION_TABLES,
    exported=tuple(
        ("posenc_transformer", "after", positions) for positions in ("sinusoids", "table")
    ),
    to_config=_fsmt_config,
    extra_weights=position_tables,
    may_be_untied=True,
    read=_read_fsmt,
    more_fields={"langs": [str]},
    accepted_values={
        **TRANSLATION_VALUES,
        "decoder_start_token_id": (2,),
        "add_final_layer_norm": (False,),
        "normalize_before": (False,),
        "normalize_embedding": (False,),
        "static_position_embeddings": (True,),
    },
    ignored_fields=frozenset(
        "decoder encoder num_hidden_layers hidden_size num_attention_heads vocab_size "
        "src_vocab_size tgt_vocab_size tie_word_embeddings".split()
    ),
    tokenizers=("FSMTTokenizer",),
)
BLENDERBOT = Adapter(
    "blenderbot",
    ("BlenderbotForConditionalGeneration",),
    translation_key_map("lm_head", "embed_tokens", "layer_norm"),
    (*EMBEDDINGS, OUTPUT),
    ("model.shared.weight", *HF_EMBEDDINGS, "lm_head.weight"),
    translation_fields(scale_embedding=False),
    POSITION_TABLES,
    unused_rows=0,
    exported=(("posenc_transformer", "before", "table"),),
    to_config=translation_config,
    extra_weights=lambda source: {
        **position_tables(source, unused=False),
        **output_bias(source),
    },
)

"""NLLB-200, M2M-100 and mBART-50 of transformers, read as models of ours.

Their vocabularies are in fairseq's order already. Languages get fairseq's names: ``__eng_Latn__``,
``__en__``, ``[en_XX]``. Sources begin with the token of their language, and so do targets.
"""

import functools
import os
import re
import shutil
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

import torch
from fairseq.data import Dictionary
from fairseq.data.multilingual.multilingual_utils import get_lang_tok

from fairseq_posenc.data.subwords import DICTIONARY, MASK, SPECIALS, SentencePiece
from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Each, Maybe, load_json
from fairseq_posenc.tasks.multilingual import OUR_MULTILINGUAL, default_options
from fairseq_posenc.tools.convert.checkpoint import ExportSource
from fairseq_posenc.tools.convert.huggingface import language_codes
from fairseq_posenc.tools.convert.huggingface.adapters import M2M100, MBART, Layout
from fairseq_posenc.tools.convert.huggingface.bert import (
    numbered_types,
    refuse_two,
    types_of_tokenizer,
)
from fairseq_posenc.tools.convert.huggingface.config_fields import check_fields, check_files
from fairseq_posenc.tools.convert.huggingface.imported import (
    ForeignWeights,
    ImportedModel,
    default_if_none,
    dictionary_of,
    keep_last_norms,
    our_activation,
    refuse_small,
    refuse_unexpected,
    tokenizer_field,
    with_signatures,
)

ARGUMENTS, THEIRS = "train.args", "hf"
_SIDES = ("encoder", "decoder")
_SCHEMA = {
    **{"d_model": int, "vocab_size": int, "activation_function": str},
    **{f"{side}_{part}": int for side in _SIDES for part in ("layers", "ffn_dim")},
    **{f"{side}_attention_heads": int for side in _SIDES},
    **{"max_position_embeddings": int, "scale_embedding": Maybe(bool)},
    **{f"{part}dropout": Maybe(float) for part in ("", "attention_", "activation_")},
    "decoder_start_token_id": Maybe(int),
}
_PIECES = "sentencepiece.bpe.model"
_ADDED = "added_tokens.json"
# a language that was added to NLLB-200 or mBART-50
_CODE = {"multilingual": "[a-z]{3}_[A-Z][a-z]{3}", "mbart": "[a-z]{2}_[A-Z]{2}"}
# what transformers' own tokenizers are made of
_TOKENIZER_FILES = (
    _PIECES,
    *"tokenizer.json tokenizer_config.json vocab.json special_tokens_map.json".split(),
    _ADDED,
)


class _Class(NamedTuple):
    """What differs between the classes of transformers.

    Attributes:
        layout: how our models are written for the class.
        scaled: whether embeddings are multiplied by √width where the file does not say.
        start: what the decoder starts with where the file does not say.
        style: fairseq's name for the way in which languages are written.
    """

    layout: Layout
    scaled: bool
    start: int
    style: str


_CLASSES = {
    "m2m_100": _Class(M2M100, True, 2, "multilingual"),
    # cc25 and en-ro do not say, and start with a language
    "mbart": _Class(MBART, False, -1, "mbart"),
}


def _read(folder: str, config: str, name: str) -> ImportedModel:
    fields = load_json(config, _SCHEMA, "transformers")
    notes, hf_class = check_fields(config, name, _SCHEMA), _CLASSES[name]
    if default_if_none(fields.get("decoder_start_token_id"), hf_class.start) != 2:
        raise UsageError(
            f"{config}: decoder_start_token_id should be 2; models whose decoder starts with a "
            "language, such as mbart-large-cc25 and mbart-large-en-ro, have it at the end of the "
            "source, and are not imported"
        )
    weights = _weights(folder, hf_class, fields["vocab_size"])
    symbols, languages, tags = _vocabulary(folder, fields["vocab_size"], hf_class.style)
    dictionary = dictionary_of(symbols, range(len(symbols)), False, folder)
    model = _model(fields, hf_class, config)
    task = {
        **default_options(),
        # a task without a dataclass is found by ``task``
        **dict.fromkeys(("_name", "task"), OUR_MULTILINGUAL),
        "langs": languages,
        "encoder_langtok": "src",
        "decoder_langtok": True,
        "lang_tok_style": hf_class.style,
        "max_source_positions": model["max_source_positions"],
        "max_target_positions": model["max_target_positions"],
    }
    signed = with_signatures(model, dictionary, dictionary)
    imported = ImportedModel(signed, task, weights, {DICTIONARY: dictionary}, notes=notes)
    imported.hf_ids = [range(len(symbols))] * 2
    imported.texts[language_codes.LANGUAGES] = "".join(f"{language}\n" for language in languages)
    imported.texts[ARGUMENTS] = _arguments(model, hf_class.style)
    imported.files.update(tokenizer_files(folder))
    if os.path.isfile(os.path.join(folder, _PIECES)):
        imported.files[SentencePiece.name] = os.path.join(folder, _PIECES)
    else:
        imported.notes.append(
            f"{folder} has no {_PIECES}, which cuts text; put it beside the checkpoint as "
            f"{SentencePiece.name}"
        )
    if tags:
        imported.notes.append(
            f"{folder} adds {' '.join(tags)[:200]}, which are neither subwords nor languages: the "
            "preparation of text does not write them, it cuts them like other text"
        )
    if tokenizer_field(folder, "legacy_behaviour", False):
        imported.notes.append(
            "legacy_behaviour is left out: languages are put before sources, as in its training"
        )
    return imported


def tokenizer_files(folder: str) -> Dict[str, str]:
    """Return the files of the tokenizer of transformers, by their names beside a checkpoint."""
    paths = {os.path.join(THEIRS, name): os.path.join(folder, name) for name in _TOKENIZER_FILES}
    return {name: path for name, path in paths.items() if os.path.isfile(path)}


def copy_tokenizer(
    source: ExportSource, dictionary: Dictionary, data: str, folder: str
) -> List[str]:
    """Copy the tokenizer that came with an imported model, if the dictionary is still its own.

    Returns:
        What the user should know, one line each.

    Raises:
        UsageError: there is none in the folder ``data``, or it is of other types.
    """
    tokenizer = os.path.join(data, THEIRS)
    if not os.path.isdir(tokenizer):
        raise source.refusal(
            f"there is no {tokenizer} with the tokenizer of transformers; name the folder of "
            "posenc import with --data"
        )
    check_files(tokenizer)
    symbols, *_ = _vocabulary(tokenizer, len(dictionary), source.task["lang_tok_style"])
    if symbols != dictionary.symbols:
        raise source.refusal(f"{tokenizer} has a tokenizer of other types than the dictionary")
    for name, path in tokenizer_files(tokenizer).items():
        shutil.copy(path, os.path.join(folder, os.path.basename(name)))
    return ["the tokenizer is that of the imported model"]


def _weights(folder: str, hf_class: _Class, types: int) -> Dict[str, torch.Tensor]:
    """Return the weights by our names; all embeddings are one."""
    weights = ForeignWeights(folder, hf_class.layout.rules)
    shared, *copies = hf_class.layout.shared
    embeddings = weights.get(shared)
    if len(embeddings) != types:
        raise UsageError(
            f"{folder}: {shared} has {len(embeddings)} rows, and not vocab_size {types}"
        )
    for name in (name for name in copies if name in weights.hf):
        if not torch.equal(weights.hf[name], embeddings):
            raise UsageError(f"{folder}: {name} is not {shared}; embeddings should be one")
    bias = weights.hf.get("final_logits_bias")
    if bias is not None and bias.any():
        raise UsageError(f"{folder}: its output has a bias (final_logits_bias), fairseq's has none")
    # M2M-100's older files have sinusoids, which are computed
    ending = "weight" if hf_class.layout is MBART else "weights"
    tables = [f"model.{side}.embed_positions.{ending}" for side in _SIDES]
    expected = {shared, "final_logits_bias", *tables}
    refuse_unexpected(folder, [name for name in weights.unexpected if name not in expected])
    renamed = weights.fairseq
    if hf_class.layout is MBART:
        renamed.update({name[len("model.") :]: weights.get(name) for name in tables})
    for module in ("encoder.embed_tokens", "decoder.embed_tokens", "decoder.output_projection"):
        renamed[f"{module}.weight"] = embeddings
    keep_last_norms(renamed, _SIDES)
    return renamed


def _model(fields: Dict[str, Any], hf_class: _Class, config: str) -> Dict[str, Any]:
    """Return the options of our model."""
    length = fields["max_position_embeddings"]
    is_mbart = hf_class.layout is MBART
    model = {
        "arch": "posenc_transformer",
        "encoder_embed_dim": fields["d_model"],
        "decoder_embed_dim": fields["d_model"],
        "activation_fn": our_activation(fields["activation_function"], config),
        **{
            f"{part}dropout": default_if_none(fields.get(f"{part}dropout"), 0.0)
            for part in ("", "attention_", "activation_")
        },
        "no_scale_embedding": not default_if_none(fields.get("scale_embedding"), hf_class.scaled),
        "max_source_positions": length,
        "max_target_positions": length,
        "share_all_embeddings": True,
        "share_decoder_input_output_embed": True,
        "encoder_normalize_before": True,
        "decoder_normalize_before": True,
        "layernorm_embedding": is_mbart,
        "position_encoding": "learned" if is_mbart else "sinusoidal",
    }
    for side in _SIDES:
        model[f"{side}_layers"] = fields[f"{side}_layers"]
        model[f"{side}_ffn_embed_dim"] = fields[f"{side}_ffn_dim"]
        model[f"{side}_attention_heads"] = fields[f"{side}_attention_heads"]
    return model


def _arguments(model: Dict[str, Any], style: str) -> str:
    """Return the options of ``fairseq-train`` that go on with the model, one a line."""
    lines = [f"--task {OUR_MULTILINGUAL}", "--encoder-langtok src", "--decoder-langtok"]
    lines.append(f"--lang-tok-style {style}")
    for name, value in model.items():
        flag = f"--{name.replace('_', '-')}"
        if value is not False:
            lines.append(flag if value is True else f"{flag} {value}")
    return "".join(f"{line}\n" for line in lines)


def _vocabulary(folder: str, types: int, style: str) -> Tuple[List[str], List[str], List[str]]:
    """Return the types in their order, languages by fairseq's names, the languages, and tags.

    Tags are tokens that somebody added to the tokenizer, and no languages.
    """
    by_number, codes = _read_vocabulary(folder, style)
    named = {*SPECIALS[:4], MASK, *codes, *(get_lang_tok(code, style) for code in codes)}
    added = {n: token for n, token in _added_tokens(folder).items() if token not in named}
    new_codes = [token for token in added.values() if re.fullmatch(_CODE[style], token)]
    tags = [token for token in added.values() if token not in new_codes]
    codes = [*codes, *new_codes]
    for number, token in added.items():
        by_number[number] = get_lang_tok(token, style) if token in new_codes else token
    if sorted(by_number) != list(range(len(by_number))) or len(by_number) > types:
        raise UsageError(
            f"{folder}: the numbers of its vocabulary should be 0…{len(by_number) - 1}, and no "
            f"more than vocab_size {types}"
        )
    refuse_small(len(by_number), types, folder)
    symbols = [by_number[number] for number in range(len(by_number))]
    symbols += [f"madeupword{number:04d}" for number in range(types - len(by_number))]
    if tuple(symbols[:4]) != SPECIALS[:4]:
        raise UsageError(f"{folder}: its vocabulary does not begin with {' '.join(SPECIALS[:4])}")
    distinct = set(symbols)
    if len(distinct) < len(symbols) or any(not s or re.search("[\r\n]", s) for s in symbols):
        raise UsageError(f"{folder}: its vocabulary has types of one name, or with line breaks")
    languages = [code for code in codes if get_lang_tok(code, style) in distinct]
    if len(languages) < 2:
        raise UsageError(f"{folder}: its vocabulary has no languages that import knows")
    return symbols, languages, tags


def _added_tokens(folder: str) -> Dict[int, str]:
    """Return the tokens that stand behind or between a tokenizer's own, by number."""
    fast, slow = (os.path.join(folder, name) for name in ("tokenizer.json", _ADDED))
    if os.path.exists(fast):
        schema = {"added_tokens": [{"id": int, "content": str}]}
        tokens = load_json(fast, schema, "tokenizers")["added_tokens"]
        return {token["id"]: token["content"] for token in tokens}
    if os.path.exists(slow):
        numbers = load_json(slow, Each(int), "transformers")
        return {number: token for token, number in numbers.items()}
    return {}


def _read_vocabulary(folder: str, style: str) -> Tuple[Dict[int, str], Sequence[str]]:
    """Return the types by number, and the languages that may be among them, in their order."""
    path = {name: os.path.join(folder, name) for name in _TOKENIZER_FILES}
    if style == "multilingual" and os.path.exists(path["vocab.json"]):
        # of M2M-100, behind which its tokenizer puts the languages
        numbered = numbered_types(path["vocab.json"])
        if os.path.exists(path["tokenizer.json"]):
            tokenizer = types_of_tokenizer(path["tokenizer.json"])
            refuse_two({"vocab.json": numbered, "tokenizer.json": tokenizer}, folder)
        codes = language_codes.WMT21 if _codes(folder) == "wmt21" else language_codes.M2M100
        tags = {len(numbered) + n: get_lang_tok(code, style) for n, code in enumerate(codes)}
        return {**numbered, **tags}, codes
    codes = language_codes.MBART50 if style == "mbart" else language_codes.NLLB
    if os.path.exists(path["tokenizer.json"]):
        by_number = types_of_tokenizer(path["tokenizer.json"])
    elif os.path.exists(path[_PIECES]):
        pieces = SentencePiece(path[_PIECES]).vocabulary()
        by_number = dict(enumerate([*SPECIALS[:4], *pieces, *codes, MASK]))
    else:
        raise UsageError(f"{folder} has no vocabulary: tokenizer.json, {_PIECES} or vocab.json")
    named = {code: get_lang_tok(code, style) for code in codes}
    return {number: named.get(symbol, symbol) for number, symbol in by_number.items()}, codes


def _codes(folder: str) -> str:
    """Return which languages the tokenizer of M2M-100 has."""
    languages = tokenizer_field(folder, "language_codes", "m2m100")
    if languages not in ("m2m100", "wmt21"):
        raise UsageError(
            f"{folder}: language_codes is {languages!r:.60}; known are m2m100 and wmt21"
        )
    return languages


MULTILINGUAL_READERS: Dict[str, Callable[[str, str], ImportedModel]] = {
    name: functools.partial(_read, name=name) for name in _CLASSES
}

"""BERT, RoBERTa, XLM-R and RoFormer of transformers, read as models of ours."""

import functools
import json
import os
from itertools import combinations
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

import torch

from fairseq_posenc.data.subwords import (
    DICTIONARY,
    MASK,
    SPECIALS,
    UNKNOWN,
    SentencePiece,
    WordPiece,
)
from fairseq_posenc.data.wordpiece_file import wordpiece_model
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.json_files import Each, Maybe, OrNull, load_json
from fairseq_posenc.tools.convert.checkpoint import BERT
from fairseq_posenc.tools.convert.huggingface.adapters import (
    BERT_HEAD,
    BERT_LAYER,
    ROBERTA_HEAD,
    ROFORMER_ANGLES,
    Rules,
    bert_rules,
)
from fairseq_posenc.tools.convert.huggingface.config_fields import check_fields
from fairseq_posenc.tools.convert.huggingface.imported import (
    ForeignWeights,
    ImportedModel,
    default_if_none,
    dictionary_of,
    our_activation,
    our_order,
    refuse_small,
    refuse_unexpected,
    reorder,
    with_signatures,
)

_SCHEMA = {
    **{"hidden_size": int, "num_hidden_layers": int, "num_attention_heads": int},
    **{"intermediate_size": int, "hidden_act": str, "layer_norm_eps": Maybe(float)},
    **{"max_position_embeddings": int, "vocab_size": int},
    **{"hidden_dropout_prob": Maybe(float), "attention_probs_dropout_prob": Maybe(float)},
    **{"position_embedding_type": Maybe(str), "embedding_size": Maybe(int)},
    **{"rotary_value": Maybe(bool), "tie_word_embeddings": Maybe(bool)},
}
_BERT_SPECIALS = ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]")
# fields of tokenizer_config.json, and what they are called here
_FLAGS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "chinese",
    "do_basic_tokenize": "",
}
# classes of tokenizers: of any kind of text, and those that cut as WordPiece does
ANY_TOKENIZER = ("TokenizersBackend", "PreTrainedTokenizerFast")
WORDPIECE = ("BertTokenizer", "BertTokenizerFast", *ANY_TOKENIZER)
_SENTENCEPIECES = ("sentencepiece.bpe.model", SentencePiece.name)
# parts that a masked language model does not use
_IGNORED = ("pooler", "seq_relationship", "position_ids", "decoder.bias", "embed_positions")


class _BertClass(NamedTuple):
    """What differs between the classes: names, special types, rows before a table's first."""

    body: str
    head: Rules
    specials: Tuple[str, ...]
    unused: int
    rotary: bool = False


_CLASSES = {
    "roberta": _BertClass("roberta", ROBERTA_HEAD, SPECIALS, 2),
    "xlm-roberta": _BertClass("roberta", ROBERTA_HEAD, SPECIALS, 2),
    "bert": _BertClass("bert", BERT_HEAD, _BERT_SPECIALS, 0),
    "roformer": _BertClass("roformer", BERT_HEAD, _BERT_SPECIALS, 0, rotary=True),
}


def _read(folder: str, config: str, name: str) -> ImportedModel:
    fields = load_json(config, _SCHEMA, "transformers")
    notes = check_fields(config, name, _SCHEMA)
    hf_class, width = _CLASSES[name], fields["hidden_size"]
    if width % max(fields["num_attention_heads"], 1):
        raise UsageError(f"{config}: {fields['num_attention_heads']} heads do not divide {width}")
    if fields.get("position_embedding_type") not in (None, "absolute"):
        raise UsageError(f"{config}: positions of type {fields['position_embedding_type']:.40}")
    if fields.get("embedding_size") not in (None, width) or fields.get("rotary_value"):
        raise UsageError(f"{config}: embeddings of another width, or rotated values")
    weights = ForeignWeights(folder, bert_rules(hf_class.body, BERT_LAYER, hf_class.head))
    _tie(weights, hf_class.body, fields.get("tie_word_embeddings") is not False)
    length = fields["max_position_embeddings"] - hf_class.unused
    model = {
        "arch": "posenc_bert",
        "encoder_layers": fields["num_hidden_layers"],
        "encoder_embed_dim": width,
        "encoder_ffn_embed_dim": fields["intermediate_size"],
        "encoder_attention_heads": fields["num_attention_heads"],
        "activation_fn": our_activation(fields["hidden_act"], folder),
        "pooler_activation_fn": "tanh",
        "dropout": default_if_none(fields.get("hidden_dropout_prob"), 0.1),
        "attention_dropout": default_if_none(fields.get("attention_probs_dropout_prob"), 0.1),
        "layer_norm_eps": default_if_none(fields.get("layer_norm_eps"), 1e-12),
        "max_positions": length,
        "max_source_positions": length,
        "position_encoding": "rotary" if hf_class.rotary else "learned",
    }
    if hf_class.rotary:
        _check_rotary(weights, width // fields["num_attention_heads"])
    else:
        table = weights.get(f"{hf_class.body}.embeddings.position_embeddings.weight")
        rows = table.new_zeros(2 - hf_class.unused, width)
        weights.fairseq[f"{BERT}.embed_positions.weight"] = torch.cat([rows, table])
    model["position_segments"] = _segments(weights, hf_class)
    symbols = _vocabulary(folder, fields["vocab_size"])
    specials = hf_class.specials if hf_class.specials[0] in symbols else SPECIALS
    order, renamed = our_order(symbols, specials, folder), weights.fairseq
    by_type = ["encoder.lm_head.bias", "encoder.lm_head.weight", f"{BERT}.embed_tokens.weight"]
    reorder(renamed, by_type, order, folder)
    model["untie_weights_roberta"] = not torch.equal(*(renamed[name] for name in by_type[1:]))
    dictionary = dictionary_of(symbols, order, True, folder)
    with_mask = dictionary_of(symbols, order, True, folder)
    with_mask.add_symbol(MASK)
    ignored = *_IGNORED, "position_embeddings"  # these are read by themselves
    unexpected = [name for name in weights.unexpected if not any(part in name for part in ignored)]
    refuse_unexpected(folder, unexpected)
    imported = ImportedModel(
        with_signatures(model, with_mask),
        {"_name": "posenc_masked_lm", "tokens_per_sample": length},
        renamed,
        {DICTIONARY: dictionary},
        notes=notes,
        hf_ids=[order],
    )
    # RoFormer's own tokenizer has Chinese words besides
    case = _wordpiece_case(folder, named=hf_class.rotary)
    _add_subwords(imported, folder, [symbols[n] for n in order[4:-1]], case)
    return imported


def _tie(weights: ForeignWeights, body: str, tied: bool) -> None:
    """Keep the output's weights that transformers uses, of those that a file may have twice."""
    renamed = weights.fairseq
    first = weights.get(f"{body}.embeddings.word_embeddings.weight")
    renamed.pop("encoder.lm_head.decoder.bias", None)
    if tied or "encoder.lm_head.weight" not in renamed:
        renamed["encoder.lm_head.weight"] = first
    own = [name for name in weights.hf if name.endswith(".decoder.bias")]
    if own and not tied:
        renamed["encoder.lm_head.bias"] = weights.hf[own[0]]


def _segments(weights: ForeignWeights, hf_class: _BertClass) -> str:
    """Return the kind of segments; a single one is added to all positions."""
    name, table = f"{BERT}.segments.weight", f"{BERT}.embed_positions.weight"
    types = weights.fairseq.get(name)
    if types is None or len(types) == 2:
        return "none" if types is None else "input"
    if len(types) > 2 or (bool(types.any()) and table not in weights.fairseq):
        raise UsageError(f"{weights.folder}: it has {len(types)} types of segments")
    del weights.fairseq[name]
    if bool(types.any()):
        weights.fairseq[table][2:] += types
    return "none"


def _check_rotary(weights: ForeignWeights, width: int) -> None:
    """Check that queries and keys are turned as ours are."""
    table = weights.hf.get(ROFORMER_ANGLES)
    if table is None:
        return
    numbers = torch.arange(len(table)).double().unsqueeze(1)
    angles = numbers * 10_000 ** (torch.arange(width // 2).double() * (-2 / width))
    if not torch.allclose(torch.cat([angles.sin(), angles.cos()], 1), table.double(), atol=1e-3):
        raise UsageError(f"{weights.folder}: its rotary positions are of other angles than ours")


def _vocabulary(folder: str, vocab_size: int) -> List[str]:
    """Return the vocabulary of a model in its order; rows without an entry get fairseq's filler."""
    readers: Dict[str, Callable[[str], Dict[int, str]]] = {
        "vocab.txt": lambda path: dict(enumerate(read_lines(path))),
        "tokenizer.json": types_of_tokenizer,
        "vocab.json": numbered_types,
    }
    vocabularies = {
        name: read(os.path.join(folder, name))
        for name, read in readers.items()
        if os.path.exists(os.path.join(folder, name))
    }
    refuse_two(vocabularies, folder)
    pieces = _sentencepieces(folder)
    if not vocabularies and pieces:
        # fairseq's order, which XLM-R has
        symbols = [*SPECIALS[:4], *SentencePiece(pieces).vocabulary()]
        vocabularies[pieces] = {**dict(enumerate(symbols)), vocab_size - 1: MASK}
    if not any(vocabularies.values()):
        raise UsageError(f"{folder} has no vocabulary: vocab.txt, tokenizer.json, vocab.json")
    by_number = next(filter(None, vocabularies.values()))
    if max(by_number) >= vocab_size:
        raise UsageError(f"{folder}: its vocabulary has more than the model's {vocab_size} types")
    refuse_small(len(by_number), vocab_size, folder)
    return [by_number.get(number, f"madeupword{number:04d}") for number in range(vocab_size)]


def refuse_two(vocabularies: Mapping[str, Mapping[int, str]], folder: str) -> None:
    """Refuse files that have other types for a number, which are then of two models."""
    for (name, types), (other_name, other_types) in combinations(vocabularies.items(), 2):
        for number in sorted(types.keys() & other_types.keys()):
            if types[number] != other_types[number]:
                raise UsageError(
                    f"{folder}: type {number} is {types[number]!r:.60} in {name} and "
                    f"{other_types[number]!r:.60} in {other_name}; they are of two models"
                )


def numbered_types(path: str) -> Dict[int, str]:
    """Return the types of ``vocab.json`` by number."""
    return {number: symbol for symbol, number in load_json(path, Each(int), "transformers").items()}


def types_of_tokenizer(path: str) -> Dict[int, str]:
    """Return the types of ``tokenizer.json``, a list with scores or numbered ones, and added."""
    content = load_json(path, {"model": {"type": str}}, "tokenizers")
    added = [{"id": int, "content": str}]
    if content["model"]["type"] == "Unigram":
        # each is a pair of a type and its score
        shape: Any = {"model": {"vocab": [list]}, "added_tokens": added}
        content = load_json(path, shape, "tokenizers")
        pairs = content["model"]["vocab"]
        if not all(len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
            raise UsageError(f"{path} is not from tokenizers, or damaged: its pairs")
        types = {n: pair[0] for n, pair in enumerate(pairs)}
    else:
        shape = {"model": {"vocab": Each(int)}, "added_tokens": added}
        content = load_json(path, shape, "tokenizers")
        types = {n: symbol for symbol, n in content["model"]["vocab"].items()}
    return {**types, **{token["id"]: token["content"] for token in content["added_tokens"]}}


def _sentencepieces(folder: str) -> str:
    paths = [os.path.join(folder, name) for name in _SENTENCEPIECES]
    return next(filter(os.path.isfile, paths), "")


def _add_subwords(
    imported: ImportedModel, folder: str, pieces: List[str], case: Optional[Dict[str, Any]]
) -> None:
    """Add the file that cuts text, as far as it is of a kind that ours is."""
    if _sentencepieces(folder):
        imported.files[SentencePiece.name] = _sentencepieces(folder)
    elif case is not None:
        usable = [piece for piece in pieces if piece and piece == "".join(piece.split())]
        numbers = {piece: number for number, piece in enumerate([UNKNOWN, *usable])}
        imported.texts[WordPiece.name] = json.dumps(wordpiece_model(numbers, **case))
    else:
        imported.notes.append(f"its text is cut by the tokenizer of {folder}, which posenc lacks")


def _wordpiece_case(folder: str, named: bool) -> Optional[Dict[str, Any]]:
    """Return what a WordPiece tokenizer does before it cuts; ``None`` if it is of another kind.

    ``tokenizer.json`` tells, then ``tokenizer_config.json``, which counts more. If ``named``, its
    class must be told.
    """
    case: Dict[str, Any] = {"lowercase": True, "strip_accents": None, "chinese": True}
    tokenizer = os.path.join(folder, "tokenizer.json")
    if os.path.exists(tokenizer):
        content = load_json(
            tokenizer, {"model": {"type": str}, "normalizer": Maybe(dict)}, "tokenizers"
        )
        normalizer = content.get("normalizer") or {}
        if content["model"]["type"] != "WordPiece" or normalizer.get("type") != "BertNormalizer":
            return None
        shape = {"lowercase": bool, "strip_accents": OrNull(bool), "handle_chinese_chars": bool}
        content = load_json(tokenizer, {"normalizer": shape}, "tokenizers")["normalizer"]
        case = {name: content[name] for name in ("lowercase", "strip_accents")}
        case["chinese"] = content["handle_chinese_chars"]
    elif not os.path.exists(os.path.join(folder, "vocab.txt")):
        return None
    path = os.path.join(folder, "tokenizer_config.json")
    if not os.path.exists(path):
        return None if named else case
    flags = dict.fromkeys(_FLAGS, Maybe(bool))
    content = load_json(path, {**flags, "tokenizer_class": Maybe(str)}, "transformers")
    if content.get("tokenizer_class") not in ((None,) * (not named) + WORDPIECE):
        return None
    if content.get("do_basic_tokenize") is False or content.get("never_split"):
        return None
    for hf_flag, flag in _FLAGS.items():
        if flag and content.get(hf_flag) is not None:
            case[flag] = content[hf_flag]
    return case


BERT_READERS: Dict[str, Callable[[str, str], ImportedModel]] = {
    name: functools.partial(_read, name=name) for name in _CLASSES
}

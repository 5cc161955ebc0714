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
from fairseq_posenc.tools.export.hf_fields import check_fields
from fairseq_posenc.tools.export.hf_foreign import (
    ForeignWeights,
    Found,
    default_if_none,
    dictionary_of,
    our_activation,
    our_order,
    refuse_left,
    refuse_small,
    reorder,
    signed,
)
from fairseq_posenc.tools.export.hf_layouts import (
    BERT_HEAD,
    BERT_LAYER,
    ROBERTA_HEAD,
    Rules,
    bert_rules,
)
from fairseq_posenc.tools.export.source import BERT

_SHAPE = {
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
_UNUSED = ("pooler", "seq_relationship", "position_ids", "decoder.bias", "embed_positions")


class _Kind(NamedTuple):
    """What differs between the classes: names, special types, rows before a table's first."""

    body: str
    head: Rules
    specials: Tuple[str, ...]
    unused: int
    rotary: bool = False


_KINDS = {
    "roberta": _Kind("roberta", ROBERTA_HEAD, SPECIALS, 2),
    "xlm-roberta": _Kind("roberta", ROBERTA_HEAD, SPECIALS, 2),
    "bert": _Kind("bert", BERT_HEAD, _BERT_SPECIALS, 0),
    "roformer": _Kind("roformer", BERT_HEAD, _BERT_SPECIALS, 0, rotary=True),
}


def _read(folder: str, config: str, name: str) -> Found:
    given = load_json(config, _SHAPE, "transformers")
    notes = check_fields(config, name, _SHAPE)
    kind, width = _KINDS[name], given["hidden_size"]
    if width % max(given["num_attention_heads"], 1):
        raise UsageError(f"{config}: {given['num_attention_heads']} heads do not divide {width}")
    if given.get("position_embedding_type") not in (None, "absolute"):
        raise UsageError(f"{config}: positions of type {given['position_embedding_type']:.40}")
    if given.get("embedding_size") not in (None, width) or given.get("rotary_value"):
        raise UsageError(f"{config}: embeddings of another width, or rotated values")
    weights = ForeignWeights(folder, bert_rules(kind.body, BERT_LAYER, kind.head))
    _tie(weights, kind.body, given.get("tie_word_embeddings") is not False)
    length = given["max_position_embeddings"] - kind.unused
    model = {
        "arch": "posenc_bert",
        "encoder_layers": given["num_hidden_layers"],
        "encoder_embed_dim": width,
        "encoder_ffn_embed_dim": given["intermediate_size"],
        "encoder_attention_heads": given["num_attention_heads"],
        "activation_fn": our_activation(given["hidden_act"], folder),
        "pooler_activation_fn": "tanh",
        "dropout": default_if_none(given.get("hidden_dropout_prob"), 0.1),
        "attention_dropout": default_if_none(given.get("attention_probs_dropout_prob"), 0.1),
        "layer_norm_eps": default_if_none(given.get("layer_norm_eps"), 1e-12),
        "max_positions": length,
        "max_source_positions": length,
        "position_encoding": "rotary" if kind.rotary else "learned",
    }
    if kind.rotary:
        _check_rotary(weights, width // given["num_attention_heads"])
    else:
        table = weights.get(f"{kind.body}.embeddings.position_embeddings.weight")
        rows = table.new_zeros(2 - kind.unused, width)
        weights.ours[f"{BERT}.embed_positions.weight"] = torch.cat([rows, table])
    model["position_segments"] = _segments(weights, kind)
    symbols = _vocabulary(folder, given["vocab_size"])
    specials = kind.specials if kind.specials[0] in symbols else SPECIALS
    order, ours = our_order(symbols, specials, folder), weights.ours
    by_type = ["encoder.lm_head.bias", "encoder.lm_head.weight", f"{BERT}.embed_tokens.weight"]
    reorder(ours, by_type, order, folder)
    model["untie_weights_roberta"] = not torch.equal(*(ours[name] for name in by_type[1:]))
    dictionary = dictionary_of(symbols, order, True, folder)
    whole = dictionary_of(symbols, order, True, folder)
    whole.add_symbol(MASK)
    left = [name for name in weights.left if not any(part in name for part in _UNUSED)]
    left = [name for name in left if "position_embeddings" not in name]
    refuse_left(folder, left)
    found = Found(
        signed(model, whole),
        {"_name": "posenc_masked_lm", "tokens_per_sample": length},
        ours,
        {DICTIONARY: dictionary},
        notes=notes,
        orders=[order],
    )
    # RoFormer's own tokenizer has Chinese words besides
    case = _wordpiece_case(folder, named=kind.rotary)
    _add_subwords(found, folder, [symbols[n] for n in order[4:-1]], case)
    return found


def _tie(weights: ForeignWeights, body: str, tied: bool) -> None:
    """Keep the output's weights that transformers uses, of those that a file may have twice."""
    ours, first = weights.ours, weights.get(f"{body}.embeddings.word_embeddings.weight")
    ours.pop("encoder.lm_head.decoder.bias", None)
    if tied or "encoder.lm_head.weight" not in ours:
        ours["encoder.lm_head.weight"] = first
    own = [name for name in weights.theirs if name.endswith(".decoder.bias")]
    if own and not tied:
        ours["encoder.lm_head.bias"] = weights.theirs[own[0]]


def _segments(weights: ForeignWeights, kind: _Kind) -> str:
    """Return the kind of segments; a single one is added to all positions."""
    name, table = f"{BERT}.segments.weight", f"{BERT}.embed_positions.weight"
    types = weights.ours.get(name)
    if types is None or len(types) == 2:
        return "none" if types is None else "input"
    if len(types) > 2 or (bool(types.any()) and table not in weights.ours):
        raise UsageError(f"{weights.folder}: it has {len(types)} types of segments")
    del weights.ours[name]
    if bool(types.any()):
        weights.ours[table][2:] += types
    return "none"


def _check_rotary(weights: ForeignWeights, width: int) -> None:
    """Check that queries and keys are turned as ours are."""
    table = weights.theirs.get("roformer.encoder.embed_positions.weight")
    if table is None:
        return
    numbers = torch.arange(len(table)).double().unsqueeze(1)
    angles = numbers * 10_000 ** (torch.arange(width // 2).double() * (-2 / width))
    if not torch.allclose(torch.cat([angles.sin(), angles.cos()], 1), table.double(), atol=1e-3):
        raise UsageError(f"{weights.folder}: its rotary positions are of other angles than ours")


def _vocabulary(folder: str, types: int) -> List[str]:
    """Return the types of a model in their order; rows without a type get fairseq's filler."""
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
        vocabularies[pieces] = {**dict(enumerate(symbols)), types - 1: MASK}
    if not any(vocabularies.values()):
        raise UsageError(f"{folder} has no vocabulary: vocab.txt, tokenizer.json, vocab.json")
    found = next(filter(None, vocabularies.values()))
    if max(found) >= types:
        raise UsageError(f"{folder}: its vocabulary has more than the model's {types} types")
    refuse_small(len(found), types, folder)
    return [found.get(number, f"madeupword{number:04d}") for number in range(types)]


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
    return {n: symbol for symbol, n in load_json(path, Each(int), "transformers").items()}


def types_of_tokenizer(path: str) -> Dict[int, str]:
    """Return the types of ``tokenizer.json``, a list with scores or numbered ones, and added."""
    found = load_json(path, {"model": {"type": str}}, "tokenizers")
    added = [{"id": int, "content": str}]
    if found["model"]["type"] == "Unigram":
        # each is a pair of a type and its score
        shape: Any = {"model": {"vocab": [list]}, "added_tokens": added}
        found = load_json(path, shape, "tokenizers")
        pairs = found["model"]["vocab"]
        if not all(len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
            raise UsageError(f"{path} is not from tokenizers, or damaged: its pairs")
        types = {n: pair[0] for n, pair in enumerate(pairs)}
    else:
        shape = {"model": {"vocab": Each(int)}, "added_tokens": added}
        found = load_json(path, shape, "tokenizers")
        types = {n: symbol for symbol, n in found["model"]["vocab"].items()}
    return {**types, **{token["id"]: token["content"] for token in found["added_tokens"]}}


def _sentencepieces(folder: str) -> str:
    paths = [os.path.join(folder, name) for name in _SENTENCEPIECES]
    return next(filter(os.path.isfile, paths), "")


def _add_subwords(
    found: Found, folder: str, pieces: List[str], case: Optional[Dict[str, Any]]
) -> None:
    """Add the file that cuts text, as far as it is of a kind that ours is."""
    if _sentencepieces(folder):
        found.files[SentencePiece.name] = _sentencepieces(folder)
    elif case is not None:
        usable = [piece for piece in pieces if piece and piece == "".join(piece.split())]
        numbers = {piece: number for number, piece in enumerate([UNKNOWN, *usable])}
        found.texts[WordPiece.name] = json.dumps(wordpiece_model(numbers, **case))
    else:
        found.notes.append(f"its text is cut by the tokenizer of {folder}, which posenc lacks")


def _wordpiece_case(folder: str, named: bool) -> Optional[Dict[str, Any]]:
    """Return what a WordPiece tokenizer does before it cuts; ``None`` if it is of another kind.

    ``tokenizer.json`` tells, then ``tokenizer_config.json``, which counts more. If ``named``, its
    class must be told.
    """
    case: Dict[str, Any] = {"lowercase": True, "strip_accents": None, "chinese": True}
    whole = os.path.join(folder, "tokenizer.json")
    if os.path.exists(whole):
        found = load_json(whole, {"model": {"type": str}, "normalizer": Maybe(dict)}, "tokenizers")
        normalizer = found.get("normalizer") or {}
        if found["model"]["type"] != "WordPiece" or normalizer.get("type") != "BertNormalizer":
            return None
        shape = {"lowercase": bool, "strip_accents": OrNull(bool), "handle_chinese_chars": bool}
        found = load_json(whole, {"normalizer": shape}, "tokenizers")["normalizer"]
        case = {name: found[name] for name in ("lowercase", "strip_accents")}
        case["chinese"] = found["handle_chinese_chars"]
    elif not os.path.exists(os.path.join(folder, "vocab.txt")):
        return None
    path = os.path.join(folder, "tokenizer_config.json")
    if not os.path.exists(path):
        return None if named else case
    flags = dict.fromkeys(_FLAGS, Maybe(bool))
    found = load_json(path, {**flags, "tokenizer_class": Maybe(str)}, "transformers")
    if found.get("tokenizer_class") not in ((None,) * (not named) + WORDPIECE):
        return None
    if found.get("do_basic_tokenize") is False or found.get("never_split"):
        return None
    for theirs, ours in _FLAGS.items():
        if ours and found.get(theirs) is not None:
            case[ours] = found[theirs]
    return case


BERT_READERS: Dict[str, Callable[[str, str], Found]] = {
    name: functools.partial(_read, name=name) for name in _KINDS
}

"""What lies in a folder of transformers: ``config.json``, weights, a vocabulary; read as data.

fairseq's order of a vocabulary is ``<s> <pad> </s> <unk>``, all others, ``<mask>``.
"""

import os
import re
from argparse import Namespace
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence

import torch
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_posenc import options
from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.checkpoints.folders import MODEL, read_safetensors
from fairseq_posenc.data.subwords import SPECIALS
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards.signatures import dictionary_hash
from fairseq_posenc.json_files import Each, Maybe, check_schema, load_json

# Embeddings may have rows without a type, so that their number is a multiple of 8 or 64, which
# matrix products like. A vocabulary that is smaller by more is of another model.
_ROWS_MULTIPLE = 64
ADDED = "added_tokens.json"


class HfConfig(NamedTuple):
    """A ``config.json``, which is parsed once."""

    folder: str
    fields: Dict[str, Any]

    @property
    def path(self) -> str:
        """The file."""
        return os.path.join(self.folder, "config.json")

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field, or the default where it is missing or null."""
        value = self.fields.get(name)
        return default if value is None else value


def read_config(folder: str) -> HfConfig:
    """Parse the ``config.json`` of a folder."""
    config = HfConfig(folder, {})
    return config._replace(fields=load_json(config.path, {"model_type": str}, "transformers"))


@dataclass
class ImportedModel:
    """A fairseq model, read in a folder of transformers or of ``posenc export``.

    Attributes:
        model: its options.
        task: those of its task.
        weights: by fairseq's names.
        dictionaries: by the names of their files.
        files: to be copied, with their new names; ``texts`` are to be written.
        notes: what the user should know.
        hf_ids: in transformers, of the entries of the dictionary of each side.
        tokenizers: the classes of transformers that may read its text.
    """

    model: Dict[str, Any]
    task: Dict[str, Any]
    weights: Dict[str, Tensor]
    dictionaries: Dict[str, Dictionary] = field(default_factory=dict)
    files: Dict[str, str] = field(default_factory=dict)
    texts: Dict[str, str] = field(default_factory=dict)
    notes: List[str] = field(default_factory=list)
    hf_ids: Sequence[Sequence[int]] = ()
    tokenizers: Sequence[str] = ()


def with_signatures(model: Dict[str, Any], *dictionaries: Dictionary) -> Dict[str, Any]:
    """Return options with a signature and the hash of the dictionaries, as training writes them."""
    hashed = dictionary_hash(*dictionaries)
    return {**model, "position_signature": position_signature(model), "dictionary_hash": hashed}


def position_signature(model: Dict[str, Any]) -> str:
    """Return the signature of the positions that a model's options name."""
    segments = {"segments": model["position_segments"]} if "position_segments" in model else {}
    return options.signature(Namespace(**model), **segments)


def read_weights(folder: str) -> Dict[str, Tensor]:
    """Return the weights of a folder; LayerNorms of old have ``gamma`` and ``beta``."""
    index = os.path.join(folder, f"{MODEL}.index.json")
    single, old = os.path.join(folder, MODEL), os.path.join(folder, "pytorch_model.bin")
    if os.path.exists(index) and os.path.exists(single):
        raise UsageError(f"{folder} has two sets of weights, {MODEL} and its index; keep one")
    if os.path.exists(index):
        weights = _read_parts(folder, index)
    elif os.path.exists(single) or not os.path.exists(old):
        if os.path.exists(f"{old}.index.json") and not os.path.exists(single):
            raise UsageError(f"{old} is in parts, which are not read; save it as {MODEL}")
        weights = read_safetensors(single)
    else:
        weights = load_checkpoint(old)
    if not isinstance(weights, dict):
        raise UsageError(f"{old} does not hold weights by name")
    for name, weight in weights.items():
        if not isinstance(weight, Tensor) or not isinstance(name, str):
            raise UsageError(f"{old} does not hold weights alone ({name!r:.60})")
        if not weight.is_floating_point() and not name.endswith("position_ids"):
            raise UsageError(f"{folder}: {name:.100} is quantised ({weight.dtype}), not read")
    endings = {".gamma": ".weight", ".beta": ".bias"}
    for name in [name for name in weights if name.endswith(tuple(endings))]:
        stem, _, ending = name.rpartition(".")
        new = stem + endings[f".{ending}"]
        if new in weights:
            raise UsageError(f"{folder}: its weights have both {name:.100} and {new:.100}")
        weights[new] = weights.pop(name)
    return weights


def _read_parts(folder: str, index: str) -> Dict[str, Tensor]:
    """Return the weights of several files, each from the one that the index names for it."""
    weight_map = load_json(index, {"weight_map": Each(str)}, "transformers")["weight_map"]
    merged: Dict[str, Tensor] = {}
    for part in sorted(set(weight_map.values())):
        if not part or part != os.path.basename(part):
            raise UsageError(f"{index}: {part:.100} is not the name of a file beside it")
        weights = read_safetensors(os.path.join(folder, part))
        named = {name for name, file in weight_map.items() if file == part}
        if named != set(weights):
            name = sorted(named ^ set(weights))[0]
            raise UsageError(f"{index} and {part} do not agree on {name:.100}")
        merged.update(weights)
    return merged


def refuse_unexpected(folder: str, unexpected: List[str]) -> None:
    """Refuse a model with a weight that has no place in ours."""
    if unexpected:
        raise UsageError(f"{folder}: there is no place for {unexpected[0]:.100}")


def reorder(weights: Dict[str, Tensor], names: List[str], order: List[int], folder: str) -> None:
    """Bring the rows of weights, one per type, into our order."""
    for name in names:
        if len(weights[name]) != len(order):
            raise UsageError(
                f"{folder}: its vocabulary has {len(order)} types, its {name} {len(weights[name])}"
            )
        weights[name] = weights[name][order]


def keep_last_norms(weights: Dict[str, Tensor], stacks: Iterable[str]) -> None:
    """Add a version: without it fairseq drops a last LayerNorm, as one of its older versions'."""
    weights.update({f"{stack}.version": torch.tensor([3.0]) for stack in stacks})


def fairseq_order(symbols: Sequence[str], specials: Sequence[str], folder: str) -> List[int]:
    """Return the ids of a vocabulary in fairseq's order.

    Args:
        symbols: the vocabulary.
        specials: its special tokens, in fairseq's order; the mask last, if there is one.
    """
    numbers = {symbol: number for number, symbol in enumerate(symbols)}
    missing = [symbol for symbol in specials if symbol not in numbers]
    if missing or len(numbers) < len(symbols):
        fault = f"no {missing[0]}" if missing else "types of the same name"
        raise UsageError(f"{folder}: its vocabulary has {fault}")
    first, last = specials[:4], specials[4:]
    remaining = [n for n, symbol in enumerate(symbols) if symbol not in specials]
    return [*map(numbers.__getitem__, first), *remaining, *map(numbers.__getitem__, last)]


def dictionary_of(
    symbols: Sequence[str], order: Sequence[int], masked: bool, folder: str
) -> Dictionary:
    """Return the dictionary of types in fairseq's order, without the mask, which tasks add."""
    dictionary = Dictionary()
    for symbol in (symbols[number] for number in order[4 : len(order) - masked]):
        # the numbers of all types behind it would be others
        if symbol in SPECIALS[: 4 + masked] or re.search("[\r\n]", symbol):
            raise UsageError(f"{folder}: {symbol!r:.60} cannot be in fairseq's dictionary")
        dictionary.add_symbol(symbol)
    return dictionary


def check_vocab_size(vocabulary: int, rows: int, folder: str) -> None:
    """Refuse a vocabulary that has fewer entries than embeddings have rows, but for padding."""
    if rows - vocabulary >= _ROWS_MULTIPLE:
        raise UsageError(
            f"{folder}: its vocabulary has {vocabulary} types, its model {rows}; put the "
            "tokenizer that belongs to the model there"
        )


def tokenizer_field(folder: str, name: str, default: Any) -> Any:
    """Return a field of ``tokenizer_config.json``, of the default's type; without it, that."""
    path = os.path.join(folder, "tokenizer_config.json")
    shape = {name: Maybe(type(default))}
    fields = load_json(path, shape, "transformers") if os.path.exists(path) else {}
    value = fields.get(name)
    return default if value is None else value


def check_same_vocabulary(vocabularies: Mapping[str, Mapping[int, str]], folder: str) -> None:
    """Refuse files that have different entries for a number, and so are of two models."""
    for (name, symbols), (other_name, other_symbols) in combinations(vocabularies.items(), 2):
        for number in sorted(symbols.keys() & other_symbols.keys()):
            if symbols[number] != other_symbols[number]:
                raise UsageError(
                    f"{folder}: type {number} is {symbols[number]!r:.60} in {name} and "
                    f"{other_symbols[number]!r:.60} in {other_name}; they are of two models"
                )


def read_vocab_json(path: str) -> Dict[int, str]:
    """Return the entries of ``vocab.json`` by number."""
    return {number: symbol for symbol, number in load_json(path, Each(int), "transformers").items()}


def read_tokenizer_json(path: str) -> Dict[int, str]:
    """Return the entries of ``tokenizer.json`` by number, added tokens included."""
    content = load_json(path, {"model": {"type": str}}, "tokenizers")
    is_unigram = content["model"]["type"] == "Unigram"
    # each entry of a unigram model is a pair of a type and its score
    schema = {"model": {"vocab": [list] if is_unigram else Each(int)}}
    added = {"added_tokens": [{"id": int, "content": str}]}
    check_schema(content, {**schema, **added}, path, "tokenizers")
    vocabulary = content["model"]["vocab"]
    if is_unigram:
        if not all(len(pair) == 2 and isinstance(pair[0], str) for pair in vocabulary):
            raise UsageError(f"{path} is not from tokenizers, or damaged: its pairs")
        symbols = {number: pair[0] for number, pair in enumerate(vocabulary)}
    else:
        symbols = {number: symbol for symbol, number in vocabulary.items()}
    return {**symbols, **{token["id"]: token["content"] for token in content["added_tokens"]}}


def added_tokens(folder: str) -> Dict[int, str]:
    """Return the tokens that stand behind or between a tokenizer's own, by number."""
    fast, slow = (os.path.join(folder, name) for name in ("tokenizer.json", ADDED))
    if os.path.exists(fast):
        schema = {"added_tokens": [{"id": int, "content": str}]}
        tokens = load_json(fast, schema, "tokenizers")["added_tokens"]
        return {token["id"]: token["content"] for token in tokens}
    if os.path.exists(slow):
        numbers = load_json(slow, Each(int), "transformers")
        return {number: token for token, number in numbers.items()}
    return {}

"""Models of transformers that others have trained, read as models of ours.

Vocabularies are brought into fairseq's order: ``<s> <pad> </s> <unk>``, all others, ``<mask>``.
"""

import json
import os
import re
from argparse import Namespace
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Sequence

import torch
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_posenc import options
from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.checkpoints.folders import MODEL, read_safetensors
from fairseq_posenc.data.segmentation import CODES, TOKENISER
from fairseq_posenc.data.subwords import SPECIALS
from fairseq_posenc.encodings.sinusoidal import sinusoid
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.guards.signatures import dictionary_hash
from fairseq_posenc.json_files import Each, Maybe, load_json
from fairseq_posenc.tools.convert.huggingface.adapters import ACTIVATIONS, FSMT, Rules, rename
from fairseq_posenc.tools.convert.huggingface.config_fields import check_fields

# Embeddings may have rows without a type, so that their number is a multiple of 8 or 64, which
# matrix products like. A vocabulary that is smaller by more is of another model.
_ROWS_MULTIPLE = 64
_FAIRSEQ_ACTIVATIONS = {hf: fairseq for fairseq, hf in reversed(list(ACTIVATIONS.items()))}
_FSMT_SHAPE = {
    **dict.fromkeys(
        [
            f"{side}_{part}"
            for side in ("encoder", "decoder")
            for part in ("layers", "ffn_dim", "attention_heads")
        ],
        int,
    ),
    **{"d_model": int, "langs": [str], "activation_function": str},
    **{"max_position_embeddings": int, "scale_embedding": Maybe(bool), "dropout": Maybe(float)},
}


@dataclass
class ImportedModel:
    """A model of ours in a folder of others.

    Attributes:
        model: its options.
        task: those of its task.
        weights: by our names.
        dictionaries: by the names of their files.
        files: to be copied, with their new names; ``texts`` are to be written.
        notes: what the user should know.
        hf_ids: in transformers, of the entries of the dictionary of each side.
    """

    model: Dict[str, Any]
    task: Dict[str, Any]
    weights: Dict[str, Tensor]
    dictionaries: Dict[str, Dictionary] = field(default_factory=dict)
    files: Dict[str, str] = field(default_factory=dict)
    texts: Dict[str, str] = field(default_factory=dict)
    notes: List[str] = field(default_factory=list)
    hf_ids: Sequence[Sequence[int]] = ()


class ForeignWeights:
    """The weights of a folder, renamed."""

    def __init__(self, folder: str, rules: Rules):
        back = tuple((hf_prefix, prefix) for prefix, hf_prefix in rules)
        self.folder, self.hf = folder, read_weights(folder)
        renamed = {name: rename(name, back) for name in self.hf}
        self.fairseq = {new: self.hf[name] for name, new in renamed.items() if new}
        self.unexpected = [name for name, new in renamed.items() if new is None]

    def get(self, name: str) -> Tensor:
        """Return a weight by its name there."""
        if name not in self.hf:
            raise UsageError(f"{self.folder}: its weights have no {name}")
        return self.hf[name]


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


def our_order(symbols: Sequence[str], specials: Sequence[str], folder: str) -> List[int]:
    """Return where our types are among theirs: the special ones, all others, ``<mask>``.

    Args:
        symbols: theirs, in their order.
        specials: their names for ours; the mask last, if there is one.
        folder: for the message.
    """
    places = {symbol: number for number, symbol in enumerate(symbols)}
    missing = [symbol for symbol in specials if symbol not in places]
    if missing or len(places) < len(symbols):
        fault = f"no {missing[0]}" if missing else "types of the same name"
        raise UsageError(f"{folder}: its vocabulary has {fault}")
    first, last = specials[:4], specials[4:]
    remaining = [n for n, symbol in enumerate(symbols) if symbol not in specials]
    return [*map(places.__getitem__, first), *remaining, *map(places.__getitem__, last)]


def dictionary_of(
    symbols: Sequence[str], order: Sequence[int], masked: bool, folder: str
) -> Dictionary:
    """Return the dictionary of types in our order, without the mask, which the tasks add."""
    dictionary = Dictionary()
    for symbol in (symbols[number] for number in order[4 : len(order) - masked]):
        # the numbers of all types behind it would be others
        if symbol in SPECIALS[: 4 + masked] or re.search("[\r\n]", symbol):
            raise UsageError(f"{folder}: {symbol!r:.60} cannot be in fairseq's dictionary")
        dictionary.add_symbol(symbol)
    return dictionary


def refuse_small(vocabulary: int, types: int, folder: str) -> None:
    """Refuse a vocabulary that lacks more types than embeddings may have rows without one."""
    if types - vocabulary >= _ROWS_MULTIPLE:
        raise UsageError(
            f"{folder}: its vocabulary has {vocabulary} types, its model {types}; put the "
            "tokenizer that belongs to the model there"
        )


def refuse_unexpected(folder: str, unexpected: List[str]) -> None:
    """Refuse a model with a weight that has no place in ours."""
    if unexpected:
        raise UsageError(f"{folder}: there is no place for {unexpected[0]:.100}")


def tokenizer_field(folder: str, name: str, default: Any) -> Any:
    """Return a field of ``tokenizer_config.json``, of the default's type; without it, that."""
    path = os.path.join(folder, "tokenizer_config.json")
    shape = {name: Maybe(type(default))}
    fields = load_json(path, shape, "transformers") if os.path.exists(path) else {}
    return default_if_none(fields.get(name), default)


def our_activation(name: str, folder: str) -> str:
    """Return fairseq's name of an activation."""
    if name not in _FAIRSEQ_ACTIVATIONS:
        raise UsageError(f"{folder}: fairseq has no activation {name:.40}")
    return _FAIRSEQ_ACTIVATIONS[name]


def read_fsmt(folder: str, config: str) -> ImportedModel:
    """Read a translation model in the layout of facebook/wmt19-en-de."""
    fields = load_json(config, _FSMT_SHAPE, "transformers")
    notes = check_fields(config, "fsmt", _FSMT_SHAPE)
    if len(set(fields["langs"])) != 2 or len(fields["langs"]) != 2:
        raise UsageError(f"{config} does not name two languages")
    for language in fields["langs"]:
        if not re.fullmatch(r"[\w-]{1,40}", language):
            raise UsageError(f"{config}: {language!r:.60} is not the name of a language")
    weights = ForeignWeights(folder, FSMT.rules)
    refuse_unexpected(
        folder, [name for name in weights.unexpected if "embed_positions" not in name]
    )
    renamed, dictionaries, hf_ids = weights.fairseq, {}, []
    first = "decoder.embed_tokens.weight"
    renamed.setdefault(first, weights.get("model.decoder.embed_tokens.weight"))
    for name in ("encoder.embed_tokens.weight", "decoder.output_projection.weight"):
        renamed.setdefault(name, renamed[first])
    for side, language in zip(("src", "tgt"), fields["langs"]):
        path = os.path.join(folder, f"vocab-{side}.json")
        places = load_json(path, Each(int), "FSMTTokenizer")
        symbols = [_subword(symbol) for symbol in sorted(places, key=places.__getitem__)]
        order = our_order(symbols, SPECIALS[:4], folder)
        stack = {"src": "encoder", "tgt": "decoder"}[side]
        reorder(renamed, [n for n in renamed if _is_by_type(n, stack)], order, folder)
        dictionaries[f"dict.{language}.txt"] = dictionary_of(symbols, order, False, folder)
        hf_ids.append(order)
    model = {
        "arch": "posenc_transformer",
        "encoder_embed_dim": fields["d_model"],
        "decoder_embed_dim": fields["d_model"],
        "activation_fn": our_activation(fields["activation_function"], folder),
        "dropout": fields.get("dropout") or 0.0,
        "no_scale_embedding": fields.get("scale_embedding") is False,
        "max_source_positions": fields["max_position_embeddings"],
        "max_target_positions": fields["max_position_embeddings"],
        "position_encoding": _positions_of_fsmt(weights, fields["max_position_embeddings"]),
    }
    for side in ("encoder", "decoder"):
        model[f"{side}_layers"] = fields[f"{side}_layers"]
        model[f"{side}_ffn_embed_dim"] = fields[f"{side}_ffn_dim"]
        model[f"{side}_attention_heads"] = fields[f"{side}_attention_heads"]
    source, target = dictionaries.values()
    tied = torch.equal(renamed[first], renamed["decoder.output_projection.weight"])
    model["share_decoder_input_output_embed"] = tied
    if tied and source.symbols == target.symbols:
        model["share_all_embeddings"] = torch.equal(
            renamed[first], renamed["encoder.embed_tokens.weight"]
        )
    languages = dict(zip(("source_lang", "target_lang"), fields["langs"]))
    task = {"_name": "posenc_translation", **languages}
    signed = with_signatures(model, *dictionaries.values())
    imported = ImportedModel(signed, task, renamed, dictionaries, notes=notes, hf_ids=hf_ids)
    _add_merges(imported, folder)
    return imported


def _add_merges(imported: ImportedModel, folder: str) -> None:
    """Add the files that cut text, as ``FSMTTokenizer`` does."""
    merges = os.path.join(folder, "merges.txt")
    if os.path.exists(merges):
        lines = [line for line in read_lines(merges) if line and not line.startswith("#version")]
        pairs = (" ".join(line.split()[:2]) for line in lines)
        imported.texts[CODES] = "".join(f"{line}\n" for line in ["#version: 0.2", *pairs])
        lower = tokenizer_field(folder, "do_lower_case", False)
        moses = dict(normalise=True, printable=True, aggressive=True, escape=True)
        imported.texts[TOKENISER] = json.dumps({**moses, "plain_quotes": False, "lowercase": lower})


def _subword(symbol: str) -> str:
    """Return a type as subword-nmt writes it."""
    if symbol in SPECIALS:
        return symbol
    return symbol[: -len("</w>")] if symbol.endswith("</w>") else f"{symbol}@@"


def _is_by_type(name: str, stack: str) -> bool:
    return name.startswith(stack) and name.split(".")[1] in ("embed_tokens", "output_projection")


def _positions_of_fsmt(weights: ForeignWeights, length: int) -> str:
    """Return the encoding of a model; tables that are not sinusoids become learned ones."""
    tables = {}
    for side in ("encoder", "decoder"):
        table = weights.hf.get(f"model.{side}.embed_positions.weight")
        if table is not None and len(table) != length + 2:
            raise UsageError(f"{weights.folder}: the {side}'s table has not {length} positions")
        if table is not None:
            tables[side] = table
    numbers = torch.arange(length).float() + 2
    vectors = sinusoid(numbers, weights.get("model.decoder.embed_tokens.weight").size(1))
    if all(torch.allclose(t[2:].float(), vectors, atol=1e-4) for t in tables.values()):
        return "sinusoidal"
    for side, table in tables.items():
        weights.fairseq[f"{side}.embed_positions.weight"] = table
    return "learned"


def reorder(weights: Dict[str, Tensor], names: List[str], order: List[int], folder: str) -> None:
    """Bring the rows of weights, one per type, into our order."""
    for name in names:
        if len(weights[name]) != len(order):
            raise UsageError(
                f"{folder}: its vocabulary has {len(order)} types, its {name} {len(weights[name])}"
            )
        weights[name] = weights[name][order]


def with_signatures(model: Dict[str, Any], *dictionaries: Dictionary) -> Dict[str, Any]:
    """Return options with a signature and the hash of the dictionaries, as training writes them."""
    hashed = dictionary_hash(*dictionaries)
    return {**model, "position_signature": position_signature(model), "dictionary_hash": hashed}


def position_signature(model: Dict[str, Any]) -> str:
    """Return the signature of the positions that a model's options name."""
    segments = {"segments": model["position_segments"]} if "position_segments" in model else {}
    return options.signature(Namespace(**model), **segments)


def keep_last_norms(weights: Dict[str, Tensor], stacks: Iterable[str]) -> None:
    """Add a version: without it fairseq drops a last LayerNorm, as one of its older versions'."""
    weights.update({f"{stack}.version": torch.tensor([3.0]) for stack in stacks})


def default_if_none(value: Any, default: Any) -> Any:
    """Return a value, or the default if it is ``None``."""
    return default if value is None else value

"""What is to be known of one ``model_type`` of Hugging Face's transformers, both ways.

The adapters themselves are in ``translation``, ``multilingual``, ``bert`` and
``language_models``, and ``families`` has the table of them. All names and settings are those of
transformers 5.23; the tests compare the numbers.
"""

import re
from argparse import Namespace
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, FrozenSet, Mapping, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor

from fairseq_posenc.data.subwords import SPECIALS
from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Maybe
from fairseq_posenc.tools.convert.checkpoint import LIMITS, ExportSource
from fairseq_posenc.tools.convert.huggingface.folder import (
    HfConfig,
    ImportedModel,
    read_weights,
)

# fairseq's names, and those of transformers
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_accurate": "gelu_new",
    "gelu_fast": "gelu_new",
    "swish": "swish",
    "tanh": "tanh",
}
FAIRSEQ_ACTIVATIONS = {hf: fairseq for fairseq, hf in reversed(list(ACTIVATIONS.items()))}
# what names of weights begin with, in fairseq and in transformers; the first pair that fits counts,
# and ``#`` is the number of a layer
KeyMap = Tuple[Tuple[str, str], ...]
# where LayerNorms are: of translation models with --layernorm-embedding
EMBEDDINGS_TOO = "on embeddings and before"
# weights that are ours alone: positions are computed anew, heads of fine-tuning are left out
_OWN_PARTS = {"embed_positions", "version", "classification_heads", "span_heads"}
# the special types of every dictionary
SPECIAL_IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}

# values of fields with which any class computes what fairseq does
ANY_CLASS: Mapping[str, Tuple[Any, ...]] = {
    "is_decoder": (False,),
    "add_cross_attention": (False,),
    "tie_encoder_decoder": (False,),
    "output_hidden_states": (False, True),
}


class ConfigField(NamedTuple):
    """A field of ``config.json`` that stands for an option of a fairseq model.

    ``default`` is what transformers assumes of a file without it; with ``None``, a file must have
    it, as a whole number (an activation as text).
    """

    name: str
    option: str
    default: Any = None

    @property
    def schema(self) -> Any:
        """The schema of its value, for ``json_files``."""
        if self.option == "activation_fn":
            return str
        return int if self.default is None else Maybe(type(self.default))

    def to_hf(self, options: Namespace) -> Any:
        """Return its value for the options of a model."""
        value = getattr(options, self.option, self.default)
        if self.option == "activation_fn":
            return ACTIVATIONS[value]
        return not value if self.option == "no_scale_embedding" else value

    def to_fairseq(self, config: HfConfig) -> Any:
        """Return the value of the option for a ``config.json``."""
        value = config.get(self.name, self.default)
        if self.option == "activation_fn":
            if value not in FAIRSEQ_ACTIVATIONS:
                raise UsageError(f"{config.folder}: fairseq has no activation {value:.40}")
            return FAIRSEQ_ACTIVATIONS[value]
        return not value if self.option == "no_scale_embedding" else value


def write_fields(fields: Sequence[ConfigField], options: Namespace) -> Dict[str, Any]:
    """Return fields of ``config.json`` for the options of a model."""
    return {entry.name: entry.to_hf(options) for entry in fields}


class FusedAttention(NamedTuple):
    """Queries, keys and values as one projection, head by head.

    ``module`` is the name of the attention; ``half_split`` says whether it pairs channels ``c`` and
    ``c + d / 2`` of the d channels of a head, and not ``2c`` and ``2c + 1`` as fairseq_posenc.
    """

    module: str
    half_split: bool


def rename(name: str, key_map: KeyMap) -> Optional[str]:
    """Return what rules make of a weight's name, ``""`` for a part; ``None`` if none fits."""
    for prefix, hf_prefix in key_map:
        # a prefix ends at a dot, so that layers.1 is not layers.10; # is kept as it was
        match = re.match(re.escape(prefix).replace(r"\#", r"(\d+)") + r"(?=\.|$)", name)
        if match:
            return (
                hf_prefix and hf_prefix.replace("#", "".join(match.groups())) + name[match.end() :]
            )
    return None


class HfWeights:
    """The weights of a folder: ``hf`` by their names there, ``fairseq`` by those of fairseq.

    ``unexpected`` are the names that the key map lacks.
    """

    def __init__(self, folder: str, key_map: KeyMap):
        # one map for both ways; the inverse of a part, from "", fits no name
        inverse = tuple((hf_prefix, prefix) for prefix, hf_prefix in key_map)
        self.folder, self.hf = folder, read_weights(folder)
        renamed = {name: rename(name, inverse) for name in self.hf}
        self.fairseq = {new: self.hf[name] for name, new in renamed.items() if new}
        self.unexpected = [name for name, new in renamed.items() if new is None]

    def get(self, name: str) -> Tensor:
        """Return a weight by its name there."""
        if name not in self.hf:
            raise UsageError(f"{self.folder}: its weights have no {name}")
        return self.hf[name]


def restore_tables(adapter: "Adapter", weights: HfWeights, options: Mapping[str, Any]) -> None:
    """Give a model that learns positions its tables, as long as its options say."""
    if options.get("position_encoding") == "learned":
        for name, table in adapter.tables(weights).items():
            rows = options[LIMITS[name.split(".")[0]]] + 2
            weights.fairseq[name] = table[:rows]


@dataclass(frozen=True)
class Adapter:
    """A ``model_type`` of transformers, and the fairseq models that compute the same.

    Attributes:
        model_type: its name in ``config.json``.
        classes: those of transformers whose folders are read; the first one is written.
        key_map: names of weights in fairseq and in transformers; ``""`` for what is there a part of
            one of the ``extra_weights``.
        embeddings: weights with a row per vocabulary entry, by fairseq's names; the output's last.
        shared_weights: weights that are one there, by names of transformers; the first one is in
            the file.
        config_fields: fields of ``config.json`` that stand for options, both ways.
        position_tables: by stack of layers, the name of the table of its positions.
        unused_rows: rows of such a table before that of the first position; fairseq has 2.
        exported: for which models it is written: the model's name in fairseq, where LayerNorms are,
            and the kind of positions (``families.position_type``).
        to_config: what ``config.json`` says of a model.
        extra_weights: weights that the model has not, or not so: positions, and what is fused.
        may_be_untied: whether the ``shared_weights`` may also be different ones in an export.
        needs: the options that the class needs and a model was trained without.
        notes: what the user of an exported model should know.
        scales_embeddings: whether the class multiplies them by √channels, as fairseq does.
        fused_attention: where it has one projection for queries, keys and values.
        restore_positions: gives the encoding its own parameters when a trained export is read.
        fixed_weights: of the ``extra_weights``, those that fairseq's model cannot learn.
        read: makes a fairseq model of a folder; ``None`` where only exports are read.
        more_fields: schema of further fields that ``read`` looks at.
        accepted_values: values of other fields with which the class computes what fairseq does.
        ignored_fields: fields that no score depends on in this class.
        decoder_start_token_id: what its decoder starts with where ``config.json`` does not say.
        special_tokens: those of its vocabulary, in fairseq's order, the mask last.
        lang_tok_style: fairseq's name for the way in which tokens of languages are written.
        tokenizers: the classes that may read its text; the usual one is the first.
    """

    model_type: str
    classes: Tuple[str, ...]
    key_map: KeyMap
    embeddings: Tuple[str, ...]
    shared_weights: Tuple[str, ...]
    config_fields: Tuple[ConfigField, ...] = ()
    position_tables: Mapping[str, str] = field(default_factory=dict)
    unused_rows: int = 2
    exported: Tuple[Tuple[str, str, str], ...] = ()
    to_config: Callable[[ExportSource], Dict[str, Any]] = lambda source: {}
    extra_weights: Callable[[ExportSource], Dict[str, Tensor]] = lambda source: {}
    may_be_untied: bool = False
    needs: Callable[[ExportSource], str] = lambda source: ""
    notes: Tuple[str, ...] = ()
    scales_embeddings: bool = True
    fused_attention: Optional[FusedAttention] = None
    restore_positions: Callable[["Adapter", HfWeights, Mapping[str, Any]], None] = restore_tables
    fixed_weights: Tuple[str, ...] = ()
    read: Optional[Callable[["Adapter", HfConfig], ImportedModel]] = None
    more_fields: Mapping[str, Any] = field(default_factory=dict)
    accepted_values: Mapping[str, Tuple[Any, ...]] = field(default_factory=dict)
    ignored_fields: FrozenSet[str] = frozenset()
    decoder_start_token_id: int = 2
    special_tokens: Tuple[str, ...] = SPECIALS
    lang_tok_style: str = ""
    tokenizers: Tuple[str, ...] = ()

    @property
    def model_class(self) -> str:
        """The class that an exported model is for."""
        return self.classes[0]

    def options_of(self, config: HfConfig) -> Dict[str, Any]:
        """Return the options that the ``config_fields`` of a file stand for."""
        return {entry.option: entry.to_fairseq(config) for entry in self.config_fields}

    def tables(self, weights: HfWeights, required: bool = False) -> Dict[str, Tensor]:
        """Return the tables of positions as fairseq has them, with two unused rows before them."""
        tables = {}
        for stack, name in self.position_tables.items():
            if required or name in weights.hf:
                table = weights.get(name)
                # fairseq's first position is row 2 (padding index + 1), as RoBERTa's; BERT's row 0
                unused = table.new_zeros(2 - self.unused_rows, table.size(1))
                tables[f"{stack}.embed_positions.weight"] = torch.cat([unused, table])
        return tables


def rename_weights(
    source: ExportSource, adapter: Adapter
) -> Tuple[Dict[str, str], Dict[str, Tensor], bool]:
    """Return the class's names of the weights that it takes unchanged, all its weights, and whether
    its embeddings are tied.
    """
    weights: Dict[str, Tensor] = source.state["model"]
    names = {}
    for name in weights:
        if _OWN_PARTS.isdisjoint(name.split(".")):
            hf_name = rename(name, adapter.key_map)
            if hf_name is None:
                raise source.refusal(f"{adapter.model_class} has no place for {name}")
            if hf_name:
                names[name] = hf_name
    shared = [name for name, hf_name in names.items() if hf_name in adapter.shared_weights]
    first = weights[shared[0]]
    # by their numbers: a checkpoint has every name, whether or not they are one tensor
    tied = all(torch.equal(weights[name], first) for name in shared)
    if tied:
        names.update(dict.fromkeys(shared, adapter.shared_weights[0]))
    elif not adapter.may_be_untied:
        raise source.refusal(
            f"{adapter.model_class} has one set of embeddings, as after --share-all-embeddings"
        )
    dtype = weights[next(iter(names))].dtype
    hf_weights = {name: x.to(dtype) for name, x in adapter.extra_weights(source).items()}
    # embeddings that are written scaled differ from the output
    tied = tied and hf_weights.keys().isdisjoint(adapter.shared_weights)
    names = {name: hf_name for name, hf_name in names.items() if hf_name not in hf_weights}
    hf_weights.update({hf_name: weights[name] for name, hf_name in names.items()})
    return names, hf_weights, tied


def input_table(source: ExportSource, stack: str, unused: bool = True) -> Tensor:
    """Return the vectors ``(n, channels)`` that are added at the input, zeros without any.

    With ``unused`` rows before them, as many as fairseq has: padding index + 1.
    """
    module, length = source.stacks[stack], source.max_positions
    vectors = source.exported_positions(stack, length).input
    if vectors is None:
        vectors = torch.zeros(length, module.embed_tokens.embedding_dim)
    first = module.padding_idx + 1 if unused else 0
    return torch.cat([vectors.new_zeros(first, vectors.size(1)), vectors])

"""A model of ours that transformers has trained further, read as a checkpoint again.

``posenc export`` writes our options into ``config.json``, and ``save_pretrained`` keeps them there.
Weights come back by the names of the class's layout. What a class has and our encoding has not (a
table instead of sinusoids, a vector for the only segment) may have been trained: such a table
becomes ``learned`` positions, such a vector is added to the embeddings.
"""

from typing import Any, Dict, Tuple

import torch
from torch import Tensor

from fairseq_posenc.checkpoints.folders import as_checkpoint
from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Maybe, load_json, read_json
from fairseq_posenc.tools.convert.checkpoint import (
    ALL,
    BERT,
    LANGUAGE_MODEL,
    ExportSource,
    read_dictionaries,
    read_state,
)
from fairseq_posenc.tools.convert.huggingface.adapters import (
    BLENDERBOT,
    MPNET,
    ROFORMER,
    ROFORMER_ANGLES,
    TABLE,
    Layout,
    rename,
)
from fairseq_posenc.tools.convert.huggingface.config_fields import OUR_OPTIONS
from fairseq_posenc.tools.convert.huggingface.imported import (
    ForeignWeights,
    ImportedModel,
    keep_last_norms,
    position_signature,
    refuse_unexpected,
)
from fairseq_posenc.tools.convert.huggingface.language_models import (
    FUSED,
    LANGUAGE_MODELS,
    SCALED,
    separate,
)
from fairseq_posenc.tools.convert.huggingface.model_card import text_files

_SCHEMA = {
    "model_type": str,
    "architectures": Maybe([str]),
    OUR_OPTIONS: {"kind": str, "model": {"arch": str}, "task": {"_name": str}},
}
_LAYOUTS = {layout.model_type: layout for layout in (*TABLE.values(), *LANGUAGE_MODELS.values())}
# by the kind of our model: what is multiplied with types, the output last
_BY_TYPE = {
    "posenc_transformer": (
        "encoder.embed_tokens.weight",
        "decoder.embed_tokens.weight",
        "decoder.output_projection.weight",
    ),
    "posenc_bert": (f"{BERT}.embed_tokens.weight", "encoder.lm_head.weight"),
    LANGUAGE_MODEL: ("decoder.embed_tokens.weight", "decoder.output_projection.weight"),
}
_SHARING = ("share_all_embeddings", "share_decoder_input_output_embed")
_BUCKETS = "mpnet.encoder.relative_attention_bias.weight"
_UNUSED = "mpnet.embeddings.position_embeddings.weight"
# tables of positions, and the option that says how long they are
_TABLES = {
    "encoder": ("model.encoder.embed_positions.weight", "max_source_positions"),
    "decoder": ("model.decoder.embed_positions.weight", "max_target_positions"),
    BERT: ("roberta.embeddings.position_embeddings.weight", "max_source_positions"),
}
# copies of weights, and what the class computes itself
_IGNORED = ("decoder.bias", "position_ids", "rotary_emb.inv_freq", "embed_positions.weights")


def is_trained(config: str) -> bool:
    """Return whether a ``config.json`` has our options, of a model with one pair of languages."""
    described = read_json(config).get(OUR_OPTIONS)
    if not isinstance(described, dict):
        return False
    task = described.get("task")
    return not (isinstance(task, dict) and "langs" in task)


def read_trained(folder: str, config: str) -> ImportedModel:
    """Read a folder that ``save_pretrained`` wrote of an exported model.

    Raises:
        UsageError: its weights or its ``config.json`` are not of the model that was exported.
    """
    fields = load_json(config, _SCHEMA, "posenc export")
    described = fields[OUR_OPTIONS]
    layout, names = _LAYOUTS.get(fields["model_type"]), _BY_TYPE.get(described["kind"])
    if layout is None or names is None:
        raise UsageError(f"{config}: posenc export writes no {fields['model_type']:.60}")
    classes = fields.get("architectures") or [layout.model]
    if layout.model not in classes:
        raise UsageError(f"{config}: a {classes[0]:.60} is not imported, only a {layout.model}")
    model, task = dict(described["model"]), dict(described["task"])
    weights, notes = ForeignWeights(folder, layout.rules), []
    _restore_embeddings(weights, layout, model, names)
    _restore_segment(weights, names[0])
    _set_sharing(weights, model, names)
    _restore_layers(weights, layout, model)
    _restore_positions(weights, layout, model)
    source = _source(folder, model, task, weights)
    if _learn_tables(weights, layout, model, source):
        source = _source(folder, model, task, weights)
        notes.append("its positions were trained, and are --position-encoding learned now")
    _check_angles(weights, layout, source)
    _check_config(config, fields, layout, source)
    expected = {*layout.shared, *layout.computed(source)}
    unexpected = [name for name in weights.unexpected if not name.endswith(_IGNORED)]
    refuse_unexpected(folder, [name for name in unexpected if name not in expected])
    files = text_files(folder)
    if any(file.startswith("dict.") for file in files):
        read_dictionaries(source, folder)
    else:
        notes.append(
            "dictionaries and subwords are those of the exported folder; copy dict.* and what cuts "
            "text beside the checkpoint, or name the data of its training"
        )
    return ImportedModel(model, task, weights.fairseq, files=files, notes=notes)


def _source(
    folder: str, model: Dict[str, Any], task: Dict[str, Any], weights: ForeignWeights
) -> ExportSource:
    return read_state(as_checkpoint(dict(model), task, dict(weights.fairseq)), folder, ALL)


def _restore_embeddings(
    weights: ForeignWeights, layout: Layout, model: Dict[str, Any], names: Tuple[str, ...]
) -> None:
    """Give each side its embeddings, of which the file has those that are one there once."""
    stored = [name for name in layout.shared if name in weights.hf]
    if not stored:
        raise UsageError(f"{weights.folder}: its weights have no {layout.shared[0]}")
    for name in names:
        renamed = rename(name, layout.rules)
        own = renamed if renamed in weights.hf else stored[0]
        weights.fairseq[name] = weights.hf[own]
    # of RoBERTa's head the bias has two names, of which the file may have either
    copied = weights.fairseq.pop("encoder.lm_head.decoder.bias", None)
    if copied is not None:
        weights.fairseq.setdefault("encoder.lm_head.bias", copied)
    if layout.model_type in SCALED and not model.get("no_scale_embedding"):
        scale = weights.fairseq[names[0]].size(1) ** 0.5
        weights.fairseq[names[0]] = weights.fairseq[names[0]] / scale
    keep_last_norms(weights.fairseq, [name.rsplit(".", 2)[0] for name in names[:-1]])


def _set_sharing(weights: ForeignWeights, model: Dict[str, Any], names: Tuple[str, ...]) -> None:
    """Say in the options which embeddings are one; what was one may have been trained apart."""
    *sides, output = (weights.fairseq[name] for name in names)
    tied = _are_equal(sides[-1], output)
    if names == _BY_TYPE["posenc_bert"]:
        model["untie_weights_roberta"] = not tied
    tied_by_flag = {"share_decoder_input_output_embed": tied}
    tied_by_flag["share_all_embeddings"] = tied and _are_equal(sides[0], output)
    for flag in _SHARING:
        model[flag] = bool(model.get(flag)) and tied_by_flag[flag]


def _are_equal(first: Tensor, second: Tensor) -> bool:
    return first.shape == second.shape and torch.equal(first, second)


def _restore_segment(weights: ForeignWeights, embeddings: str) -> None:
    """Add the vector of the only segment, which every token gets, to the embeddings."""
    name = f"{BERT}.segments.weight"
    vector = weights.fairseq.get(name)
    if vector is not None and len(vector) == 1:
        del weights.fairseq[name]
        if bool(vector.any()):
            weights.fairseq[embeddings] = weights.fairseq[embeddings] + vector


def _restore_layers(weights: ForeignWeights, layout: Layout, model: Dict[str, Any]) -> None:
    """Divide projections into queries, keys and values, where the class has one of them."""
    if layout.model_type in FUSED:
        attention, turned = FUSED[layout.model_type]
        rules = ((f"{attention}.query_key_value", "decoder.layers.#.self_attn"),)
        for name in list(weights.unexpected):
            module, _, ending = name.rpartition(".")
            own = rename(module, rules) or ""
            if own.endswith(".self_attn"):
                parts = separate(weights.hf[name], model["decoder_attention_heads"], turned)
                for part, weight in zip("qkv", parts):
                    weights.fairseq[f"{own}.{part}_proj.{ending}"] = weight
                weights.unexpected.remove(name)


def _restore_positions(weights: ForeignWeights, layout: Layout, model: Dict[str, Any]) -> None:
    """Give the encoding its own parameters: a table, or T5's scalars."""
    if layout is MPNET:
        if bool(weights.get(_UNUSED).any()):
            raise _trained_table(weights, _UNUSED)
        inner = "inner." if model.get("position_encoding") == "randomized" else ""
        scalars = weights.get(_BUCKETS).t().unsqueeze(0)  # (1, heads, buckets)
        weights.fairseq[f"{BERT}.embed_positions.{inner}scalars"] = scalars
    elif model.get("position_encoding") == "learned":
        weights.fairseq.update(_tables(weights, layout, model))


def _trained_table(weights: ForeignWeights, name: str) -> UsageError:
    return UsageError(
        f"{weights.folder}: {name.rpartition('.')[0]} was trained, and our encoding has no such "
        "table; train with its requires_grad_(False), as the card says"
    )


def _check_angles(weights: ForeignWeights, layout: Layout, source: ExportSource) -> None:
    """Refuse angles of RoFormer that were trained, which transformers 5.24 does."""
    if layout is ROFORMER:
        table, computed = weights.get(ROFORMER_ANGLES), layout.computed(source)[ROFORMER_ANGLES]
        rounding = 4 * torch.finfo(table.dtype).eps
        if not torch.allclose(table.float(), computed, rtol=0, atol=rounding):
            raise _trained_table(weights, ROFORMER_ANGLES)


def _tables(weights: ForeignWeights, layout: Layout, model: Dict[str, Any]) -> Dict[str, Tensor]:
    """Return the tables of positions as ours, by our names, with two unused rows before them."""
    tables = {}
    for stack, (name, limit) in _TABLES.items():
        if name in weights.hf:
            table = weights.hf[name]
            rows = table.new_zeros(2 - _unused_rows(layout), table.size(1))
            tables[f"{stack}.embed_positions.weight"] = torch.cat([rows, table])[: model[limit] + 2]
    return tables


def _unused_rows(layout: Layout) -> int:
    return 0 if layout is BLENDERBOT else 2


def _learn_tables(
    weights: ForeignWeights, layout: Layout, model: Dict[str, Any], source: ExportSource
) -> bool:
    """Make the positions learned if a table is not what the encoding computes; return whether."""
    if model["position_encoding"] == "learned":
        return False
    computed, first = layout.computed(source), _unused_rows(layout)
    names = [name for name, _ in _TABLES.values() if name in computed]
    trained = [
        name
        for name in names
        if not torch.equal(
            computed[name].to(weights.get(name).dtype)[first:], weights.get(name)[first:]
        )
    ]
    if not trained:
        return False
    for option in [option for option in model if option.startswith("position_")]:
        if option != "position_segments":
            del model[option]
    model["position_encoding"] = "learned"
    model["position_signature"] = position_signature(model)
    weights.fairseq.update(_tables(weights, layout, model))
    return True


def _check_config(
    config: str, fields: Dict[str, Any], layout: Layout, source: ExportSource
) -> None:
    """Check that the fields that export writes still say what they said."""
    for name, value in layout.config(source).items():
        if "dropout" in name or name not in fields:
            continue
        stored = fields[name]
        if isinstance(value, dict) and isinstance(stored, dict):
            stored = {part: stored.get(part) for part in value}
        if stored != value:
            raise UsageError(
                f"{config}: {name} is {stored!r:.60}, and was {value!r:.60} in the exported model"
            )

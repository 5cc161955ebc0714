"""A model of ours that transformers has trained further, read as a checkpoint again.

``posenc export`` writes our options into ``config.json``, and ``save_pretrained`` keeps them there.
Weights come back by the names of the class's layout. What a class has and our encoding has not (a
table instead of sinusoids, a vector for the only segment) may have been trained: such a table
becomes ``learned`` positions, such a vector is added to the embeddings.
"""

from typing import Any, Dict

import torch

from fairseq_posenc.checkpoints.folders import as_checkpoint
from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Maybe, check_schema
from fairseq_posenc.tools.convert.checkpoint import (
    ALL,
    BERT_ENCODER,
    ExportSource,
    read_dictionaries,
    read_state,
)
from fairseq_posenc.tools.convert.huggingface.adapters import Adapter, HfWeights, rename
from fairseq_posenc.tools.convert.huggingface.config_fields import OUR_OPTIONS
from fairseq_posenc.tools.convert.huggingface.families import FAMILIES
from fairseq_posenc.tools.convert.huggingface.folder import (
    HfConfig,
    ImportedModel,
    keep_last_norms,
    position_signature,
    refuse_unexpected,
)
from fairseq_posenc.tools.convert.huggingface.language_models import separate
from fairseq_posenc.tools.convert.huggingface.model_card import text_files

_SCHEMA = {
    "architectures": Maybe([str]),
    OUR_OPTIONS: {"kind": str, "model": {"arch": str}, "task": {"_name": str}},
}
# copies of weights, and what the class computes itself
_IGNORED = ("decoder.bias", "position_ids", "rotary_emb.inv_freq", "embed_positions.weights")


def is_trained(config: HfConfig) -> bool:
    """Return whether a ``config.json`` has our options, and is not of a multilingual model."""
    description = config.get(OUR_OPTIONS)
    if not isinstance(description, dict):
        return False
    task = description.get("task")
    return not (isinstance(task, dict) and "langs" in task)


def read_fine_tuned(config: HfConfig) -> ImportedModel:
    """Read a folder that ``save_pretrained`` wrote of an exported model."""
    check_schema(config.fields, _SCHEMA, config.path, "posenc export")
    folder, description = config.folder, config.fields[OUR_OPTIONS]
    model_type = config.fields["model_type"]
    adapter = FAMILIES.get(model_type)
    if adapter is None or description["kind"] not in {model for model, *_ in adapter.exported}:
        raise UsageError(f"{config.path}: posenc export writes no {model_type:.60}")
    classes = config.fields.get("architectures") or [adapter.model_class]
    if adapter.model_class not in classes:
        supported = f"only a {adapter.model_class}"
        raise UsageError(f"{config.path}: a {classes[0]:.60} is not imported, {supported}")
    model, task = dict(description["model"]), dict(description["task"])
    weights, notes = HfWeights(folder, adapter.key_map), []
    _restore_embeddings(weights, adapter, model)
    _restore_segment(weights, adapter.embeddings[0])
    _set_sharing(weights, adapter, model)
    _restore_layers(weights, adapter, model)
    adapter.restore_positions(adapter, weights, model)
    source = _source(folder, model, task, weights)
    if _learn_tables(weights, adapter, model, source):
        source = _source(folder, model, task, weights)
        notes.append("its positions were trained, and are --position-encoding learned now")
    _check_fixed_weights(weights, adapter, source)
    _check_config(config, adapter, source)
    expected = {*adapter.shared_weights, *adapter.extra_weights(source)}
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
    folder: str, model: Dict[str, Any], task: Dict[str, Any], weights: HfWeights
) -> ExportSource:
    return read_state(as_checkpoint(dict(model), task, dict(weights.fairseq)), folder, ALL)


def _restore_embeddings(weights: HfWeights, adapter: Adapter, model: Dict[str, Any]) -> None:
    """Give each side its embeddings, of which the file has those that are one there once."""
    stored = [name for name in adapter.shared_weights if name in weights.hf]
    if not stored:
        raise UsageError(f"{weights.folder}: its weights have no {adapter.shared_weights[0]}")
    for name in adapter.embeddings:
        hf_name = rename(name, adapter.key_map)
        weights.fairseq[name] = weights.hf[hf_name if hf_name in weights.hf else stored[0]]
    # of RoBERTa's head the bias has two names, of which the file may have either
    copied = weights.fairseq.pop("encoder.lm_head.decoder.bias", None)
    if copied is not None:
        weights.fairseq.setdefault("encoder.lm_head.bias", copied)
    first, *_, output = adapter.embeddings
    if not adapter.scales_embeddings and not model.get("no_scale_embedding"):
        weights.fairseq[first] = weights.fairseq[first] / weights.fairseq[first].size(1) ** 0.5
    stacks = [name.rsplit(".", 2)[0] for name in adapter.embeddings if name != output]
    keep_last_norms(weights.fairseq, stacks)


def _set_sharing(weights: HfWeights, adapter: Adapter, model: Dict[str, Any]) -> None:
    """Say in the options which embeddings are one; what was one may have been trained apart."""
    *sides, output = (weights.fairseq[name] for name in adapter.embeddings)
    tied = torch.equal(sides[-1], output)
    if BERT_ENCODER in adapter.embeddings[0]:
        model["untie_weights_roberta"] = not tied
    tied_by_flag = {"share_decoder_input_output_embed": tied}
    tied_by_flag["share_all_embeddings"] = tied and torch.equal(sides[0], output)
    for flag, is_tied in tied_by_flag.items():
        model[flag] = bool(model.get(flag)) and is_tied


def _restore_segment(weights: HfWeights, embeddings: str) -> None:
    """Add the vector of the only segment, which every token gets, to the embeddings."""
    name = f"{BERT_ENCODER}.segments.weight"
    vector = weights.fairseq.get(name)
    if vector is not None and len(vector) == 1:
        del weights.fairseq[name]
        if bool(vector.any()):
            weights.fairseq[embeddings] = weights.fairseq[embeddings] + vector


def _restore_layers(weights: HfWeights, adapter: Adapter, model: Dict[str, Any]) -> None:
    """Divide projections into queries, keys and values, where the class has one of them."""
    if adapter.fused_attention:
        module, half_split = adapter.fused_attention
        key_map = ((f"{module}.query_key_value", "decoder.layers.#.self_attn"),)
        for name in list(weights.unexpected):
            hf_module, _, ending = name.rpartition(".")
            attention = rename(hf_module, key_map)
            if attention and attention.endswith(".self_attn"):
                parts = separate(weights.hf[name], model["decoder_attention_heads"], half_split)
                for part, weight in zip("qkv", parts):
                    weights.fairseq[f"{attention}.{part}_proj.{ending}"] = weight
                weights.unexpected.remove(name)


def _check_fixed_weights(weights: HfWeights, adapter: Adapter, source: ExportSource) -> None:
    """Refuse what transformers has trained, and fairseq's model cannot learn."""
    computed = adapter.extra_weights(source)
    for name in adapter.fixed_weights:
        rounding = 4 * torch.finfo(weights.get(name).dtype).eps
        if not torch.allclose(weights.get(name).float(), computed[name], rtol=rounding, atol=1e-6):
            raise UsageError(
                f"{weights.folder}: {name.rpartition('.')[0]} was trained, and our encoding has no "
                "such table; train with its requires_grad_(False), as the card says"
            )


def _learn_tables(
    weights: HfWeights, adapter: Adapter, model: Dict[str, Any], source: ExportSource
) -> bool:
    """Make the positions learned if a table is not what the encoding computes; return whether."""
    if model["position_encoding"] == "learned":
        return False
    computed, first = adapter.extra_weights(source), adapter.unused_rows
    tables = {name: weights.get(name)[first:] for name in adapter.position_tables.values()}
    if all(torch.equal(computed[name].to(t.dtype)[first:], t) for name, t in tables.items()):
        return False
    for option in [option for option in model if option.startswith("position_")]:
        if option != "position_segments":
            del model[option]
    model["position_encoding"] = "learned"
    model["position_signature"] = position_signature(model)
    adapter.restore_positions(adapter, weights, model)
    return True


def _check_config(config: HfConfig, adapter: Adapter, source: ExportSource) -> None:
    """Check that the fields that export writes still say what they said."""
    for name, value in adapter.to_config(source).items():
        if "dropout" in name or name not in config.fields:
            continue
        stored = config.fields[name]
        if isinstance(value, dict) and isinstance(stored, dict):
            stored = {part: stored.get(part) for part in value}
        if stored != value:
            raise UsageError(
                f"{config.path}: {name} is {stored!r:.60}, and was {value!r:.60} in the exported "
                "model"
            )

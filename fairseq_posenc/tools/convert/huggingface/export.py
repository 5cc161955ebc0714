"""From a checkpoint to a folder: as it is, or for a class of Hugging Face's transformers."""

from typing import Any, Dict, List, Tuple

import torch
from torch import Tensor

from fairseq_posenc.checkpoints.folders import DESCRIPTION, safetensors, save_json, write_folder
from fairseq_posenc.tools.convert.checkpoint import (
    ALL,
    SIDES,
    ExportSource,
    check_output,
    read_checkpoint,
    read_dictionaries,
    read_sentences,
)
from fairseq_posenc.tools.convert.ctranslate2.positions import fits_ctranslate2
from fairseq_posenc.tools.convert.huggingface import model_card, verify
from fairseq_posenc.tools.convert.huggingface.adapters import (
    ACTIVATIONS,
    EMBEDDINGS_TOO,
    SPECIAL_IDS,
    Adapter,
)
from fairseq_posenc.tools.convert.huggingface.config_fields import OUR_OPTIONS
from fairseq_posenc.tools.convert.huggingface.families import EXPORTED
from fairseq_posenc.tools.convert.huggingface.folder import rename
from fairseq_posenc.tools.convert.huggingface.multilingual import copy_tokenizer
from fairseq_posenc.tools.convert.huggingface.positions import position_type
from fairseq_posenc.tools.convert.huggingface.tokenizers import write_tokenizers
from fairseq_posenc.tools.writing import replacing_folder

# weights that are ours alone: positions are computed anew, heads of fine-tuning are left out
_OWN_PARTS = {"embed_positions", "version", "classification_heads", "span_heads"}
_HEADS = {"classification_heads", "span_heads"}
_PLAIN = (bool, int, float, str, type(None))
_SENTENCES = 200  # of the data that both tokenizers get
# fairseq-generate's --max-len-b
_LONGEST = 200


def to_safetensors(path: str, output: str, data: str, force: bool = False) -> List[str]:
    """Write any model of ours as safetensors and JSON, with its dictionaries and subwords.

    Returns:
        What the user should know, one line each.

    Raises:
        UsageError: the checkpoint is of no model of ours; ``output`` exists and ``force`` is not
            set, or cannot be written.
    """
    check_output(output, DESCRIPTION, "of posenc export", force)
    safetensors()
    source = read_checkpoint(path, ALL)
    dictionaries = read_dictionaries(source, data)
    with replacing_folder(output) as folder:
        write_folder(folder, _description(source), source.state["model"], {}, {})
        model_card.copy_text_files(source, dictionaries, data, folder)
    return [f"a checkpoint again: posenc import --from {output} --output model.pt"]


def to_huggingface(
    path: str, output: str, data: str, force: bool = False, check: bool = False
) -> List[str]:
    """Write the model of a checkpoint as a folder that transformers loads.

    Args:
        path: the checkpoint.
        output: the folder; it appears only when complete.
        data: folder of the binarised data of the training, with dictionaries and subwords.
        force: replace a folder that posenc has exported.
        check: compare its scores with ours on sentences of the data, which takes transformers.

    Returns:
        What the user should know, one line each.

    Raises:
        UsageError: transformers has no class for the model, or it does not compute the same; the
            checkpoint is of no model of ours; the dictionaries are missing or others; ``output``
            exists.
    """
    check_output(output, DESCRIPTION, "of posenc export", force)
    safetensors()
    source = read_checkpoint(path, ALL)
    source.check_eos()
    adapter = choose_adapter(source)
    dictionaries = read_dictionaries(source, data)
    sentences = read_sentences(source, data, _SENTENCES)
    weights = source.state["model"]
    description = _description(source)
    names, hf_weights, tied = _rename_weights(source, adapter)
    config = {
        "architectures": [adapter.model_class],
        "model_type": adapter.model_type,
        "dtype": str(next(iter(hf_weights.values())).dtype).split(".")[-1],
        "tie_word_embeddings": tied,
        **adapter.to_config(source),
        OUR_OPTIONS: description,  # which ``save_pretrained`` keeps
    }
    with replacing_folder(output) as folder:
        write_folder(folder, description, weights, names, hf_weights)
        save_json(config, folder, "config.json")
        if "decoder" in source.stacks:
            generation = translation_generation if len(source.stacks) == 2 else lm_generation
            save_json(generation(source), folder, "generation_config.json")
        target = list(dictionaries.values())[-1]
        if source.is_multilingual:
            notes = copy_tokenizer(source, target, data, folder)
        else:
            notes = write_tokenizers(source, dictionaries, sentences, data, folder)
        notes += adapter.notes
        measured = verify.compare(source, adapter, sentences, folder) if check else None
        model_card.copy_text_files(source, dictionaries, data, folder)
        has_table = any("position" in name for name in hf_weights)
        model_card.write(source, adapter, target, folder, notes, measured, has_table)
    if any(_HEADS & set(name.split(".")) for name in weights):
        notes.append("heads of fine-tuning are kept for posenc import alone")
    agreement = measured or "not compared with transformers; --check does that"
    return [f"for {adapter.model_class}: {agreement}", *notes]


def choose_adapter(source: ExportSource) -> Adapter:
    """Return how a model is written.

    Raises:
        UsageError: transformers has no class that computes the same.
    """
    options = source.options
    norms = {
        bool(getattr(options, f"{stack.split('.')[0]}_normalize_before", False))
        for stack in source.stacks
    }
    encoding = f"--position-encoding {options.position_encoding}"
    positions = position_type(source)
    norm_order = "before" if norms == {True} else "after"
    normed = [getattr(stack, "layernorm_embedding", None) for stack in source.stacks.values()]
    if norm_order == "before" and len(normed) == 2 and None not in normed:
        norm_order = EMBEDDINGS_TOO
    adapter = EXPORTED.get((source.model_name, norm_order, positions or ""))
    if adapter is None or len(norms) > 1:
        norm_place = "before each sub-layer of one side alone"
        if len(norms) == 1:
            norm_place = f"{norm_order} each sub-layer"
        advice = "; --to safetensors keeps any model"
        if fits_ctranslate2(source):
            advice = ", which CTranslate2 takes: --to ctranslate2"
        raise source.refusal(
            f"transformers has no class for {encoding} and LayerNorm {norm_place}{advice}"
        )
    for option in ("cross_self_attention", "no_cross_attention"):
        if getattr(options, option, False):
            raise source.refusal(f"{adapter.model_class} has no --{option.replace('_', '-')}")
    if options.activation_fn not in ACTIVATIONS:
        raise source.refusal(f"transformers has no --activation-fn {options.activation_fn}")
    accepted = adapter.accepted_values.get("hidden_act")
    if accepted and ACTIVATIONS[options.activation_fn] not in accepted:
        needed = " or ".join(accepted)
        raise source.refusal(f"the head of {adapter.model_class} needs --activation-fn {needed}")
    widths = [getattr(options, f"{side}_embed_dim", None) for side in SIDES]
    if None not in widths and widths[0] != widths[1]:
        raise source.refusal(f"{adapter.model_class} has one width for both sides")
    if adapter.needs(source):
        raise source.refusal(f"{adapter.model_class} needs a model with {adapter.needs(source)}")
    if norm_order != "after" and any(stack.layer_norm is None for stack in source.stacks.values()):
        raise source.refusal(
            f"{adapter.model_class} needs a last LayerNorm (--no-decoder-final-norm)"
        )
    return adapter


def _rename_weights(
    source: ExportSource, adapter: Adapter
) -> Tuple[Dict[str, str], Dict[str, Tensor], bool]:
    """Return the class's names of the weights that it takes unchanged, all its weights, and whether
    its embeddings are tied.

    Raises:
        UsageError: the class has no place for a weight, or wants one for several that differ.
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
    tied = all(torch.equal(weights[name], first) for name in shared)
    if tied:
        names.update(dict.fromkeys(shared, adapter.shared_weights[0]))
    elif not adapter.may_be_untied:
        raise source.refusal(
            f"{adapter.model_class} has one set of embeddings, as after --share-all-embeddings"
        )
    dtype = weights[next(iter(names))].dtype
    hf_weights = {name: x.to(dtype) for name, x in adapter.extra_weights(source).items()}
    tied = tied and hf_weights.keys().isdisjoint(adapter.shared_weights)
    names = {name: hf_name for name, hf_name in names.items() if hf_name not in hf_weights}
    hf_weights.update({hf_name: weights[name] for name, hf_name in names.items()})
    return names, hf_weights, tied


def _description(source: ExportSource) -> Dict[str, Any]:
    options = {**vars(source.options), "dictionary_hash": source.dictionaries}
    return {
        "kind": source.model_name,
        "signature": source.signature,
        "model": {name: value for name, value in options.items() if _is_plain(value)},
        "task": {name: value for name, value in source.task.items() if _is_plain(value)},
    }


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


def translation_generation(source: ExportSource) -> Dict[str, Any]:
    """Return how transformers searches as fairseq-generate does, with beam 5.

    fairseq chooses neither padding nor an end at once, forces the end after 200 tokens, and stops
    when as many hypotheses have ended as the beam is wide.
    """
    longest = min(_LONGEST, source.limits["decoder"] - 1)
    eos = SPECIAL_IDS["eos_token_id"]
    return {
        **SPECIAL_IDS,
        "decoder_start_token_id": eos,
        "forced_eos_token_id": eos,
        "suppress_tokens": [SPECIAL_IDS["pad_token_id"]],
        "min_length": 2,
        "max_length": longest + 2,
        "num_beams": 5,
        "early_stopping": True,
        "length_penalty": 1.0,
    }


def lm_generation(source: ExportSource) -> Dict[str, Any]:
    """Return how transformers goes on with a text: greedily, never with padding, to the end."""
    return {
        **SPECIAL_IDS,
        "bos_token_id": source.first_token,
        "suppress_tokens": [SPECIAL_IDS["pad_token_id"]],
        "max_length": source.limits["decoder"],
    }

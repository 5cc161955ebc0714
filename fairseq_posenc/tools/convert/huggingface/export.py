"""From a checkpoint to a folder: as it is, or for a class of Hugging Face's transformers."""

from typing import Any, Dict, List

from fairseq_posenc.checkpoints.folders import DESCRIPTION, safetensors, save_json, write_folder
from fairseq_posenc.tools.convert.checkpoint import (
    ALL,
    ExportSource,
    read_checkpoint,
    read_dictionaries,
    read_sentences,
)
from fairseq_posenc.tools.convert.huggingface import model_card, verify
from fairseq_posenc.tools.convert.huggingface.adapters import SPECIAL_IDS, rename_weights
from fairseq_posenc.tools.convert.huggingface.config_fields import OUR_OPTIONS
from fairseq_posenc.tools.convert.huggingface.families import choose_adapter
from fairseq_posenc.tools.convert.huggingface.multilingual import copy_tokenizer
from fairseq_posenc.tools.convert.huggingface.tokenizers import write_tokenizers
from fairseq_posenc.tools.writing import check_folder, replacing_folder

_HEADS = {"classification_heads", "span_heads"}
_SENTENCES = 200  # of the data that both tokenizers get
# fairseq-generate's --max-len-b
_LONGEST = 200


def to_safetensors(path: str, output: str, data: str, force: bool = False) -> List[str]:
    """Write any model of ours as safetensors and JSON, with its dictionaries and subwords."""
    check_folder(output, DESCRIPTION, "of posenc export", force)
    safetensors()
    source = read_checkpoint(path, ALL)
    dictionaries = read_dictionaries(source, data)
    with replacing_folder(output) as folder:
        write_folder(folder, source.description(), source.state["model"], {}, {})
        model_card.copy_text_files(source, dictionaries, data, folder)
    return [f"a checkpoint again: posenc import --from {output} --output model.pt"]


def to_huggingface(
    path: str, output: str, data: str, force: bool = False, check: bool = False
) -> List[str]:
    """Write the model of a checkpoint as a folder that transformers loads.

    Args:
        data: folder of the binarised data of the training, with dictionaries and subwords.
        check: compare its scores with ours on sentences of the data, which takes transformers.
    """
    check_folder(output, DESCRIPTION, "of posenc export", force)
    safetensors()
    source = read_checkpoint(path, ALL)
    source.check_eos()
    adapter = choose_adapter(source)
    dictionaries = read_dictionaries(source, data)
    sentences = read_sentences(source, data, _SENTENCES)
    weights = source.state["model"]
    description = source.description()
    names, hf_weights, tied = rename_weights(source, adapter)
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

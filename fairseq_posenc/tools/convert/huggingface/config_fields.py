"""Fields of transformers' ``config.json``: those that are understood, and any other is refused.

A field that is read has its value checked where it is read. ``UNDERSTOOD`` has the values of others
with which a model computes what ours does. ``HARMLESS`` are those that no score depends on. What a
later version of transformers adds is in neither, and so is refused by its name.
"""

import os
from typing import Any, Dict, List, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import read_json

# more types, positions or channels than any model has; a list of them fits into memory
_LARGEST_SIZE = 1_000_000
# where posenc export writes the options of the model
OUR_OPTIONS = "posenc"
# what a file says of itself
_ABOUT = frozenset(
    "architectures model_type transformers_version _name_or_path name_or_path dtype "
    "torch_dtype".split()
) | {OUR_OPTIONS}
HARMLESS = frozenset(
    "output_hidden_states return_dict return_dict_in_generate output_scores output_attentions "
    "output_past torchscript use_bfloat16 use_cache chunk_size_feed_forward gradient_checkpointing "
    "id2label label2id num_labels problem_type finetuning_task task_specific_params "
    "initializer_range init_std initializer_factor classifier_dropout type_vocab_size "
    "encoder_layerdrop decoder_layerdrop activation_dropout attention_dropout "
    "max_length min_length num_beams num_beam_groups num_return_sequences length_penalty "
    "early_stopping do_sample temperature top_k top_p typical_p repetition_penalty "
    "diversity_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids "
    "forced_bos_token_id forced_eos_token_id remove_invalid_values tokenizer_class prefix "
    "directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers "
    "pooler_size_per_head pooler_type".split()
)
_ANY = {
    "is_decoder": (False,),
    "add_cross_attention": (False,),
    "tie_encoder_decoder": (False,),
    "output_hidden_states": (False, True),
}
_BERT = {**_ANY, "is_encoder_decoder": (False,)}
_ROBERTA = {**_BERT, "pad_token_id": (1,), "hidden_act": ("gelu",)}
_ANY_NUMBER = ("pad_token_id", "bos_token_id", "eos_token_id", "sep_token_id")
_FSMT: Dict[str, Tuple[Any, ...]] = {
    **_ANY,
    "is_encoder_decoder": (True,),
    "pad_token_id": (1,),
    "bos_token_id": (0,),
    "eos_token_id": (2,),
    "decoder_start_token_id": (2,),
    "add_bias_logits": (False,),
    "add_final_layer_norm": (False,),
    "normalize_before": (False,),
    "normalize_embedding": (False,),
    "static_position_embeddings": (True,),
}
_MULTILINGUAL = {
    **_FSMT,
    "tie_word_embeddings": (True,),
    "add_final_layer_norm": (True,),
    "normalize_before": (True,),
    "normalize_embedding": (True,),
    "static_position_embeddings": (False,),
}
# the reader says why it has to start so
del _MULTILINGUAL["decoder_start_token_id"]
UNDERSTOOD: Dict[str, Dict[str, Tuple[Any, ...]]] = {
    "bert": _BERT,
    "roformer": _BERT,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "fsmt": _FSMT,
    "m2m_100": _MULTILINGUAL,
    "mbart": _MULTILINGUAL,
}
# by kind, fields that no score depends on there
_HARMLESS_THERE = {
    "bert": frozenset(_ANY_NUMBER),
    "roformer": frozenset(_ANY_NUMBER),
    "roberta": frozenset({"bos_token_id", "eos_token_id", "sep_token_id"}),
    "xlm-roberta": frozenset({"bos_token_id", "eos_token_id", "sep_token_id"}),
    "fsmt": frozenset({"decoder", "encoder", "num_hidden_layers", "src_vocab_size", "hidden_size"})
    | {"tgt_vocab_size", "vocab_size", "num_attention_heads", "tie_word_embeddings"},
    "m2m_100": frozenset({"num_hidden_layers", "hidden_size", "num_attention_heads"}),
    "mbart": frozenset({"num_hidden_layers", "hidden_size", "num_attention_heads"})
    | {"classif_dropout", "_num_labels"},
}
_CLASSES = {
    "bert": ("BertForMaskedLM", "BertForPreTraining"),
    "roformer": ("RoFormerForMaskedLM",),
    "roberta": ("RobertaForMaskedLM",),
    "xlm-roberta": ("XLMRobertaForMaskedLM", "RobertaForMaskedLM"),
    "fsmt": ("FSMTForConditionalGeneration",),
    "m2m_100": ("M2M100ForConditionalGeneration",),
    "mbart": ("MBartForConditionalGeneration",),
}


def check_fields(path: str, model_type: str, read: Dict[str, Any]) -> List[str]:
    """Check that nothing in ``config.json`` makes the model compute what ours does not.

    Args:
        path: the file.
        model_type: of the file.
        read: the fields that the reader reads itself, with their shapes; numbers are sizes.

    Returns:
        A line that names the fields that were left out, if there are any.

    Raises:
        UsageError: a field is not known, or has a value that is not understood; a size is none.
    """
    fields = read_json(path)
    for name in (name for name, shape in read.items() if shape is int):
        if not 1 <= fields[name] <= _LARGEST_SIZE:
            raise UsageError(f"{path}: {name} is {fields[name]}; it should be 1…{_LARGEST_SIZE}")
    classes = fields.get("architectures") or []
    if not isinstance(classes, list):
        raise UsageError(f"{path}: architectures should be a list")
    if classes and not set(map(str, classes)) & set(_CLASSES[model_type]):
        supported = " or ".join(_CLASSES[model_type])
        raise UsageError(f"{path}: a {classes[0]!s:.60} is not imported, only a {supported}")
    harmless, left = HARMLESS | _HARMLESS_THERE[model_type], []
    for name, value in fields.items():
        if name in UNDERSTOOD[model_type]:
            accepted = UNDERSTOOD[model_type][name]
            if value is not None and value not in accepted:
                shown = " or ".join(map(repr, accepted))
                raise UsageError(f"{path}: {name} is {value!r:.60}; understood is {shown} alone")
        elif name in harmless and name not in read:
            left += [name] if value else []
        elif name not in read and name not in _ABOUT and value not in (None, {}, [], ""):
            raise UsageError(
                f"{path}: {name:.60} is {value!r:.60}, which import does not understand; "
                "a model that does not need the field loads without it"
            )
    return [f"left out, as no score depends on it: {', '.join(sorted(left))}"] if left else []


def check_files(folder: str) -> None:
    """Check that a stranger's folder holds files alone: links and pipes are not followed.

    Raises:
        UsageError: it holds something else.
    """
    for entry in os.scandir(folder):
        if entry.is_symlink() or not (entry.is_file() or entry.is_dir()):
            raise UsageError(
                f"{entry.path} is a link, a pipe or a device, which is not followed; if you trust "
                f"it, copy the folder (cp -rL {folder} COPY) and import the copy"
            )

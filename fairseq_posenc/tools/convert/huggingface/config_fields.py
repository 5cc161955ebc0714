"""Fields of transformers' ``config.json``: those that are understood, and any other is refused.

A field that is read has its value checked where it is read. An adapter's ``accepted_values`` are
those of other fields with which a model computes what fairseq's does. No score depends on
``IGNORED`` or an adapter's ``ignored_fields``. What a later version of transformers adds is in none
of them, and so is refused by its name, unless it is empty.
"""

import os
from typing import List

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import check_schema
from fairseq_posenc.tools.convert.huggingface.adapters import Adapter
from fairseq_posenc.tools.convert.huggingface.folder import HfConfig

# more types, positions or channels than any model has; a list of them fits into memory
_LARGEST_SIZE = 1_000_000
# where posenc export writes the options of the model
OUR_OPTIONS = "posenc"
# what a file says of itself
_ABOUT = frozenset(
    "architectures model_type transformers_version _name_or_path name_or_path dtype "
    "torch_dtype".split()
) | {OUR_OPTIONS}
IGNORED = frozenset(
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


def check_config(config: HfConfig, adapter: Adapter) -> List[str]:
    """Check that nothing in ``config.json`` makes a model compute what fairseq does not.

    Returns:
        A line that names the fields that were left out, if there are any.
    """
    path = config.path
    schema = {
        **{field.name: field.schema for field in adapter.config_fields},
        **adapter.more_fields,
    }
    check_schema(config.fields, schema, path, "transformers")
    for name in (name for name, field_schema in schema.items() if field_schema is int):
        if not 1 <= config.fields[name] <= _LARGEST_SIZE:
            size = config.fields[name]
            raise UsageError(f"{path}: {name} is {size}; it should be 1…{_LARGEST_SIZE}")
    classes = config.get("architectures", [])
    if not isinstance(classes, list):
        raise UsageError(f"{path}: architectures should be a list")
    if classes and not set(map(str, classes)) & set(adapter.classes):
        supported = " or ".join(adapter.classes)
        raise UsageError(f"{path}: a {classes[0]!s:.60} is not imported, only a {supported}")
    ignored, left_out = IGNORED | adapter.ignored_fields, []
    for name, value in config.fields.items():
        if name in adapter.accepted_values:
            accepted = adapter.accepted_values[name]
            if value is not None and value not in accepted:
                shown = " or ".join(map(repr, accepted))
                raise UsageError(f"{path}: {name} is {value!r:.60}; understood is {shown} alone")
        elif name in ignored and name not in schema:
            left_out += [name] if value else []
        elif name not in schema and name not in _ABOUT and value not in (None, {}, [], ""):
            raise UsageError(
                f"{path}: {name:.60} is {value!r:.60}, which import does not understand; "
                "a model that does not need the field loads without it"
            )
    names = ", ".join(sorted(left_out))
    return [f"left out, as no score depends on it: {names}"] if left_out else []


def check_files(folder: str) -> None:
    """Check that a stranger's folder holds files alone: links and pipes are not followed."""
    for entry in os.scandir(folder):
        if entry.is_symlink() or not (entry.is_file() or entry.is_dir()):
            raise UsageError(
                f"{entry.path} is a link, a pipe or a device, which is not followed; if you trust "
                f"it, copy the folder (cp -rL {folder} COPY) and import the copy"
            )

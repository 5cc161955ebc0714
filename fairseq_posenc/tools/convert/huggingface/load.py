"""From a folder of ``posenc export`` or of transformers to a checkpoint of ours.

Weights, configuration and vocabulary are read as data: nothing in the folder is run.
"""

import os
import shutil
from typing import Callable, Dict, List, Optional

from fairseq_posenc.checkpoints.folders import DESCRIPTION, as_checkpoint, read_folder
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards.loading import one_line
from fairseq_posenc.json_files import load_json
from fairseq_posenc.tools.averaging import save
from fairseq_posenc.tools.convert.checkpoint import ALL, read_state
from fairseq_posenc.tools.convert.huggingface.bert import BERT_READERS
from fairseq_posenc.tools.convert.huggingface.config_fields import check_files
from fairseq_posenc.tools.convert.huggingface.imported import ImportedModel, read_fsmt
from fairseq_posenc.tools.convert.huggingface.language_codes import LANGUAGES
from fairseq_posenc.tools.convert.huggingface.load_trained import is_trained, read_trained
from fairseq_posenc.tools.convert.huggingface.model_card import text_files
from fairseq_posenc.tools.convert.huggingface.multilingual import (
    MULTILINGUAL_READERS,
    tokenizer_files,
)
from fairseq_posenc.tools.convert.huggingface.verify_import import compare_imported
from fairseq_posenc.tools.writing import replacing_files

_READERS: Dict[str, Callable[[str, str], ImportedModel]] = {
    "fsmt": read_fsmt,
    **BERT_READERS,
    **MULTILINGUAL_READERS,
}
_REASONS = {
    "marian": "its output has a bias, and its decoder starts with padding, which fairseq has not",
}


def import_model(
    folder: str, output: str, force: bool = False, text: Optional[str] = None
) -> List[str]:
    """Write the model of a folder as a checkpoint, its dictionaries and subwords beside it.

    Args:
        folder: what to read.
        output: the checkpoint.
        force: whether to replace what is there.
        text: a file with a sentence a line, on which transformers must give the same scores.

    Returns:
        What the user should know, one line each.

    Raises:
        UsageError: the folder is of no known model, incomplete or damaged; the checkpoint is there
            and ``force`` is not set, or cannot be written; transformers computes something else.
    """
    if not os.path.isdir(folder):
        raise UsageError(f"there is no folder {folder}")
    check_files(folder)
    if os.path.lexists(output) and not force:
        raise UsageError(f"{output} exists; name another file, or overwrite it with --force")
    imported = _exported(folder) if os.path.exists(_path(folder)) else _of_transformers(folder)
    if text and not imported.hf_ids:
        raise UsageError(
            f"posenc export wrote the model of {folder}, so import it without --check; then "
            f"posenc export --path {output} --to huggingface --check compares"
        )
    directory, name = os.path.split(os.path.abspath(output))
    names = [*imported.dictionaries, *imported.files, *imported.texts]
    taken = [n for n in names if os.path.lexists(os.path.join(directory, n))]
    if taken and not force:
        raise UsageError(
            f"{taken[0]} in {directory} would be replaced; choose another folder for --output, or "
            "replace it with --force"
        )
    state = as_checkpoint(imported.model, imported.task, imported.weights)
    # whether the weights fit the options, which are checked in a copy
    read_state({**state}, folder, ALL)
    with replacing_files(directory, name) as partial:
        save(state, os.path.join(partial, name))
        for file, dictionary in imported.dictionaries.items():
            dictionary.save(os.path.join(partial, file))
        for file, origin in imported.files.items():
            os.makedirs(os.path.dirname(os.path.join(partial, file)), exist_ok=True)
            shutil.copy(origin, os.path.join(partial, file))
        for file, content in imported.texts.items():
            with open(os.path.join(partial, file), "w", encoding="utf-8") as stream:
                stream.write(content)
        if text:
            imported.notes += compare_imported(imported, folder, os.path.join(partial, name), text)
    return [f"beside it: {', '.join(names)}"] * bool(names) + imported.notes


def _path(folder: str) -> str:
    return os.path.join(folder, DESCRIPTION)


def _exported(folder: str) -> ImportedModel:
    """Return what ``posenc export`` has written, weight by weight as it was."""
    description, weights = read_folder(folder)
    files = text_files(folder)
    if LANGUAGES in files:
        files.update(tokenizer_files(folder))
    return ImportedModel(description["model"], description["task"], weights, files=files)


def _of_transformers(folder: str) -> ImportedModel:
    config = os.path.join(folder, "config.json")
    model_type = load_json(config, {"model_type": str}, "transformers")["model_type"]
    reader = read_trained if is_trained(config) else _READERS.get(model_type)
    if reader:
        with one_line(f"{folder}: its weights do not fit its {os.path.basename(config)}"):
            return reader(folder, config)
    types = ", ".join(_READERS)
    reason = _REASONS.get(model_type, f"only {types} and what posenc export writes are imported")
    raise UsageError(
        f"{folder} is a model of type {model_type:.40}, which is not imported: {reason}"
    )

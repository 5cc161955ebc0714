"""From a folder of ``posenc export`` or of transformers to a checkpoint of ours.

Weights, configuration and vocabulary are read as data: nothing in the folder is run.
"""

import os
import shutil
from dataclasses import replace
from typing import List, Optional

from fairseq_posenc.checkpoints.folders import DESCRIPTION, as_checkpoint, read_folder
from fairseq_posenc.data.indexed import read_dictionary
from fairseq_posenc.data.segmentation import CODES, TOKENIZER, SentencePieces
from fairseq_posenc.data.subwords import SentencePiece, WordPiece
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards.loading import one_line
from fairseq_posenc.tools.averaging import save
from fairseq_posenc.tools.convert.checkpoint import ALL, read_state
from fairseq_posenc.tools.convert.huggingface.config_fields import check_config, check_files
from fairseq_posenc.tools.convert.huggingface.families import imported_family
from fairseq_posenc.tools.convert.huggingface.folder import ImportedModel, read_config
from fairseq_posenc.tools.convert.huggingface.language_codes import LANGUAGES
from fairseq_posenc.tools.convert.huggingface.load_trained import is_trained, read_fine_tuned
from fairseq_posenc.tools.convert.huggingface.model_card import text_files
from fairseq_posenc.tools.convert.huggingface.multilingual import tokenizer_files
from fairseq_posenc.tools.convert.huggingface.verify import compare_imported
from fairseq_posenc.tools.writing import replacing_files


def import_model(
    folder: str, output: str, force: bool = False, text: Optional[str] = None
) -> List[str]:
    """Write the model of a folder as a checkpoint, its dictionaries and subwords beside it.

    Args:
        text: a file with a sentence a line, on which transformers must give the same scores.
    """
    if not os.path.isdir(folder):
        raise UsageError(f"there is no folder {folder}")
    check_files(folder)
    if os.path.lexists(output) and not force:
        raise UsageError(f"{output} exists; name another file, or overwrite it with --force")
    imported = (
        _exported(folder)
        if os.path.exists(os.path.join(folder, DESCRIPTION))
        else _of_transformers(folder)
    )
    if text and not imported.hf_ids:
        raise UsageError(
            f"posenc export wrote the model of {folder}, so import it without --check; then "
            f"posenc export --path {output} --to huggingface --data DATA --output FOLDER --check "
            "compares"
        )
    directory, name = os.path.split(os.path.abspath(output))
    names = [*imported.dictionaries, *imported.files, *imported.texts]
    taken = [n for n in names if os.path.lexists(os.path.join(directory, n))]
    if taken and not force:
        raise UsageError(
            f"{taken[0]} in {directory} would be replaced; choose another folder for --output, or "
            "replace it with --force"
        )
    _check_other_subwords(directory, names)
    imported.notes += _subword_remarks(imported)
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
    return ([f"beside it: {', '.join(names)}"] if names else []) + imported.notes


def _check_other_subwords(directory: str, names: List[str]) -> None:
    """Refuse a folder with a kind of subwords that would be taken for that of the files ``names``.

    Those of translation and of BERT are told apart, but not from SentencePiece, which both have.
    """
    other_kinds = {CODES, TOKENIZER, WordPiece.name}
    if SentencePiece.name not in names:
        other_kinds = {SentencePiece.name} if other_kinds & set(names) else set()
    for name in sorted(
        other_kinds & set(os.listdir(directory) if os.path.isdir(directory) else ())
    ):
        raise UsageError(
            f"{name} in {directory} is of another model; choose another folder for --output"
        )


def _subword_remarks(imported: ImportedModel) -> List[str]:
    """Return what to say of dictionaries and a SentencePiece model that do not go together."""
    path = imported.files.get(SentencePiece.name)
    if path is None:
        return []
    dictionaries = [
        read_dictionary(file) for name, file in imported.files.items() if name.startswith("dict.")
    ]
    model = SentencePieces(path)
    symbols = (dictionary.symbols[dictionary.nspecial :] for dictionary in dictionaries)
    return [remark for own_symbols in symbols for remark in model.remarks(own_symbols)]


def _exported(folder: str) -> ImportedModel:
    """Return what ``posenc export`` has written, weight by weight as it was."""
    description, weights = read_folder(folder)
    files = text_files(folder)
    if LANGUAGES in files:
        files.update(tokenizer_files(folder))
    return ImportedModel(description["model"], description["task"], weights, files=files)


def _of_transformers(folder: str) -> ImportedModel:
    config = read_config(folder)
    adapter = None if is_trained(config) else imported_family(config)
    with one_line(f"{folder}: its weights do not fit its config.json"):
        if adapter is None or adapter.read is None:
            return read_fine_tuned(config)
        notes = check_config(config, adapter)
        imported = adapter.read(adapter, config)
    return replace(imported, notes=[*notes, *imported.notes], tokenizers=adapter.tokenizers)

"""From a checkpoint to the folder of a CTranslate2 model."""

import os
from typing import Any, Dict, List, Optional, Tuple

from fairseq import utils
from fairseq.data.data_utils import infer_language_pair

from fairseq_posenc.data.indexed import read_dictionary
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import replacing_folder
from fairseq_posenc.tools.export.ct2 import library
from fairseq_posenc.tools.export.ct2.spec import specify
from fairseq_posenc.tools.export.ct2.translating import spelled
from fairseq_posenc.tools.export.trained import SIDES, Trained, read

# where CTranslate2 cuts sources, if not told otherwise
DEFAULT_POSITIONS = 1024


def to_ctranslate2(
    path: str,
    output: str,
    data: Optional[str] = None,
    quantization: Optional[str] = None,
    positions: Optional[int] = None,
    force: bool = False,
) -> List[str]:
    """Write the model of a checkpoint as a CTranslate2 model to the folder ``output``.

    Args:
        path: the checkpoint.
        output: appears only when complete.
        data: folder of the dictionaries; None: the binarised data of the training.
        quantization: ``int8``, ``float16`` and so on, see CTranslate2; None: ``float32``.
        positions: most tokens of a sentence, BOS and EOS included, for which positions are
            written; None: 1,024, or what the model was trained for, if that is more.
        force: replace a CTranslate2 model that is there.

    Returns:
        What the user should know, one line each.

    Raises:
        UsageError: CTranslate2 is not installed or cannot hold the model; the checkpoint is of no
            translation model of ours; the dictionaries are missing or others; ``output`` exists.
    """
    known = library().specs.model_spec.ACCEPTED_MODEL_TYPES
    if quantization not in (None, *known):
        raise UsageError(f"--quantization {quantization} is not known; choose {', '.join(known)}")
    _check_free(output, force)
    trained = read(path)
    length = positions or max(DEFAULT_POSITIONS, *map(trained.limit, SIDES))
    spec = specify(trained, _vocabularies(trained, data), length)
    spec.validate()
    spec.optimize(quantization=quantization)
    with replacing_folder(output) as folder:
        spec.save(folder)
    notes = [f"positions for sentences of up to {length} tokens, BOS and EOS included"]
    if trained.source_bos:
        notes.append("BOS is put before every source, as in training")
    return notes


def _check_free(output: str, force: bool) -> None:
    if not os.path.lexists(output):
        return
    if not os.path.isfile(os.path.join(output, "model.bin")):
        raise UsageError(f"{output} exists and is no CTranslate2 model; name another folder")
    if not force:
        raise UsageError(f"{output} exists; name another folder, or replace it with --force")


def _vocabularies(trained: Trained, data: Optional[str]) -> Dict[str, List[str]]:
    """Return the types of the source and the target, as CTranslate2 spells them."""
    task = trained.state["cfg"]["task"]
    folder = data or utils.split_paths(task["data"] or "")[0]
    found = {}
    for side, language in zip(SIDES, _languages(task, folder)):
        file = os.path.join(folder, f"dict.{language}.txt")
        if not os.path.isfile(file):
            raise UsageError(f"there is no {file}; name the folder of the dictionaries with --data")
        dictionary = read_dictionary(file)
        types = getattr(trained.model, side).embed_tokens.num_embeddings
        if len(dictionary) != types:
            raise UsageError(
                f"{file} has {len(dictionary)} types with the special ones, the model {types}; "
                "name the folder of the data that it was trained on with --data"
            )
        found[side] = spelled(dictionary)
    return found


def _languages(task: Dict[str, Any], folder: str) -> Tuple[str, str]:
    """Return source and target language: those given in training, or found in the data as then."""
    if task["source_lang"] and task["target_lang"]:
        return task["source_lang"], task["target_lang"]
    found = infer_language_pair(folder) if os.path.isdir(folder) else None
    if not found or None in found:
        raise UsageError(
            f"there is no binarised text in {folder or 'the current folder'} that tells source and "
            "target language; name the folder of the training's data with --data"
        )
    return task["source_lang"] or found[0], task["target_lang"] or found[1]

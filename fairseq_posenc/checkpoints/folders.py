"""A trained model as a folder that is read without a pickle, and without fairseq.

``posenc.json`` says what the model is. Its weights, by their names in our checkpoints, are in
``posenc.safetensors``; those that are also the weights of a Hugging Face model are in
``model.safetensors`` instead, by that model's names, and ``names`` in ``posenc.json`` has both.
"""

import json
import os
from argparse import Namespace
from typing import Any, Dict, NamedTuple

from torch import Tensor

from fairseq_posenc.errors import UsageError, first_line, import_optional
from fairseq_posenc.files import file_digest, file_error
from fairseq_posenc.json_files import Each, Maybe, load_json

DESCRIPTION, OWN, MODEL = "posenc.json", "posenc.safetensors", "model.safetensors"
_FORMAT = 1
_SCHEMA = {
    "format": int,
    "kind": str,
    "signature": str,
    "model": {},
    "task": {},
    "names": Each(str),
    "sha256": Maybe(str),
    "own_sha256": Maybe(str),
}


class ModelFolder(NamedTuple):
    """The description of a model, see :func:`write_folder`, and its weights by name."""

    description: Dict[str, Any]
    weights: Dict[str, Tensor]


def safetensors() -> Any:
    """Return the module ``safetensors.torch``, if it is installed."""
    return import_optional("safetensors.torch", "this needs the library safetensors")


def write_folder(
    folder: str,
    description: Dict[str, Any],
    weights: Dict[str, Tensor],
    names: Dict[str, str],
    hf_weights: Dict[str, Tensor],
) -> None:
    """Write a model into a folder that is there.

    Args:
        folder: gets the three files, or two without ``hf_weights``.
        description: ``kind`` (the model in fairseq's registry), ``signature`` of its positions,
            and its options in two groups, ``model`` and ``task``.
        weights: all, by their names in our checkpoints.
        names: for those of them that are ``hf_weights`` unchanged, their names there.
        hf_weights: of the Hugging Face model, by its own names.
    """
    own = {name: weight for name, weight in weights.items() if name not in names}
    _save(own, os.path.join(folder, OWN))
    content = {"format": _FORMAT, **description, "names": names}
    # of encodings without parameters the weights alone do not tell them apart
    content["own_sha256"] = file_digest(os.path.join(folder, OWN))
    if hf_weights:
        _save(hf_weights, os.path.join(folder, MODEL))
        content["sha256"] = file_digest(os.path.join(folder, MODEL))
    save_json(content, folder, DESCRIPTION)


def save_json(value: Any, folder: str, name: str) -> None:
    """Write a value as a file of JSON into a folder."""
    with open(os.path.join(folder, name), "w", encoding="utf-8") as stream:
        json.dump(value, stream, indent=1, ensure_ascii=False)


def read_folder(folder: str) -> ModelFolder:
    """Return the model of a folder; nothing in it is run.

    Raises:
        UsageError: a file is missing or damaged, or weights are those of another model.
    """
    path = os.path.join(folder, DESCRIPTION)
    description = load_json(path, _SCHEMA, "posenc export")
    if description["format"] != _FORMAT:
        raise UsageError(f"{path} is of a later version of posenc; update it to read the folder")
    own = os.path.join(folder, OWN)
    weights = read_safetensors(own)
    if description.get("own_sha256") not in (None, file_digest(own)):
        raise UsageError(f"{own} is not the one that posenc export wrote beside {path}")
    if description["names"]:
        file = os.path.join(folder, MODEL)
        hf_weights = read_safetensors(file)
        if file_digest(file) != description.get("sha256"):
            raise UsageError(
                f"{file} is not the one that posenc export wrote; if it was trained further, "
                f"remove {DESCRIPTION} and {OWN}, and it is imported by its config.json"
            )
        for name, hf_name in description["names"].items():
            if hf_name not in hf_weights:
                raise UsageError(f"{file} has no {hf_name:.200}, which {DESCRIPTION} names")
            weights[name] = hf_weights[hf_name]
    return ModelFolder(description, weights)


def as_checkpoint(
    model: Dict[str, Any], task: Dict[str, Any], weights: Dict[str, Tensor]
) -> Dict[str, Any]:
    """Return the content of a checkpoint as fairseq writes it, but for the optimizer's state."""
    history = {"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {}}
    return {
        "args": None,
        # fairseq takes another place of the data for one that there is
        "cfg": {"model": Namespace(**model), "task": {"data": "", **task}},
        "model": weights,
        "optimizer_history": [{**history, "num_updates": 0}],
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}},
        "last_optimizer_state": None,
    }


def checkpoint_of(path: str) -> Dict[str, Any]:
    """Return the content of a checkpoint for the ``posenc.safetensors`` of a folder.

    Raises:
        UsageError: as :func:`read_folder`, or parts of the weights are in another file.
    """
    folder = os.path.dirname(path)
    description, weights = read_folder(folder)
    if description["names"]:
        raise UsageError(f"{path} has a part of the weights; posenc import --from {folder} has all")
    return as_checkpoint(description["model"], description["task"], weights)


def read_safetensors(path: str) -> Dict[str, Tensor]:
    """Return the weights of a file, by name.

    Raises:
        UsageError: it is missing, unreadable or damaged.
    """
    library = safetensors()
    try:
        return library.load_file(path)
    except OSError as error:
        raise file_error("read", path, error) from None
    # the library's own error is an Exception
    except Exception as error:
        raise UsageError(f"{path} is damaged, or not of safetensors: {first_line(error)}") from None


def _save(weights: Dict[str, Tensor], path: str) -> None:
    # copies, as the library refuses weights that share memory; the format is for transformers
    copies = {name: weight.detach().clone().contiguous() for name, weight in weights.items()}
    safetensors().save_file(copies, path, metadata={"format": "pt"})

"""A trained translation model, read for export; its data are not needed."""

import os
from argparse import Namespace
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Dict, Optional

from fairseq.data import Dictionary
from fairseq.models import ARCH_MODEL_REGISTRY

from fairseq_posenc.checkpoints import load_checkpoint, source_bos
from fairseq_posenc.checkpoints.loading import one_line
from fairseq_posenc.checkpoints.option_checks import check_options
from fairseq_posenc.checkpoints.signatures import dictionary_hash
from fairseq_posenc.checkpoints.sizes import no_larger_than
from fairseq_posenc.encodings.base import Portable
from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.transformer import PosencTransformerModel

SIDES = ("encoder", "decoder")
LIMITS = {"encoder": "max_source_positions", "decoder": "max_target_positions"}


@dataclass
class ExportSource:
    """A checkpoint of a translation model, all that is in its file being its ``state``.

    Every option of the model is set. It is in evaluation, in float32, on the CPU. ``dictionaries``
    is the hash of those that it was trained with, if it has one.
    """

    path: str
    state: Dict[str, Any]
    options: Namespace
    model: PosencTransformerModel
    dictionaries: Optional[str]

    @property
    def source_bos(self) -> bool:
        """Whether it was trained with ``--prepend-source-bos``."""
        return source_bos.of_checkpoint(self.state)

    def limit(self, side: str) -> int:
        """Return the most tokens that a source (``encoder``) or target (``decoder``) may have."""
        return getattr(self.options, LIMITS[side])

    def refusal(self, reason: str) -> UsageError:
        """Return the error of a model that cannot be exported."""
        return UsageError(f"{self.path} cannot be exported: {reason}")

    def portable(self, side: str, length: int) -> Portable:
        """Return what the encoding of one side computes, for up to ``length`` tokens."""
        try:
            return getattr(self.model, side).embed_positions.portable(length)
        except ValueError as error:
            encoding = self.options.position_encoding
            raise self.refusal(f"--position-encoding {encoding}: {error}") from None


def read_checkpoint(path: str) -> ExportSource:
    """Read a checkpoint; nothing in it is run.

    Raises:
        UsageError: it is missing, damaged, or not of a ``posenc_transformer``.
    """
    if not os.path.isfile(path):
        raise UsageError(f"there is no checkpoint {path}")
    state = load_checkpoint(path)
    check_options(state, path)
    try:
        found = state["cfg"]["model"]
        options = Namespace(**(found if isinstance(found, dict) else vars(found)))
        arch = options.arch
        state["model"].keys()
    except (KeyError, TypeError, AttributeError):
        raise UsageError(f"{path} is not a checkpoint of fairseq-train") from None
    kind = ARCH_MODEL_REGISTRY.get(arch)
    if kind is None or not issubclass(kind, PosencTransformerModel):
        raise UsageError(
            f"{path} is a model of --arch {arch}; only translation models of "
            "--arch posenc_transformer… can be exported"
        )
    misfit = f"{path}: its weights do not fit its own options"
    try:
        with one_line(misfit), no_larger_than([path]):
            weights = dict(state["model"])
            task = task_of(weights)
            trained = getattr(options, "dictionary_hash", None)
            # only their sizes are right
            options.dictionary_hash = dictionary_hash(
                task.source_dictionary, task.target_dictionary
            )
            model = PosencTransformerModel.build_model(options, task)
            model.load_state_dict(weights)
    except UsageError as error:
        # what models and encodings say does not name the file
        raise error if path in str(error) else UsageError(f"{misfit}: {error}") from None
    model = model.eval().float().requires_grad_(False)
    return ExportSource(path, state, options, model, trained)


def task_of(weights: Dict[str, Any]) -> SimpleNamespace:
    """Return what a model wants from a task: dictionaries as large as its embeddings."""
    dictionaries = []
    for side in SIDES:
        dictionary = Dictionary()
        while len(dictionary) < weights[f"{side}.embed_tokens.weight"].size(0):
            dictionary.add_symbol(f"type{len(dictionary)}")
        dictionaries.append(dictionary)
    source, target = dictionaries
    return SimpleNamespace(source_dictionary=source, target_dictionary=target)

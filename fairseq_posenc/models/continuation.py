"""Trainings that begin with a checkpoint: resumed, or fine-tuned from the weights alone.

A resumed run must have the positions of its checkpoint. A fine-tuned one has them too unless its
options say otherwise; parameters of other positions then start afresh.
"""

import logging
import os
from argparse import Namespace
from typing import Any, Dict, List, NamedTuple, Optional

from fairseq.checkpoint_utils import prune_state_dict
from fairseq.models import BaseFairseqModel

from fairseq_posenc import options, signatures
from fairseq_posenc.checkpoint_check import check_options
from fairseq_posenc.compat import load_checkpoint
from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.state import check_fits

logger = logging.getLogger(__name__)

_LAST = "checkpoint_last.pt"


class Beginning(NamedTuple):
    """The checkpoint that a training begins with.

    Attributes:
        path: of the file.
        fine_tuning: only its weights are taken, the optimiser is new.
        adopted: options that are not given are those of the checkpoint.
        signature: of its positions.
        positions: its options of positions, by their names in the model's options; empty if they
            are fairseq's own and ours have no like.
    """

    path: str
    fine_tuning: bool
    adopted: bool
    signature: str
    positions: Dict[str, Any]


def prepare(args: Any, *others: str) -> Optional[Beginning]:
    """Complete the options of a model that is to be built, and return where its training begins.

    Args:
        args: changed in place.
        *others: names of options of positions that the model has besides those of encodings.

    Raises:
        UsageError: an option of positions is unknown; see :func:`beginning` and
            :func:`adopt_positions`.
    """
    options.check_names(args, *others)
    begun = beginning(args)
    adopt_positions(args, begun)
    return begun


def beginning(args: Any) -> Optional[Beginning]:
    """Return the checkpoint that fairseq will begin with, if there is one.

    Args:
        args: all options of the run.

    Raises:
        UsageError: the checkpoint cannot be read, or its options make no sense.
    """
    if getattr(args, "position_signature", None):
        return None  # the options are those of a checkpoint
    restored = getattr(args, "restore_file", None)
    if restored is None:
        return None
    # the rest is what fairseq's checkpoint_utils.load_checkpoint does
    suffix = getattr(args, "checkpoint_suffix", None) or ""
    fine_tuning = bool(getattr(args, "reset_optimizer", False))
    pretrained = getattr(args, "finetune_from_model", None)
    adopted = fine_tuning or pretrained is not None
    path = restored.replace(".pt", suffix + ".pt")
    if restored == _LAST:
        path = os.path.join(args.save_dir, path)
        if not os.path.exists(path):
            once = getattr(args, "continue_once", None)
            path, fine_tuning = (once, fine_tuning) if once else (pretrained, True)
    if path is None or not (path == pretrained or os.path.exists(path)):
        return None
    state = load_checkpoint(path)
    check_options(state, path)
    found = signatures.model_options(state)
    positions = {}
    name = signatures.encoding_of(found)
    if name is not None:
        known = [f"position_{option}" for option in [*options.OPTIONS, "segments"]]
        positions = {key: found[key] for key in known if found.get(key) is not None}
        positions["position_encoding"] = name
    return Beginning(path, fine_tuning, adopted, signatures.of_checkpoint(state), positions)


def adopt_positions(args: Any, begun: Optional[Beginning]) -> None:
    """Give the options that the user has not given the values of the checkpoint.

    With another encoding than the checkpoint's, its segments alone are taken.

    Args:
        args: options of the model, changed in place.
        begun: the checkpoint.

    Raises:
        UsageError: the user names no encoding, and the checkpoint's is none of ours.
    """
    if begun is None or not begun.adopted:
        return
    given = getattr(args, "position_encoding", None) is not None
    if not given and not begun.positions:
        raise UsageError(
            f"{begun.path} was trained with {begun.signature}, which is none of ours; say with "
            "--position-encoding which to fine-tune with"
        )
    for name, value in begun.positions.items():
        wanted = not given or name == "position_segments"
        if wanted and getattr(args, name, None) is None:
            setattr(args, name, value)


def check_positions(begun: Optional[Beginning], signature: str) -> None:
    """Compare the positions of a run with those of the checkpoint that it begins with.

    Raises:
        UsageError: they differ in a run that is resumed.
    """
    if begun is None:
        return
    difference = f"{begun.path} was trained with {begun.signature}, this run has {signature}"
    if signatures.same(begun.signature, signature):
        if not signatures.same_version(begun.signature, signature):
            logger.warning("another version of the plugin: %s", difference)
    elif begun.fine_tuning:
        logger.warning("fine-tuning with other positions: %s", difference)
    else:
        raise UsageError(
            f"{difference}; give the --position-… options of the checkpoint to resume it, another "
            "--save-dir to train anew, or --finetune-from-model to change the positions"
        )


class FitsCheckpoints(BaseFairseqModel):
    """Base of our models: what does not fit is refused in one line, or starts afresh.

    Attributes:
        begun: the checkpoint that the training begins with, if any.
        signature: of the model's positions.
    """

    begun: Optional[Beginning] = None
    signature = ""

    def load_state_dict(
        self,
        state_dict: Dict[str, Any],
        strict: bool = True,
        model_cfg: Any = None,
        args: Optional[Namespace] = None,
    ):
        """Load the weights of a checkpoint.

        In fine-tuning with other positions, those of the checkpoint are left out, and the model's
        own stay as they are.

        Raises:
            UsageError: it is of a model of another shape.
        """
        self.upgrade_state_dict(state_dict)
        state_dict = prune_state_dict(state_dict, model_cfg or args)
        if self.begun and self.begun.fine_tuning:
            _replace_positions(state_dict, self, self.begun, self.signature)
        if strict:
            check_fits(state_dict, self)
        return super().load_state_dict(state_dict, strict)


def _replace_positions(
    state_dict: Dict[str, Any], model: FitsCheckpoints, begun: Beginning, signature: str
) -> None:
    """Put a model's own parameters of positions where a checkpoint has others."""
    if signatures.same(begun.signature, signature):
        return
    own = {key: weights for key, weights in model.state_dict().items() if _of_positions(key)}
    same_encoding = begun.signature.split("|")[0] == signature.split("|")[0]
    dropped = [
        key
        for key, weights in state_dict.items()
        if _of_positions(key)
        and not (
            key in own
            and own[key].shape == weights.shape
            and (same_encoding or "embed_positions" not in key)
        )
    ]
    for key in dropped:
        del state_dict[key]
    fresh = [key for key in own if key not in state_dict]
    state_dict.update({key: own[key] for key in fresh})
    _log("of the checkpoint, left out", dropped)
    _log("not in the checkpoint, start afresh", fresh)


def _of_positions(key: str) -> bool:
    return not {"embed_positions", "segments"}.isdisjoint(key.split("."))


def _log(what: str, names: List[str]) -> None:
    if names:
        logger.info("%s: %s", what, ", ".join(names))

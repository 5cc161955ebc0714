"""The checkpoint that a training begins with, at the build of its model: options and weights.

The training is resumed, or fine-tuned from the weights alone.

A resumed run must have the positions of its checkpoint. A fine-tuned one has them too unless its
options say otherwise; parameters of other positions then start afresh.
"""

import logging
import os
from argparse import Namespace
from typing import Any, Dict, List, NamedTuple, Optional

import torch
from fairseq.checkpoint_utils import prune_state_dict
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from torch import nn

from fairseq_posenc import compat, options
from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards import signatures, source_bos
from fairseq_posenc.guards.option_checks import check_options
from fairseq_posenc.guards.save_folder import first_checkpoint
from fairseq_posenc.guards.task_models import check_family

logger = logging.getLogger(__name__)

_OTHER_VOCABULARY = (
    "the vocabulary (dict.txt) is another one: prepare the data with the subwords that the model "
    "was trained with"
)
# the options that decide how long tables of positions are
_LIMITS = {
    "encoder.sentence_encoder.": "--max-positions",
    "encoder.": "--max-source-positions",
    "decoder.": "--max-target-positions",
}


class InitialCheckpoint(NamedTuple):
    """The checkpoint that a training begins with."""

    path: str
    fine_tuning: bool  # only its weights are taken, the optimiser is new
    inherits_options: bool  # options that the user leaves out are those of the checkpoint
    signature: str  # of its positions
    # by their names in the model's options; empty if they are fairseq's own and no encoding of
    # ours is alike
    position_options: Dict[str, Any]
    source_bos: bool  # whether its sources start with BOS
    dictionary_hash: Optional[str]  # if it has one
    train_only: Optional[str] = None  # patterns of the parameters that it trained; None: all


def inherit_options(args: Any, *additional: str) -> Optional[InitialCheckpoint]:
    """Complete the options of a model that is to be built, and return its initial checkpoint.

    In fine-tuning, and when that is resumed, options that the user leaves out get the values of the
    checkpoint. Where the user names an encoding, be it the checkpoint's own, it has its defaults,
    and segments alone are taken.

    Args:
        args: changed in place.
        *additional: names of options of positions, besides those of encodings.
    """
    options.check_names(args, *additional)
    initial = find_initial_checkpoint(args)
    if initial is None or not initial.inherits_options:
        return initial
    has_encoding = getattr(args, "position_encoding", None) is not None
    if not has_encoding and not initial.position_options:
        raise UsageError(
            f"{initial.path} was trained with {initial.signature}, which is not one of ours; "
            "say with --position-encoding which to fine-tune with"
        )
    for name, value in initial.position_options.items():
        is_inherited = not has_encoding or name == "position_segments"
        if is_inherited and getattr(args, name, None) is None:
            setattr(args, name, value)
    if initial.source_bos and not getattr(args, source_bos.OPTION, False):
        setattr(args, source_bos.OPTION, True)
        logger.info("sources start with BOS, as %s was trained with that", initial.path)
    return initial


def find_initial_checkpoint(args: Any) -> Optional[InitialCheckpoint]:
    """Return the checkpoint that fairseq will begin with, if there is one."""
    if signatures.is_from_checkpoint(args):
        return None
    if getattr(args, "restore_file", None) is None:
        return None
    first = first_checkpoint(args, getattr(args, "checkpoint_suffix", None) or "")
    if first is None or (first.is_continued and not os.path.exists(first.path)):
        return None
    path, resets = first.path, bool(getattr(args, "reset_optimizer", False))
    fine_tuning = resets or not first.is_continued
    inherits_options = resets or getattr(args, "finetune_from_model", None) is not None
    state = load_checkpoint(path)
    check_options(state, path, builds=False)
    model_options = signatures.model_options(state)
    check_family(model_options, path, args)
    positions = {}
    name = signatures.encoding_of(model_options)
    if name is not None:
        names = [f"position_{option}" for option in [*options.OPTIONS, "segments"]]
        positions = {key: model_options[key] for key in names if model_options.get(key) is not None}
        positions["position_encoding"] = name
    return InitialCheckpoint(
        path,
        fine_tuning,
        inherits_options,
        signatures.of_checkpoint(state),
        positions,
        source_bos.of_checkpoint(state),
        model_options.get("dictionary_hash"),
        model_options.get("train_only"),
    )


def check_positions(initial: Optional[InitialCheckpoint], signature: str) -> None:
    """Compare the positions of a run with those of the checkpoint that it begins with.

    Raises:
        UsageError: they differ in a run that is resumed.
    """
    if initial is None:
        return
    difference = f"{initial.path} was trained with {initial.signature}, this run has {signature}"
    if signatures.same(initial.signature, signature):
        if not signatures.same(initial.signature, signature, version=True):
            logger.warning("another version of the plugin: %s", difference)
    elif initial.fine_tuning:
        logger.warning("fine-tuning with other positions: %s", difference)
    else:
        raise UsageError(
            f"{difference}; give the options of the checkpoint (--position-…, "
            "--prepend-source-bos) to resume it, another --save-dir to train anew, or "
            "--finetune-from-model to change the positions"
        )


def check_dictionaries(
    args: Any, initial: Optional[InitialCheckpoint], *dictionaries: Dictionary
) -> None:
    """Compare the dictionaries of the data with those that a model was trained with.

    Args:
        args: of the model, before it has its own signature; get the hash of the dictionaries.
        initial: the checkpoint that a training begins with.
        dictionaries: of the data.

    Raises:
        UsageError: they differ; embeddings of the right size would stand for other symbols.
    """
    path, trained = "the checkpoint", getattr(args, "dictionary_hash", None)
    if initial:
        path, trained = initial.path, initial.dictionary_hash
    own = signatures.dictionary_hash(*dictionaries)
    if trained is None and (initial or signatures.is_from_checkpoint(args)):
        logger.info("%s does not record its dictionaries: they are taken as those here", path)
    elif trained not in (None, own):
        raise UsageError(
            f"the vocabulary is not the one that {path} was trained with: dict.txt must have the "
            "same symbols in the same order; prepare the data with the subwords that the model "
            "was trained with"
        )
    args.dictionary_hash = own


class CheckedLoading(BaseFairseqModel):
    """Base of our models: weights that do not fit are refused in one line, or newly initialised."""

    initial_checkpoint: Optional[InitialCheckpoint] = None
    signature = ""  # of the model's positions

    def load_state_dict(
        self,
        state_dict: Dict[str, Any],
        strict: bool = True,
        model_cfg: Any = None,
        args: Optional[Namespace] = None,
        assign: bool = False,
    ) -> Any:
        """Load the weights of a checkpoint; with ``assign`` they are themselves the model's.

        In fine-tuning with other positions, those of the checkpoint are left out, and the model's
        own stay as they are.
        """
        compat.drop_copies(state_dict)
        self.upgrade_state_dict(state_dict)
        state_dict = self._pruned(state_dict, model_cfg or args)
        initial = self.initial_checkpoint
        trained = initial.signature if initial and initial.fine_tuning else self.signature
        if not signatures.same(trained, self.signature):
            self._replace_positions(state_dict, trained)
        if strict:
            self._check_fits(state_dict)
        # fairseq's own method would upgrade and prune the state again
        return nn.Module.load_state_dict(self, state_dict, strict, assign)

    def _pruned(self, state_dict: Dict[str, Any], cfg: Any) -> Dict[str, Any]:
        """Return the weights with the layers that are kept alone (``--encoder-layers-to-keep``).

        Tables of positions that differ by layer have the layers as their first dimension.
        """
        own = {key: weights.shape for key, weights in self.state_dict().items()}
        unpruned = {}
        for side in ("encoder", "decoder"):
            layers_to_keep = getattr(cfg, f"{side}_layers_to_keep", None)
            layers = sorted(map(int, layers_to_keep.split(","))) if layers_to_keep else []
            for key in [key for key in state_dict if key.startswith(f"{side}.")]:
                table = state_dict[key]
                if not layers:
                    unpruned[key] = table
                elif _of_positions(key) and own.get(key) == (len(layers), *table.shape[1:]):
                    # else it is not by layer, or not of this model
                    state_dict[key] = table[layers] if layers[-1] < len(table) else table
        # fairseq drops all layers of a side without that option
        return {**prune_state_dict(state_dict, cfg), **unpruned}

    def _replace_positions(self, state_dict: Dict[str, Any], signature: str) -> None:
        """Put the model's own parameters of positions where a checkpoint has others."""
        own = {key: weights for key, weights in self.state_dict().items() if _of_positions(key)}
        same_encoding = signature.split("|")[0] == self.signature.split("|")[0]
        dropped = []
        for key in filter(_of_positions, list(state_dict)):
            # in another encoding a table of the same shape means something else
            same_shape = key in own and own[key].shape == state_dict[key].shape
            if not same_shape or ("embed_positions" in key and not same_encoding):
                dropped.append(key)
                del state_dict[key]
        newly_initialised = [key for key in own if key not in state_dict]
        state_dict.update({key: own[key] for key in newly_initialised})
        for message, keys in (
            ("of the checkpoint, left out", dropped),
            ("not in the checkpoint, start afresh", newly_initialised),
        ):
            if keys:
                logger.info("%s: %s", message, ", ".join(keys))

    def _check_fits(self, state_dict: Dict[str, Any]) -> None:
        """Refuse a checkpoint of another shape; names the first weights that differ."""
        own = self.state_dict()
        for key in [*own, *state_dict]:
            if key not in state_dict or key not in own:
                problem = f"it has no {key}" if key in own else f"the model has no {key}"
                advice = "give the --arch and the --position-… options that it was trained with"
            elif state_dict[key].shape != own[key].shape:
                shapes = (state_dict[key].shape, own[key].shape)
                saved, own_shape = (" x ".join(map(str, shape)) for shape in shapes)
                problem = f"{key} is {saved} there, {own_shape} here"
                advice = "give the --arch and the sizes that it was trained with"
                # (types, width)
                if "embed_tokens" in key and shapes[0][:1] != shapes[1][:1]:
                    advice = _OTHER_VOCABULARY
                if _of_positions(key):
                    limit = next(limit for part, limit in _LIMITS.items() if key.startswith(part))
                    advice = f"give the --arch, {limit} and --position-… options of its training"
            else:
                continue
            raise UsageError(f"the checkpoint does not fit the model: {problem}; {advice}")


def _of_positions(key: str) -> bool:
    return not {"embed_positions", "segments"}.isdisjoint(key.split("."))


def add_missing_weights(
    state_dict: Dict[str, Any], module: nn.Module, prefix: str, zeros: bool = False
) -> List[str]:
    """Add the weights that a module has and a checkpoint has not, or zeros, and return their names.

    ``prefix`` is the name of the module with a dot.
    """
    missing = {k: w for k, w in module.state_dict(prefix=prefix).items() if k not in state_dict}
    state_dict.update({k: torch.zeros_like(w) if zeros else w for k, w in missing.items()})
    return list(missing)

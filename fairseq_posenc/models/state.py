"""State dictionaries of stock models, of models with other heads, and of other models."""

from typing import Any, Dict, List

import torch
from torch import nn

from fairseq_posenc.errors import UsageError


def drop_stock_position_buffers(state_dict: Dict[str, Any], prefix: str) -> None:
    """Remove the buffers that fairseq's sinusoids have left in checkpoints; they hold no weights.

    Args:
        state_dict: changed in place.
        prefix: name of the embedding, for example ``encoder.embed_positions``.
    """
    for buffer in ("weights", "_float_tensor"):
        state_dict.pop(f"{prefix}.{buffer}", None)


def complete(
    state_dict: Dict[str, Any], module: nn.Module, prefix: str, zeros: bool = False
) -> List[str]:
    """Add what a module has and a checkpoint has not, and return its names.

    Args:
        state_dict: changed in place.
        module: its weights are taken.
        prefix: name of the module with a dot.
        zeros: add zeros instead.
    """
    missing = {k: w for k, w in module.state_dict(prefix=prefix).items() if k not in state_dict}
    state_dict.update({k: torch.zeros_like(w) if zeros else w for k, w in missing.items()})
    return list(missing)


def check_fits(state_dict: Dict[str, Any], model: nn.Module) -> None:
    """Check that a checkpoint is of a model of the same shape.

    Raises:
        UsageError: names the first weights that differ, and the options to look at.
    """
    own = model.state_dict()
    for key in own:
        if key not in state_dict:
            raise UsageError(
                f"the checkpoint does not fit the model: it has no {key}; give the --arch and the "
                "--position-… options that it was trained with"
            )
    for key, weights in state_dict.items():
        if key not in own:
            raise UsageError(
                f"the checkpoint does not fit the model, which has no {key}; give the --arch and "
                "the --position-… options that it was trained with"
            )
        if weights.shape != own[key].shape:
            there, here = (" x ".join(map(str, shape)) for shape in (weights.shape, own[key].shape))
            raise UsageError(
                f"the checkpoint does not fit the model: {key} is {there} there, {here} here; "
                + _ADVICE.get(key.split(".")[-2], "give the options that it was trained with")
            )


_ADVICE = {
    "embed_tokens": "the vocabulary (dict.txt) is another one: prepare the data with the subwords "
    "that the model was trained with",
    "embed_positions": "give the --max-positions and --position-… options that it was trained with",
}

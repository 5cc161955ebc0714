"""ADMIN, "adaptive model initialization" of post-norm layers (Liu et al. 2020, section 4).

A sub-layer f becomes x ← LN(x · ω + f(x)), with one trained vector ω (channels) per sub-layer. The
deeper a sub-layer lies, the larger its ω starts, so that the whole depends less on any single f.
The first ω are measured by a profiling pass (``posenc profile-admin``) and given to the model as a
profile: JSON, in a file or, as in checkpoints, as the option's own value.
"""

import argparse
import json
from typing import Any, Dict, List, Optional

import torch
from torch import Tensor, nn

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.json_files import parse_json

VERSION = 1
# The names of the authors' code, in the order of the sub-layers.
ENCODER_RATIOS = ("attention_ratio_change", "fc_ratio_change")
DECODER_RATIOS = ("self_ratio_change", "encoder_ratio_change", "fc_ratio_change")
_ADVICE = "make one with posenc profile-admin and the options of this run"


class Residual(nn.Module):
    """The sum of a sub-layer's output and its input; a module so that profiling can watch it."""

    def forward(self, y: Tensor, x: Tensor, ratio: Optional[Tensor] = None) -> Tensor:
        """Return x · ω + y, or x + y without ADMIN: x goes into the sub-layer, y comes out."""
        return x + y if ratio is None else x * ratio + y


def add_ratios(
    layer: nn.Module, names: tuple, channels: int, omegas: Optional[Dict[str, float]]
) -> None:
    """Give a layer under construction its ω ``(channels,)``, or ``None`` in their place.

    ``names`` are those of all ω that such a layer can have, ``omegas`` the initial values of those
    that it has, the same for all channels; ``None`` without ADMIN.
    """
    for name in names:
        start = (omegas or {}).get(name)
        # no parameter that is None: fairseq would log all of those as shared ones
        omega = None if start is None else nn.Parameter(torch.full((channels,), float(start)))
        setattr(layer, name, omega)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--admin-profile``."""
    parser.add_argument(
        "--admin-profile",
        default=argparse.SUPPRESS,
        metavar="FILE",
        help="initialise with ADMIN (post-norm models): what posenc profile-admin has written",
    )


def omegas_by_layer(cfg, side: str) -> List[Optional[Dict[str, float]]]:
    """Return the initial ω of each layer of a stack, from name to value; ``None`` without ADMIN.

    Args:
        cfg: configuration whose ``admin_profile`` is JSON, as :func:`load_profile` returns it.
        side: ``encoder`` or ``decoder``.
    """
    text = getattr(cfg, "admin_profile", None)
    return json.loads(text)["omegas"][side] if text else [None] * getattr(cfg, side).layers


def unit_profile(args) -> str:
    """Return the profile of a model whose ω are all 1, in one line of JSON.

    Raises:
        UsageError: ADMIN does not go with the model.
    """
    for flag in ("encoder_normalize_before", "decoder_normalize_before", "cross_self_attention"):
        if getattr(args, flag, False):
            model = (
                "one attention for both sides" if flag.startswith("cross") else "pre-norm layers"
            )
            option = f"--{flag.replace('_', '-')}"
            raise UsageError(f"ADMIN does not go with {model}; leave out {option}")
    alone = getattr(args, "no_cross_attention", False)
    decoder = [name for name in DECODER_RATIOS if not (alone and name == "encoder_ratio_change")]
    ratios = {"encoder": ENCODER_RATIOS, "decoder": decoder}
    omegas = {
        side: [dict.fromkeys(names, 1.0)] * getattr(args, f"{side}_layers")
        for side, names in ratios.items()
    }
    channels = {side: getattr(args, f"{side}_embed_dim") for side in ratios}
    return _one_line({"version": VERSION, "channels": channels, "omegas": omegas})


def load_profile(args) -> str:
    """Return the profile that ``args.admin_profile`` is, or that its file has, as a line of JSON.

    The model keeps the line among its options, so that checkpoints do not need the file.

    Raises:
        UsageError: ADMIN does not go with the model, or the profile is missing, damaged or of
            another model.
    """
    unit = json.loads(unit_profile(args))
    value, origin = args.admin_profile, f"--admin-profile {args.admin_profile}"
    if value.startswith("{"):
        origin = "the ADMIN profile in the model's options"
    else:
        value = "\n".join(read_lines(value))
    profile = parse_json(value, origin)
    problem = _problem(profile, unit)
    if problem:
        raise UsageError(f"{origin}: {problem}; {_ADVICE}")
    return _one_line({name: profile[name] for name in unit})


def _one_line(profile: Dict[str, Any]) -> str:
    return json.dumps(profile, separators=(",", ":"))


def _problem(profile: Any, unit: Dict[str, Any]) -> Optional[str]:
    """Return the fault of a profile for the model of a unit profile, or ``None``."""
    if not isinstance(profile, dict) or not isinstance(profile.get("omegas"), dict):
        return "not an ADMIN profile"
    if profile.get("version") != VERSION:
        return f"version {profile.get('version')!r} is not known, only {VERSION}"
    if profile.get("channels") != unit["channels"]:
        return f"made for channels {profile.get('channels')!r}, the model has {unit['channels']}"
    for side, layers in unit["omegas"].items():
        side_omegas = profile["omegas"].get(side)
        count = len(side_omegas) if isinstance(side_omegas, list) else "no"
        if count != len(layers):
            return f"it has {count} {side} layers, the model {len(layers)}"
        for number, (layer, names) in enumerate(zip(side_omegas, layers)):
            if not isinstance(layer, dict) or layer.keys() != names.keys():
                return f"{side} layer {number} should have {', '.join(names)}"
            for name, omega in layer.items():
                if type(omega) not in (int, float) or not 1e-30 < omega < 1e30:
                    return f"{name} of {side} layer {number} is not a positive number: {omega!r}"
    return None

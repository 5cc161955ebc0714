"""Longer tables of learned positions, for models that shall take longer inputs than they could."""

from argparse import Namespace
from typing import Any, Dict, List

import torch
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_posenc.encodings.sinusoidal import sinusoid
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards import signatures
from fairseq_posenc.tools.averaging import read_trained, save
from fairseq_posenc.tools.output_options import refuse_inputs

HOW = ("interpolate", "repeat", "sinusoid")
# option -> the table's parameter, and the options of model and task that say how long it is
_TABLES = {
    "max_source_positions": ("encoder", ["max_source_positions"]),
    "max_target_positions": ("decoder", ["max_target_positions"]),
    "max_positions": (
        "encoder.sentence_encoder",
        ["max_positions", "max_source_positions", "tokens_per_sample"],
    ),
}
_FIRST = Dictionary().pad() + 1  # rows below it are unused


def extended(rows: Tensor, length: int, method: str) -> Tensor:
    """Return a longer table: of ``n`` rows ``w`` one of ``m`` rows, by position ``p`` from 0.

    ::

        interpolate:  new[p] = (1 - f) · w[k] + f · w[k + 1],  k + f = p · (n - 1) / (m - 1)
        repeat:       new[p] = w[p mod n]
        sinusoid:     new[p] = w[p] for p < n, else s · PE(first + p)

    ``PE`` are fairseq's sinusoids, ``first`` is the number of the first position (2), and ``s``
    makes them as large as the rows: the root mean square of ``w`` by that of sinusoids, √½.
    Interpolation changes all rows but the ends; the others keep the first ``n``.

    Args:
        rows: ``(n, channels)``.
        length: m, above n.
    """
    n, numbers = len(rows), torch.arange(length)
    if method == "repeat":
        return rows[numbers % n]
    if method == "interpolate":
        places = numbers.double() * (n - 1) / (length - 1)
        # the last place is row n - 2 with f = 1, so that k + 1 is a row
        k = places.long().clamp(max=max(n - 2, 0))
        f = (places - k).unsqueeze(1)
        after = rows[(k + 1).clamp(max=n - 1)].double()
        return ((1 - f) * rows[k].double() + f * after).to(rows.dtype)
    size = rows.double().square().mean().sqrt() * 2**0.5
    beyond = size * sinusoid((numbers[n:] + _FIRST).float(), rows.size(1)).double()
    return torch.cat([rows, beyond.to(rows.dtype)])


def extend(path: str, output: str, method: str, limits: Dict[str, int]) -> List[str]:
    """Write a checkpoint whose tables of learned positions are longer, to be fine-tuned.

    Like an average, it has no state of an optimizer, nor a moving average of the model.

    Args:
        limits: new lengths by ``max_source_positions``, ``max_target_positions`` or, of BERT
            models, ``max_positions``.
    """
    refuse_inputs(output, [path])
    state = read_trained(path)
    options, notes = signatures.model_options(state), []
    for option, length in limits.items():
        flag, (prefix, names) = f"--{option.replace('_', '-')}", _TABLES[option]
        key = f"{prefix}.embed_positions.weight"
        table = state["model"].get(key)
        if table is None or signatures.encoding_of(options) not in ("learned", None):
            raise UsageError(
                f"{path} has no table of learned positions for {flag}: it was trained with "
                f"{signatures.of_checkpoint(state)}{_right_options(state)}"
            )
        if table.dim() != 2 or not table.is_floating_point() or len(table) <= _FIRST:
            raise UsageError(
                f"{path} is damaged: {key} is of shape {tuple(table.shape)} and {table.dtype}, not "
                "(positions, channels) of floats"
            )
        old = len(table) - _FIRST
        if length <= old:
            raise UsageError(f"{flag} {length}: the table has {old} positions already")

        rows = extended(table[_FIRST:], length, method)
        state["model"][key] = torch.cat([table[:_FIRST], rows])
        for group in _groups(state):
            group.update({name: length for name in names if name in group})
        notes.append(f"{prefix}: {old} positions became {length} ({method})")
    state["last_optimizer_state"] = None
    state["extra_state"] = {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}}
    save(state, output)
    return notes


def _right_options(state: Dict[str, Any]) -> str:
    """Return which options a model with learned positions takes; an empty text for others."""
    keys = {option: f"{prefix}.embed_positions.weight" for option, (prefix, _) in _TABLES.items()}
    flags = [f"--{o.replace('_', '-')}" for o, key in keys.items() if key in state["model"]]
    return f"; its tables are those of {' and '.join(flags)}" if flags else ""


def _groups(state: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return the options of model and task, to be changed in place."""
    cfg = state.get("cfg")
    groups = [state.get("args"), *([cfg.get("model"), cfg.get("task")] if cfg else [])]
    return [vars(group) if isinstance(group, Namespace) else group for group in groups if group]

"""Longer tables of learned positions, for models that shall take longer inputs than they could."""

from argparse import Namespace
from typing import Any, Callable, Dict, List

import torch
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_posenc.checkpoints.groups import as_dict
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
    """Write a checkpoint whose tables of learned positions are longer.

    Adam's means of the table's gradients become longer, too, so that a training can be resumed:
    those of new rows are as the rows' own ancestors say, or 0 for sinusoids.

    Args:
        limits: new lengths by ``max_source_positions``, ``max_target_positions`` or, of BERT
            models, ``max_positions``.

    Returns:
        What was done, one line each.
    """
    refuse_inputs(output, [path])
    state = read_trained(path)
    options, notes = signatures.model_options(state), []
    parameters, resumable = _parameters(state["model"]), True
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
            raise UsageError(f"{path} is damaged: {key} is {_described(table)}")
        old = len(table) - _FIRST
        if length <= old:
            raise UsageError(f"{flag} {length}: the table has {old} positions already")

        def longer(rows: Tensor, length: int = length, is_moment: bool = True) -> Tensor:
            added = length + _FIRST - len(rows)
            if is_moment and method == "sinusoid":
                return torch.cat([rows, rows.new_zeros(added, rows.size(1))])
            return torch.cat([rows[:_FIRST], extended(rows[_FIRST:], length, method)])

        try:
            resumable = resumable and _extend_moments(state, parameters, key, longer)
        # an optimiser's state may be of any form
        except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError):
            resumable = False
        _extend_averages(state, key, longer)
        state["model"][key] = parameters[key] = longer(table, is_moment=False)
        for group in _groups(state):
            group.update({name: length for name in names if name in group})
        notes.append(f"{prefix}: {old} positions became {length} ({method})")
    if not resumable:
        state["last_optimizer_state"] = None
        state["extra_state"] = {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}}
        notes.append("without the optimiser's state: go on with --finetune-from-model")
    save(state, output)
    return notes


def _right_options(state: Dict[str, Any]) -> str:
    """Return which options a model with learned positions takes; an empty text for others."""
    keys = {option: f"{prefix}.embed_positions.weight" for option, (prefix, _) in _TABLES.items()}
    flags = [f"--{o.replace('_', '-')}" for o, key in keys.items() if key in state["model"]]
    return f"; its tables are those of {' and '.join(flags)}" if flags else ""


def _described(table: Tensor) -> str:
    return f"of shape {tuple(table.shape)} and {table.dtype}, not (positions, channels) of floats"


def _parameters(model: Dict[str, Any]) -> Dict[str, Tensor]:
    """Return the parameters of a checkpoint's model as an optimiser counts them: shared ones once.

    What else a model has are fairseq's marks of versions.
    """
    seen, parameters = set(), {}
    for key, tensor in model.items():
        storage = tensor.data_ptr(), tensor.shape
        if storage not in seen and not key.endswith(("version", "_float_tensor")):
            parameters[key] = tensor
        seen.add(storage)
    return parameters


def _extend_moments(
    state: Dict[str, Any], parameters: Dict[str, Tensor], key: str, longer: Callable
) -> bool:
    """Make what an optimiser remembers of one parameter longer, and return whether it could be.

    It can where it has the shape of its parameter, or where all parameters are one row of numbers,
    as with --fp16. ``parameters`` are still the old ones.
    """
    remembered = state["last_optimizer_state"]["state"]
    groups = state["last_optimizer_state"]["param_groups"]
    [numbers] = [group["params"] for group in groups]
    sizes = [tensor.numel() for tensor in parameters.values()]
    index, table = list(parameters).index(key), parameters[key]
    if len(numbers) == 1 and len(parameters) > 1:
        moments = remembered.get(numbers[0], {})
        for name, value in moments.items():
            if not torch.is_tensor(value) or value.dim() == 0:
                continue
            if value.shape != (sum(sizes),):
                return False
            # one row of the numbers of all parameters, in their order: cut, lengthened, joined
            parts = list(value.split(sizes))
            parts[index] = longer(parts[index].view_as(table)).flatten()
            moments[name] = torch.cat(parts)
        return True
    if len(numbers) != len(parameters):
        return False
    for number, tensor in zip(numbers, parameters.values()):
        for value in remembered.get(number, {}).values():
            if torch.is_tensor(value) and value.dim() and value.shape != tensor.shape:
                return False
    moments = remembered.get(numbers[index], {})
    for name, value in moments.items():
        if torch.is_tensor(value) and value.dim():
            moments[name] = longer(value)
    return True


def _extend_averages(state: Dict[str, Any], key: str, longer: Callable) -> None:
    """Make the table longer in the moving average of the model (``--store-ema``), if it has one."""
    extra = as_dict(state.get("extra_state"))
    for weights in (as_dict(extra.get(name)) for name in ("ema", "ema_fp32_params")):
        if getattr(weights.get(key), "shape", None) == state["model"][key].shape:
            weights[key] = longer(weights[key], is_moment=False)


def _groups(state: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return the options of model and task, to be changed in place."""
    cfg = state.get("cfg")
    groups = [state.get("args"), *([cfg.get("model"), cfg.get("task")] if cfg else [])]
    return [vars(group) if isinstance(group, Namespace) else group for group in groups if group]

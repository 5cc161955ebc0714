"""The average of checkpoints: which ones, and the arithmetic of fairseq's own script."""

import math
import os
import re
from argparse import Namespace
from collections import OrderedDict
from typing import Any, Dict, Iterable, List, Optional, Sequence, Set, Tuple

import torch
from torch import Tensor
from tqdm import tqdm

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.checkpoints.groups import as_dict, group_options
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards import signatures
from fairseq_posenc.guards.run_comparison import AVERAGE, AVERAGE_ACROSS, RunComparison
from fairseq_posenc.tools.output_options import refuse_inputs
from fairseq_posenc.tools.writing import replacing

# The names that fairseq gives: the number that orders them is the last one.
_NAMES = {
    "epochs": re.compile(r"checkpoint(\d+)\.pt"),
    "updates": re.compile(r"checkpoint_\d+_(\d+)\.pt"),
}
# Options that all checkpoints of a run have in common: group and name in its configuration; of
# checkpoints up to fairseq 0.10, the name here.
_OF_A_RUN = {
    "arch": ("model", "arch"),
    "data": ("task", "data"),
    "save_dir": ("checkpoint", "save_dir"),
    "seed": ("common", "seed"),
    "criterion": ("criterion", "_name"),
    "optimizer": ("optimizer", "_name"),
    "lr_scheduler": ("lr_scheduler", "_name"),
}
_KEPT_AS_BEST = re.compile(r"checkpoint\.best_.+\.pt")


def average(paths: Sequence[str], across_runs: bool = False) -> Dict[str, Any]:
    """Return the state of the first checkpoint, with the mean of the models of all.

    One checkpoint at a time is in memory, beside the running sum; the first one is read twice.
    As in fairseq's ``average_checkpoints.py``, to the last bit: parameters are added in the order
    of ``paths``, those in half precision as float32, which they stay; sums are divided at the end,
    those of integers rounded down. Unlike there, bfloat16 counts as half precision too, and what
    is true or false must be the same in all.
    """
    sums: Dict[str, Tensor] = OrderedDict()
    comparison = RunComparison(AVERAGE_ACROSS if across_runs else AVERAGE)
    seen: Dict[str, Tuple[str, str]] = {}
    for path in tqdm(paths, desc="averaging", unit="checkpoint"):
        state = read_trained(path)
        comparison.check(state, path)
        _check_same_run(seen, state, path, across_runs)
        _add(sums, state, path, paths[0])
        del state
    for total in sums.values():
        if total.is_floating_point():
            total.div_(len(paths))
        elif total.dtype != torch.bool:
            total //= len(paths)
    state = load_checkpoint(paths[0], mmap=True)
    state["model"] = sums
    return state


def save_average(paths: Sequence[str], output: str, across_runs: bool = False) -> None:
    """Write the average of ``paths`` to ``output``, which appears only when complete."""
    refuse_inputs(output, paths)
    save(average(paths, across_runs), output)


def _check_same_run(
    seen: Dict[str, Tuple[str, str]], state: Any, path: str, across_runs: bool
) -> None:
    """Compare a checkpoint with those before it, by what they record.

    ``seen`` has the value of each option, and the first checkpoint that records it.
    """
    dictionaries = signatures.model_options(state).get("dictionary_hash")
    values = {"dictionaries": dictionaries, **({} if across_runs else _options_of_run(state))}
    for name, value in values.items():
        if value is None:
            continue
        expected, first = seen.setdefault(name, (str(value), path))
        if str(value) == expected:
            continue
        if name == "dictionaries":
            raise UsageError(f"{path} was trained with other dictionaries than {first}")
        raise UsageError(
            f"{path} is of another training than {first}: its --{name.replace('_', '-')} is "
            f"{value}, not {expected}; average checkpoints of one run, or give --across-runs"
        )


def _options_of_run(state: Any) -> Dict[str, Any]:
    """Return the values of ``_OF_A_RUN``, of folders the last name: a run may have been moved."""
    is_old = bool(as_dict(as_dict(state).get("args")))
    values = {
        name: group_options(state, group).get(name if is_old else key)
        for name, (group, key) in _OF_A_RUN.items()
    }
    for name in ("data", "save_dir"):
        if values[name] is not None:
            values[name] = os.path.basename(os.path.normpath(str(values[name])))
    return values


def read_trained(path: str) -> Dict[str, Any]:
    """Return what a checkpoint holds, which has a model of tensors by name, and options."""
    state = load_checkpoint(path, mmap=True)
    members = state if isinstance(state, dict) else {}
    model, cfg = members.get("model"), members.get("cfg")
    if not isinstance(model, dict) or not model:
        raise UsageError(f"{path} is not a checkpoint of fairseq-train: it has no model")
    for name, tensor in model.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise UsageError(
                f"{path} is not a checkpoint of fairseq-train: {name!r:.60} in its model is no "
                "tensor with a name"
            )
    groups = [members.get("args"), cfg]
    groups += [cfg.get("model"), cfg.get("task")] if isinstance(cfg, dict) else []
    if not all(isinstance(group, (dict, Namespace, type(None))) for group in groups):
        raise UsageError(
            f"{path} is not a checkpoint of fairseq-train: its options are not options"
        )
    return state


def save(state: Any, path: str) -> None:
    """Write a checkpoint, which takes its name when it is complete."""
    with replacing(path, "wb") as stream:
        torch.save(state, stream)


def find(inputs: Iterable[str]) -> List[str]:
    """Return the checkpoints among ``inputs``: files as they are, all ``.pt`` of a folder."""
    paths: List[str] = []
    for name in inputs:
        if os.path.isdir(name):
            paths += [os.path.join(name, f) for f in sorted(os.listdir(name)) if f.endswith(".pt")]
        elif os.path.exists(name):
            paths.append(name)
        else:
            raise UsageError(f"{name} does not exist; give folders or files of checkpoints")
    return list(dict.fromkeys(paths))


def last(paths: Sequence[str], count: int, by: Optional[str] = None) -> List[str]:
    """Return the ``count`` newest checkpoints by the number in their names, newest first.

    Other names than ``checkpointEPOCH.pt`` and ``checkpoint_EPOCH_UPDATES.pt`` (copies such as
    ``checkpoint_best.pt``) do not count. ``by``, ``epochs`` or ``updates``, says which of the two
    to take; it is needed only where there are both, as the first does not tell its updates.
    """
    _check_one_folder(paths)
    numbered: Dict[str, List[Tuple[int, str]]] = {}
    for unit, pattern in _NAMES.items():
        matches = [(pattern.fullmatch(_name(path)), path) for path in paths]
        numbered[unit] = [(int(match[1]), path) for match, path in matches if match]
    if by is None:
        units = [unit for unit, newest in numbered.items() if newest]
        if len(units) > 1:
            raise UsageError(
                f"there are {len(numbered['epochs'])} checkpoints of epochs (checkpointN.pt) and "
                f"{len(numbered['updates'])} of updates (checkpoint_E_N.pt): choose with "
                "--by epochs or --by updates"
            )
        by = units[0] if units else "epochs"
    newest = [path for _, path in sorted(numbered[by], reverse=True)]
    _check_enough(newest, count, paths, f"--last {count}")
    return newest[:count]


def best(paths: Sequence[str], count: int) -> List[str]:
    """Return the ``count`` checkpoints with the best validation metric, best first.

    Metric and direction are those that each checkpoint was trained with
    (``--best-checkpoint-metric``, ``--maximize-best-checkpoint-metric``). Copies of one update
    count once, of equal values the later one is better, as in fairseq. Every file is read once.
    """
    _check_one_folder(paths)
    patterns = [*_NAMES.values(), _KEPT_AS_BEST]
    named = [path for path in paths if any(p.fullmatch(_name(path)) for p in patterns)]
    # by updates; of copies the first
    metric_of: Dict[int, Tuple[str, float]] = {}
    metrics: Set[Tuple[str, bool]] = set()
    for path in tqdm(named, desc="reading metrics", unit="checkpoint"):
        updates, value, metric, maximize = _validation(path)
        if value is not None and math.isfinite(value) and updates not in metric_of:
            metric_of[updates] = path, value
            metrics.add((metric, maximize))
    if len(metrics) > 1:
        names = ", ".join(sorted(f"{m} ({'max' if up else 'min'})" for m, up in metrics))
        raise UsageError(f"the checkpoints were validated by different metrics: {names}")
    _check_enough([path for path, _ in metric_of.values()], count, paths, f"--best {count}")
    sign = -1 if metrics.pop()[1] else 1
    ranked = sorted(metric_of, key=lambda updates: (sign * metric_of[updates][1], -updates))
    return [metric_of[updates][0] for updates in ranked[:count]]


def _name(path: str) -> str:
    return os.path.basename(path)


def _validation(path: str) -> List[Any]:
    """Return a checkpoint's updates, value and name of its metric, and whether more is better."""
    state = load_checkpoint(path, mmap=True)
    try:
        # Up to fairseq 0.10 the options are in a namespace, after that in a dictionary.
        args = state["args"]
        options = vars(args) if args is not None else state["cfg"]["checkpoint"]
        values = [
            state["optimizer_history"][-1]["num_updates"],
            state["extra_state"]["val_loss"],
            options["best_checkpoint_metric"],
            options["maximize_best_checkpoint_metric"],
        ]
        expected: Any = (int, (int, float, type(None)), str, bool)
        if not all(map(isinstance, values, expected)):
            raise TypeError("values of other types")
        return values
    except (KeyError, TypeError, IndexError) as error:
        raise UsageError(
            f"{path} is not a checkpoint of fairseq-train: it lacks its options, updates or metric"
        ) from error


def _add(sums: Dict[str, Tensor], state: Any, path: str, first: str) -> None:
    """Add the parameters of a checkpoint to the sums so far, which are empty at first."""
    model = state["model"]

    def kind(parameter: Tensor) -> Tuple[torch.Size, bool, bool]:
        return parameter.shape, parameter.is_floating_point(), parameter.dtype == torch.bool

    differing = sorted(sums.keys() ^ model.keys()) or [
        name for name, total in sums.items() if kind(total) != kind(model[name])
    ]
    if sums and differing:
        raise UsageError(
            f"{path} and {first} are not of the same model: {len(differing)} parameters are in one "
            f"only or of other shape, such as {differing[0]}"
        )
    for name, parameter in model.items():
        if not parameter.isfinite().all():
            raise UsageError(
                f"{path} holds NaN or infinity, in {name}: its training has failed; leave it out"
            )
        if parameter.dtype in (torch.float16, torch.bfloat16):
            parameter = parameter.float()
        if name not in sums:
            # Two names may share one tensor, which must not be added to twice.
            sums[name] = parameter.clone()
        elif parameter.dtype != torch.bool:
            sums[name] += parameter
        elif not torch.equal(sums[name], parameter):
            raise UsageError(
                f"{path} and {first} differ in {name}, which is true or false and has no mean"
            )


def _check_one_folder(paths: Sequence[str]) -> None:
    folders = {os.path.dirname(os.path.abspath(path)) for path in paths}
    if len(folders) > 1:
        raise UsageError(
            f"checkpoints of {len(folders)} folders: --last and --best choose within one run"
        )


def _check_enough(candidates: Sequence[str], count: int, paths: Sequence[str], option: str) -> None:
    if len(candidates) < count:
        names = ", ".join(map(_name, paths)) or "no .pt file at all"
        raise UsageError(
            f"{option} asks for more than the {len(candidates)} checkpoints to choose from; found: "
            f"{names}"
        )

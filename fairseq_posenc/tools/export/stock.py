"""From a checkpoint of ours to one that fairseq loads without this plugin."""

import argparse
import os
from typing import Any, Dict, List, Optional

import torch
from fairseq.models.transformer import TransformerModel
from torch import Tensor

from fairseq_posenc.encodings.sinusoidal import sinusoid
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.averaging import save
from fairseq_posenc.tools.export.trained import LIMITS, SIDES, Trained, read, task_of

_BOS = (
    "it was trained with --prepend-source-bos, which stock fairseq does not know; with "
    "--bos-in-text it is written all the same, and every source line must then start with '<s> ' "
    "when it is binarised or typed in"
)


def to_fairseq(path: str, output: str, bos_in_text: bool = False, force: bool = False) -> List[str]:
    """Write the model of a checkpoint as a stock ``transformer`` to ``output``.

    Positions at the input are all that stock fairseq has: its sinusoids, none, or a table of
    learned vectors, which holds any others up to ``--max-source-positions`` and
    ``--max-target-positions``. The model's options are plain values, so that torch ≥ 2.6, which
    reads nothing else, loads the file without the plugin. The optimizer's state is left out.

    Returns:
        What the user should know, one line each.

    Raises:
        UsageError: the checkpoint is of no translation model of ours, or stock fairseq cannot hold
            it; ``output`` exists and ``force`` is not set, or cannot be written.
    """
    if os.path.exists(output) and not force:
        raise UsageError(f"{output} exists; name another file, or overwrite it with --force")
    if os.path.realpath(path) == os.path.realpath(output):
        raise UsageError(f"--output {output} is the checkpoint itself; name another file")
    trained = read(path)
    if trained.source_bos and not bos_in_text:
        raise UsageError(f"{path} cannot be exported as it is: {_BOS}")
    tables = {side: _table(trained, side) for side in SIDES}
    options = _options(trained, tables)
    weights = _weights(trained, tables)
    _check(trained, options, weights)
    save(_state(trained, options, weights), output)
    return _notes(trained, options)


def _table(trained: Trained, side: str) -> Optional[Tensor]:
    """Return the vectors ``(n, channels)`` of all positions of one side; None: no positions."""
    portable = trained.portable(side, trained.limit(side))
    if portable.attention:
        raise UsageError(
            f"{trained.path} cannot be exported: --position-encoding "
            f"{trained.options.position_encoding} acts inside self-attention, where stock fairseq "
            "has no positions"
        )
    return portable.input


def _is_sinusoidal(trained: Trained, side: str, table: Optional[Tensor]) -> bool:
    if table is None:
        return False
    numbers = torch.arange(len(table)).float() + _first_index(trained, side)
    return torch.equal(table, sinusoid(numbers, table.size(1)))


def _first_index(trained: Trained, side: str) -> int:
    return getattr(trained.model, side).padding_idx + 1


def _options(trained: Trained, tables: Dict[str, Optional[Tensor]]) -> Dict[str, Any]:
    """Return the options of the stock model: fairseq's own, and which positions it has."""
    parser = argparse.ArgumentParser(add_help=False)
    TransformerModel.add_args(parser)
    known = vars(trained.options)
    options = {a.dest: known[a.dest] for a in parser._actions if a.dest in known}
    options.update(_name="transformer", arch="transformer")
    options["no_token_positional_embeddings"] = all(table is None for table in tables.values())
    for side, table in tables.items():
        learned = table is not None and not _is_sinusoidal(trained, side, table)
        options[f"{side}_learned_pos"] = learned
    return options


def _weights(trained: Trained, tables: Dict[str, Optional[Tensor]]) -> Dict[str, Tensor]:
    ours = tuple(f"{side}.embed_positions." for side in SIDES)
    weights = {
        name: weight for name, weight in trained.state["model"].items() if not name.startswith(ours)
    }
    for side, table in tables.items():
        if table is not None and not _is_sinusoidal(trained, side, table):
            unused = table.new_zeros(_first_index(trained, side), table.size(1))
            rows = torch.cat([unused, table])
            weights[f"{side}.embed_positions.weight"] = rows.to(
                weights[f"{side}.embed_tokens.weight"].dtype
            )
    return weights


def _check(trained: Trained, options: Dict[str, Any], weights: Dict[str, Tensor]) -> None:
    """Load the weights into a stock model.

    Raises:
        UsageError: it has no place for some of them.
    """
    model = TransformerModel.build_model(argparse.Namespace(**options), task_of(weights))
    for name in weights:
        if name not in model.state_dict():
            raise UsageError(f"{trained.path} cannot be exported: stock fairseq has no {name}")
    model.load_state_dict(dict(weights))


def _state(trained: Trained, options: Dict[str, Any], weights: Dict[str, Tensor]) -> Dict[str, Any]:
    cfg = dict(trained.state["cfg"])
    cfg["model"] = options
    cfg["common"] = {**cfg["common"], "user_dir": None}
    task = {**cfg["task"], "_name": "translation"}
    task.pop("prepend_source_bos", None)
    cfg["task"] = task
    for name in ("criterion", "optimizer", "lr_scheduler"):
        if str((cfg.get(name) or {}).get("_name")).startswith("posenc_"):
            cfg[name] = None
    last = trained.state["optimizer_history"][-1]
    kept = ("criterion_name", "optimizer_name", "num_updates")
    return {
        "args": None,
        "cfg": cfg,
        "model": weights,
        "optimizer_history": [{**{key: last[key] for key in kept}, "lr_scheduler_state": {}}],
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}},
        "last_optimizer_state": None,
    }


def _notes(trained: Trained, options: Dict[str, Any]) -> List[str]:
    notes = []
    for side, limit in LIMITS.items():
        if options["no_token_positional_embeddings"]:
            kind = "no positions"
        elif options[f"{side}_learned_pos"]:
            kind = f"positions as a table (--{side}-learned-pos) of {trained.limit(side)} tokens"
        else:
            kind = f"sinusoids, up to --{limit.replace('_', '-')}"
        notes.append(f"{side}: {kind}")
    if trained.source_bos:
        notes.append("every source line must start with '<s> ' when it is binarised or typed in")
    return notes

"""From a checkpoint of ours to one that fairseq loads without this plugin."""

import argparse
import os
from typing import Any, Dict, List, NamedTuple, Optional

import torch
from fairseq.models.transformer import TransformerModel
from torch import Tensor

from fairseq_posenc.checkpoints.folders import as_checkpoint
from fairseq_posenc.encodings.sinusoidal import sinusoid
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.averaging import save
from fairseq_posenc.tools.convert.checkpoint import (
    LIMITS,
    SIDES,
    ExportSource,
    read_checkpoint,
    task_of,
)
from fairseq_posenc.tools.output_options import refuse_inputs

_BOS = (
    "it was trained with --prepend-source-bos, which stock fairseq does not know; with "
    "--bos-in-text it is written all the same, and every source line must then start with '<s> ' "
    "when it is binarised or typed in"
)


class StockPositions(NamedTuple):
    """The positions of one side in stock fairseq: none, its sinusoids, or a ``table``.

    That is the weight of learned positions ``(unused rows + n, channels)``.
    """

    none: bool
    table: Optional[Tensor]
    note: str


def to_fairseq(path: str, output: str, bos_in_text: bool = False, force: bool = False) -> List[str]:
    """Write the model of a checkpoint as a stock ``transformer`` to ``output``.

    Positions at the input are all that stock fairseq has: its sinusoids, none, or a table of
    learned vectors, which holds any others up to ``--max-source-positions`` and
    ``--max-target-positions``. The model's options are plain values, so that torch ≥ 2.6, which
    reads nothing else, loads the file without the plugin. The optimizer's state is left out.
    """
    if os.path.exists(output) and not force:
        raise UsageError(f"{output} exists; name another file, or overwrite it with --force")
    refuse_inputs(output, [path])
    source = read_checkpoint(path)
    source.check_eos()
    if source.source_bos and not bos_in_text:
        raise UsageError(f"{path} cannot be exported as it is: {_BOS}")
    positions = {side: _stock_positions(source, side) for side in SIDES}
    options = _options(source, positions)
    prefixes = tuple(f"{side}.embed_positions." for side in SIDES)
    weights = {
        name: weight
        for name, weight in source.state["model"].items()
        if not name.startswith(prefixes)
    }
    for side, stock in positions.items():
        if stock.table is not None:
            dtype = weights[f"{side}.embed_tokens.weight"].dtype
            weights[f"{side}.embed_positions.weight"] = stock.table.to(dtype)
    model = TransformerModel.build_model(argparse.Namespace(**options), task_of(weights))
    for name in weights:
        if name not in model.state_dict():
            raise source.refusal(f"stock fairseq has no {name}")
    model.load_state_dict(dict(weights))
    save(_checkpoint(source, options, weights), output)
    notes = [positions[side].note for side in SIDES]
    if source.source_bos:
        notes.append("every source line must start with '<s> ' when it is binarised or typed in")
    return notes


def _stock_positions(source: ExportSource, side: str) -> StockPositions:
    limit = source.limits[side]
    exported = source.exported_positions(side, limit)
    if exported.attention:
        raise source.refusal(
            f"--position-encoding {source.options.position_encoding} acts inside self-attention, "
            "where stock fairseq has no positions"
        )
    vectors, first = exported.input, getattr(source.model, side).padding_idx + 1
    if vectors is None:
        return StockPositions(none=True, table=None, note=f"{side}: no positions")
    numbers = torch.arange(len(vectors)).float() + first
    if torch.equal(vectors, sinusoid(numbers, vectors.size(1))):
        option = LIMITS[side].replace("_", "-")
        return StockPositions(none=False, table=None, note=f"{side}: sinusoids, up to --{option}")
    table = torch.cat([vectors.new_zeros(first, vectors.size(1)), vectors])
    note = f"{side}: positions as a table (--{side}-learned-pos) of {limit} tokens"
    return StockPositions(none=False, table=table, note=note)


def _options(source: ExportSource, positions: Dict[str, StockPositions]) -> Dict[str, Any]:
    """Return the options of the stock model: fairseq's own, and which positions it has."""
    parser = argparse.ArgumentParser(add_help=False)
    TransformerModel.add_args(parser)
    trained = vars(source.options)
    options = {a.dest: trained[a.dest] for a in parser._actions if a.dest in trained}
    options.update(_name="transformer", arch="transformer")
    options["no_token_positional_embeddings"] = all(stock.none for stock in positions.values())
    for side, stock in positions.items():
        options[f"{side}_learned_pos"] = stock.table is not None
    return options


def _checkpoint(
    source: ExportSource, options: Dict[str, Any], weights: Dict[str, Tensor]
) -> Dict[str, Any]:
    """Return the content of a checkpoint as fairseq writes it, but for the optimizer's state."""
    cfg = {**source.state["cfg"], "model": options}
    cfg["common"] = {**cfg["common"], "user_dir": None}
    name = "translation_multi_simple_epoch" if source.is_multilingual else "translation"
    # a task without a dataclass is found by ``task``
    cfg["task"] = {**source.task, "_name": name, "task": name}
    cfg["task"].pop("prepend_source_bos", None)
    for name in ("criterion", "optimizer", "lr_scheduler"):
        if str((cfg.get(name) or {}).get("_name")).startswith("posenc_"):
            cfg[name] = None
    last = source.state["optimizer_history"][-1]
    keys = ("criterion_name", "optimizer_name", "num_updates")
    history = {**{key: last[key] for key in keys}, "lr_scheduler_state": {}}
    return {**as_checkpoint({}, {}, weights), "cfg": cfg, "optimizer_history": [history]}

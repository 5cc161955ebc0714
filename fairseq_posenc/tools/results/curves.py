"""Curves of validation loss by update, over seeds: how far a training is from its end."""

import math
import statistics
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from fairseq_posenc.tools.results.intervals import t_interval
from fairseq_posenc.tools.results.tables import markdown_table, named_path
from fairseq_posenc.tools.results.training_log import validation_losses

TOLERANCE = 0.02
_CLOSE = f"within {100 * TOLERANCE:g} % of"
_NOTE = (
    "Validation loss in bits per token: mean over n seeds ± Student's 95 % interval. It stays "
    f"{_CLOSE} its last value from that share of the updates on (the slowest seed)."
)

# by name, for each seed: bits by update
Curves = Dict[str, List[Dict[int, float]]]


class Reached(NamedTuple):
    """How far a training is from its end: updates and loss, in bits, of the last validation.

    ``within`` is the share of the updates from which on the loss stays within ``TOLERANCE`` of the
    last one; None where that is not finite. ``quarter`` is by how many bits it fell over the last
    quarter of the updates, between validations by a straight line; None where none is so early.
    """

    updates: int
    last: float
    within: Optional[float]
    quarter: Optional[float]


def reached(losses: Mapping[int, float]) -> Reached:
    """Return how far a training with these losses by update, as logged, is from its end."""
    updates = sorted(losses)
    end, last = updates[-1], losses[updates[-1]]

    quarter = None
    if updates[0] <= 0.75 * end:
        quarter = float(np.interp(0.75 * end, updates, [losses[n] for n in updates])) - last
    within = None
    if math.isfinite(last):
        far = [n for n in updates if not abs(losses[n] - last) <= TOLERANCE * abs(last)]
        within = min(n for n in updates if n > max(far, default=0)) / end
    return Reached(end, last, within, quarter)


def read_curves(arguments: Sequence[str]) -> Curves:
    """Read logs given as ``NAME=path/train.log``; several of one name are seeds of one run.

    Without ``NAME=``, runs are named as by :func:`read_runs`.
    """
    curves: Curves = {}
    for name, path in map(named_path, arguments):
        curves.setdefault(name, []).append(validation_losses(path))
    return curves


def over_seeds(seeds: Sequence[Mapping[int, float]]) -> Tuple[np.ndarray, np.ndarray]:
    """Return the updates that all seeds span, ``(points,)``, and losses, ``(seeds, points)``.

    A seed that was not validated at an update has what a straight line between its others has.
    """
    first, last = max(map(min, seeds)), min(map(max, seeds))
    updates = np.array(sorted(n for n in set().union(*seeds) if first <= n <= last))
    lines = [np.array(sorted(losses.items())).T for losses in seeds]
    return updates, np.array([np.interp(updates, *line) for line in lines])


def curves_table(curves: Curves) -> str:
    """Return a Markdown table of how far each run is from its end."""
    rows = [["", "n", "updates", "last loss", f"{_CLOSE} it after", "fall in the last quarter"]]
    for name, seeds in curves.items():
        ends = [reached(losses) for losses in seeds]
        counts = sorted({end.updates for end in ends})
        shares = [end.within for end in ends if end.within is not None]
        updates = "-".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
        within = f"{100 * max(shares):.0f} %" if len(shares) == len(ends) else "-"
        means = _mean([end.last for end in ends]), _mean([end.quarter for end in ends])
        rows.append([name, str(len(seeds)), updates, means[0], within, means[1]])
    notes = [_NOTE]
    if any(len(seeds) == 1 for seeds in curves.values()):
        notes.append("A single training has no interval: another seed may end elsewhere.")
    return "\n\n".join([markdown_table(rows), *notes]) + "\n"


def _mean(values: Sequence[Optional[float]]) -> str:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return "-"
    if not all(map(math.isfinite, known)):
        return "diverged"
    low, high = t_interval(known)
    text = f"{statistics.mean(known):.3f}"
    return text if len(known) == 1 else f"{text} ± {(high - low) / 2:.3f}"

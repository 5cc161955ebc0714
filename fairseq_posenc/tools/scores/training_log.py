"""What a log of ``fairseq-train --log-format simple`` tells about a training, resumed or not.

Of several, curves of validation loss by update: how far a training is from its end.
"""

import math
import os
import re
import statistics
import sys
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.tools.scores.intervals import t_interval
from fairseq_posenc.tools.scores.result import named_path
from fairseq_posenc.tools.text_tables import markdown_table

TOLERANCE = 0.02
_CLOSE = f"within {100 * TOLERANCE:g} % of"
_NOTE = (
    "Validation loss in bits per token: mean over n seeds ± Student's 95 % interval. It stays "
    f"{_CLOSE} its last value from that share of the updates on (the slowest seed)."
)

# by name, for each seed: bits by update
Curves = Dict[str, List[Dict[int, float]]]
_WHOLE, _NUMBER = r"([0-9]{1,15})", r"([0-9]{1,15}(?:\.[0-9]+)?)"
_PARAMETERS = r"num\. (?:shared )?model params: ([0-9,]{1,20}) "
_DEVICES = rf"training on {_WHOLE} devices"
_GPU = r"rank +\d+: capabilities = .*; name = (.+?) *$"
_PRECISION = r"\| precision: (.{1,40}), on "
_TORCH = r"\| torch: (\S{1,40})$"
_POSITION = r"\| (position:\S+)"
_LOADED = rf"Loaded checkpoint .* @ {_WHOLE} updates\)"
_DONE = rf"done training in {_NUMBER} seconds"
# of a `train_inner` line and of the `train` line that closes an epoch
_UPDATES = rf"\| train(?:_inner)? \|.*\bnum_updates[= ]{_WHOLE}\b"
_WALL = rf"\bwall[= ]{_WHOLE}\b"
_SPEED = rf"\| train_inner \|.*\bwps={_NUMBER}\b"
_EPOCH_SPEED = rf"\| train \|.*\bwps {_NUMBER}\b"
_STARTED = r"\| fairseq_cli\.train \|"
_VALID = rf"\bvalid on 'valid' subset \|(.*)\| num_updates {_WHOLE}\b"
_LOSS = r" (nll_)?loss (nan|inf|[0-9]{1,15}(?:\.[0-9]+)?(?:e-?[0-9]{1,3})?) "


class NoValidationError(UsageError):
    """A log of a training that was ended before its first validation."""


class _Part(NamedTuple):
    """One start of fairseq-train.

    ``progress`` has (updates so far, seconds since this start), ``valid`` bits by update.
    """

    start: int
    progress: List[Tuple[int, float]]
    done: Optional[float]
    valid: Dict[int, float]

    def seconds(self, updates: Optional[int] = None) -> float:
        """Return the seconds of this part, or those up to a number of updates, as logged."""
        end = self.progress[-1] if self.progress else (self.start, 0.0)
        if updates is None or updates >= end[0]:
            return end[1] if self.done is None else self.done
        return max((wall for count, wall in self.progress if count <= updates), default=0.0)


def read_log(path: str) -> Dict[str, Any]:
    """Return the facts of a training log, to which each resumption has appended its part.

    Returns:
        ``updates``; ``seconds``, with validation, of all parts, each up to the update at which a
        later one took over; ``seconds_repeated``, what was trained beyond it and lost; ``parts``;
        ``tokens_per_second``: target tokens per second of all workers together, median of the
        ``train_inner`` lines (of the epochs, where training is shorter than --log-interval);
        ``parameters``, ``gpus`` (workers), ``hardware``, ``precision``, ``torch`` (versions)
        and ``position`` (the signature of the encoding), which are None where the log does not name
        them.
    """
    lines = read_lines(path)
    speeds = [float(value) for value in _all(_SPEED, lines) or _all(_EPOCH_SPEED, lines)]
    updates = _all(_UPDATES, lines)
    if not speeds or not updates:
        raise UsageError(f"{path} is not a log of fairseq-train --log-format simple")
    parts = _parts(lines)
    counted = [
        part.seconds(min((later.start for later in parts[number:]), default=None))
        for number, part in enumerate(parts, 1)
    ]
    parameters, gpus, position = (_all(p, lines) for p in (_PARAMETERS, _DEVICES, _POSITION))
    # GPUs are listed shortly before each start
    starts = [index for index, line in enumerate(lines) if re.search(_DEVICES, line)]
    last = lines[starts[-2] + 1 :] if len(starts) > 1 else lines
    cpu = "CPU" if any("'cpu': True" in line for line in last) else None
    return {
        "updates": int(updates[-1]),
        "seconds": round(sum(counted), 1),
        "seconds_repeated": round(sum(part.seconds() for part in parts) - sum(counted), 1),
        "parts": len(parts),
        "tokens_per_second": round(statistics.median(speeds), 1),
        "parameters": int(parameters[-1].replace(",", "")) if parameters else None,
        "gpus": int(gpus[-1]) if gpus else None,
        "hardware": ", ".join(dict.fromkeys(_all(_GPU, last))) or cpu,
        "precision": " and ".join(dict.fromkeys(_all(_PRECISION, lines))) or None,
        "torch": " and ".join(dict.fromkeys(_all(_TORCH, lines))) or None,
        "position": position[-1] if position else None,
    }


def validation_losses(path: str) -> Dict[int, float]:
    """Return the loss on the validation set, in bits, by update.

    It is fairseq's ``nll_loss``, without label smoothing, or ``loss`` where a criterion logs no
    other, as of masked language models and classification. Where a training was resumed, what it
    had trained beyond its checkpoint does not count.
    """
    losses: Dict[int, float] = {}
    if os.path.isfile(path) and os.path.getsize(path) == 0:
        raise NoValidationError(f"{path} is empty")
    lines = read_lines(path)
    for part in _parts(lines):
        losses = {n: loss for n, loss in losses.items() if n <= part.start}
        losses.update(part.valid)
    if not losses:
        # what was ended at once may have told its options alone
        if any(re.search(rf"{_UPDATES}|{_STARTED}", line) for line in lines):
            raise NoValidationError(f"{path} has no validation")
        raise UsageError(f"{path} is not a log of fairseq-train --log-format simple")
    return dict(sorted(losses.items()))


def _parts(lines: Sequence[str]) -> List[_Part]:
    parts: List[_Part] = [_Part(0, [], None, {})]
    for line in lines:
        loaded, updates, wall, done, valid = (
            re.search(pattern, line) for pattern in (_LOADED, _UPDATES, _WALL, _DONE, _VALID)
        )
        if re.search(_DEVICES, line):
            parts.append(_Part(0, [], None, {}))
        elif valid:
            losses = dict(re.findall(_LOSS, valid.group(1)))
            if losses:
                loss = losses.get("nll_") or losses[""]
                parts[-1].valid[int(valid.group(2))] = float(loss)
        elif loaded:
            parts[-1] = parts[-1]._replace(start=int(loaded.group(1)))
        elif updates and wall:
            parts[-1].progress.append((int(updates.group(1)), float(wall.group(1))))
        elif done:
            parts[-1] = parts[-1]._replace(done=float(done.group(1)))
    # a log may lack its head; a start that was killed at once has nothing to tell
    return [part for part in parts if part.progress or part.valid or part.done is not None]


def _all(pattern: str, lines: Sequence[str]) -> List[str]:
    return [match.group(1) for match in (re.search(pattern, line) for line in lines) if match]


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

    Without ``NAME=``, runs are named as by :func:`read_runs`. A training that was ended before its
    first validation is left out, and named on standard error.
    """
    curves: Curves = {}
    messages = []
    for name, path in map(named_path, arguments):
        try:
            losses = validation_losses(path)
        except NoValidationError as error:
            messages.append(f"{error}")
        else:
            curves.setdefault(name, []).append(losses)
    if not curves:
        raise UsageError(messages[0])
    for message in messages:
        print(f"note: {message}: left out", file=sys.stderr)
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
    rows, notes = curves_rows(curves)
    return "\n\n".join([markdown_table(rows), *notes]) + "\n"


def curves_rows(curves: Curves) -> Tuple[List[List[str]], List[str]]:
    """Return the rows of that table, the header first, and the notes below it."""
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
    return rows, notes


def _mean(values: Sequence[Optional[float]]) -> str:
    defined = [value for value in values if value is not None]
    if len(defined) < len(values):
        return "-"
    if not all(map(math.isfinite, defined)):
        return "diverged"
    low, high = t_interval(defined)
    text = f"{statistics.mean(defined):.3f}"
    return text if len(defined) == 1 else f"{text} ± {(high - low) / 2:.3f}"

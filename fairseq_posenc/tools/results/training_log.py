"""What a log of ``fairseq-train --log-format simple`` tells about a training, resumed or not."""

import re
import statistics
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines

_WHOLE, _NUMBER = r"([0-9]{1,15})", r"([0-9]{1,15}(?:\.[0-9]+)?)"
_PARAMETERS = r"num\. (?:shared )?model params: ([0-9,]{1,20}) "
_DEVICES = rf"training on {_WHOLE} devices"
_GPU = r"rank +\d+: capabilities = .*; name = (.+?) *$"
_POSITION = r"\| (position:\S+)"
_LOADED = rf"Loaded checkpoint .* @ {_WHOLE} updates\)"
_DONE = rf"done training in {_NUMBER} seconds"
# of a `train_inner` line and of the `train` line that closes an epoch
_UPDATES = rf"\| train(?:_inner)? \|.*\bnum_updates[= ]{_WHOLE}\b"
_WALL = rf"\bwall[= ]{_WHOLE}\b"
_SPEED = rf"\| train_inner \|.*\bwps={_NUMBER}\b"
_EPOCH_SPEED = rf"\| train \|.*\bwps {_NUMBER}\b"
_VALID = rf"\bvalid on 'valid' subset \|(.*)\| num_updates {_WHOLE}\b"
_LOSS = r" (nll_)?loss (nan|inf|[0-9]{1,15}(?:\.[0-9]+)?(?:e-?[0-9]{1,3})?) "


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
        ``parameters``, ``gpus`` (workers), ``hardware`` and ``position`` (the signature of the
        encoding), which are None where the log does not name them.
    """
    lines = read_lines(path)
    speeds = [float(value) for value in _all(_SPEED, lines) or _all(_EPOCH_SPEED, lines)]
    updates = _all(_UPDATES, lines)
    if not speeds or not updates:
        raise UsageError(f"{path} is no log of fairseq-train --log-format simple")
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
        "position": position[-1] if position else None,
    }


def validation_losses(path: str) -> Dict[int, float]:
    """Return the loss on the validation set, in bits, by update.

    It is fairseq's ``nll_loss``, without label smoothing, or ``loss`` where a criterion logs no
    other, as of masked language models and classification. Where a training was resumed, what it
    had trained beyond its checkpoint does not count.

    Raises:
        UsageError: the file is unreadable, no log of ``--log-format simple``, or has no validation.
    """
    losses: Dict[int, float] = {}
    lines = read_lines(path)
    for part in _parts(lines):
        losses = {n: loss for n, loss in losses.items() if n <= part.start}
        losses.update(part.valid)
    if not losses:
        known = any(re.search(_UPDATES, line) for line in lines)
        what = "has no validation" if known else "is no log of fairseq-train --log-format simple"
        raise UsageError(f"{path} {what}")
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

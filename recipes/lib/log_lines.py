"""What is in the lines of fairseq's log: what a person wants to watch, and whether it diverges."""

import re
import time
from typing import Dict, Optional, Tuple

from recipes.lib.settings import seconds_as_text

_NOISE = 1.02  # of a loss that stands still
_INNER = re.compile(
    r"train_inner \| epoch (\d+):(?:\s+\d+ / (\d+))? .*?loss=([^,\s]+), .*?wps=([\d.]+), "
    r".*?num_updates=(\d+),"
)


class Progress:
    """Tells how far a training is.

    Args:
        ordinal: the number of its cell, and of how many.
        max_update, max_epoch: as fairseq-train has them; empty without.
        metric: a pattern of what is told of validations.
    """

    def __init__(self, ordinal: str, max_update: str, max_epoch: str, metric: str):
        self._ordinal, self._metric = ordinal, metric
        self._updates, self._epochs = int(max_update or 0), int(max_epoch or 0)
        self._first: Optional[Tuple[float, int]] = None

    def see(self, line: str) -> str:
        """Take a line of the log; return what a person wants to watch of it: nothing of most."""
        inner = _INNER.search(line)
        if inner:
            return self._inner(*inner.groups())
        patterns = {
            r".*\| (position:.*)": r"\1",
            r".*\| WARNING \| fairseq_posenc\S* \| (.*)": r"warning: \1",
            rf".*valid on .* ({self._metric}) ([\d.-]+) .*num_updates (\d+).*":
                r"update \3: validation \1 \2",
            r".*(fairseq_posenc: error:.*|\b[A-Za-z]*Error: .*)": r"\1",
        }  # fmt: skip
        matches = ((re.match(pattern, line), form) for pattern, form in patterns.items())
        return next((match.expand(form).rstrip() for match, form in matches if match), "")

    def _inner(self, epoch: str, length: Optional[str], loss: str, speed: str, update: str) -> str:
        now, done = time.time(), int(update)
        ends = [self._updates] if self._updates else []
        if length and self._epochs:
            ends.append(self._epochs * int(length))
        self._first = self._first or (now, done)
        line = f"cell {self._ordinal}, update {done:,}" + (f" of {min(ends):,}" if ends else "")
        line += f": loss {loss}, {float(speed):,.0f} tokens/s"
        since, before = self._first
        if ends and done > before:
            left = (min(ends) - done) * (now - since) / (done - before)
            line += f", {seconds_as_text(left)} left"
        return line


class Watch:
    """Tells of a training whose loss is higher after warm-up than it was within it.

    The first loss at twice the warm-up or later, whose updates are all behind it, is compared with
    the lowest one within it. A warm-up of fewer than 100 updates does not count.
    """

    def __init__(self, warmup: int):
        self._warmup = warmup
        self._losses: Dict[int, float] = {}  # by update

    def see(self, line: str) -> str:
        """Take a line of the log; return what is wrong, if its loss shows that."""
        inner = _INNER.search(line)
        if not inner:
            return ""
        loss, update = float(inner[3]), int(inner[5])
        self._losses[update] = loss
        warmup = self._warmup
        within = [earlier for of, earlier in self._losses.items() if of <= warmup]
        first = update >= 2 * warmup and not any(2 * warmup <= of < update for of in self._losses)
        # what is not a number is not below anything
        if warmup < 100 or not within or not first or loss <= _NOISE * min(within):
            return ""
        return (
            f"error: the loss is {loss:.2f} at update {update}, after {warmup} of warm-up, and was "
            f"{min(within):.2f} before: stopped; give a lower --lr, or the other --optimizer"
        )

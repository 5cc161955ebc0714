"""What is in the lines of fairseq's log: what a person wants to watch, and whether it diverges."""

import re
from typing import Dict

_NOISE = 1.02  # of a loss that stands still


def progress(line: str, metric: str) -> str:
    """Return what a person wants to watch of a line of fairseq's log; nothing of most."""
    patterns = {
        r".*\| (position:.*)": r"\1",
        r".*train_inner \| epoch (\d+):.* loss=([\d.]+), .* wps=([\d.]+), .*num_updates=(\d+),.*":
            r"epoch \1, update \4: loss \2, \3 tokens/s",
        rf".*valid on .* ({metric}) ([\d.-]+) .*num_updates (\d+).*":
            r"update \3: validation \1 \2",
        r".*(fairseq_posenc: error:.*|\b[A-Za-z]*Error: .*)": r"\1",
    }  # fmt: skip
    found = ((re.match(pattern, line), form) for pattern, form in patterns.items())
    return next((match.expand(form).rstrip() for match, form in found if match), "")


class Watch:
    """Tells of a training whose loss is higher after warm-up than it was within it.

    The first loss at twice the warm-up or later, whose updates are all behind it, is compared with
    the lowest one within it. A warm-up of fewer than 100 updates is not looked at.
    """

    def __init__(self, warmup: int):
        self._warmup = warmup
        self._losses: Dict[int, float] = {}  # by update

    def see(self, line: str) -> str:
        """Take a line of the log; return what is wrong, if its loss shows that."""
        found = re.search(r"train_inner \| .* loss=([^,\s]+), .*num_updates=(\d+),", line)
        if not found:
            return ""
        loss, update = float(found[1]), int(found[2])
        self._losses[update] = loss
        warmup = self._warmup
        within = [one for of, one in self._losses.items() if of <= warmup]
        first = update >= 2 * warmup and not any(2 * warmup <= of < update for of in self._losses)
        # what is not a number is not below anything
        if warmup < 100 or not within or not first or loss <= _NOISE * min(within):
            return ""
        return (
            f"error: the loss is {loss:.2f} at update {update}, after {warmup} of warm-up, and was "
            f"{min(within):.2f} before: stopped; give a lower --lr, or the other --optimizer"
        )

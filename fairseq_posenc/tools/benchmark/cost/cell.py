"""One cell of a table of cost: what all its contestants are timed with."""

import gc
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import torch

from fairseq_posenc.tools.benchmark import bert, generation, models
from fairseq_posenc.tools.benchmark.setting import Setting
from fairseq_posenc.tools.benchmark.timing import Contestant, Steps, race

SUBJECTS: Dict[str, Callable[[Setting], Steps]] = {
    "layer": models.prepare_layer,
    "encoder": models.prepare_encoder,
    "decoder": models.prepare_decoder,
    "training": models.prepare_training,
    "bert training": bert.prepare_training,
    "bert inference": bert.prepare_inference,
    "generation": generation.prepare,
}

# What GPUs, their libraries and CPUs say
NO_MEMORY = ("out of memory", "ALLOC_FAILED", "can't allocate memory")


@dataclass(frozen=True)
class Cell:
    """Whatever the figures of a cell depend on.

    Attributes:
        table, group, column: its place.
        subject: of ``SUBJECTS``.
        shape, length, dropout, device, dtype, model: as in :class:`Setting`.
        contestants: options of the rows; stock fairseq is timed with them.
        base: the contestant that all are compared with.
        batch: sentences per batch at most.
        warm_up: untimed rounds.
        rounds: timed rounds.
        hardware: and software, in words.
    """

    table: str
    group: str
    column: str
    subject: str
    shape: str
    length: int
    dropout: float
    device: str
    dtype: str
    model: Mapping[str, Any]
    contestants: Sequence[str]
    base: str
    batch: int
    warm_up: int
    rounds: int
    hardware: str

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.table}, {self.group}, {self.column}, {self.dtype}"

    def setting(self, batch: int) -> Setting:
        """Return what its contestants are prepared with."""
        return Setting(
            self.shape, list(self.contestants), self.length, batch * self.length, self.dropout,
            self.device, self.dtype, self.model, shared=True,
        )  # fmt: skip

    def described(self) -> Dict[str, Any]:
        """Return all attributes, such that JSON keeps them."""
        return asdict(self)


def measure(cell: Cell) -> Dict[str, Any]:
    """Time the contestants of a cell in turn, with half the batch if memory does not suffice.

    The batch is halved for all alike, until all can run; with one sentence, those that still cannot
    are left out.

    Returns:
        ``batch``, the sentences in a batch, and ``contestants``: by options the figures of
        :func:`.timing.race`, or None if memory did not suffice.
    """
    batch = cell.batch
    steps, failed = _prepared(cell, batch)
    while failed and batch > 1:
        batch //= 2
        del steps
        _free(cell.device)
        steps, failed = _prepared(cell, batch)
    figures: Dict[str, Optional[Dict[str, float]]] = dict.fromkeys(failed)
    if steps:
        title = f"{cell.title}, batch {batch}"
        warm_up = cell.warm_up - 1
        contestants = {name: Contestant(step, cell.device) for name, step in steps.items()}
        figures.update(race(contestants, cell.rounds, title, cell.base, warm_up))
    return {"batch": batch, "contestants": figures}


def _prepared(cell: Cell, batch: int) -> Tuple[Steps, List[str]]:
    """Return the steps, taken once, and the contestants that ran out of memory.

    With several sentences the first failure ends it.
    """
    setting = cell.setting(batch)
    steps: Steps = {}
    failed: List[str] = []
    if not _fits(lambda: steps.update(SUBJECTS[cell.subject](setting))):
        return {}, setting.contestants
    for name in list(steps):
        if not _fits(steps[name]):
            failed.append(name)
            del steps[name]
            _free(cell.device)
            if batch > 1:
                break
    return steps, failed


def _fits(run: Callable[[], object]) -> bool:
    try:
        run()
    except MemoryError:
        return False
    except RuntimeError as error:
        # PyTorch has a class of its own for one of these alone
        if any(words in str(error) for words in NO_MEMORY):
            return False
        raise
    return True


def _free(device: str) -> None:
    gc.collect()
    if device != "cpu":
        torch.cuda.empty_cache()

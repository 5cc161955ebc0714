"""How fast every position encoding is, as ratios to a base and to stock fairseq in one run.

A subject (:data:`SUBJECTS`) prepares one step per contestant; :mod:`.timing` runs them in turn, so
that a machine whose speed drifts slows all alike, each in a process of its own where it can
(:mod:`.apart`); :mod:`.record` keeps the figures and :mod:`.report` shows them.
"""

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple

from fairseq_posenc.tools.benchmark import apart, attention, bert, generation, models, timing
from fairseq_posenc.tools.benchmark.setting import BASELINE, Setting

__all__ = ["SUBJECTS", "Column", "Setting", "Subject", "measure"]


class Subject(NamedTuple):
    """What can be timed.

    Attributes:
        prepare: from a setting to one step per contestant.
        lengths: tokens per sentence that are timed unless the user names others.
        what: for people.
        base: the encoding that all are compared with, beside stock fairseq.
    """

    prepare: Callable[[Setting], Dict[str, Callable[[], object]]]
    lengths: List[int]
    what: str
    base: str = BASELINE


SUBJECTS: Dict[str, Subject] = {
    "attention": Subject(
        attention.prepare, [32, 128, 512, 2048], "self-attention of all layers, without projections"
    ),
    "layer": Subject(models.prepare_layer, [32, 128, 512], "one encoder layer"),
    "training": Subject(models.prepare_training, [32, 128, 512], "a whole training step"),
    "bert": Subject(
        bert.prepare, [32, 128, 512], "a training step of a masked language model", bert.BASE
    ),
    "generation": Subject(generation.prepare, [32, 128], "beam search, beam 4"),
}


@dataclass(frozen=True)
class Column:
    """One column of a table: all contestants in one setting.

    Attributes:
        subject: one of ``SUBJECTS``.
        setting: what to time it with.
        rounds: how often each contestant is timed.
        hardware: and software, in words.
    """

    subject: str
    setting: Setting
    rounds: int
    hardware: str

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.subject}, length {self.setting.length}, dropout {self.setting.dropout:g}"

    def described(self) -> Dict[str, Any]:
        """Return whatever the figures depend on, and what a report must say."""
        _, _, what, base = SUBJECTS[self.subject]
        return {
            "subject": self.subject,
            "what": what,
            "base": base,
            **self.setting.described(),
            "encodings": self.setting.encodings,
            "rounds": self.rounds,
            "apart": apart.possible(self.setting.device),
            "hardware": self.hardware,
        }


def measure(column: Column) -> Dict[str, Any]:
    """Time a column.

    Returns:
        ``batch``, the sentences in a batch, and ``contestants``: by name the figures of
        :func:`timing.race`.
    """
    subject, setting = SUBJECTS[column.subject], column.setting
    steps = subject.prepare(setting)
    with apart.contestants(steps, setting.device) as contestants:
        figures = timing.race(contestants, column.rounds, column.title, subject.base)
    return {"batch": setting.sentences, "contestants": figures}

"""Measures a setting: all its contestants in turn."""

from typing import Any, Callable, Dict

from fairseq_posenc.errors import UsageError, first_line
from fairseq_posenc.tools.benchmark import steps
from fairseq_posenc.tools.benchmark.attention import attention
from fairseq_posenc.tools.benchmark.settings import Setting
from fairseq_posenc.tools.benchmark.subprocesses import forked
from fairseq_posenc.tools.benchmark.timing import Contestant, Steps, race

SUBJECTS: Dict[str, Callable[[Setting], Steps]] = {
    "attention": attention,
    "layer": steps.layer,
    "encoder": steps.encoder,
    "decoder": steps.decoder,
    "training": steps.training,
    "bert training": steps.bert_training,
    "bert inference": steps.bert_inference,
    "generation": steps.generation,
}
# what GPUs, their libraries and CPUs say
_NO_MEMORY = ("out of memory", "ALLOC_FAILED", "can't allocate memory")


def measure(setting: Setting) -> Dict[str, Any]:
    """Time the contestants of a setting in turn.

    Returns:
        ``batch``, the sentences in a batch, and ``contestants``: by name the figures of
        :func:`.timing.race`.

    Raises:
        UsageError: memory does not suffice.
    """
    # the round that measures memory is the first of those that are not timed
    rounds = (setting.rounds, setting.title, setting.base, setting.warm_up - 1)
    try:
        prepared = SUBJECTS[setting.subject](setting)
        if setting.forked:
            with forked(prepared, setting.device) as processes:
                figures = race(processes, *rounds)
        else:
            here = {name: Contestant(step, setting.device) for name, step in prepared.items()}
            figures = race(here, *rounds)
    except (MemoryError, RuntimeError) as error:
        # PyTorch has a class of its own for one of these alone
        if isinstance(error, RuntimeError) and not any(w in str(error) for w in _NO_MEMORY):
            raise
        raise UsageError(
            f"{setting.title}: memory does not suffice for {setting.batch} sentences of "
            f"{setting.length} tokens: give fewer --tokens or --encodings ({first_line(error)})"
        ) from None
    return {"batch": setting.batch, "contestants": figures}

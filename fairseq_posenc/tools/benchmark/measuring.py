"""Measures a setting: all its contestants in turn, with a batch that fits into memory."""

import gc
from dataclasses import replace
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from fairseq_posenc.tools.benchmark import steps
from fairseq_posenc.tools.benchmark.attention import attention
from fairseq_posenc.tools.benchmark.settings import STOCK, Setting
from fairseq_posenc.tools.benchmark.subprocesses import forked
from fairseq_posenc.tools.benchmark.timing import Contestant, Step, Steps, race

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
NO_MEMORY = ("out of memory", "ALLOC_FAILED", "can't allocate memory")


def measure(setting: Setting) -> Dict[str, Any]:
    """Time the contestants of a setting in turn, with half the batch if memory does not suffice.

    The batch is halved for all alike, until all can run; with one sentence, those that still cannot
    are left out. Contestants that have processes of their own are not tried before.

    Returns:
        ``batch``, the sentences in a batch, and ``contestants``: by name the figures of
        :func:`.timing.race`, or None if memory did not suffice.
    """
    title, warm_up = setting.title, setting.warm_up - 1
    if setting.forked:
        with forked(SUBJECTS[setting.subject](setting), setting.device) as processes:
            figures = race(processes, setting.rounds, title, setting.base, warm_up)
        return {"batch": setting.batch, "contestants": figures}
    fitting, failed = _steps_that_fit(setting)
    while failed and setting.batch > 1:
        setting = replace(setting, batch=setting.batch // 2)
        del fitting
        _free(setting.device)
        fitting, failed = _steps_that_fit(setting)
    found: Dict[str, Optional[Dict[str, float]]] = dict.fromkeys(failed)
    if fitting:
        contestants = {name: Contestant(step, setting.device) for name, step in fitting.items()}
        title = f"{title}, batch {setting.batch}"
        found.update(race(contestants, setting.rounds, title, setting.base, warm_up))
    return {"batch": setting.batch, "contestants": found}


def _steps_that_fit(setting: Setting) -> Tuple[Steps, List[str]]:
    """Return the steps, taken once, and the contestants that ran out of memory.

    With several sentences the first failure ends it.
    """
    prepared: Steps = {}
    failed: List[str] = []
    if not _fits(lambda: prepared.update(SUBJECTS[setting.subject](setting))):
        return {}, [STOCK, *setting.contestants]
    for name in list(prepared):
        if not _fits(prepared[name]):
            failed.append(name)
            del prepared[name]
            _free(setting.device)
            if setting.batch > 1:
                break
    return prepared, failed


def _fits(step: Step) -> bool:
    try:
        step()
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

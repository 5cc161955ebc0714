"""The option ``--prepend-source-bos`` of a model, wherever a checkpoint records it.

It is an option of the task, but the model sees it. So the model's options keep it, too, and it is
part of the signature.
"""

from typing import Any

from fairseq.tasks import FairseqTask

from fairseq_posenc.checkpoints.groups import group_options
from fairseq_posenc.errors import UsageError

OPTION = "prepend_source_bos"


def of_checkpoint(state: Any) -> bool:
    """Return whether the sources of a checkpoint's model start with BOS.

    Its model's options say so. Under Hydra, earlier versions wrote it into those of the task alone.
    """
    return any(group_options(state, group).get(OPTION) for group in ("model", "task"))


def record_option(state: Any) -> None:
    """Write the option into the model's in ``state``, from which fairseq builds the model."""
    if of_checkpoint(state):
        group_options(state, "model")[OPTION] = True


def check_task(model: Any, task: Any) -> None:
    """Check that a task puts BOS before the sources of a model that wants it.

    Args:
        model: the options of the model.
        task: anything but a task of fairseq is accepted, as it reads no data.

    Raises:
        UsageError: it does not, such as fairseq's own ``translation``.
    """
    of_task = getattr(getattr(task, "cfg", None), OPTION, None)
    if getattr(model, OPTION, False) and isinstance(task, FairseqTask) and of_task is None:
        raise UsageError(
            "the model was trained with --prepend-source-bos, and this task does not put BOS "
            "before the sources; give --task posenc_translation"
        )

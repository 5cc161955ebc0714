"""Which models go with which tasks: for translation, language models, and BERT."""

from typing import Any, Callable, Mapping, NamedTuple, Optional

from fairseq import models
from fairseq.models import (
    ARCH_MODEL_REGISTRY,
    MODEL_REGISTRY,
    FairseqEncoderDecoderModel,
    FairseqEncoderModel,
    FairseqLanguageModel,
)
from fairseq.tasks import TASK_REGISTRY
from fairseq.tasks.language_modeling import LanguageModelingTask
from fairseq.tasks.masked_lm import MaskedLMTask
from fairseq.tasks.multilingual_translation import MultilingualTranslationTask
from fairseq.tasks.translation import TranslationTask

from fairseq_posenc.checkpoints.groups import name_of
from fairseq_posenc.errors import UsageError
from fairseq_posenc.patching import replaces


class Family(NamedTuple):
    """Models, and the class of the task that pre-trains them."""

    name: str
    model: type
    task: type
    example: str  # an architecture


FAMILIES = (
    Family(
        "a translation model", FairseqEncoderDecoderModel, TranslationTask, "posenc_transformer"
    ),
    Family("a language model", FairseqLanguageModel, LanguageModelingTask, "posenc_transformer_lm"),
    Family("a BERT model", FairseqEncoderModel, MaskedLMTask, "posenc_bert_base"),
)


def family_of(arch: Optional[str]) -> Optional[Family]:
    """Return the family of an architecture, or model by its name; None of one that is unknown."""
    model = ARCH_MODEL_REGISTRY.get(arch) or MODEL_REGISTRY.get(arch) or object
    return next((family for family in FAMILIES if issubclass(model, family.model)), None)


def check_family(trained: Mapping[str, Any], path: str, options: Any) -> None:
    """Check that a model begins with weights of its own family.

    Args:
        trained: options of the model in a checkpoint.
        path: of the checkpoint.
        options: of the model that begins with it.

    Raises:
        UsageError: no encoder or no head would be there, or not made for this.
    """
    before = family_of(name_of(trained, "arch"))
    own = family_of(getattr(options, "arch", None))
    if before and own and before != own:
        raise UsageError(f"{path} is {before.name}, and {own.name} does not begin with one")


@replaces(models, "build_model")
def _build_model(build: Callable, cfg: Any, task: Any, *args: Any, **kwargs: Any) -> Any:
    """Let tasks refuse models that are made for others, which fairseq builds, and may even run."""
    arch = getattr(cfg, "arch", None) or getattr(cfg, "_name", None)
    of_model = family_of(arch)
    if of_model and isinstance(task, MultilingualTranslationTask):
        raise UsageError(
            f"{arch} is one model, and --task multilingual_translation takes one for each pair: "
            "--task posenc_multilingual trains one on all"
        )
    of_task = next((family for family in FAMILIES if isinstance(task, family.task)), None)
    if getattr(task, "gives_segments", False):
        of_task = FAMILIES[-1]  # also those that fine-tune
    if of_model and of_task and of_model != of_task:
        name = next(name for name in TASK_REGISTRY if TASK_REGISTRY[name] is type(task))
        raise UsageError(
            f"{arch} is {of_model.name}, and --task {name} takes {of_task.name}, such as --arch "
            f"{of_task.example}: the task and the model must go together"
        )
    return build(cfg, task, *args, **kwargs)

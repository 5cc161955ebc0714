"""Precision of trainings and translations: logged, recorded, and no option without an effect.

Its names are ``float32``, ``float16``, ``bfloat16``, and of ``--amp``, whose weights are float32,
``amp float16`` (on a GPU) or ``amp bfloat16`` (on a CPU). A checkpoint has a record of it under
:data:`KEY`: ``precision`` and ``hardware``.
"""

import logging
from argparse import Namespace
from importlib.util import find_spec
from typing import Any, Callable, Dict, Mapping, Optional, Sequence

import torch
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.trainer import Trainer
from torch import nn

from fairseq_posenc.attention.bfloat16 import has_fast_bfloat16, use_bfloat16_products
from fairseq_posenc.checkpoints.groups import as_dict, group_options
from fairseq_posenc.errors import UsageError, printable
from fairseq_posenc.guards.run_comparison import METADATA_KEY
from fairseq_posenc.hardware import hardware
from fairseq_posenc.patching import replaces

logger = logging.getLogger(__name__)
KEY = "computed_in"  # the part of a checkpoint
FLOAT32 = "float32"


def warn_of_another(precision: str, state: Any, path: str) -> None:
    """Warn in a line if a checkpoint was trained in another precision than its training has now."""
    trained = checkpoint_record(state)["precision"]
    if trained not in (None, precision):
        logger.warning(
            "%s was trained in %s; its training goes on in %s",
            printable(path),
            printable(trained),
            precision,
        )


def log_training(recorded: Sequence[Optional[str]]) -> None:
    """Log in what models were trained for what reads the output (``posenc score``).

    Args:
        recorded: of each, as :func:`recorded_in_words`; what is the same is logged once.
    """
    words = list(filter(None, dict.fromkeys(recorded)))
    if words:
        logger.info("models were trained in %s", " and ".join(words))


def recorded_in_words(state: Any) -> Optional[str]:
    """Return precision and hardware of a checkpoint's training in words; None: not known."""
    record = checkpoint_record(state)
    if not record["precision"]:
        return None
    return printable(f"{record['precision']} on {record['hardware'] or 'unknown hardware'}")


def checkpoint_record(state: Any) -> Dict[str, Optional[str]]:
    """Return ``precision`` and ``hardware`` of a checkpoint's training, None where not known.

    Without our record the options of its training tell the precision. An imported model has no such
    options, and earlier versions of ours did not record ``--amp`` on a CPU: there it is not known.
    """
    state = as_dict(state)
    record = state.get(KEY)
    if isinstance(record, Mapping):
        values = {name: record.get(name) for name in ("precision", "hardware")}
        return {name: str(value)[:100] if value else None for name, value in values.items()}
    options = group_options(state, "common")
    common = Namespace(**options)
    # fairseq's --amp does nothing on a CPU
    precision = precision_of(common, amp=None if getattr(common, "cpu", False) else "float16")
    is_known = bool(options) and not (METADATA_KEY in state and getattr(common, "amp", False))
    return {"precision": precision if is_known else None, "hardware": None}


def precision_of(common: Any, amp: Optional[str]) -> str:
    """Return the precision of fairseq's options of that group.

    Args:
        common: the options.
        amp: type of the products under ``--amp``; None where it does nothing.
    """
    for flag, name in (("fp16", "float16"), ("bf16", "bfloat16")):
        if getattr(common, flag, False) or getattr(common, f"memory_efficient_{flag}", False):
            return name
    return f"amp {amp}" if amp and getattr(common, "amp", False) else FLOAT32


def training_record(trainer: Any) -> Dict[str, str]:
    """Return ``precision`` and ``hardware`` of what fairseq's trainer computes."""
    precision = precision_of(trainer.cfg.common, "float16")
    if getattr(trainer, "bfloat16_products", False):
        precision = "amp bfloat16"
    return {"precision": precision, "hardware": hardware(trainer.device)}


@replaces(Trainer, "__init__")
def _start(
    start: Callable, trainer: Trainer, cfg: Any, task: Any, model: nn.Module, *args: Any, **kw: Any
) -> None:
    """Let ``--amp`` work on a CPU, where fairseq's does nothing, and refuse half precision.

    fairseq's is for gradients of float16, which are scaled; in bfloat16 they need not be. So its
    trainer trains as in float32, with linear layers that compute in bfloat16. Checkpoints say
    ``amp`` (``run_comparison``).
    """
    cfg = convert_namespace_to_omegaconf(cfg) if isinstance(cfg, Namespace) else cfg
    on_cpu = cfg.common.cpu or not torch.cuda.is_available()
    trainer.bfloat16_products = False
    if on_cpu and not find_spec("torch_xla"):
        refuse_half_precision(cfg.common)
        trainer.bfloat16_products = bool(cfg.common.amp)
    if trainer.bfloat16_products:
        cfg.common.amp = False
        use_bfloat16_products(model)
        logger.info(
            "--amp on a CPU: products of linear layers are in bfloat16; weights, optimizer, "
            "attention and positions in float32"
        )
        if not has_fast_bfloat16():
            logger.warning(
                "this CPU has neither AVX512-BF16 nor AMX: with --amp it trains more slowly than "
                "without"
            )
    start(trainer, cfg, task, model, *args, **kw)
    logger.info("precision: {precision}, on {hardware}".format(**training_record(trainer)))
    logger.info("torch: %s", torch.__version__)


def refuse_half_precision(common: Any) -> None:
    """Refuse --fp16 and --bf16 on a CPU, where fairseq fails later and names neither.

    Args:
        common: fairseq's options of that group.

    Raises:
        UsageError: one of them is given. ``--memory-efficient-fp16``, which sets fp16, works.
    """
    refused = ["memory_efficient_bf16", "bf16"]
    if not common.memory_efficient_fp16:
        refused.insert(0, "fp16")
    for name in refused:
        if getattr(common, name):
            raise UsageError(
                f"--{name.replace('_', '-')} needs a GPU; on a CPU leave it out, or give --amp "
                "for products in bfloat16"
            )

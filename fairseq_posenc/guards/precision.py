"""Precision of a training on a CPU: no option for it is without effect, or ends in a traceback."""

import functools
import logging
from argparse import Namespace
from importlib.util import find_spec
from typing import Any

import torch
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.trainer import Trainer
from torch import nn

from fairseq_posenc.attention.bfloat16 import has_fast_bfloat16, use_bfloat16_products
from fairseq_posenc.errors import UsageError

logger = logging.getLogger(__name__)


def patch_precision() -> None:
    """Let ``--amp`` work on a CPU, where fairseq's does nothing, and refuse half precision.

    fairseq's is for gradients of float16, which are scaled; in bfloat16 they need not be. So its
    trainer trains as in float32, with linear layers that compute in bfloat16. Checkpoints say
    ``amp`` (``run_comparison``).
    """
    start = Trainer.__init__

    @functools.wraps(start)
    def __init__(
        self: Trainer, cfg: Any, task: Any, model: nn.Module, *args: Any, **kwargs: Any
    ) -> None:
        cfg = convert_namespace_to_omegaconf(cfg) if isinstance(cfg, Namespace) else cfg
        on_cpu = cfg.common.cpu or not torch.cuda.is_available()
        self.bfloat16_products = False
        if on_cpu and not find_spec("torch_xla"):
            refuse_half_precision(cfg.common)
            self.bfloat16_products = bool(cfg.common.amp)
        if self.bfloat16_products:
            cfg.common.amp = False
            use_bfloat16_products(model)
            logger.info(
                "--amp on a CPU: products of linear layers are in bfloat16; weights, optimizer, "
                "attention and positions in float32"
            )
            if not has_fast_bfloat16():
                logger.warning(
                    "this CPU has neither AVX512-BF16 nor AMX: with --amp it trains more slowly "
                    "than without"
                )
        start(self, cfg, task, model, *args, **kwargs)

    Trainer.__init__ = __init__


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

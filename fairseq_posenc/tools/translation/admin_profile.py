"""The profiling pass of ADMIN: how large the ω of every sub-layer should start."""

import json
import math
from argparse import Namespace
from typing import Any, Dict, List, Tuple

import numpy as np
import torch
from fairseq import tasks, utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.trainer import Trainer
from torch import Tensor, nn

from fairseq_posenc.attention import admin
from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.transformer import PosencTransformerModel
from fairseq_posenc.tools.writing import replacing


def write_profile(args: Namespace, output: str) -> Dict[str, Any]:
    """Measure the ω of a model on the first batch of its training, and write them as JSON.

    Weights, batch and dropout are those of the first update of ``fairseq-train`` with the same
    options on one device; ``--fp16`` and the like, ``--update-freq`` and other devices are
    disregarded.

    Returns what is written; see :func:`measure`.
    """
    if ARCH_MODEL_REGISTRY[args.arch] is not PosencTransformerModel:
        raise UsageError(f"ADMIN needs an --arch posenc_transformer…, not {args.arch}")
    if getattr(args, "admin_profile", None):
        raise UsageError("--admin-profile is for training; leave it out of the profiling pass")
    if not args.max_tokens and not args.batch_size:
        raise UsageError("say how large a batch is, with --max-tokens or --batch-size")
    args.admin_profile = admin.unit_profile(args)
    # fairseq takes --bf16 for --tpu
    for name in ("fp16", "memory_efficient_fp16", "bf16", "memory_efficient_bf16", "amp", "tpu"):
        setattr(args, name, False)
    # by default as many devices as there are, which no group of workers joins here
    args.distributed_world_size, args.ddp_backend = 1, "pytorch_ddp"
    cfg = convert_namespace_to_omegaconf(args)
    np.random.seed(cfg.common.seed)
    utils.set_torch_seed(cfg.common.seed)
    task = tasks.setup_task(cfg.task)
    model = task.build_model(cfg.model)
    trainer, first_epoch = Trainer(cfg, task, model, task.build_criterion(cfg.criterion)), 1
    epoch = trainer.get_train_iterator(first_epoch)
    sample = next(epoch.next_epoch_itr(shuffle=first_epoch > cfg.dataset.curriculum))
    sample = utils.move_to_cuda(sample) if trainer.cuda else sample
    utils.set_torch_seed(cfg.common.seed)
    profile = measure(model, **sample["net_input"])
    with replacing(output) as stream:
        json.dump(profile, stream, indent=1)
    return profile


def measure(model: nn.Module, **inputs: Tensor) -> Dict[str, Any]:
    """Set all ω of a model by one forward pass, and return them.

    The ω of the first sub-layer of a stack is 1. After a sub-layer with v_in = Var[x · ω] and
    v_out = Var[f(x)], the next one's ω is √(v_in + v_out): where x has variance 1, ω² grows by
    Var[f(x)] from sub-layer to sub-layer. Our reading, as in the authors' code: x is multiplied by
    the ω just found, the model is in training mode, f(x) is taken after its dropout, and the
    variance is that of all numbers of the batch around their mean, padding included.

    Returns:
        ``version``; ``channels`` per stack; ``omegas`` and ``variances`` (the pair v_in, v_out)
        per stack and layer, by the name of the parameter.
    """
    stacks = {side: _Stack(getattr(model, side)) for side in ("encoder", "decoder")}
    model.train()
    try:
        with torch.no_grad():
            model(**inputs)
    finally:
        for handle in [handle for stack in stacks.values() for handle in stack.handles]:
            handle.remove()
    for side, stack in stacks.items():
        stack.check(side)
    return {
        "version": admin.VERSION,
        "channels": {side: stack.channels for side, stack in stacks.items()},
        "omegas": {side: stack.omegas for side, stack in stacks.items()},
        "variances": {side: stack.variances for side, stack in stacks.items()},
    }


class _Stack:
    """Watches the residual connections of an encoder or decoder, in the order of their calls."""

    def __init__(self, stack: Any):
        self.omega = 1.0
        # not by iteration, in which LayerDrop leaves layers out
        layers = [layer for _, layer in stack.layers.named_children()]
        self.places = {
            id(parameter): (number, name)
            for number, layer in enumerate(layers)
            for name, parameter in layer.named_parameters(recurse=False)
            if name in admin.ENCODER_RATIOS + admin.DECODER_RATIOS
        }
        self.channels = stack.layers[0].fc_ratio_change.numel()
        self.omegas: List[Dict[str, float]] = [{} for _ in layers]
        self.variances: List[Dict[str, List[float]]] = [{} for _ in layers]
        self.handles = [layer.residual.register_forward_pre_hook(self.watch) for layer in layers]

    def watch(self, _: nn.Module, inputs: Tuple[Tensor, ...]) -> None:
        """Set one ω, and find the next."""
        y, x, ratio = inputs
        number, name = self.places[id(ratio)]
        ratio.fill_(self.omega)
        variances = [_variance(x * ratio), _variance(y)]
        self.omegas[number][name] = self.omega
        self.variances[number][name] = variances
        self.omega = math.sqrt(sum(variances))

    def check(self, side: str) -> None:
        """Check that all was seen."""
        if sum(map(len, self.omegas)) < len(self.places):
            raise UsageError(f"LayerDrop left out layers: profile with --{side}-layerdrop 0")
        if not math.isfinite(self.omega):
            raise UsageError(f"the {side}'s variances are not finite; are the options sound?")


def _variance(x: Tensor) -> float:
    return x.double().var(unbiased=False).item()

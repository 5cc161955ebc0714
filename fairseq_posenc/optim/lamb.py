"""The optimizer ``posenc_lamb``: Adam with a learning rate per tensor (You et al. 2020, LAMB)."""

from dataclasses import dataclass
from typing import Any, Dict, List, Sequence

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from omegaconf import II

from fairseq_posenc.optim.radam import parse_betas
from fairseq_posenc.options import option


class Lamb(torch.optim.Optimizer):
    """LAMB for large batches (You et al. 2020, Algorithm 2), with φ(z) = z.

    With the gradient g of a tensor x in step t, elementwise but for the norms of whole tensors::

        m ← β1 m + (1 - β1) g              m̂ = m / (1 - β1^t)
        v ← β2 v + (1 - β2) g²             v̂ = v / (1 - β2^t)
        u = m̂ / (√v̂ + ε) + λ x             x ← x - lr · ‖x‖ / ‖u‖ · u

    ``‖x‖ / ‖u‖`` is the trust ratio; it is 1 where a norm is 0. Tensors of one dimension (biases,
    LayerNorms) have no trust ratio and no decay, as in the authors' code.
    """

    def __init__(self, params, lr: float, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None) -> None:
        """Take a step; ``closure`` is not used."""
        for group in self.param_groups:
            for x in group["params"]:
                if x.grad is not None:
                    self._update(x, x.grad.to(x.dtype), self.state[x], group)

    def _update(self, x: torch.Tensor, gradient: torch.Tensor, state: Dict, group: Dict) -> None:
        if not state:
            state.update(step=0, exp_avg=torch.zeros_like(x), exp_avg_sq=torch.zeros_like(x))
        state["step"] += 1
        beta1, beta2 = group["betas"]
        m, v = state["exp_avg"], state["exp_avg_sq"]
        m.lerp_(gradient, 1 - beta1)
        v.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        root = (v / (1 - beta2 ** state["step"])).sqrt_().add_(group["eps"])
        u = (m / (1 - beta1 ** state["step"])).div_(root)
        if x.dim() <= 1:
            x.add_(u, alpha=-group["lr"])
            return
        u.add_(x, alpha=group["weight_decay"])
        norms = x.norm(), u.norm()
        # stays on the device: a GPU is not waited for
        ratio = torch.where(norms[0] * norms[1] > 0, norms[0] / norms[1], torch.ones_like(norms[0]))
        x.sub_(u.mul_(ratio * group["lr"]))


@dataclass
class PosencLambConfig(FairseqDataclass):
    """Options, named as those of fairseq's LAMB, which needs apex."""

    lamb_betas: str = option("(0.9, 0.999)", "betas for LAMB")
    lamb_eps: float = option(1e-6, "epsilon for LAMB")
    weight_decay: float = option(0.0, "weight decay, not of biases and LayerNorms")
    lr: List[float] = II("optimization.lr")


@register_optimizer("posenc_lamb", dataclass=PosencLambConfig)
class PosencLamb(FairseqOptimizer):
    """LAMB in PyTorch alone.

    It needs the tensors as they are, not one long vector: under ``--fp16`` and ``--bf16`` fairseq
    keeps a float32 copy of each. ``--ddp-backend fully_sharded`` flattens them all the same.

    Raises:
        UsageError: the betas are not a pair of numbers in [0, 1).
    """

    def __init__(self, cfg: PosencLambConfig, params):
        super().__init__(cfg)
        self._optimizer = Lamb(params, **self.optimizer_config)

    @property
    def optimizer_config(self) -> Dict[str, Any]:
        """Return the values that replace those of a checkpoint when training is resumed."""
        lr = self.cfg.lr
        return {
            "lr": lr[0] if isinstance(lr, Sequence) else lr,
            "betas": parse_betas(self.cfg.lamb_betas, "--lamb-betas"),
            "eps": self.cfg.lamb_eps,
            "weight_decay": self.cfg.weight_decay,
        }

    @property
    def supports_flat_params(self) -> bool:
        """Whether parameters may be one long vector, which has no norms of its tensors."""
        return False

    @property
    def supports_memory_efficient_fp16(self) -> bool:
        """Whether states may be of half precision, which is too coarse for them."""
        return False

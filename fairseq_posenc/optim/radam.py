"""The optimizer ``posenc_radam``: rectified Adam (Liu et al. 2019, "On the Variance of …")."""

import ast
from dataclasses import dataclass
from typing import Any, Dict, List, Sequence, Tuple

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from omegaconf import II

from fairseq_posenc.errors import UsageError
from fairseq_posenc.options import option


@dataclass
class PosencRAdamConfig(FairseqDataclass):
    """Options, named as those of fairseq's Adam."""

    radam_betas: str = option("(0.9, 0.999)", "betas for RAdam")
    radam_eps: float = option(1e-8, "epsilon for RAdam")
    weight_decay: float = option(0.0, "decoupled weight decay")
    lr: List[float] = II("optimization.lr")


@register_optimizer("posenc_radam", dataclass=PosencRAdamConfig)
class PosencRAdam(FairseqOptimizer):
    """torch's RAdam, with the decoupled weight decay of fairseq's Adam.

    Our reading: the paper rectifies from ρ_t > 4 on, its authors' code from 5 on, and so does
    torch; until then, the steps are those of momentum, lr · m̂. With β₂ = 0.98 these are the first
    five; ADMIN's copy of the code leaves out the steps until then.

    Raises:
        UsageError: the betas are not a pair of numbers in [0, 1).
    """

    def __init__(self, cfg: PosencRAdamConfig, params):
        super().__init__(cfg)
        self._optimizer = torch.optim.RAdam(params, **self.optimizer_config)

    @property
    def optimizer_config(self) -> Dict[str, Any]:
        """Return the values that replace those of a checkpoint when training is resumed."""
        lr = self.cfg.lr
        return {
            "lr": lr[0] if isinstance(lr, Sequence) else lr,
            "betas": parse_betas(self.cfg.radam_betas, "--radam-betas"),
            "eps": self.cfg.radam_eps,
            "weight_decay": self.cfg.weight_decay,
            "decoupled_weight_decay": True,
        }

    @property
    def supports_flat_params(self) -> bool:
        """Whether parameters may be one long vector, as under ``--fp16``."""
        return True

    def load_state_dict(self, state_dict, optimizer_overrides=None) -> None:
        """Load a state with the decay of this run: states of earlier versions have none."""
        decay = {"weight_decay": self.cfg.weight_decay, "decoupled_weight_decay": True}
        super().load_state_dict(state_dict, {**decay, **(optimizer_overrides or {})})


def parse_betas(text: str, option: str) -> Tuple[float, float]:
    """Parse the value of an option, two numbers in [0, 1)."""
    try:
        first, second = map(float, ast.literal_eval(text))
    except (ValueError, TypeError, SyntaxError):
        first = second = 1.0
    if not (0 <= first < 1 and 0 <= second < 1):
        raise UsageError(f"{option} must be two numbers in [0, 1), not {text}")
    return first, second

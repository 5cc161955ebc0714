"""Models that race: each with weights of its own, or all with one set of them."""

from collections import defaultdict
from typing import Any, Callable, Dict, Tuple

import torch
from torch import Tensor, nn
from tqdm import tqdm

from fairseq_posenc.tools.benchmark.setting import Setting
from fairseq_posenc.tools.benchmark.timing import Steps

Models = Dict[str, nn.Module]


def built(setting: Setting, build: Callable[[str], nn.Module]) -> Models:
    """Build the model of every contestant.

    If the setting's weights are shared, every model uses the parameters of the first wherever names
    and shapes are equal, and has but those of its positions for itself.
    """
    models: Models = {}
    for name in tqdm(setting.contestants, desc="building", mininterval=1, leave=False):
        models[name] = build(name)
        if setting.shared:
            use_parameters(models[name], next(iter(models.values())))
    return models


def use_parameters(model: nn.Module, owner: nn.Module) -> None:
    """Make a model use the parameters of another wherever names and shapes are equal."""
    owned = _parameters(owner)
    for (prefix, name), parameter in _parameters(model).items():
        other = owned.get((prefix, name))
        if other is not None and other.shape == parameter.shape:
            setattr(model.get_submodule(prefix), name, other)


def training_steps(setting: Setting, models: Models, loss: Callable[[nn.Module], Tensor]) -> Steps:
    """Return whole training steps: forward, loss, backward, Adam.

    Args:
        setting: says whether the models share weights; then they share Adam's averages, too.
        models: by contestant.
        loss: computes a model's loss on the batch.

    Returns:
        per contestant a step, whose gradients are gone when it ends.
    """
    state: Any = defaultdict(dict)

    def contestant(model: nn.Module) -> Callable[[], None]:
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-4)
        if setting.shared:
            optimiser.state = state

        def step() -> None:
            loss(model).backward()
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

        return step

    return {name: contestant(model) for name, model in models.items()}


def _parameters(model: nn.Module) -> Dict[Tuple[str, str], nn.Parameter]:
    """Return the parameters by the name of their module and their name in it."""
    return {
        (prefix, name): parameter
        for prefix, module in model.named_modules()
        for name, parameter in module.named_parameters(recurse=False)
    }

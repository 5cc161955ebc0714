"""What RAdam and LAMB do alike."""

import pytest
import torch

from fairseq_posenc.errors import UsageError
from tests.optim.conftest import KINDS, optimizer_of

pytestmark = pytest.mark.parametrize("kind", KINDS)


def test_a_state_that_was_kept_continues_the_run(kind):
    parameters = [torch.nn.Parameter(torch.ones(3, 2)) for _ in range(2)]
    optimizers = [optimizer_of(kind, [one], weight_decay=0.1) for one in parameters]
    for step in range(12):
        for parameter, optimizer in zip(parameters, optimizers):
            parameter.grad = torch.tensor([0.5, -0.1]).expand(3, 2) / (step + 1)
            optimizer.step()
        if step == 3:
            state = optimizers[1].state_dict()
            optimizers[1] = optimizer_of(kind, parameters[1:], weight_decay=0.1)
            optimizers[1].load_state_dict(state)
    assert torch.equal(*parameters)


def test_what_has_no_gradient_stays(kind):
    parameter = torch.nn.Parameter(torch.ones(2, 2))
    optimizer_of(kind, [parameter], weight_decay=0.5).step()
    assert torch.equal(parameter, torch.ones(2, 2))


@pytest.mark.parametrize("betas", ["0.9", "(0.9,)", "(0.9, 1.0)", "(-0.1, 0.9)", "(a, b)", "(", ""])
def test_bad_betas_are_refused(kind, betas):
    with pytest.raises(UsageError, match=f"--{kind}-betas must be two numbers"):
        optimizer_of(kind, [torch.nn.Parameter(torch.ones(1))], **{f"{kind}_betas": betas})

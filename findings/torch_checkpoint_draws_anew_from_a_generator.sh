#!/usr/bin/env bash
# Guess: torch.utils.checkpoint computes the same numbers again in the backward pass: it keeps the
#        random state (preserve_rng_state is on).
# Seen:  it keeps the global generators alone. What a layer draws from a torch.Generator of its own is
#        drawn anew, and the gradient is that of other draws than the output's. Nothing is said.
# Versions: torch 2.13.0. Source: torch/utils/checkpoint.py (fork_rng, get_rng_state).
# Why:   random position shifts, noise or layer drop with a seeded generator per worker train on
#        wrong gradients as soon as --checkpoint-activations is given. Draw outside what is recomputed.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install numpy==2.4.6
"$work/env/bin/python" - <<'END'
import torch
from torch.utils.checkpoint import checkpoint

own, tokens = torch.Generator().manual_seed(1), torch.ones(4, requires_grad=True)
torch.manual_seed(1)


def scaled_by(generator):
    return lambda x: x * torch.rand(x.shape, generator=generator)


for name, generator in ("global", None), ("own", own):
    tokens.grad = None
    output = checkpoint(scaled_by(generator), tokens, use_reentrant=False)
    output.sum().backward()
    # the derivative of x·noise at x = 1 is the noise, and so is the output
    print("torch", torch.__version__, name, output.tolist(), tokens.grad.tolist())
    assert torch.equal(output, tokens.grad) == (generator is None)
END

#!/usr/bin/env bash
# Guess: attention of a query all of whose keys are masked is undefined, NaN, in all of torch.
# Seen:  scaled_dot_product_attention gives zeros, with a boolean mask and with -inf alike;
#        nn.MultiheadAttention, built on it, gives NaN when weights are asked for, and zeros (before
#        its output projection) when they are not.
# Versions: torch 2.13.0. Source: torch/nn/functional.py, multi_head_attention_forward: with
#        need_weights it computes softmax itself.
# Why:   an empty source, or a left-padded row under a causal mask, is harmless until somebody asks for
#        attention weights, and then one row's NaN reaches every gradient of the batch.
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
from torch.nn.functional import scaled_dot_product_attention

torch.manual_seed(1)
states = torch.randn(1, 3, 8)
may_see = torch.tensor([[True, True, True], [False, False, False], [True, False, False]])
heads = states[:, None]
fused = scaled_dot_product_attention(heads, heads, heads, attn_mask=may_see)[0, 0, 1]
module = torch.nn.MultiheadAttention(8, 1, batch_first=True).eval()
rows = [
    module(states, states, states, attn_mask=~may_see, need_weights=weights)[0][0, 1]
    for weights in (False, True)
]
print("torch", torch.__version__, fused.tolist(), *(row.tolist() for row in rows), sep="\n")
assert fused.eq(0).all() and rows[0].isfinite().all() and rows[1].isnan().all()
END

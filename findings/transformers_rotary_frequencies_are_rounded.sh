#!/usr/bin/env bash
# Guess: model.to(torch.bfloat16) rounds weights; the frequencies of rotary positions, which are a
#        non-persistent buffer in float32, stay, as positions need them.
# Seen:  GPT-NeoX's inv_freq becomes bfloat16. At position 1,000 a channel pair is turned 0.18 radians too
#        far or too little. from_pretrained(dtype=torch.bfloat16) keeps float32.
# Versions: transformers 5.23.0, torch 2.13.0. Source: models/gpt_neox/modeling_gpt_neox.py.
# Why:   perplexity at long inputs depends on which of the two lines made the model bfloat16.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install numpy==2.4.6 transformers==5.23.0
"$work/env/bin/python" - <<'END'
import torch
import transformers
from transformers import GPTNeoXConfig, GPTNeoXModel

model = GPTNeoXModel(GPTNeoXConfig(vocab_size=30, hidden_size=64, num_hidden_layers=1,
                                   num_attention_heads=2, intermediate_size=16, rotary_pct=1.0))
exact = model.rotary_emb.inv_freq.clone()
rounded = model.to(torch.bfloat16).rotary_emb.inv_freq
angle = (1000 * (rounded.float() - exact)).abs().max().item()
print("transformers", transformers.__version__, exact.dtype, rounded.dtype, "at 1,000:", angle)
assert exact.dtype == torch.float32 and rounded.dtype == torch.bfloat16 and angle > 0.1
END

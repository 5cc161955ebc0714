#!/usr/bin/env bash
# Guess: a model with ALiBi computes in bfloat16 what it does in float32, but for 1 %, at any length,
#        as only distances count and those to the nearest keys are small numbers.
# Seen:  BLOOM adds slope times the position of the key, not its distance, in the precision of the
#        model, and the product of query and key is rounded with it. After 2,000 tokens the steepest
#        of 16 heads has scores in multiples of 8: its nearest keys weigh alike, where the nearest one
#        should have half. float16 is off by 0.5 there, and by 2 after 10,000 tokens.
# Versions: transformers 5.24.0, torch 2.13.0. Source: models/bloom/modeling_bloom.py,
#        build_alibi_tensor (dtype) and baddbmm. MPT's biases are distances in float32.
# Why:   ALiBi is chosen for long text. Its models lose the order of near words there, unless they are
#        loaded in float32; a comparison of encodings in bfloat16 shows the rounding.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install numpy==2.4.6 transformers==5.24.0
"$work/env/bin/python" - <<'END'
import torch
import transformers
from transformers import BloomConfig, BloomModel

torch.manual_seed(1)
config = BloomConfig(vocab_size=50, hidden_size=64, n_layer=1, n_head=16, attn_implementation="eager")
model = BloomModel(config).eval()
print("torch", torch.__version__, "transformers", transformers.__version__)
weights = {}
for length in (20, 2000):
    tokens = torch.randint(50, (1, length))
    for dtype in (torch.float32, torch.bfloat16):
        with torch.no_grad():
            attentions = model.to(dtype)(tokens, output_attentions=True, use_cache=False).attentions
        nearest = attentions[0][0, 0, -1, -4:].flip(0).tolist()
        weights[length, dtype] = nearest
        print(length, "tokens,", dtype, "weights of the nearest keys:", *(f"{x:.3f}" for x in nearest))
    model.to(torch.float32)
for length, largest in ((20, 0.02), (2000, 1.0)):
    ours, exact = weights[length, torch.bfloat16], weights[length, torch.float32]
    difference = max(abs(a - b) for a, b in zip(ours, exact))
    assert difference < largest and (length == 20 or difference > 0.1)
END

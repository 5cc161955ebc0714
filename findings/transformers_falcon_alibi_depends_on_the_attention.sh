#!/usr/bin/env bash
# Guess: Falcon with alibi=True adds -slope * distance to the scores, as the paper of ALiBi and BLOOM do, and the
#        implementation of attention (eager or sdpa) changes nothing but the speed.
# Seen:  sdpa adds it divided by the square root of the head's width. eager adds that twice, and so does sdpa when
#        attention weights are asked for. Its positions are rounded to bfloat16 in float32 models, too: from 256 on
#        neighbours share a bias. BLOOM adds slope * distance, exactly.
# Versions: transformers 5.24.0 (4.57.6 the same), torch 2.13.0. Source: models/falcon/modeling_falcon.py.
# Why:   perplexity by length and maps of attention are those of two models. Slopes copied from Falcon are no ALiBi.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install numpy==2.4.6 transformers==5.24.0
"$work/env/bin/python" - 2>/dev/null <<'END'
import torch
import transformers
from transformers import FalconConfig, FalconForCausalLM
from transformers.models.falcon.modeling_falcon import build_alibi_tensor

sizes = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "initializer_range": 0.3}
tokens = torch.randint(3, 50, (1, 40), generator=torch.Generator().manual_seed(1))
biases = []
attention = torch.nn.functional.scaled_dot_product_attention
torch.nn.functional.scaled_dot_product_attention = lambda query, key, value, attn_mask=None, **more: (
    biases.append(attn_mask), attention(query, key, value, attn_mask=attn_mask, **more))[1]
logits, models = {}, {}
for name in ("eager", "sdpa"):
    torch.manual_seed(1)
    config = FalconConfig(**sizes, alibi=True, multi_query=False, attn_implementation=name)
    models[name] = FalconForCausalLM(config).eval()
    with torch.no_grad():
        logits[name] = models[name](tokens).logits
with torch.no_grad():
    asked = models["sdpa"](tokens, output_attentions=True).logits
    # queries and keys of zeros leave the bias alone
    models["eager"].transformer.h[0].self_attention.query_key_value.weight.zero_()
    scores = models["eager"](tokens, output_attentions=True).attentions[0].log()
steps = {"paper": -(2.0**-4), "sdpa": biases[-1][0, 0, -1], "eager": scores[0, 0, -1]}
steps = {name: row if name == "paper" else (row[-2] - row[-1]).item() for name, row in steps.items()}
print("transformers", transformers.__version__, "a step further away adds, head 1 of 2, width 16:", steps)
print("logits, eager less sdpa:", (logits["eager"] - logits["sdpa"]).abs().max().item(),
      "sdpa with weights less without:", (asked - logits["sdpa"]).abs().max().item())
rounded = build_alibi_tensor(torch.ones(1, 2000, dtype=torch.long), 2, torch.float32)[0, 0] * 16
print("float32 positions 256 to 262 and the last four:", rounded[256:263].tolist(), rounded[-4:].tolist())
assert abs(steps["sdpa"] - steps["paper"] / 4) < 1e-4 and abs(steps["eager"] - steps["paper"] / 2) < 1e-4
assert (logits["eager"] - logits["sdpa"]).abs().max() > 0.05 and (asked - logits["eager"]).abs().max() < 1e-4
assert rounded[257] == 256 and len(set(rounded[-4:].tolist())) == 1
END

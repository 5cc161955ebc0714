#!/usr/bin/env bash
# Guess: in evaluation a text has the same scores whatever else the model reads or has read.
# Seen:  with rope_type dynamic it has others after a longer text (the model keeps the longest text's frequencies until
#        a text below the original length comes), beside a longer text in a batch, and step by step with a cache.
#        With longrope it has others beside a longer text, and from the original length on with a cache. With yarn,
#        linear and llama3 they are equal.
# Versions: transformers 5.24.0, torch 2.13.0. Source: modeling_rope_utils.py, dynamic_rope_update. In 4.57.6 dynamic
#        is the same.
# Why:   perplexity by length depends on the order of texts and on the batch size. A comparison of ways to longer
#        inputs measures them.
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
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(1)
long, text = torch.randint(3, 50, (1, 40)), torch.randint(3, 50, (1, 14))
both = torch.cat([long, torch.nn.functional.pad(text, (0, 26))])
mask = torch.ones_like(both)
mask[1, 14:] = 0
ropes = {
    "dynamic": {"factor": 2.0},
    "longrope": {"factor": 8.0, "short_factor": [1.0] * 8, "long_factor": [4.0] * 8, "original_max_position_embeddings": 16},
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 8},
    "linear": {"factor": 4.0},
    "llama3": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8},
}
for name, rope in ropes.items():
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
                         initializer_range=0.3, max_position_embeddings=8 if name == "dynamic" else 64, pad_token_id=0,
                         rope_parameters={"rope_type": name, "rope_theta": 1e4} | rope)
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        alone = model(text).logits
        beside = model(both, attention_mask=mask).logits[1:, :14]
        after = model(text).logits
        model(text[:, :4])  # below the original length: the frequencies are the first ones again
        whole, cache, steps = model(long[:, :24]).logits, None, []
        model(text[:, :4])
        for token in long[:, :24].split(1, 1):
            output = model(token, past_key_values=cache, use_cache=True)
            cache, steps = output.past_key_values, [*steps, output.logits]
    differences = {"after a longer text": alone - after, "beside a longer text": alone - beside,
                   "step by step": torch.cat(steps, 1) - whole}
    differences = {case: difference.abs().max().item() for case, difference in differences.items()}
    print("transformers", transformers.__version__, name, differences)
    moved = [difference > 0.05 for difference in differences.values()]
    assert moved == {"dynamic": [True] * 3, "longrope": [False, True, True]}.get(name, [False] * 3)
END

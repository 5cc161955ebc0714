#!/usr/bin/env bash
# Guess: with attn_data_dependent_alibi (the Forgetting Transformer) decoding step by step with the cache that
#        `generate` keeps by default gives the scores of the whole text.
# Seen:  the bias is computed of the tokens that are passed. In a step that is the newest one alone, so its bias is 0
#        for all keys: nothing is forgotten. Scores of a random model are off by 0.2 of the largest at the initial
#        bias of the gates (5), by 1.0 at 0, to which training may bring it. Rotary, T5 and ALiBi are right.
# Versions: x-transformers 2.31.10, torch 2.13.0. Source: x_transformers.py, DataDependentAlibi.forward, and its call
#        in Attention.forward.
# Why:   what was trained is not what generates. The more a model has learned to forget, the worse its text is, while
#        its loss is good: in a comparison of encodings by their output, the fault is laid to the encoding.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install numpy==2.4.6 x-transformers==2.31.10
"$work/env/bin/python" - <<'END'
import importlib.metadata

import torch
from x_transformers import Decoder, TransformerWrapper
from x_transformers.x_transformers import DataDependentAlibi


def off(gate_bias=None, **options):
    """The largest difference of a step's scores to those of the whole text, divided by the largest score."""
    torch.manual_seed(1)
    layers = Decoder(dim=64, depth=2, heads=2, attn_dim_head=32, **options)
    model = TransformerWrapper(num_tokens=50, max_seq_len=64, attn_layers=layers).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    for module in model.modules():
        if isinstance(module, DataDependentAlibi):
            torch.nn.init.constant_(module.to_forget_gates[0].bias, gate_bias)
    tokens = torch.randint(0, 50, (1, 40))
    with torch.no_grad():
        whole = model(tokens)[:, -1]
        cache = model(tokens[:, :-1], return_intermediates=True)[1]
        step = model(tokens, cache=cache)[:, -1]
    return ((step - whole).abs().max() / whole.abs().max()).item()


print("x-transformers", importlib.metadata.version("x-transformers"))
for option in ("rotary_pos_emb", "rel_pos_bias", "alibi_pos_bias"):
    print(option, off(**{option: True}))
    assert off(**{option: True}) < 1e-4
early, trained = (off(bias, attn_data_dependent_alibi=True) for bias in (5.0, 0.0))
print("attn_data_dependent_alibi, initial bias of the gates:", early, "bias 0:", trained)
assert 1e-3 < early < trained and trained > 0.3
END

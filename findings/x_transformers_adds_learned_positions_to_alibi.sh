#!/usr/bin/env bash
# Guess: in x-transformers the option of one encoding (alibi_pos_bias, dynamic_pos_bias, rotary_pos_emb, rel_pos_bias)
#        puts that encoding in the place of the learned absolute positions, and rotary positions turn whole heads.
# Seen:  rotary_pos_emb and rel_pos_bias do. With alibi_pos_bias or dynamic_pos_bias the learned positions stay and are
#        added, unless use_abs_pos_emb=False. Rotary positions turn 32 of a head's 64 channels (half, at least 32).
# Versions: x-transformers 2.31.10, torch 2.13.0. Source: x_transformers.py, AttentionLayers: disable_abs_pos_emb and
#        rotary_emb_dim.
# Why:   "ALiBi" compared with "rotary" by these options alone is ALiBi with a learned table compared with half of
#        rotary, and the table is the part that does not go beyond the trained length.
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

print("x-transformers", importlib.metadata.version("x-transformers"))
tokens = torch.randint(0, 50, (1, 20))
for option in ("alibi_pos_bias", "dynamic_pos_bias", "rotary_pos_emb", "rel_pos_bias"):
    torch.manual_seed(1)
    layers = Decoder(dim=128, depth=1, heads=2, attn_dim_head=64, **{option: True})
    model = TransformerWrapper(num_tokens=50, max_seq_len=64, attn_layers=layers).eval()
    tables = [name for name, parameter in model.named_parameters() if name.startswith("pos_emb")]
    with torch.no_grad():
        before = model(tokens)
        for name in tables:
            model.get_parameter(name).zero_()
        difference = (model(tokens) - before).abs().max().item()
    turned = 2 * len(layers.rotary_pos_emb.inv_freq) if option == "rotary_pos_emb" else None
    print(f"{option}: tables {tables}, logits without them differ by {difference}, channels turned: {turned}")
    assert bool(tables) == (difference > 1e-4) == (option in ("alibi_pos_bias", "dynamic_pos_bias"))
    assert turned in (None, 32)
END

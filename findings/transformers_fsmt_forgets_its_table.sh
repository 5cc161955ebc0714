#!/usr/bin/env bash
# Guess: a text longer than max_position_embeddings is an error, or is wrong itself; the next text
#        is translated as before.
# Seen:  FSMT puts a new, longer table of plain sinusoids in the place of its own, for good: the states
#        of every later text differ from those before, until the model is loaded again.
# Versions: transformers 5.23.0, torch 2.13.0. Source: models/fsmt/modeling_fsmt.py,
#        SinusoidalPositionalEmbedding.forward and make_weight.
# Why:   weights of positions that are not FSMT's own sinusoids (a learned or scaled table) survive
#        from_pretrained, and one long line in a service spoils all that follow. Truncate inputs.
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
from transformers import FSMTConfig, FSMTForConditionalGeneration

torch.manual_seed(1)
sizes = dict.fromkeys(["d_model", "encoder_ffn_dim", "decoder_ffn_dim"], 16)
sizes |= dict.fromkeys(["encoder_attention_heads", "decoder_attention_heads"], 2)
sizes |= dict.fromkeys(["encoder_layers", "decoder_layers"], 1)
config = FSMTConfig(langs=["en", "de"], src_vocab_size=20, tgt_vocab_size=20,
                    max_position_embeddings=8, **sizes)
encoder = FSMTForConditionalGeneration(config).eval().model.encoder
with torch.no_grad():
    encoder.embed_positions.weight.normal_()
    short = torch.tensor([[4, 5, 6, 2]])
    before = encoder(short)[0]
    encoder(torch.randint(4, 20, (1, 14)))
    after = encoder(short)[0]
difference = (after - before).abs().max().item()
print("transformers", transformers.__version__, "the same text, after a longer one:", difference)
assert difference > 0.1
END

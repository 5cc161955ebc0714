#!/usr/bin/env bash
# Guess: Pegasus-X, whose inputs have up to 16,384 tokens, can be read in half precision, as other models with sinusoids
#        can: positions are computed in float32 and rounded at the end, so they are off by 0.004 at most.
# Seen:  positions, frequencies and angles are rounded to the type of the embeddings. In bfloat16 the sinusoids of
#        position 100 are off by 0.3, those of 1,000 by 0.9, and from 257 on neighbours share theirs, at 4,000 sixteen
#        in a row: two swapped tokens there give the encoder's states swapped, exactly. In float16 neighbours are equal
#        from 2,049 on. Marian's table, which is made in float32, is off by 0.002; autocast leaves positions alone.
# Versions: transformers 5.24.0, torch 2.13.0. Source: models/pegasus_x/modeling_pegasus_x.py,
#        PegasusXSinusoidalPositionalEmbedding.forward (dtype=inputs_embeds.dtype, type_as(inputs_embeds)).
# Why:   from_pretrained(dtype=torch.bfloat16) is how one fits such long text into memory. Its summaries are then of a
#        bag of words from the second page on, and a model that is trained so learns that.
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
from transformers import PegasusXConfig, PegasusXModel
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

torch.manual_seed(1)
sizes = dict.fromkeys(["d_model", "encoder_ffn_dim", "decoder_ffn_dim"], 64)
sizes |= dict.fromkeys(["encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads"], 2)
encoder = PegasusXModel(PegasusXConfig(vocab_size=100, init_std=0.5, **sizes)).eval().encoder
tokens = torch.randint(3, 100, (1, 4096))
swapped = tokens.clone()
swapped[0, 4000:4002] = torch.tensor([7, 8])
tokens[0, 4000:4002] = torch.tensor([8, 7])
exact = encoder.embed_positions(torch.zeros(1, 4096, 64))[0]


def off(dtype):
    """How far two sinusoids are off, how many of 16 differ, and how the states of two texts do, swapped back."""
    encoder.to(dtype)
    table = encoder.embed_positions(torch.zeros(1, 4096, 64, dtype=dtype))[0]
    errors = [(table[position] - exact[position]).abs().max().item() for position in (100, 1000)]
    with torch.no_grad():
        states, others = (encoder(text).last_hidden_state[0].float() for text in (tokens, swapped))
    order = torch.arange(4096)
    order[4000:4002] = torch.tensor([4001, 4000])
    return errors, len(table[4000:4016].unique(dim=0)), (states - others[order]).abs().max().item()


for dtype, distinct in {torch.float32: 16, torch.float16: 9, torch.bfloat16: 2}.items():
    errors, rows, difference = off(dtype)
    print("transformers", transformers.__version__, dtype, "off at 100 and 1,000:", errors, "sinusoids of 16:", rows,
          "states, swapped back, differ by:", difference)
    assert (errors[0] > 0.05) == (dtype == torch.bfloat16) and rows == distinct
    assert (difference == 0) == (dtype != torch.float32)
table = MarianSinusoidalPositionalEmbedding(4096, 64).create_weight()
print("Marian in bfloat16:", (table.to(torch.bfloat16) - table)[[100, 1000]].abs().max().item())
END

#!/usr/bin/env bash
# Guess: a decoder prefix padded on the left, with its attention mask, gives the same scores whether
#        the last token is decoded with a cache or all at once.
# Seen:  M2M100 (NLLB) counts positions from the padding in a full pass, and from the length of the
#        cache in a step: the row with padding differs by tenths, the one without by 1e-6.
# Versions: transformers 5.23.0, torch 2.13.0. Source: models/m2m_100/modeling_m2m_100.py,
#        create_position_ids_from_input_ids.
# Why:   batched constrained decoding, prefixes of other lengths (glossaries, documents) are scored
#        at wrong positions.
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
from transformers import M2M100Config, M2M100ForConditionalGeneration

torch.manual_seed(1)
sizes = dict.fromkeys(["d_model", "encoder_ffn_dim", "decoder_ffn_dim"], 16)
sizes |= dict.fromkeys(["encoder_attention_heads", "decoder_attention_heads"], 2)
sizes |= dict.fromkeys(["encoder_layers", "decoder_layers"], 1)
model = M2M100ForConditionalGeneration(M2M100Config(vocab_size=30, init_std=0.5, **sizes)).eval()
source = torch.tensor([[5, 6, 7, 2], [8, 9, 10, 2]])
prefix = torch.tensor([[1, 1, 2, 5, 6], [2, 7, 8, 9, 4]])
mask = prefix.ne(1).long()
with torch.no_grad():
    full = model(source, decoder_input_ids=prefix, decoder_attention_mask=mask).logits[:, -1]
    first = model(source, decoder_input_ids=prefix[:, :-1], decoder_attention_mask=mask[:, :-1],
                  use_cache=True)
    last = model(encoder_outputs=(first.encoder_last_hidden_state,), past_key_values=first.past_key_values,
                 decoder_input_ids=prefix[:, -1:], decoder_attention_mask=mask).logits[:, -1]
padded, whole = (full - last).abs().amax(1).tolist()
print("transformers", transformers.__version__, "with padding:", padded, "without:", whole)
assert padded > 0.1 and whole < 1e-4
END

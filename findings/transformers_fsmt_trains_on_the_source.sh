#!/usr/bin/env bash
# Guess: FSMT is fine-tuned like T5, BART or M2M100: with labels alone the decoder reads the labels,
#        shifted; and -100 in labels is left out of the loss.
# Seen:  with labels alone its decoder reads the source, shifted, and nothing is said where both have
#        one length. prepare_decoder_input_ids_from_labels, which DataCollatorForSeq2Seq calls, writes
#        padding over the -100 in the labels themselves, so that the loss counts padding.
# Versions: transformers 5.23.0, torch 2.13.0. Source: models/fsmt/modeling_fsmt.py,
#        _prepare_fsmt_decoder_inputs and shift_tokens_right.
# Why:   one trains a decoder that never sees what it has written, or to write padding. Pass
#        decoder_input_ids made of a copy of the labels.
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
config = FSMTConfig(langs=["en", "de"], src_vocab_size=20, tgt_vocab_size=20, init_std=0.5, **sizes)
model = FSMTForConditionalGeneration(config).eval()
source, target = torch.tensor([[4, 5, 6, 2]]), torch.tensor([[7, 8, 9, 2]])


def loss(**decoder_input):
    return model(input_ids=source, labels=target, **decoder_input).loss.item()


alone = loss()
of_source = loss(decoder_input_ids=source.roll(1, 1))
of_target = loss(decoder_input_ids=target.roll(1, 1))
labels = torch.tensor([[7, 8, 2, -100, -100]])
model.prepare_decoder_input_ids_from_labels(labels)
print("transformers", transformers.__version__, "loss from labels alone:", alone, "as from the source:",
      of_source, "from the target:", of_target, "labels after the collator's call:", labels.tolist())
assert alone == of_source and abs(alone - of_target) > 0.01
assert labels.tolist() == [[7, 8, 2, 1, 1]]
END

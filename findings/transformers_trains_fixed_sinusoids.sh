#!/usr/bin/env bash
# Guess: the sinusoids of Marian (OPUS-MT), Pegasus and RoFormer are fixed; fine-tuning leaves them as
#        they are, and a model that is saved and loaded again gives the same scores.
# Seen:  up to 5.23.0 both hold. After from_pretrained of 5.24.0 the tables have gradients, and AdamW
#        moves them. Marian does not save them, so that the model that is loaded again is another one.
# Versions: transformers 5.23.0 and 5.24.0, torch 2.13.0. Source: models/{marian,pegasus,roformer},
#        …SinusoidalPositionalEmbedding.forward, which lost its no_grad; the loader loses the freeze.
# Why:   fine-tuned models are worse after a reload than in the evaluation during training, and
#        RoFormer's positions are no rotations any more. Freeze the modules called embed_positions.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
cat > "$work/train.py" <<'END_OF_PYTHON'
import torch
import transformers

sides = [f"{side}_{part}" for side in ("encoder", "decoder") for part in ("layers", "attention_heads")]
sizes = dict.fromkeys([*sides, "num_hidden_layers", "num_attention_heads"], 2)
widths = ["d_model", "encoder_ffn_dim", "decoder_ffn_dim", "hidden_size", "embedding_size"]
sizes |= dict.fromkeys([*widths, "intermediate_size", "max_position_embeddings"], 16)
types = dict(vocab_size=30, pad_token_id=1, eos_token_id=2, decoder_start_token_id=1)
tokens = torch.tensor([[4, 5, 6, 7, 8, 2]])
is_new = transformers.__version__ == "5.24.0"
for name in ("MarianMTModel", "PegasusForConditionalGeneration", "RoFormerForMaskedLM"):
    torch.manual_seed(1)
    architecture = getattr(transformers, name)
    architecture(architecture.config_class(**sizes, **types)).save_pretrained("model")
    model = architecture.from_pretrained("model").eval()
    [table, *_] = [w for n, w in model.named_parameters() if "embed_positions" in n]
    before = table.clone()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    for _ in range(3):
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
    model.save_pretrained("model")
    scores = [one(input_ids=tokens, labels=tokens).logits
              for one in (model, architecture.from_pretrained("model").eval())]
    moved = (table - before).abs().max().item()
    lost = (scores[0] - scores[1]).abs().max().item()
    print("transformers", transformers.__version__, name, "moved by", moved, "scores reloaded:", lost)
    assert (moved > 1e-3) == is_new and (lost > 1e-4) == (is_new and name == "MarianMTModel")
END_OF_PYTHON
for version in 5.23.0 5.24.0; do
    install numpy==2.4.6 "transformers==$version"
    (cd "$work" && HF_HUB_OFFLINE=1 "$work/env/bin/python" train.py)
done

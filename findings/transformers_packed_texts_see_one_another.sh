#!/usr/bin/env bash
# Guess: texts packed in one row, with position_ids that start anew at 0 at each text, do not see one another: the
#        mask is made from these positions.
# Seen:  it is made so only where the model keeps no cache, and where no attention mask comes with the positions. A
#        model called as it is keeps one (Trainer turns it off in version 5, and did not before), and many collators
#        add a mask of ones. Then the second text reads the first. OPT's texts see one another without a cache, too.
# Versions: transformers 5.24.0 (4.57.6 the same), torch 2.13.0. Source: masking_utils.py, the caller of
#        find_packed_sequence_indices, which asks that the attention mask and the cache are None.
# Why:   the loss falls as ever. A model trained on packed texts, or a perplexity of them, is another one than is meant.
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
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, OPTConfig, OPTForCausalLM

torch.manual_seed(1)
sizes = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
models = [
    LlamaForCausalLM(LlamaConfig(**sizes, intermediate_size=32, initializer_range=0.3)),
    GPT2LMHeadModel(GPT2Config(**sizes, initializer_range=0.3)),
    OPTForCausalLM(OPTConfig(**sizes, ffn_dim=32, init_std=0.3, word_embed_proj_dim=32)),
]
tokens = torch.randint(3, 50, (1, 10))
positions = torch.tensor([[0, 1, 2, 3, 4, 0, 1, 2, 3, 4]])
options = {"as it comes": {}, "with a mask of ones": {"attention_mask": torch.ones_like(tokens), "use_cache": False},
           "use_cache=False": {"use_cache": False}}
for model in models:
    model.eval()
    with torch.no_grad():
        alone = model(tokens[:, 5:]).logits
        packed = {name: model(tokens, position_ids=positions, **more).logits[:, 5:] for name, more in options.items()}
    differences = {name: (logits - alone).abs().max().item() for name, logits in packed.items()}
    print("transformers", transformers.__version__, type(model).__name__, differences)
    assert differences["as it comes"] > 1 and differences["with a mask of ones"] > 1
    assert (differences["use_cache=False"] > 1) == isinstance(model, OPTForCausalLM)
END

#!/usr/bin/env bash
# Guess: where the converter of transformers' models ends without a complaint, the model computes the same scores.
# Seen:  the scaling of Llama 3.1 and 3.2 (rope_type llama3) is on the list of supported ones, and is not applied:
#        scores are those of the same weights without it. Falcon's base (rope_theta) becomes 10,000 where
#        transformers 5 made the folder. The window of Qwen2 is gone. Linear scaling and Llama's base are right.
# Versions: CTranslate2 4.8.5, transformers 5.24.0. Source: python/ctranslate2/converters/transformers.py: neither the
#        factor nor the original length is written for llama3; config.rope_theta, which version 5 has not.
# Why:   short text hides it: the angles differ by more the longer the text is. It looks like a loss by quantisation.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# the build for a CPU where the package index has it: the other one is several GB
"$work/env/bin/pip" -qq install --no-compile "torch==2.13.0+cpu" 2>/dev/null || "$work/env/bin/pip" -qq install "torch==2.13.0"
"$work/env/bin/pip" -qq install --no-compile numpy==2.4.6 transformers==5.24.0 ctranslate2==4.8.5
cd "$work" && env/bin/python - 2>/dev/null <<'END'
import ctranslate2
import numpy
import torch
import transformers as hf
from tokenizers import Tokenizer, models, pre_tokenizers

words = [f"t{number}" for number in range(50)]
tokenizer = Tokenizer(models.WordLevel(dict(zip(words, range(50))), unk_token="t0"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="t0", bos_token="t1", eos_token="t2",
                                       pad_token="t0")
tokens = torch.randint(3, 50, (1, 400), generator=torch.Generator().manual_seed(1))
sizes = {"vocab_size": 50, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 32, "initializer_range": 0.2, "bos_token_id": 1, "eos_token_id": 2}

def build(family, rope, **options):
    torch.manual_seed(1)
    config = getattr(hf, f"{family}Config")(**sizes | options, rope_parameters={"rope_theta": 1e4} | rope)
    return getattr(hf, f"{family}ForCausalLM")(config).eval()

window = {"num_key_value_heads": 2, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 0}
llama3 = {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}
for name, family, rope, options, same in [
    ("linear", "Llama", {"rope_type": "linear", "factor": 4.0}, {}, True),
    ("base", "Llama", {"rope_type": "default", "rope_theta": 5e5}, {}, True),
    ("llama3", "Llama", llama3 | {"rope_theta": 5e5}, {"max_position_embeddings": 131072}, False),
    ("base", "Falcon", {"rope_type": "default", "rope_theta": 5e5}, {"alibi": False}, False),
    ("window", "Qwen2", {"rope_type": "default"}, window, False),
]:
    folder = f"{family}_{name}"
    model = build(family, rope, **options)
    model.save_pretrained(folder), tokenizer.save_pretrained(folder)
    ctranslate2.converters.TransformersConverter(folder).convert(f"{folder}_converted")
    generator = ctranslate2.Generator(f"{folder}_converted")
    scores = torch.tensor(numpy.array(generator.forward_batch([[words[token] for token in tokens[0]]])))
    base = rope.get("rope_theta", 1e4) if family == "Llama" else 1e4
    plain = build(family, {"rope_type": "default", "rope_theta": base}, **options | {"use_sliding_window": False})
    with torch.no_grad():
        difference, from_plain = ((scores - other(tokens).logits).abs().max().item() for other in (model, plain))
    print(ctranslate2.__version__, folder, "difference:", difference, "from the model without it:", from_plain)
    assert (difference < 0.01) == same and (same or from_plain < 0.01)
END

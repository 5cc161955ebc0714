#!/usr/bin/env bash
# Guess: config.rope_theta = 1e6, or rope_theta=1e6 given to AutoConfig.from_pretrained, changes the base of rotary
#        positions, as in every version up to 4.57.
# Seen:  in version 5 the model keeps the old base, and nothing says so: rope_parameters alone counts, which was made
#        before. Only as an argument of the class (LlamaConfig(rope_theta=...)) it still works. GPT-NeoX's rotary_pct,
#        set on a configuration, is ignored alike.
# Versions: transformers 5.24.0 (4.57.6: each changes the model), torch 2.13.0. Source: modeling_rope_utils.py,
#        RotaryEmbeddingConfigMixin.convert_rope_params_to_dict, which runs when a configuration is made.
# Why:   scripts that lengthen the context by a larger base train and evaluate with the old one.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install numpy==2.4.6 transformers==5.24.0
cd "$work" && env/bin/python - 2>messages <<'END'
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, GPTNeoXConfig, GPTNeoXForCausalLM, LlamaConfig

sizes = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
LlamaConfig(**sizes).save_pretrained("llama")
changed = AutoConfig.from_pretrained("llama")
changed.rope_theta = 1e6
configs = {"attribute": changed, "AutoConfig's argument": AutoConfig.from_pretrained("llama", rope_theta=1e6),
           "the class's argument": LlamaConfig(**sizes, rope_theta=1e6)}
for name, config in configs.items():
    frequencies = AutoModelForCausalLM.from_config(config).model.rotary_emb.inv_freq
    base = frequencies[1].item() ** -8
    print("transformers", transformers.__version__, f"{name}: base {base:.0f}, rope_theta", getattr(config, "rope_theta", None))
    assert round(base / 1e4) == (100 if name == "the class's argument" else 1)
config = GPTNeoXConfig(**sizes)
config.rotary_pct = 1.0
turned = 2 * len(GPTNeoXForCausalLM(config).gpt_neox.rotary_emb.inv_freq)
print("GPT-NeoX with rotary_pct = 1.0 turns", turned, "of 16 channels")
assert turned == 4
END
! grep -iE "rope|rotary" "$work/messages"

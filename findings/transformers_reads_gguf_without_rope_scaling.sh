#!/usr/bin/env bash
# Guess: from_pretrained(folder, gguf_file=...) makes the model that the file describes, or says what it leaves out.
# Seen:  a Llama's weights and its base are read. rope.scaling.type and .factor (linear, yarn) are not, nor the tensor
#        rope_freqs.weight, in which Llama 3.1 to 3.3 have their scaling: scores are those of a model without it, and
#        no warning names it.
# Versions: transformers 5.24.0, gguf 0.19.0, accelerate 1.15.0. Source: integrations/ggml.py, GGUF_CONFIG_MAPPING, and
#        modeling_gguf_pytorch_utils.py, which reads rope.scaling for gpt-oss alone.
# Why:   a file moved back from llama.cpp, to fine-tune it or to check its scores, has other positions than trained.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# the build for a CPU where the package index has it: the other one is several GB
"$work/env/bin/pip" -qq install --no-compile "torch==2.13.0+cpu" 2>/dev/null || "$work/env/bin/pip" -qq install "torch==2.13.0"
"$work/env/bin/pip" -qq install --no-compile numpy==2.4.6 transformers==5.24.0 gguf==0.19.0 accelerate==1.15.0
cd "$work" && env/bin/python - 2>messages <<'END'
import gguf
import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
for part in ("self_attn.q_proj attn_q", "self_attn.k_proj attn_k", "self_attn.v_proj attn_v", "self_attn.o_proj attn_output",
             "mlp.gate_proj ffn_gate", "mlp.up_proj ffn_up", "mlp.down_proj ffn_down", "input_layernorm attn_norm",
             "post_attention_layernorm ffn_norm"):
    names[f"model.layers.0.{part.split()[0]}"] = f"blk.0.{part.split()[1]}"

def build(rope):
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=50, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
                         initializer_range=0.3, max_position_embeddings=64, rope_parameters={"rope_theta": 500.0} | rope)
    return LlamaForCausalLM(config).eval()

llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8}
plain = build({"rope_type": "default"})
tokens = torch.randint(3, 50, (1, 30))
for rope in ({"rope_type": "default"}, {"rope_type": "linear", "factor": 4.0}, llama3):
    model, writer = build(rope), gguf.GGUFWriter("model.gguf", "llama")
    for size, value in {"block_count": 1, "context_length": 64, "embedding_length": 32, "feed_forward_length": 32,
                        "head_count": 2, "head_count_kv": 2, "vocab_size": 50, "rope_dimension_count": 16,
                        "rope_freq_base": 500.0, "layer_norm_rms_eps": 1e-6}.items():
        getattr(writer, f"add_{size}")(value)
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR), writer.add_rope_scaling_factor(4.0)
    for name, weight in model.state_dict().items():
        if "q_proj" in name or "k_proj" in name:  # llama.cpp turns neighbouring channels
            weight = weight.view(2, 2, 8, 32).transpose(1, 2).reshape(32, 32)
        writer.add_tensor(names[name.removesuffix(".weight")] + ".weight", weight.numpy())
    if rope is llama3:
        writer.add_tensor("rope_freqs.weight", (plain.model.rotary_emb.inv_freq / model.model.rotary_emb.inv_freq).numpy())
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
    loaded = LlamaForCausalLM.from_pretrained(".", gguf_file="model.gguf")
    with torch.no_grad():
        difference, from_plain = ((loaded(tokens).logits - other(tokens).logits).abs().max().item() for other in (model, plain))
    print("transformers", transformers.__version__, rope["rope_type"], "difference:", difference, "from plain:", from_plain)
    assert from_plain < 1e-4 and (difference > 1) == (rope["rope_type"] != "default")
END
! grep -i "rope" "$work/messages"

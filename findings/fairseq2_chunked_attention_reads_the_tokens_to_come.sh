#!/usr/bin/env bash
# Guess: fairseq2's ChunkedAttentionBias, of Llama 4's local layers, lets a token see itself and those before it in its
#        chunk; a text that fits into one chunk is attended to as by CausalAttentionBias.
# Seen:  the bias is 1 where a token may look and 0 where it may not, and is added to the scores like the others', which
#        are 0 and minus infinity. So every token sees the whole text: those to come, and other chunks. What may be seen
#        weighs e times as much. A step with the cache is right, and so differs from training.
# Versions: fairseq2 0.8.1, torch 2.13.0; its whole models of Llama 4 with torch 2.9.1, which it asks for, do the same.
#        Source: models/transformer/attention_bias.py, ChunkedAttentionBias.create_bias_tensor, which has no log_();
#        models/llama4/factory.py, create_self_attention.
# Why:   a model that is trained so reads the answer, with a good loss, and cannot write; scores and perplexities of a
#        right checkpoint are wrong. A language model that changes when its last token does shows it.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install numpy==2.4.6 safetensors==0.8.0 huggingface-hub==0.36.2 importlib-resources==7.1.0 ruamel.yaml==0.19.1
# without what reads data: it needs torch for a GPU
install --no-deps fairseq2==0.8.1
"$work/env/bin/python" - <<'END'
import sys
from types import ModuleType

import torch

sys.modules["fairseq2n"] = ModuleType("fairseq2n")  # what reads data
import fairseq2
from fairseq2.models.transformer.attention_bias import AttentionBiasCache, CausalAttentionBias, ChunkedAttentionBias
from fairseq2.models.transformer.sdpa.naive import NaiveSDPA
from fairseq2.models.transformer.sdpa.torch import TorchSDPA
from fairseq2.nn import BatchLayout

print("fairseq2", fairseq2.__version__, "torch", torch.__version__)
print("bias of four tokens in chunks of two:", ChunkedAttentionBias(2).create_bias_tensor(4, 4, "cpu", torch.float32))
torch.manual_seed(1)
query, key, value = torch.randn(3, 1, 8, 2, 16)
other = value.clone()
other[:, -1] += 10  # another last token
layout = BatchLayout.of(query)


def attend(attention, values):
    return attention(query, layout, key, layout, values, AttentionBiasCache())[0]


for kind in (TorchSDPA, NaiveSDPA):
    for bias in (CausalAttentionBias(), ChunkedAttentionBias(8), ChunkedAttentionBias(2)):
        change = (attend(kind(bias), value) - attend(kind(bias), other)).abs().amax((0, 2, 3))
        print(kind.__name__, bias, "change of each token by the last one:", [round(x, 3) for x in change.tolist()])
        assert change[-1] > 0.1 and (change[:-1] > 0.1).all() == isinstance(bias, ChunkedAttentionBias)
    causal, chunk = (attend(kind(bias), value) for bias in (CausalAttentionBias(), ChunkedAttentionBias(8)))
    assert not torch.allclose(causal, chunk, atol=0.1)
END

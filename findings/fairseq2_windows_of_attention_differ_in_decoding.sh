#!/usr/bin/env bash
# Guess: in decoding, with the cache, a token of a layer with a window of w tokens sees the w last ones, as in training,
#        whether a prompt is read at once or in pieces (prefill_chunk_size, 512 by default).
# Seen:  Mistral's layers keep the keys of w tokens, whatever is read: of a piece of n tokens the first one sees w - n + 1,
#        and only the last one w. Gemma 3n's layers keep all, and a step of one token is given no window.
# Versions: fairseq2 0.8.1, torch 2.13.0; whole models of Mistral and Gemma 3n with torch 2.9.1, which it asks for, do so.
#        Source: models/transformer/multihead_attention.py, LocalAttentionState; attention_bias.py,
#        maybe_get_attention_bias_tensor; models/gemma3n/factory.py, which gives no state_factory.
# Why:   texts beyond the window, which the window is for, are continued by another model than was trained, and prompts
#        are scored so. prefill_chunk_size=None reads a prompt as in training.
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
from fairseq2.gang import create_fake_gangs
from fairseq2.models.transformer import multihead_attention as layers
from fairseq2.models.transformer.attention_bias import AttentionBiasCache, CausalAttentionBias
from fairseq2.models.transformer.sdpa.torch import TorchSDPA
from fairseq2.nn import BatchLayout, IncrementalStateBag

print("fairseq2", fairseq2.__version__, "torch", torch.__version__)
text, cpu = torch.randn(1, 12, 32), torch.device("cpu")


def attend(layer, pieces):
    """The layer's output for the text that is read in pieces of so many tokens."""
    state, outputs = IncrementalStateBag(13), []
    for piece in text.split(pieces, dim=1):
        layout = BatchLayout.of(piece)
        outputs.append(layer(piece, layout, piece, layout, piece, AttentionBiasCache(), state_bag=state))
        state.increment_step_nr(piece.size(1))
    return torch.cat(outputs, dim=1)


for cache, right in ((layers.LocalAttentionStateFactory(4), {1: 12, 4: 6}), (None, {1: 4, 4: 4})):
    attention = TorchSDPA(CausalAttentionBias(attn_window_len=4))
    options = {"gangs": create_fake_gangs(cpu), "device": cpu, "state_factory": cache}
    layer = layers.StandardMultiheadAttention(32, 2, attention, **options).eval()
    with torch.no_grad():
        for size in (1, 4):
            off = (attend(layer, [12]) - attend(layer, [size] * (12 // size))).abs().amax((0, 2))
            print("cache:", cache, "pieces of", size, "difference:", [round(x, 3) for x in off.tolist()])
            assert (off < 1e-5).sum() == right[size] and (off[:4] < 1e-5).all()
END

#!/usr/bin/env bash
# Guess: nn.TransformerEncoder adds a float mask to the attention scores, as its page says, in
#        training and in evaluation alike: with dropout 0 both give the same output.
# Seen:  under no_grad in evaluation the layer's fused path takes over, and a bias that falls with the
#        distance (ALiBi's) is no longer added: outputs differ by more than 1. With gradients they are
#        equal.
# Versions: torch 2.13.0. Source: torch/nn/modules/transformer.py, TransformerEncoderLayer.forward,
#        which calls torch._transformer_encoder_layer_fwd.
# Why:   a model with relative positions as a bias trains well and is validated as another model.
#        torch.backends.mha.set_fastpath_enabled(False) keeps the plain path.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install numpy==2.4.6
"$work/env/bin/python" - <<'END'
import torch

torch.manual_seed(1)
layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
distance = (torch.arange(7)[:, None] - torch.arange(7)).abs()
tokens, bias = torch.randn(3, 7, 16), -0.5 * distance.float()
trained = encoder(tokens, mask=bias)
encoder.eval()
with_gradient = (encoder(tokens, mask=bias) - trained).abs().max().item()
with torch.no_grad():
    fused = (encoder(tokens, mask=bias) - trained).abs().max().item()
    torch.backends.mha.set_fastpath_enabled(False)
    plain = (encoder(tokens, mask=bias) - trained).abs().max().item()
print("torch", torch.__version__, "evaluation less training:", with_gradient, fused, plain)
assert with_gradient < 1e-5 and plain < 1e-5 and fused > 0.1
END

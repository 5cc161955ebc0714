#!/usr/bin/env bash
# Guess: in mixed precision positions are computed in float32 and rounded at the end, so that the sinusoids of a
#        position are off by at most 0.004.
# Seen:  keras-hub's SinePositionEncoding casts the positions themselves to bfloat16, which has no odd numbers beyond
#        256. From there on neighbours have equal sinusoids, beyond 512 up to five in a row. Below 256 they are off
#        by 0.24, with mixed_float16 by 0.04. RotaryEmbedding of the same package computes its angles in float32.
# Versions: keras-hub 0.32.0, keras 3.15.1, torch 2.13.0. Source: layers/modeling/sine_position_encoding.py, call.
# Why:   mixed_bfloat16 is how one trains on a TPU or a recent GPU. Models of long text cannot tell the order of near
#        tokens there, and sinusoids lose a comparison with rotary positions for that reason alone.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install numpy==2.4.6 keras==3.15.1 regex==2026.11.19 tokenizers==0.23.3 safetensors==0.8.0
# it requires tensorflow, which nothing here needs
install --no-deps keras-hub==0.32.0
KERAS_HOME=$work KERAS_BACKEND=torch CUDA_VISIBLE_DEVICES="" "$work/env/bin/python" - <<'END'
import keras
import keras_hub
import numpy as np

LENGTH, WIDTH = 600, 16
frequencies = 10000.0 ** (-np.arange(0, WIDTH, 2) / WIDTH)
angles = np.arange(LENGTH)[:, None] * frequencies
exact = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(LENGTH, WIDTH)


def sinusoids(precision):
    layer = keras_hub.layers.SinePositionEncoding(dtype=precision)
    values = layer(np.zeros((1, LENGTH, WIDTH), "float32"))
    return keras.ops.convert_to_numpy(keras.ops.cast(values, "float32"))[0]


print("keras-hub", keras_hub.__version__, "keras", keras.__version__)
for precision, error in (("float32", 1e-4), ("mixed_float16", 0.04), ("mixed_bfloat16", 0.24)):
    values = sinusoids(precision)
    equal = (values[1:] == values[:-1]).all(-1).nonzero()[0]
    off = np.abs(values - exact)[:256].max()
    print(f"{precision}: off by {off:.4f} below 256, {len(equal)} of {LENGTH} equal to the next: {equal[:6]} ...")
    assert off < 1e-4 if precision == "float32" else error < off < error + 0.01
    assert len(equal) > 100 if precision == "mixed_bfloat16" else len(equal) == 0
    assert precision != "mixed_bfloat16" or equal[0] == 256
END

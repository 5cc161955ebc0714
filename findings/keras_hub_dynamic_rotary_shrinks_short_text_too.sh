#!/usr/bin/env bash
# Guess: rope_type="dynamic" of keras-hub's RotaryEmbedding is what transformers names so: plain angles up to the
#        trained length, a larger base beyond, so that the fastest frequency is never changed.
# Seen:  all angles are divided by one number, factor^(d/(d-2)), at every length: 4.88 with a factor of 4 and d = 16.
#        That is "linear" with a larger factor. No length is asked for or looked at. A type that does not exist
#        ("llama3", "longrope") is taken, and scales nothing.
# Versions: keras-hub 0.32.0, keras 3.15.1, torch 2.13.0. Source: layers/modeling/rotary_embedding.py,
#        _get_inverse_freq.
# Why:   a trained model that is to read longer text "without training" has other positions in short text, too:
#        it looks as if dynamic scaling did harm. The same name in two libraries is two models.
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

WIDTH, FACTOR = 16, 4.0
plain = 10000.0 ** (-np.arange(0, WIDTH, 2) / WIDTH)


def ratio(kind, length):
    """The plain angles between neighbours in a text of a length, divided by those of a type."""
    ones = np.zeros((1, length, WIDTH), "float32")
    ones[..., : WIDTH // 2] = 1
    layer = keras_hub.layers.RotaryEmbedding(rope_type=kind, scaling_factor=FACTOR)
    turned = keras.ops.convert_to_numpy(layer(ones))[0, 1]
    return plain / np.arctan2(turned[WIDTH // 2 :], turned[: WIDTH // 2])


print("keras-hub", keras_hub.__version__, "keras", keras.__version__)
for kind, divisor in (("linear", FACTOR), ("dynamic", FACTOR ** (16 / 14)), ("llama3", 1), ("longrope", 1)):
    for length in (2, 5000):
        divided = ratio(kind, length)
        print(f"{kind}, {length} tokens: angles divided by {divided.min():.4f} to {divided.max():.4f}")
        assert np.allclose(divided, divisor, rtol=1e-5)
END

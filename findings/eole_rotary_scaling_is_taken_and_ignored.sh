#!/usr/bin/env bash
# Guess: rope_config's scaling_type "linear" or "yarn" scales rotary positions, or is refused; "dynamic" depends on the
#        text's length, as in transformers.
# Seen:  linear, yarn and longrope are taken (the converters of Hugging Face's folders and of GGUF write these names),
#        and all frequencies are those without scaling. dynamic enlarges the base by the model's longest length over the
#        original one, for every text, short ones too. llama3 is right.
# Versions: eole 0.6.4, torch 2.13.0. Source: modules/rope.py, RotaryPosition; bin/convert/convert_HF.py.
# Why:   a converted or trained model with a longer context has other positions than its configuration says.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
# two modules alone are imported, which need none of what else eole depends on
install numpy==2.4.6 pydantic==2.14.4 PyYAML==6.0.4
install --no-deps eole==0.6.4
"$work/env/bin/python" -W ignore - 2>"$work/messages" <<'END'
import importlib.metadata
import types

from eole.config.models import RotaryPositionConfig
from eole.constants import PositionEncodingType
from eole.modules.rope import RotaryPosition


def frequencies(**options):
    rope = RotaryPositionConfig(original_max_position_embeddings=8192, **options)
    model = types.SimpleNamespace(dim_per_head=64, rope_config=rope, max_position_embeddings=32768,
                                  position_encoding_type=PositionEncodingType.Rotary)
    return RotaryPosition(model).inv_freq


plain = frequencies()
for name, slowest in {"linear": 1, "yarn": 1, "longrope": 1, "dynamic": 0.25, "llama3": 0.25}.items():
    ratio = frequencies(scaling_type=name, scaling_factor=4.0) / plain
    print("eole", importlib.metadata.version("eole"), name, "factor 4, frequencies to those without scaling:",
          ratio[[0, 15, 31]].tolist())
    assert abs(ratio[31] - slowest) < 1e-4 and (slowest < 1 or ratio.eq(1).all())
END
! grep -iE "scaling|yarn|linear" "$work/messages"

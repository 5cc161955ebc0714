#!/usr/bin/env bash
# Guess: queries and keys of a bfloat16 region (autocast, as in most trainings) are turned by exact angles, or by angles
#        that are rounded to 0.4 %; and what float32 computes does not depend on what was computed before.
# Seen:  positions are counted in the precision of the queries. bfloat16 has no odd numbers from 257 on, and every eighth
#        alone from 1,025 on, so neighbours are turned alike: of the last eight keys before position 1,000 three have
#        different scores, not eight. The table of these angles is kept: float32 has them, too, until a longer text comes.
#        x-transformers under autocast counts in float32; a model moved by .to(torch.bfloat16) rounds as well.
# Versions: rotary-embedding-torch 0.9.1, x-transformers 2.31.10, torch 2.13.0. Source: rotary_embedding_torch.py,
#        rotate_queries_or_keys and forward (cached_freqs); x_transformers.py, RotaryEmbedding.forward (type_as).
# Why:   the order of near words is lost in long text, training and validation alike, and the loss shows no fault. In a
#        comparison of encodings it is laid to the rotary positions.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install numpy==2.4.6 rotary-embedding-torch==0.9.1 x-transformers==2.31.10
"$work/env/bin/python" - <<'END'
import importlib.metadata

import torch
from rotary_embedding_torch import RotaryEmbedding
from x_transformers.x_transformers import RotaryEmbedding as Angles

torch.manual_seed(1)
query, key = torch.randn(2, 1, 64)
layer = torch.nn.Linear(64, 64, bias=False)  # whose outputs autocast makes bfloat16
torch.nn.init.eye_(layer.weight)


def scores(rotary, autocast):
    """The query's scores at position 1,000 for one key at positions 993 to 1,000."""
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        queries, keys = (layer(x).expand(1, 1, 1001, 64) for x in (query, key))
        queries, keys = (rotary.rotate_queries_or_keys(x).float() for x in (queries, keys))
    return [round(score, 2) for score in (keys[0, 0, 993:] @ queries[0, 0, 1000]).tolist()]


for package in ("rotary-embedding-torch", "x-transformers", "torch"):
    print(package, importlib.metadata.version(package))
exact = scores(RotaryEmbedding(64), autocast=False)
rotary = RotaryEmbedding(64)
rounded, later = scores(rotary, autocast=True), scores(rotary, autocast=False)
print("float32:", exact, "under autocast:", rounded, "float32 after it:", later, sep="\n")
assert len(set(exact)) == 8 and len(set(rounded)) == 3 and len(set(later)) == 3
with torch.autocast("cpu", torch.bfloat16):
    angles = Angles(32).forward_from_seq_len(1001)[0][0, 993:, 0].tolist()
moved = Angles(32).to(torch.bfloat16).forward_from_seq_len(1001)[0][0, 993:, 0].tolist()
print("x-transformers, first angles under autocast:", angles, "of a moved model:", moved)
assert len(set(angles)) == 8 and len(set(moved)) == 3
END

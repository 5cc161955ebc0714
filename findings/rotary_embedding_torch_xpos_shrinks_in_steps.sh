#!/usr/bin/env bash
# Guess: rotate_queries_with_cached_keys gives the last query the scores that rotate_queries_and_keys gives it, with
#        use_xpos too: a branch of its own handles it.
# Seen:  without xPos they are equal. With it, queries are scaled around the middle of the queries alone (one, in a step)
#        and keys around the middle of all keys. Scores shrink the more keys there are: at 4,096 the first channels have
#        less than a hundredth of theirs.
# Versions: rotary-embedding-torch 0.9.1, torch 2.13.0. Source: rotary_embedding_torch.py, get_scale.
# Why:   a model trained with xPos for long text computes other scores when it generates, the more the longer it is.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install numpy==2.4.6 rotary-embedding-torch==0.9.1
"$work/env/bin/python" - <<'END'
import importlib.metadata

import torch
from rotary_embedding_torch import RotaryEmbedding

print("rotary-embedding-torch", importlib.metadata.version("rotary-embedding-torch"))
torch.manual_seed(1)
for length, shrunk in ((16, False), (256, True), (4096, True)):
    queries, keys = torch.randn(2, 1, 1, length, 64)
    full_queries, full_keys = RotaryEmbedding(64, use_xpos=True).rotate_queries_and_keys(queries, keys)
    query, step_keys = RotaryEmbedding(64, use_xpos=True).rotate_queries_with_cached_keys(queries[:, :, -1:], keys)
    assert torch.allclose(step_keys, full_keys, rtol=1e-3)
    ratio = (query / full_queries[:, :, -1:])[0, 0, 0]
    plain = RotaryEmbedding(64)
    one, _ = plain.rotate_queries_with_cached_keys(queries[:, :, -1:], keys)
    without = (one - plain.rotate_queries_or_keys(queries)[:, :, -1:]).abs().max().item()
    print(f"{length} keys: the query of a step is {ratio.min().item():.4f} to {ratio.max().item():.4f} times that of the"
          f" full pass; without xPos they differ by {without}")
    assert without < 1e-4 and (ratio.min() < 0.8) == shrunk
END

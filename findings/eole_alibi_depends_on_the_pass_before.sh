#!/usr/bin/env bash
# Guess: ALiBi adds the same bias to the same scores, whatever was computed before.
# Seen:  the module keeps the bias of its longest pass and cuts it from the first query on. After a
#        full pass of 8 tokens, a step at position 4 gets the row of query 0: distances grow towards
#        the newest token. After a step, all queries of a shorter full pass get that step's row.
# Versions: eole 0.6.4, OpenNMT-py 3.5.1, torch 2.13.0. Source: modules/alibi_position_bias.py,
#        AlibiPositionalBias.forward.
# Why:   scoring by decoding within a training (full passes, then steps, then full passes) computes
#        another model than was trained. A comparison of encodings there may be wrong for ALiBi.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
# the module alone is loaded, which needs none of what these depend on
install --no-deps eole==0.6.4 OpenNMT-py==3.5.1 numpy==2.4.6
"$work/env/bin/python" - <<'END'
import importlib.util
import sysconfig

import torch

for package in ("eole", "onmt"):
    path = f"{sysconfig.get_path('purelib')}/{package}/modules/alibi_position_bias.py"
    spec = importlib.util.spec_from_file_location(package, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def bias(*shapes):
        """The bias of the last of some passes of queries by keys, less that of its last key."""
        alibi = module.AlibiPositionalBias(2)
        added = [alibi(torch.zeros(1, 2, *shape)) for shape in shapes][-1][0, 0]
        return added - added[:, -1:]

    step, later_step = bias((1, 5)), bias((8, 8), (1, 5))
    full, later_full = bias((5, 5)), bias((1, 8), (5, 5))
    print(package, "step:", step.tolist(), "after a full pass:", later_step.tolist())
    print(package, "full pass after a step, difference:", (full - later_full).abs().max().item())
    assert step[0, 0] < 0 < later_step[0, 0]
    assert (full - later_full).abs().max() > 0.1
END

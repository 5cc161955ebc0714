#!/usr/bin/env bash
# Guess: two systems with the same outputs are not significantly different: p is near 1.
# Seen:  p = 0.001, the smallest that 1,000 draws can give, by the paired bootstrap and by paired
#        approximate randomization. Draws count whose difference is larger than the observed one,
#        strictly; the observed one is 0, and so is every draw's.
# Versions: sacrebleu 2.6.0. Source: sacrebleu/significance.py, _compute_p_value.
# Why:   a checkpoint compared with its copy, or two decodings that agree, get a star in a table.
#        Who prints these p-values must look for equal scores first.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" -qq install sacrebleu==2.6.0
"$work/env/bin/python" - <<'END'
import random

import sacrebleu
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

random.seed(1)
references = [" ".join(random.choices("abcdefgh", k=12)) for _ in range(50)]
outputs = [line.replace("a", "x") for line in references]
for test in "bs", "ar":
    metrics = {"BLEU": BLEU(references=[references])}
    systems = [("baseline", outputs), ("the same", list(outputs))]
    baseline, copy = PairedTest(systems, metrics, None, test, 1000)()[1]["BLEU"]
    print("sacrebleu", sacrebleu.__version__, test, baseline.score, copy.score, copy.p_value)
    assert baseline.score == copy.score and copy.p_value < 0.01
END

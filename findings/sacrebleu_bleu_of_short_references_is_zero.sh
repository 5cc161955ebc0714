#!/usr/bin/env bash
# Guess: outputs that equal their references have 100 BLEU.
# Seen:  0.00, where no reference has four tokens, with all n-gram precisions that are defined at 100.
#        The precision of 4-grams is 0 of 0, and smoothing leaves it 0. With effective_order, which
#        sentence_bleu has and corpus_bleu has not, it is 100.
# Versions: sacrebleu 2.6.0. Source: sacrebleu/metrics/bleu.py, compute_bleu.
# Why:   a test set of titles, menu entries or short questions, or a range of lengths of one, looks
#        like total failure. BLEU is undefined there: chrF is not.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" -qq install sacrebleu==2.6.0
"$work/env/bin/python" - <<'END'
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF

lines = ["Guten Tag", "Danke sehr", "Bis bald"]
figures = {
    "BLEU": BLEU().corpus_score(lines, [lines]).score,
    "BLEU, effective order": BLEU(effective_order=True).corpus_score(lines, [lines]).score,
    "chrF": CHRF().corpus_score(lines, [lines]).score,
}
print("sacrebleu", sacrebleu.__version__, {name: round(x, 2) for name, x in figures.items()})
assert figures["BLEU"] == 0 and min(list(figures.values())[1:]) > 99.99
END

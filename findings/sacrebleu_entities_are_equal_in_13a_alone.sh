#!/usr/bin/env bash
# Guess: a reference with HTML entities (&quot;, &amp;) costs an output with plain characters points
#        in every metric, or in none.
# Seen:  BLEU with the default tokenizer 13a decodes four of them and is 100.00; BLEU with the
#        tokenizer intl (17.63) and chrF (44.33) take them as they stand.
# Versions: sacrebleu 2.6.0. Source: sacrebleu/tokenizers/tokenizer_13a.py.
# Why:   Moses' escaped text and web crawls have them. A perfect BLEU beside a poor chrF looks like a
#        fault of the metric; it is one of the references.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" -qq install sacrebleu==2.6.0
"$work/env/bin/python" - <<'END'
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF

output = ['say "yes" & go home now please']
reference = ["say &quot;yes&quot; &amp; go home now please"]
figures = {
    "BLEU 13a": BLEU().corpus_score(output, [reference]).score,
    "BLEU intl": BLEU(tokenize="intl").corpus_score(output, [reference]).score,
    "chrF": CHRF().corpus_score(output, [reference]).score,
}
print("sacrebleu", sacrebleu.__version__, {name: round(x, 2) for name, x in figures.items()})
assert figures["BLEU 13a"] > 99.99 and max(figures["BLEU intl"], figures["chrF"]) < 50
END

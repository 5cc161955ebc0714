#!/usr/bin/env bash
# Guess: TER with asian_support (--ter-asian-support) counts Chinese characters as words.
# Seen:  alone it changes nothing: a line of eight characters with one wrong has TER 100, as it is one
#        word. Only together with normalized (--ter-normalized) it splits: 12.5, one edit of eight.
# Versions: sacrebleu 2.6.0. Source: sacrebleu/tokenizers/tokenizer_ter.py: the rules for Asian text
#        are called from within the branch of `normalized`.
# Why:   TER of Chinese, Japanese or Thai output stands near 100 beside a BLEU of 40, whatever the
#        option that names these languages says.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" -qq install sacrebleu==2.6.0
"$work/env/bin/python" - <<'END'
import sacrebleu
from sacrebleu.metrics import TER

output, reference = ["我今天去学校上课"], ["我今天去学校上学"]
figures = []
for normalized in False, True:
    for asian in False, True:
        ter = TER(normalized=normalized, asian_support=asian)
        figures.append(ter.corpus_score(output, [reference]).score)
        print("sacrebleu", sacrebleu.__version__, ter.get_signature(), figures[-1])
assert figures == [100, 100, 100, 12.5]
END

#!/usr/bin/env bash
# Guess: the Moses tokenizer leaves the zero-width non-joiner (U+200C) inside a word, as Persian
#        spelling has it in every other verb and plural.
# Seen:  it is a token of its own, and the word becomes three: two words are six tokens.
# Versions: sacremoses 0.2.0. Source: sacremoses/tokenize.py; U+200C is in none of its classes of letters.
# Why:   lengths "in words", tokenised BLEU and anything aligned with spaces count pieces of words: a
#        tokenised BLEU of Persian is far above sacreBLEU's own for the same output.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" -qq install sacremoses==0.2.0
"$work/env/bin/python" - <<'END'
from importlib.metadata import version

from sacremoses import MosesTokenizer

text = "می\u200cخواهم کتاب\u200cها"  # I want; books
tokens = MosesTokenizer(lang="fa").tokenize(text, escape=False)
print("sacremoses", version("sacremoses"), len(text.split()), "words,", len(tokens), "tokens:", tokens)
assert len(tokens) == 6 and tokens.count("\u200c") == 2
END

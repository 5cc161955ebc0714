#!/usr/bin/env bash
# Guess: the library tokenizers, given the rules of a SentencePiece model (its Precompiled normaliser),
#        normalises text as SentencePiece does.
# Seen:  not text whose letters are decomposed (NFD), as some file systems and PDF readers give it.
#        SentencePiece composes Korean syllables, Japanese letters and marks, Pinyin with two marks;
#        tokenizers leaves Korean and Japanese apart and drops the second mark of Pinyin.
# Versions: sentencepiece 0.2.3, tokenizers 0.23.3. Source: huggingface/tokenizers, issue 2116.
# Why:   fast tokenizers of XLM-R, T5, mBART, NLLB cut such text into other pieces than those that the
#        model was trained with, mostly unknown ones. Compose the text first (NFC).
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -qq install sentencepiece==0.2.3 tokenizers==0.23.3 protobuf==7.36.1
"$work/venv/bin/python" - <<'END'
import io
import unicodedata
from pydoc_data import topics

import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2

print(f"sentencepiece {sentencepiece.__version__}, tokenizers {tokenizers.__version__}")
lines = [line for topic in topics.topics.values() for line in topic.split("\n")]
file = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(lines), model_writer=file, vocab_size=1000, minloglevel=2)
model = sentencepiece.SentencePieceProcessor(model_proto=file.getvalue())
proto = sentencepiece_model_pb2.ModelProto.FromString(file.getvalue())
rules = tokenizers.normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
differences = []
for text in ("café", "한국어", "ガラス", "lǜ"):
    decomposed = unicodedata.normalize("NFD", text)
    here = model.normalize(decomposed).replace("\u2581", "")  # it marks where words begin
    there = rules.normalize_str(decomposed)
    assert here == text
    differences.append(there != here)
    print(f"{text}: SentencePiece {ascii(here)}, tokenizers {ascii(there)}")
    assert rules.normalize_str(unicodedata.normalize("NFC", decomposed)) == text
assert differences == [False, True, True, True], differences
END

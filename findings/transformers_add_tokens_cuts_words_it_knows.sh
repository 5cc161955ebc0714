#!/usr/bin/env bash
# Guess: add_tokens of a word that the vocabulary has already adds nothing, returns 0, and changes no text. A word of
#        one's own in a SentencePiece vocabulary comes back as it was when it is decoded.
# Seen:  it returns 1, though the length is the same, and from then on every longer word that holds it is cut there.
#        BERT's house ##s becomes house [UNK], as the rest is no continuation any more. In T5 and XLM-R the rest begins
#        a word: "houses" is decoded as "house s", and "a house" as "ahouse".
# Versions: transformers 5.24.0, tokenizers 0.23.3. 4.57.6 cuts alike, but its older classes return 0, and it decodes
#        "a house". Source: tokenization_utils_tokenizers.py (_add_tokens), tokenizers' added_vocabulary.rs.
# Why:   lists of terms are added so for a domain or a new language. Half of a list is often known already, and each
#        word of it changes the tokens of others that the model was trained on. Generated text loses its blanks.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
install transformers==5.24.0 tokenizers==0.23.3 sentencepiece==0.2.3 protobuf==7.36.2
cd "$work" && HF_HUB_OFFLINE=1 env/bin/python - 2>messages <<'END_OF_PYTHON'
import os
import pathlib

import sentencepiece
import tokenizers
import transformers

print("transformers", transformers.__version__, "tokenizers", tokenizers.__version__)
line = "a house houses warehouse lighthouse farmhouse clubhouse the of\n"
pathlib.Path("text").write_text(line * 100 + "playhouse outhouse\n" * 100)
types = "[PAD] [UNK] [CLS] [SEP] [MASK] a the house ##s ware ##house".split()
for name, file in (("T5", "spiece.model"), ("XLMRoberta", "sentencepiece.bpe.model"), ("Bert", "vocab.txt")):
    os.mkdir(name)
    if name == "Bert":
        pathlib.Path(name, file).write_text("\n".join(types) + "\n")
    else:
        ids = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1} if name == "T5" else {}
        sentencepiece.SentencePieceTrainer.train(
            input="text", model_prefix="m", vocab_size=46, max_sentencepiece_length=6, minloglevel=2,
            hard_vocab_limit=False, **ids)  # fmt: skip
        os.rename("m.model", f"{name}/{file}")
    tokenizer = getattr(transformers, f"{name}Tokenizer").from_pretrained(name)
    word = "house"
    assert word in tokenizer.get_vocab(), name
    text = "a house the houses warehouse"
    before, length = tokenizer.tokenize(text), len(tokenizer)
    returned = tokenizer.add_tokens([word])
    after = tokenizer.tokenize(text)
    decoded = tokenizer.decode(tokenizer(text).input_ids, skip_special_tokens=True)
    print(f"{name}: returned {returned}, length {length}, then {len(tokenizer)}")
    print(" ", before, "\n ", after, repr(decoded))
    assert returned == 1 and len(tokenizer) == length and before != after
    assert ("[UNK]" in after) if name == "Bert" else ("ahouse" in decoded and "house s" in decoded)
END_OF_PYTHON

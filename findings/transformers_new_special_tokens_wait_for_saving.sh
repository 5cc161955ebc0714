#!/usr/bin/env bash
# Guess: after add_special_tokens({"eos_token": "<end>"}) a tokenizer ends texts with <end>, or goes on with </s>; a
#        copy that is saved and loaded does the same.
# Seen:  T5, XLM-R, BERT and RoBERTa go on with their old tokens, though eos_token_id and sep_token_id are the new
#        ones, and the saved and loaded copy writes the new ones. It is so with cls_token, too. NLLB and mBART-50
#        change at once.
# Versions: transformers 5.24.0, tokenizers 0.23.3. In 4.57.6 the saved copies of these four keep the old tokens; there
#        LlamaTokenizerFast with add_eos_token changes by saving. Source: each tokenizer's __init__ makes the template
#        (post_processor), and setting a token does not make it again.
# Why:   a model is trained with the one and served with the other: every text it reads there ends with a token that it
#        has never seen, whose row is as it was drawn. A check in the training script sees nothing.
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
import shutil

import sentencepiece
import tokenizers
import transformers

print("transformers", transformers.__version__, "tokenizers", tokenizers.__version__)
pathlib.Path("text").write_text("the dogs ran home\nthe cat sat there\n" * 200)
pieces = {"input": "text", "model_prefix": "m", "vocab_size": 40, "minloglevel": 2, "hard_vocab_limit": False}
sentencepiece.SentencePieceTrainer.train(**pieces)
types = "[PAD] [UNK] [CLS] [SEP] [MASK] the dogs ran home cat sat there".split()
byte_level = tokenizers.ByteLevelBPETokenizer()
byte_level.train(["text"], vocab_size=300, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
for name, changed in [("T5", True), ("XLMRoberta", True), ("Bert", True), ("Roberta", True), ("MBart50", False)]:
    os.mkdir(name)
    if name == "Roberta":
        byte_level.save_model(name)
    elif name == "Bert":
        pathlib.Path(name, "vocab.txt").write_text("\n".join(types) + "\n")
    else:
        shutil.copy("m.model", f"{name}/{'spiece.model' if name == 'T5' else 'sentencepiece.bpe.model'}")
    load = getattr(transformers, f"{name}Tokenizer").from_pretrained
    tokenizer = load(name)
    old = tokenizer.convert_ids_to_tokens(tokenizer("the dogs").input_ids)[-1]
    tokenizer.add_special_tokens({"eos_token": "<end>", "sep_token": "<end>"})
    tokenizer.save_pretrained(f"{name}-saved")
    added, saved = (it.convert_ids_to_tokens(it("the dogs").input_ids)[-1] for it in (tokenizer, load(f"{name}-saved")))
    number = tokenizer.convert_tokens_to_ids("<end>")
    print(f"{name}: texts end with {old}, after adding with {added}, saved and loaded with {saved};",
          f"eos_token_id {tokenizer.eos_token_id}, sep_token_id {tokenizer.sep_token_id}, <end> is {number}")
    assert saved == "<end>" and added == (old if changed else "<end>") and tokenizer.eos_token_id == number
END_OF_PYTHON

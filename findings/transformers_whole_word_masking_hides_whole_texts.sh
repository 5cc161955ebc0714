#!/usr/bin/env bash
# Guess: DataCollatorForLanguageModeling with whole_word_mask=True hides 15 % of the words of a text; in Chinese, which
#        BERT cuts into characters, characters or segmented words.
# Seen:  a word ends where the next token's offset does not follow at once. Chinese has no such place, so a text is
#        hidden as a whole or not at all. The same holds for English in the tokenizers of DeBERTa-v2/v3, BigBird and
#        RemBERT, whose offsets begin at the blank. Elsewhere a word takes its comma and full stop along, and
#        "new-york" is one. On average 15 % are hidden, so the loss looks plausible.
# Versions: transformers 5.24.0 and 4.57.6, tokenizers 0.23.3. Source: data/data_collator.py
#        (_calc_word_ids_and_prob_mask).
# Why:   most texts of a batch then have no target, and the others nothing to tell it from. Chinese, Japanese and Thai
#        are among the texts that whole words are masked for.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install \
    numpy==2.4.6 transformers==5.24.0 tokenizers==0.23.3 sentencepiece==0.2.3 protobuf==7.36.2
cd "$work" && HF_HUB_OFFLINE=1 env/bin/python - 2>messages <<'END_OF_PYTHON'
import os
import pathlib

import sentencepiece
import torch
import transformers
from transformers import BertTokenizer, BigBirdTokenizer, DataCollatorForLanguageModeling, DebertaV2Tokenizer

print("transformers", transformers.__version__, "torch", torch.__version__)
chinese, english = "今天天气很好我们去公园吧", "dogs, of new york ran home"
types = "[PAD] [UNK] [CLS] [SEP] [MASK] the dog ##s , of new york ran home".split() + list(dict.fromkeys(chinese))
os.mkdir("bert")
pathlib.Path("bert/vocab.txt").write_text("\n".join(types) + "\n", encoding="utf-8")
pathlib.Path("text").write_text("the dogs of new york ran home\nhome, the dog ran of new dogs\n" * 200)
for folder, file in (("deberta", "spm"), ("bigbird", "spiece")):
    os.mkdir(folder)
    sentencepiece.SentencePieceTrainer.train(
        input="text", model_prefix=f"{folder}/{file}", vocab_size=40, hard_vocab_limit=False, minloglevel=2)  # fmt: skip
for load, folder, text, whole in [
    (BertTokenizer, "bert", chinese, True), (BertTokenizer, "bert", english, False),
    (DebertaV2Tokenizer, "deberta", english, True), (BigBirdTokenizer, "bigbird", english, True),
]:  # fmt: skip
    tokenizer = load.from_pretrained(folder)
    collator = DataCollatorForLanguageModeling(
        tokenizer, whole_word_mask=True, mask_replace_prob=1.0, random_replace_prob=0.0)  # fmt: skip
    torch.manual_seed(1)
    example = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True)
    hidden = collator([dict(example) for _ in range(2000)])["labels"][:, 1:-1] != -100
    share, all_, some = (it.float().mean() for it in (hidden, hidden.all(1), hidden.any(1)))
    print(f"{load.__name__} {tokenizer.tokenize(text)}: hidden {share:.3f} of the tokens; all of a text in",
          f"{all_:.3f} of the texts, some in {some:.3f}")
    assert 0.1 < share < 0.2 and (all_ == some if whole else all_ < 0.01 < 0.5 < some)
END_OF_PYTHON

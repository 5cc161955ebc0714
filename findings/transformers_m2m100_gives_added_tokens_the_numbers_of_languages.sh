#!/usr/bin/env bash
# Guess: a token that is added to M2M-100's tokenizer gets a number that no token has, as everywhere
#        else, and the embeddings are then resized to len(tokenizer).
# Seen:  the first added token has the number of Afrikaans, the second that of Amharic, and so on: the
#        languages stand behind the vocabulary, and len(tokenizer) does not count them. Encoding for
#        Afrikaans begins with the added token. A saved and loaded tokenizer does the same, and
#        embeddings of len(tokenizer) rows have none for any language but the first.
# Versions: transformers 5.24.0, 5.23.0 and 4.57.6, sentencepiece 0.2.3, torch 2.13.0. Source:
#        models/m2m_100/tokenization_m2m_100.py (vocab_size, get_vocab).
# Why:   tags of domains, of formality or for documents, and new languages, are added so; training
#        then goes on with a token that means two things, or loses 99 of 100 languages.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install numpy==2.4.6 transformers==5.24.0 sentencepiece==0.2.3
cd "$work"
HF_HUB_OFFLINE=1 "$work/env/bin/python" - <<'END_OF_PYTHON'
import json

import sentencepiece
import transformers
from transformers import AutoTokenizer, M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer

with open("text.txt", "w") as text:
    text.writelines(f"haus {'maus ' * (n % 7)}laut {'sein ' * (n % 5)}\n" for n in range(300))
sentencepiece.SentencePieceTrainer.train(input="text.txt", model_prefix="m", vocab_size=16, minloglevel=2)
pieces = sentencepiece.SentencePieceProcessor(model_file="m.model")
types = ["<s>", "<pad>", "</s>", "<unk>", *map(pieces.id_to_piece, range(3, len(pieces)))]
json.dump({name: number for number, name in enumerate(types)}, open("vocab.json", "w"))
tokenizer = M2M100Tokenizer("vocab.json", "m.model", src_lang="af", tgt_lang="am")
rows = len(types) + len(tokenizer.lang_code_to_id)
sizes = dict.fromkeys(["d_model", "encoder_ffn_dim", "decoder_ffn_dim", "encoder_layers", "decoder_layers"], 4)
sizes |= dict.fromkeys(["encoder_attention_heads", "decoder_attention_heads"], 1)
model = M2M100ForConditionalGeneration(M2M100Config(vocab_size=rows, **sizes))
tokenizer.add_tokens(["<formal>", "<law>"])
tokenizer.save_pretrained("saved")
print("transformers", transformers.__version__, "types", len(types), "languages", rows - len(types))
for name, it in (("as made", tokenizer), ("saved and loaded", AutoTokenizer.from_pretrained("saved"))):
    numbers = it.convert_tokens_to_ids(["<formal>", "<law>"])
    languages = [code for code, number in it.lang_code_to_id.items() if number in numbers]
    source = it.convert_ids_to_tokens(it("haus").input_ids)
    print(f"{name}: {numbers}, the numbers of {languages}; len {len(it)}; source for {it.src_lang}: {source}")
    assert languages == ["af", "am"] and source[0] == "<formal>"
model.resize_token_embeddings(len(tokenizer))
print("rows of embeddings before and after resizing:", rows, model.get_input_embeddings().num_embeddings)
assert model.get_input_embeddings().num_embeddings == len(types) + 2 < rows
END_OF_PYTHON

#!/usr/bin/env bash
# Guess: T5Tokenizer, NllbTokenizer and LlamaTokenizer of a folder with a SentencePiece model give that model's pieces, as
#        they did up to 4.57, and an option that does nothing any more is refused.
# Seen:  version 5 rebuilds the model and leaves out what does not fit, without a word: sp_model_kwargs (sampling of
#        subwords) does nothing; byte_fallback is lost in T5's, so bytes are <unk>; add_dummy_prefix and
#        remove_extra_whitespaces are not read; language codes of NLLB are <unk>.
# Versions: transformers 5.24.0 (4.57.6 gives SentencePiece's pieces, samples, and has the codes), sentencepiece 0.2.3.
#        Source: tokenization_utils_tokenizers.py and the tokenizer of each model.
# Why:   a model fine-tuned or evaluated in version 5 reads other tokens than it was trained on, and subword
#        regularisation is off.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
install transformers==5.24.0 sentencepiece==0.2.3 protobuf==7.36.2
cd "$work" && env/bin/python - 2>messages <<'END'
import pathlib
import random
import shutil

import sentencepiece
import transformers

random.seed(1)
words = "house houses housing green greener water waters the a of small smaller dog dogs running run runner".split()
pathlib.Path("text").write_text("\n".join(" ".join(random.choices(words, k=8)) for _ in range(2000)))
plain = {"add_dummy_prefix": False, "remove_extra_whitespaces": False}
for family, file, text, options in [
    ("T5", "spiece.model", "a 1 house", {"byte_fallback": True, "vocab_size": 350}),
    ("T5", "spiece.model", "a  house", plain),
    ("Llama", "tokenizer.model", "a  house", plain | {"model_type": "bpe"}),
    ("Nllb", "sentencepiece.bpe.model", "a house", {"model_type": "bpe"}),
]:
    ids = {"unk_id": 2, "eos_id": 1, "pad_id": 0, "bos_id": -1} if family == "T5" else {}
    sentencepiece.SentencePieceTrainer.train(input="text", model_prefix="model", minloglevel=2, hard_vocab_limit=False,
                                             **{"vocab_size": 100} | ids | options)
    shutil.rmtree(family, ignore_errors=True)
    pathlib.Path(family).mkdir()
    shutil.copy("model.model", f"{family}/{file}")
    model = sentencepiece.SentencePieceProcessor(model_file="model.model")
    sampling = {"enable_sampling": True, "nbest_size": -1, "alpha": 0.1}
    tokenizer = getattr(transformers, f"{family}Tokenizer").from_pretrained(family, sp_model_kwargs=sampling)
    tokens = tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids)
    draws = [len({tuple(encode()) for _ in range(50)}) for encode in (
        lambda: tokenizer("houses running smaller greener").input_ids,
        lambda: model.encode("houses running smaller greener", **sampling))]
    print("transformers", transformers.__version__, family, options, tokens, "SentencePiece:",
          model.encode(text, out_type=str), "segmentations of 50 draws:", draws)
    content = [token for token in tokens if token not in ("<s>", "</s>")]
    assert family != "Nllb" or tokens[0] == "<unk>"
    assert content != model.encode(text, out_type=str) and draws[0] == 1 < draws[1]
END
! grep -iE "sampling|sp_model|byte|prefix" "$work/messages"

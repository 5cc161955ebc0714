#!/usr/bin/env bash
# Guess: AutoTokenizer of a folder that has a model and no tokenizer files is an error.
# Seen:  for RoBERTa, BERT and XLM-R it returns a tokenizer of five special tokens. Text becomes nothing
#        or <unk>, and no warning names a missing file.
# Versions: transformers 5.23.0, torch 2.13.0. Source: tokenization_auto.py and the classes'
#        default vocabularies.
# Why:   a folder written by model.save_pretrained alone "works": scores are computed, of empty inputs.
#        Compare len(tokenizer) with config.vocab_size.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install numpy==2.4.6 transformers==5.23.0
"$work/env/bin/python" - <<'END'
import tempfile

import transformers
from transformers import AutoTokenizer, BertConfig, BertModel, RobertaConfig, RobertaModel

sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
         "intermediate_size": 16, "vocab_size": 50}
for model, config in (RobertaModel, RobertaConfig), (BertModel, BertConfig):
    with tempfile.TemporaryDirectory() as folder:
        model(config(**sizes)).save_pretrained(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer("two words", add_special_tokens=False).input_ids
    print("transformers", transformers.__version__, type(tokenizer).__name__, len(tokenizer), ids)
    assert len(tokenizer) == 5 and set(ids) <= {tokenizer.unk_token_id}
END

#!/usr/bin/env bash
# usage: bash installed.sh TEXT FOLDER
#
# From raw text to a score with the posenc and the fairseq on the PATH, of a package that is
# installed: TEXT/train.en, train.de, valid.en … to FOLDER.
set -euo pipefail
text=$(CDPATH= cd "$1" && pwd)
mkdir -p "$2"
cd "$2"
posenc prepare translation --source-lang en --target-lang de --train "$text/train" \
  --valid "$text/valid" --test "$text/test" --bpe 50 --output bin
plugin=(--user-dir "$(posenc path)" --task posenc_translation --cpu)
fairseq-train bin "${plugin[@]}" --arch posenc_transformer_tiny --position-encoding shaw \
  --share-all-embeddings --optimizer adam --max-tokens 500 --max-epoch 1 --save-dir model
posenc average --inputs model --last 1 --output model/average.pt
fairseq-generate bin "${plugin[@]}" --path model/average.pt --max-len-b 9 \
  --required-batch-size-multiple 1 >generate.out
posenc score --generated generate.out --reference "$text/test.de" --data bin
posenc table --help

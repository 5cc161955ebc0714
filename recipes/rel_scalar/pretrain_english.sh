#!/usr/bin/env bash
# English BERT with different position encodings, as Chen et al. 2021 pre-train it for Tables 4, 8
# and 10: from Wikipedia, and books, to models for recipes/glue/run.sh.
set -euo pipefail
CDPATH= cd "$(dirname "$0")/../.."
source recipes/lib/stages.sh
source recipes/lib/pretrain.sh

usage() {
    cat <<'HELP'
usage: bash recipes/rel_scalar/pretrain_english.sh [options] [-- options for fairseq-train]

Downloads English Wikipedia (wikimedia/wikipedia 20231101), learns a WordPiece vocabulary (lower
case) and pre-trains a masked language model per row. Started again, it continues where it was.

The paper trains on Wikipedia and BookCorpus. The original BookCorpus is not public; give what books
you have as --books-folder. Without it the models see Wikipedia alone.

On GPUs, add `-- --bf16` or `-- --fp16`. First try: --plan

  --books-folder DIR  UTF-8 text files: a line per sentence or paragraph, a blank line between books
  --preset gpu        a first try on one GPU, with bf16: 30,000 updates of 512 sequences, which are 2
                      billion tokens, at LAMB's learning rate for 512; not tried on a GPU here
  --languages LIST    of Wikipedia, also simple (en)
HELP
    pretrain_usage
}

# 0.0018 of 4096 sequences, times the root of 512 / 4096, as You et al. 2020 scale it
set_gpu() {
    RUN_DIR=runs/pretrain_english-gpu UPDATES=30000 BATCH=512 LR=0.000625 INTERVAL=5000 EXTRA=(--bf16)
}

OPTIONS='preset books-folder:BOOKS languages,'

prepare_options() {
    local language
    if [[ -n $TEXT ]]; then
        PREPARE_OPTIONS=(--train "$TEXT")
    else
        PREPARE_OPTIONS=(--train)
        for language in $LANGUAGES; do PREPARE_OPTIONS+=("$(text_of "$language")"); done
    fi
    if [[ -n $BOOKS ]]; then PREPARE_OPTIONS+=("$BOOKS"); fi
    KIND_OPTIONS=(--kind wordpiece)
}

RUN_DIR=runs/pretrain_english TABLES='chen2021-4 chen2021-8 chen2021-10' LANGUAGES=en BOOKS='' UPDATES=500000 LENGTH=128 VOCABULARY=30000
parse_options "$@"
pretrain

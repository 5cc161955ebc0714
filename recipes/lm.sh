#!/usr/bin/env bash
# Language models: trained on short pieces of a text, measured on longer ones (Press et al. 2022).
#
# Trains language models with different position encodings on pieces of --length subwords, and measures
# bits per subword on the test set in blocks of --lengths. Started again, it continues where it was. The
# encodings are compared with the first.

options=(
    "--data-dir DIR      take {train,valid,test}.txt, or these with .gz, .bz2 or .xz, from here, do not download:"
    "                    raw text, a sentence or paragraph a line"
    "--language CODE     of that text, for Moses' tokeniser; needed with --data-dir"
    "--url URL           of WikiText-103 as words, when there is no --data-dir"
    "--length N          subwords of a piece in training ({length})"
    "--lengths LIST      of blocks in the test ({lengths})"
    "--bpe N             operations of byte pair encoding ({bpe})"
    "--arch NAME         ({arch})"
    "--updates N         ({updates})"
)
defaults=(
    --run-dir runs/lm --language en --length 128 --lengths 128,256,512,1024 --bpe 6000
    --arch posenc_transformer_lm_small --updates 4000 --warmup 0.1 --seeds 1,2,3
    --url https://s3.amazonaws.com/research.metamind.io/wikitext/wikitext-103-v1.zip
)
rows=(sinusoidal rotary alibi kerple t5 shaw)
train=(
    --arch {arch} --share-decoder-input-output-embed --tokens-per-sample {length} --max-tokens 4096 --dropout 0.1
    --optimizer adam --adam-betas '(0.9,0.98)' --clip-norm 1 --lr 0.001
    --lr-scheduler polynomial_decay --warmup-updates {warmup-updates} --total-num-update {updates}
    --max-update {updates} --save-interval-updates 500 --keep-interval-updates 1 --no-epoch-checkpoints
)

source "$(dirname "$(realpath "$0")")/lib/recipe.sh"
recipe language_model "$@"

#!/usr/bin/env bash
# Which position encoding holds up on sentences longer than it was trained on? From nothing to a
# table and a picture, on an embedded English-German corpus.
#
# Makes an English-German corpus, trains a small translation model per position encoding on its short
# sentences, and scores them on short and on longer ones. Started again, it continues where it was. The
# table and the picture are there after two trainings, and grow with each seed.

options=(
    "--train N           training pairs ({train})"
    "--train-length A-B  their length in English words and marks ({train-length})"
    "--test N            test pairs per range of lengths ({test})"
    "--test-lengths LIST  ranges of lengths ({test-lengths}); of a single one the table has thirds"
    "--join N            make a line of N neighbouring sentences, with <sep> between them ({join})"
    "--updates N         ({updates})"
)
defaults=(
    --run-dir runs/quickstart --text corpus --source-lang en --target-lang de --seeds 1,2,3
    --train 60000 --train-length 4-20 --test 300 --test-lengths 4-20,21-30,31-45,46-60 --join 1
    --bpe 1000 --updates 2000 --warmup 0.15 --keep 0
)
# K = 40 is what the SHAPE paper found best when long sentences are kept from training (section 3.3)
rows=(
    sinusoidal
    "shape=shape --position-max-shift 40"
    "cape=cape --position-source-scale auto"
)
train=(
    --arch posenc_transformer --share-all-embeddings
    --encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 128 --decoder-embed-dim 128
    --encoder-ffn-embed-dim 512 --decoder-ffn-embed-dim 512
    --encoder-attention-heads 4 --decoder-attention-heads 4
    --encoder-normalize-before --decoder-normalize-before
    --dropout 0 --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --optimizer adam --adam-betas '(0.9,0.98)' --lr 0.004 --warmup-updates {warmup-updates}
    --lr-scheduler polynomial_decay --total-num-update {updates} --max-update {updates}
    --max-tokens 1000 --save-interval-updates 250 --keep-interval-updates 1 --no-epoch-checkpoints
)
generate=(--beam 4 --max-tokens 4000 --max-len-a 1.5 --max-len-b 10)

source "$(dirname "$(realpath "$0")")/lib/recipe.sh"
recipe translation "$@"

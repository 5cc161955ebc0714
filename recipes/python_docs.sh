#!/usr/bin/env bash
# Python's documentation, English to Spanish: real text with long paragraphs, SHAPE's EXTRAPOLATE.
#
# Trains translation models with different position encodings on the paragraphs of Python's
# documentation that have at most --longest sentencepieces, and scores them on longer ones too: bits
# per token of the references, and BLEU. Started again, it continues where it was.

options=(
    "--data-dir DIR      take {train,valid,test}.{en,es}, or these with .gz, .bz2 or .xz, from here, do not download"
    "--preset NAME       small: 2+2 layers of width 128, at most 32 sentencepieces, 1,800 updates of 2,000"
    "                    tokens, 5 seeds: for a CPU; base: 3+3 layers of width 256, at most 48, 3,000"
    "                    updates of 4,096 tokens, 3 seeds ({preset}; base was not run to the end)"
    "--longest N         sentencepieces of either side in training (by preset)"
    "--pieces N          sentencepieces to learn ({pieces})"
    "--test N            test pairs of each range of lengths ({test})"
    "--updates N         (by preset)"
    "--interval N        updates between checkpoints, which are kept: rows are compared where they have"
    "                    equally few bits within the trained lengths ({interval})"
)
defaults=(
    --run-dir runs/python_docs --text python_docs --source-lang en --target-lang es --preset small
    --pieces 6000 --test 300 --warmup 0.2 --keep 0 --interval 300
    --url https://github.com/python/python-docs-es/archive/91f4ccc0.tar.gz
)
rows=(
    sinusoidal "shape=shape --position-max-shift {reach}" # 2 × longest
    "cape=cape --position-source-scale auto" shaw rotary alibi
    "unifpe=unifpe --position-drawn-below {positions}" kerple # 3 × longest
)
train=(
    --arch posenc_transformer --share-all-embeddings
    --encoder-layers {layers} --decoder-layers {layers} --encoder-embed-dim {width} --decoder-embed-dim {width}
    --encoder-ffn-embed-dim {ffn} --decoder-ffn-embed-dim {ffn}
    --encoder-attention-heads 4 --decoder-attention-heads 4
    --encoder-normalize-before --decoder-normalize-before
    --dropout 0.1 --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --optimizer adam --adam-betas '(0.9,0.98)' --lr {lr} --warmup-updates {warmup-updates}
    --lr-scheduler polynomial_decay --total-num-update {updates} --max-update {updates}
    --max-tokens {tokens} --save-interval-updates {interval} --no-epoch-checkpoints
)
generate=(--beam 4 --max-tokens 4000 --max-len-a 1.5 --max-len-b 10)
# what docs/recipes/small_experiments.md expects
expect=(
    --margin 0.1 --expect cape=equal --expect shaw=less --expect rotary=less
    --expect alibi=less --expect kerple=less
)
presets=(small base)
small=(--layers 2 --width 128 --ffn 512 --lr 0.004 --tokens 2000 --longest 32 --updates 1800 --seeds 1,2,3,4,5)
base=(--layers 3 --width 256 --ffn 1024 --lr 0.002 --tokens 4096 --longest 48 --updates 3000 --seeds 1,2,3)

source "$(dirname "$(realpath "$0")")/lib/recipe.sh"
recipe translation "$@"

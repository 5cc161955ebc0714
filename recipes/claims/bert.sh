#!/usr/bin/env bash
# What position encodings do in a small BERT, asked by probes with exact answers, on generated text.
# A part of recipes/claims.sh, which may also be run alone.
#
# Pre-trains a small masked language model per row and seed on generated documents, fine-tunes it on a
# task of one sentence and one of two, and writes RUN_DIR/<row>/seed<n>/probes.json: bits per hidden
# token beside those of unigrams, how often the model tells the right order of words, both also at
# twice the trained length, and the accuracies of the tasks. The row rel_scalar alone is fine-tuned,
# with every kind of segments. Started again, it continues where it was.

defaults=(
    --run-dir runs/claims/bert --seeds 1,2,3,4,5 --sentences 60000 --length 32 --updates 2400 --batch 16
    --lr 0.003 --examples 4000 --task-updates 500 --pairs 500 --gpus 1 --sequences 1000 --workers 1
    --arch posenc_bert_tiny --vocabulary 1000 --optimizer adam --warmup 0.1 --documents blank
    --fast-rows "learned, shaw, abs_scalar, rel_scalar, rel_scalar_layers, rel_scalar_heads"
)
# K covers twice the trained length
rows=(
    none sinusoidal learned "shape=shape --position-max-shift 32" cape conditional shaw
    transformer_xl t5 tupe rotary alibi
    abs_scalar "abs_scalar_layers=abs_scalar --position-sharing layers"
    "abs_scalar_heads=abs_scalar --position-sharing heads"
    rel_scalar "rel_scalar_layers=rel_scalar --position-sharing layers"
    "rel_scalar_heads=rel_scalar --position-sharing heads"
)
fast=(
    --seeds 1,2,3
    --encodings "learned,shaw,abs_scalar,rel_scalar,rel_scalar_layers=rel_scalar --position-sharing layers,\
rel_scalar_heads=rel_scalar --position-sharing heads"
)
kind=(--kind wordpiece)
model=(--arch {arch} --tokens-per-sample {length} --dropout 0.1 --attention-dropout 0.1)
lamb=(--optimizer posenc_lamb --weight-decay 0.01 --clip-norm 1 --lamb-betas '(0.9,0.999)' --lamb-eps 1e-6)
adam=(--optimizer adam --weight-decay 0.01 --clip-norm 1 --adam-betas '(0.9,0.98)' --adam-eps 1e-6)
# of an option that is there twice the last counts
small=(--encoder-attention-heads 4 --dropout 0 --attention-dropout 0 --num-workers 0)
train=(
    --lr {lr} --lr-scheduler polynomial_decay --warmup-updates {warmup-updates}
    --total-num-update {updates} --max-update {updates} --required-batch-size-multiple 1
    --mask-prob 0.25 "${small[@]}"
)
tune=(
    "${small[@]}" --pooler-dropout 0
    --optimizer adam --adam-betas '(0.9,0.98)' --adam-eps 1e-6 --weight-decay 0.01 --clip-norm 1
    --lr 0.001 --lr-scheduler polynomial_decay --batch-size 32
    --required-batch-size-multiple 1 --best-checkpoint-metric accuracy
    --maximize-best-checkpoint-metric
)
# what a row is fine-tuned on: task and segments; ten times the updates let scalars, which move by at
# most the learning rate an update, move as far as they need
tuned_row=(rel_scalar)
tunings=(
    one_none one_input one_per_head two_none two_input two_per_head two_input_5000 two_per_head_5000
)

source "$(dirname "$(realpath "$0")")/../lib/recipe.sh"
recipe bert_probes "$@"

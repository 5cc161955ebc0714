#!/usr/bin/env bash
# English BERT with different position encodings, as Chen et al. 2021 pre-train it for Tables 4, 8
# and 10: from Wikipedia, and books, to models for recipes/glue/run.sh.
#
# Downloads English Wikipedia (wikimedia/wikipedia 20231101), learns a WordPiece vocabulary (lower
# case) and pre-trains a masked language model per row. Started again, it continues where it was.
#
# The paper trains on Wikipedia and BookCorpus. The original BookCorpus is not public; give what books
# you have as --books-folder. Without it the models see Wikipedia alone.
#
# On GPUs, add `-- --bf16` or `-- --fp16`. First try: --plan

options=(
    "--books-folder DIR  UTF-8 text files: a line per sentence or paragraph, a blank line between books"
    "--preset gpu        a first try on one GPU, with bf16: 30,000 updates of 512 sequences, which are 2"
    "                    billion tokens, at LAMB's learning rate for 512; not tried on a GPU here"
    "--languages LIST    of Wikipedia, also simple ({languages})"
)
defaults=(
    --run-dir runs/pretrain_english --languages en --tables chen2021-4,chen2021-8,chen2021-10
    --url https://huggingface.co --documents blank --hold-out 1000 --segments alternating --seeds 1
    --arch posenc_bert_base --length 128 --vocabulary 30000 --interval 20000 --optimizer lamb
    --batch 4096 --lr 0.0018 --warmup 0.025 --updates 500000 # Chen et al. 2021, Table 7
)
kind=(--kind wordpiece)
# our reading, as the paper is silent
model=(--arch {arch} --tokens-per-sample {length} --dropout 0.1 --attention-dropout 0.1)
lamb=(--optimizer posenc_lamb --weight-decay 0.01 --clip-norm 1 --lamb-betas '(0.9,0.999)' --lamb-eps 1e-6)
adam=(--optimizer adam --weight-decay 0.01 --clip-norm 1 --adam-betas '(0.9,0.98)' --adam-eps 1e-6)
train=(
    --lr {lr} --lr-scheduler polynomial_decay --warmup-updates {warmup-updates}
    --total-num-update {updates} --max-update {updates} --required-batch-size-multiple 1
)
presets=(gpu)
# 0.0018 of 4096 sequences, times the root of 512 / 4096, as You et al. 2020 scale it
gpu=(--run-dir runs/pretrain_english-gpu --updates 30000 --batch 512 --lr 0.000625 --interval 5000)
gpu_train=(--bf16)

source "$(dirname "$(realpath "$0")")/../lib/recipe.sh"
recipe pretrain "$@"

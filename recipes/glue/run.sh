#!/usr/bin/env bash
# GLUE: fine-tunes pre-trained models with different position encodings, as Chen et al. 2021 do for
# Tables 4, 8 and 10, and puts the results beside the paper's.
#
# Fine-tunes each row (pre-trained model) on each task with each learning rate and seed, and compares
# the medians on the development sets with the paper's.

options=(
    "--submission        also predict the test sets, of all nine tasks unless --tasks says otherwise, and"
    "                    write what GLUE's leaderboard takes to <run folder>/<row>/submission.zip"
    "                    (stage 6): of each task the run that is best on the development set, and AX"
    "                    by the model of MNLI; to be given from the start, or behind a run with"
    "                    --keep-checkpoints yes: other finished cells have no model any more"
    "--raw-dir DIR       official files, a folder per task: CoLA/train.tsv, CoLA/dev.tsv, …, and"
    "                    MNLI/AX.tsv or AX.tsv; MRPC also as msr_paraphrase_train.txt,"
    "                    msr_paraphrase_test.txt and mrpc_dev_ids.tsv; without it they are downloaded"
    "--epochs N          (10 for CoLA, STS-B, MRPC, RTE and WNLI, 5 for the others: the paper has"
    "                    \"5 or 10\", our reading is 10 for tasks below 10,000 examples)"
)
# Chen et al. 2021, Table 7: learning rates, warm-up, batch, epochs, updates between checkpoints
defaults=(
    --arch posenc_bert_base --lrs 1e-5,2e-5,3e-5,4e-5 --warmup-percent 10 --batch 32 --interval 3500
    --seeds 1,2,3,4,5 --keep-checkpoints no
    --run-dir runs/glue --benchmark glue --archives 400000000 # bytes to load, roughly
    --pretrain-dir runs/pretrain_english --pretrain-recipe recipes/rel_scalar/pretrain_english.sh
    --tasks MNLI,QQP,QNLI,SST-2,CoLA,STS-B
    --submitted-tasks MNLI,QQP,QNLI,SST-2,CoLA,STS-B,MRPC,RTE,WNLI
    --length 128 --tables chen2021-4,chen2021-8,chen2021-10
)
# BERT's, as the paper is silent
train=(
    --arch {arch} --dropout 0.1 --attention-dropout 0.1 --pooler-dropout 0.1
    --optimizer adam --adam-betas '(0.9,0.999)' --adam-eps 1e-6 --weight-decay 0.01 --clip-norm 1
)
examples=(--batch-size {batch} --required-batch-size-multiple 1 --max-epoch {epochs})
schedule=(
    --lr {lr} --lr-scheduler polynomial_decay --total-num-update {updates} --max-update {updates}
    --warmup-updates {warmup}
)
smoke=(
    --run-dir runs/glue-smoke --smoke-raw glue --arch posenc_bert_tiny --length 64
    --tasks CoLA,STS-B,MNLI --lrs 3e-4 --seeds 1,2 --epochs 2 --batch 16 --tables chen2021-4
    --encodings "learned=learned --position-segments input,rel_scalar=rel_scalar --position-segments per_head"
)
pretrain_smoke=(
    --text {run-dir}/benchmarks/text/train.txt --valid {run-dir}/benchmarks/text/valid.txt
    --vocabulary 1000 --updates 40 --batch 32 --lr 0.001
)

source "$(dirname "$(realpath "$0")")/../lib/recipe.sh"
recipe finetune "$@"

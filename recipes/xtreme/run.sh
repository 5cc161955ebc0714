#!/usr/bin/env bash
# XTREME: fine-tunes multilingual models with different position encodings on English, as Chen et al.
# 2021 do for Tables 5, 9, 11 and 12, applies them to other languages, and puts the results beside
# the paper's.
#
# Fine-tunes each row (pre-trained model) on English with each learning rate and seed, and applies it
# to other languages as it is: MNLI to XNLI (its own test files), SQuAD 1.1 to XQuAD, MLQA and
# TyDiQA-GoldP. Figures are means over the benchmark's languages (15, 11, 7 and 9; where some are
# missing, the table says how many), medians over seeds, and stand beside the paper's.
# Checkpoints and learning rates are chosen on English development sets alone: MNLI matched and XNLI's
# English part; SQuAD.

options=(
    "--raw-dir DIR       official files, without it they are downloaded: MNLI/train.tsv …,"
    "                    XNLI-1.0/xnli.test.tsv …, squad/train-v1.1.json …, xquad/xquad.de.json …,"
    "                    MLQA_V1/test/test-context-de-question-de.json …,"
    "                    tydiqa-goldp-v1.1-dev/tydiqa-goldp-dev-arabic.json …; or XTREME's download,"
    "                    xnli/train-en.tsv …, which takes labels and answers of tests away: they are"
    "                    predicted, for its leaderboard, but not scored"
    "--epochs N          ({epochs})"
    "--stride N          tokens from one window of a long context to the next ({stride})"
)
notes=(
    "A length of 512 is the paper's. XTREME's own, 128 for XNLI and 384 for questions, need models that
were pre-trained with that length, or whose encoding has no length."
)
# Chen et al. 2021, Table 7: learning rates, warm-up, batch, epochs, updates between checkpoints
defaults=(
    --arch posenc_bert_base --lrs 1e-5,2e-5,3e-5,4e-5 --warmup-percent 10 --batch 32 --interval 3500
    --seeds 1,2,3,4,5 --keep-checkpoints no
    --run-dir runs/xtreme --benchmark xtreme --archives 500000000 # bytes to load, roughly
    --pretrain-dir runs/pretrain_multilingual --pretrain-recipe recipes/rel_scalar/pretrain_multilingual.sh
    --tasks XNLI,SQuAD --length 512 --stride 128 --epochs 3
    --languages "ar bg de el en es fr hi ru sw th tr ur vi zh"
    --tables chen2021-5,chen2021-9,chen2021-11,chen2021-12
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
    --run-dir runs/xtreme-smoke --arch posenc_bert_tiny --length 128 --stride 64
    --lrs 3e-4 --seeds 1,2 --epochs 2 --batch 16 --tables chen2021-5 --languages "en de ar th zh"
    --encodings "learned=learned --position-segments input,rel_scalar=rel_scalar --position-segments per_head"
)
pretrain_smoke=(--vocabulary 2000 --updates 40 --batch 32 --lr 0.001)
# Their addresses name a branch: SHA-256, as TensorFlow Datasets has recorded them (url_checksums/xquad.txt).
squad=(
    train-v1.1.json 3527663986b8295af4f7fcdff1ba1ff3f72d07d61a20f487cb238a6ef92fd955
    dev-v1.1.json 95aa6a52d5d6a735563366753ca50492a658031da74f301ac5238b03966972c9
)
xquad=(
    ar abdabd7afed5c635d99cca0f3f0d0c9d9ed0bc77451e963c2e4e0638c29e486d
    de 990b5d746746ed65ed4702ea5f35f99ffa4e2f1c390c07d003642acd937916f9
    el 821cf0f88e73fa258fd2f548b19b6ec39f7025059e16f6f9fc8cd797c9c3663e
    en e4c57d1c9143aaa1c5d265ba5987a65f4e69528d2a98f29d6e75019b10344f29
    es dcbae93ec3a9f4b9e78fd834a171d6f96c1a875e10e15b7530b7e4ef4971e37e
    hi df2cce3532b37e9beb8979704b5c9a4bf874358f105395a298b89427b43b9d24
    ru 208d5b1aa154c52b1b5c5eda16281e455e8fd198cdb9af3f469f0d6037d973bf
    th 5cdda11d0e1e075f7872abf4e6ae830388ce7f617964d542308e9ae4257e0f43
    tr 92179a564774b7696100d144c1e10870d0a966b6fccbdd254a65b9d2ab1971cc
    vi f619a1eb11fb42d3ab0834259e488a65f585447ef6154437bfb7199d85161a04
    zh 691d0b3359bc6b8faa8de931dfdfe21d50a65861ae348e32a0d1a0190b0c8835
)

source "$(dirname "$(realpath "$0")")/../lib/recipe.sh"
recipe finetune "$@"

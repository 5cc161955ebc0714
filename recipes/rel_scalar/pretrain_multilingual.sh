#!/usr/bin/env bash
# Multilingual BERT with different position encodings, as Chen et al. 2021 pre-train it for Tables
# 5, 9, 11 and 12: from Wikipedia in 100 languages to models for recipes/xtreme/run.sh.
#
# Downloads Wikipedia in 100 languages (wikimedia/wikipedia 20231101), learns one SentencePiece
# vocabulary and pre-trains a masked language model per row. Started again, it continues where it was.
#
# On GPUs, add `-- --bf16` or `-- --fp16`. First try: --plan, or a few --languages. Here --text is a
# folder with a folder per language, or LANGUAGE=PATH,LANGUAGE=PATH…

options=(
    "--preset gpu        a first try on one GPU, with bf16: XNLI's 15 languages, 7,600 updates of 512"
    "                    sequences, which are 2 billion tokens, at LAMB's learning rate for 512; not"
    "                    tried on a GPU here"
    "--languages LIST    as in the wikis' addresses: en,de,simple,zh-yue (the 100 of Lample and"
    "                    Conneau 2019, whom the paper follows)"
    "--sampling-exponent S  shares of languages become share^S ({sampling-exponent}, as in multilingual"
    "                    BERT; the paper names none)"
    "--character-coverage SHARE  of the characters, that get an entry of the vocabulary; the others are"
    "                    unknown ({character-coverage}; with SentencePiece's own 0.9995, much of Chinese is)"
)
defaults=(
    --run-dir runs/pretrain_multilingual --tables chen2021-5,chen2021-9,chen2021-11,chen2021-12
    --url https://huggingface.co --documents blank --hold-out 1000 --segments alternating --seeds 1
    --arch posenc_bert_base --length 512 --vocabulary 120000 --interval 20000 --optimizer lamb
    --batch 4096 --lr 0.0018 --warmup 0.025 --updates 125000 # Chen et al. 2021, Table 7
    --sampling-exponent 0.7 --character-coverage 0.99995 --per-language yes
    --languages "en es fr de zh ru pt it ar ja id tr nl pl simple fa vi sv ko he ro no hi uk cs fi hu th \
da ca el bg sr ms bn hr sl zh-yue az sk eo ta sh lt et ml la bs sq arz af ka mr eu tl ang gl nn ur \
kk be hy te lv mk zh-classical als is wuu my sco mn ceb ast cy kn br an gu bar uz lb ne si war jv \
ga zh-min-nan oc ku sw nds ckb ia yi fy scn gan tt am"
)
kind=(
    --kind sentencepiece --sampling-exponent {sampling-exponent}
    --character-coverage {character-coverage}
)
# our reading, as the paper is silent
model=(--arch {arch} --tokens-per-sample {length} --dropout 0.1 --attention-dropout 0.1)
lamb=(--optimizer posenc_lamb --weight-decay 0.01 --clip-norm 1 --lamb-betas '(0.9,0.999)' --lamb-eps 1e-6)
adam=(--optimizer adam --weight-decay 0.01 --clip-norm 1 --adam-betas '(0.9,0.98)' --adam-eps 1e-6)
train=(
    --lr {lr} --lr-scheduler polynomial_decay --warmup-updates {warmup-updates}
    --total-num-update {updates} --max-update {updates} --required-batch-size-multiple 1
)
presets=(gpu)
gpu=(
    --run-dir runs/pretrain_multilingual-gpu --updates 7600 --batch 512 --lr 0.000625 --interval 1900
    --languages "ar bg de el en es fr hi ru sw th tr ur vi zh"
)
gpu_train=(--bf16)

source "$(dirname "$(realpath "$0")")/../lib/recipe.sh"
recipe pretrain "$@"

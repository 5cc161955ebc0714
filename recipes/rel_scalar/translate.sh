#!/usr/bin/env bash
# Chen et al. 2021, Table 6: WMT15 English-German in both directions and WMT18 English to Czech, with
# position encodings at the input and inside attention.
#
# From the archives of WMT15 and WMT18 to the paper's table of uncased BLEU on newstest2015.

options=(
    "--regime t2t|vaswani  see below ({regime})"
    "--interval N        updates between checkpoints, of which the last {keep} are averaged ({interval})"
)
notes=(
    "The paper follows Vaswani et al. 2017 \"closely\", in Tensor2Tensor, with 6 layers, and names no other
setting. Both regimes: Transformer base, 100,000 updates of 25,000 tokens, Adam with ε 1e-9, dropout
0.1, label smoothing 0.1, the last 5 checkpoints averaged, beam 4, length penalty 0.6, newstest2013 for
validation.
  t2t      Tensor2Tensor's transformer_base and transformer_relative: normalisation before each
           sub-layer, dropout also of attention and after ReLU, β₂ 0.997, 8,000 warm-up updates,
           Shaw's distances up to 20. The default: it is the framework's base model of the paper's year.
  vaswani  normalisation behind it, β₂ 0.98, 4,000 warm-up updates, Shaw's distances up to 16
Our readings: europarl v7, common crawl, the news commentary of the year, and for Czech CzEng 1.0; 32,000
joint BPE operations; text as it is, its punctuation not normalised, as in Tensor2Tensor; uncased BLEU
is Tensor2Tensor's, sacreBLEU on lower case with international tokenisation (13a stands beside it).
The paper does not tell how long it trains. Vaswani et al. make 100,000 updates; Tensor2Tensor's own
instructions for 8 GPUs have --updates 300000."
)
defaults=(
    --run-dir runs/rel_scalar_translate --settings en-de,de-en,en-cs --corpus wmt15_en_de --tests all
    --arch posenc_transformer_wmt_en_de --shape 6,512,8 --tokens 25000 --updates 100000
    --regime t2t --interval 1500 --keep 5 --seeds 1 --tables chen2021-6
)
declare -a en_de=() de_en=(--corpus wmt15_de_en) en_cs=(--corpus wmt18_en_cs)
# peaks of the schedules: 2 · 512^-½ · 8000^-½, and 512^-½ · 4000^-½
t2t=(--lr 0.000988212 --warmup 8000 --train-of t2t_train --shaw "--position-max-distance 20")
vaswani=(--lr 0.000698771 --warmup 4000 --train-of vaswani_train --shaw "")
rows=(sinusoidal "shaw=shaw {shaw}" t5 rel_scalar)
train=(
    --arch {arch} --share-all-embeddings
    --dropout 0.1 --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --optimizer adam --adam-eps 1e-9 --clip-norm 0
    --lr {lr} --lr-scheduler inverse_sqrt --warmup-updates {warmup-updates}
    --max-update {updates} --save-interval-updates {interval}
    --keep-interval-updates {keep} --no-epoch-checkpoints
)
t2t_train=(
    --encoder-normalize-before --decoder-normalize-before
    --attention-dropout 0.1 --activation-dropout 0.1 --adam-betas '(0.9,0.997)'
)
vaswani_train=(--adam-betas '(0.9,0.98)')
generate=(--beam 4 --lenpen 0.6 --max-tokens 8000 --max-len-a 1 --max-len-b 50)
score=(--metrics sacrebleu,sacrebleu_lowercase,sacrebleu_lowercase_intl,tokenised_bleu,chrf)
smoke=(
    --raw-dir recipes/smoke/wmt --run-dir runs/rel_scalar_translate-smoke --keep 2
    --arch posenc_transformer_tiny --updates 20 --interval 10 --batch 2000 --bpe 500
    --encodings sinusoidal,rel_scalar
)

source "$(dirname "$(realpath "$0")")/../lib/recipe.sh"
recipe wmt "$@"

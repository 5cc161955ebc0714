#!/usr/bin/env bash
# CAPE (Likhomanenko et al. 2021), Table 2 and Figure 8: WMT14 English to German and to French, with
# ADMIN's initialisation, 6 and 18 layers.
#
# From the archives of WMT14 to the paper's table of tokenised BLEU, also by length (percentiles).
# Settings: de6 and de18 (6L-6L and 18L-18L, to German), fr6 (6L-6L, to French). CAPE has the Δmax that
# the first version of the paper names as best, 5 for 6 layers and 10 for 18: 27 trainings.

options=(
    "--epochs N          (150 for German, 75 for French)"
    "--preset gpu        a first try on one GPU, with bf16: 6 layers, to German, three rows, one seed,"
    "                    30,600 updates, which are 1 billion tokens; not tried on a GPU here"
    "--sweep LIST        further Δmax of CAPE in every setting (5,10,50 are the later version's: 18"
    "                    trainings more)"
)
notes=(
    "Defaults are those of the paper and of ADMIN's recipes, which it follows: joint BPE of 32,764 and
40,000 operations, RAdam (0.9, 0.98), learning rate 0.001 and 0.0007, 8,000 warm-up updates, no weight
decay, no clipping, label smoothing 0.1, dropout 0.1, also of attention and after ReLU; 4 × 8192 and
8 × 8000 × 10 tokens per update; the checkpoint of best BLEU on the validation set; beam 4 with
length penalty 0.6 and beam 5 with 0.8. α of CAPE is measured from the training set and written into
the log (the paper has 1.0337 and 1.1632). Only CAPE has <s> before the source."
)
defaults=(
    --run-dir runs/cape --settings de6,de18,fr6 --corpus wmt14_en_de --tests valid,newstest2014
    --arch posenc_transformer_wmt_en_de --shape 6,512,8
    --tokens 32768 --profile-tokens 8192 --epochs 150 --lr 0.001 --warmup 8000 # 4 × 8192
    --beam 4 --lenpen 0.6 --keep 0 --seeds 1,2,3 --tables cape-2 --figures cape
    --shift 5 --sweep-row "cape_{}=cape --position-global-shift {} --position-source-scale auto --prepend-source-bos"
)
de6=()
de18=(--arch posenc_transformer_wmt_en_de_18l --shape 18,512,8 --shift 10)
fr6=(
    --corpus wmt14_en_fr --tokens 640000 --profile-tokens 8000 # 8 × 8000 × 10
    --epochs 75 --lr 0.0007 --beam 5 --lenpen 0.8
)
rows=(
    sinusoidal learned
    "cape_{shift}=cape --position-global-shift {shift} --position-source-scale auto --prepend-source-bos"
)
train=(
    --arch {arch} --share-all-embeddings
    --dropout 0.1 --attention-dropout 0.1 --activation-dropout 0.1
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --optimizer posenc_radam --radam-betas '(0.9,0.98)' --clip-norm 0 --weight-decay 0
    --lr {lr} --lr-scheduler inverse_sqrt --warmup-init-lr 1e-7 --warmup-updates {warmup-updates}
    --max-epoch {epochs} --max-update {updates} --keep-last-epochs 1
    --eval-bleu --eval-bleu-remove-bpe --eval-tokenized-bleu
    --eval-bleu-args '{"beam":{beam},"lenpen":{lenpen},"max_len_a":1.2,"max_len_b":20}'
    --best-checkpoint-metric bleu --maximize-best-checkpoint-metric
)
generate=(--beam {beam} --lenpen {lenpen} --max-tokens 8000 --max-len-a 1.2 --max-len-b 20)
score=(--percentiles)
smoke=(
    --raw-dir recipes/smoke/wmt --run-dir runs/cape-smoke --seeds 1 --updates 20 --warmup 10
    --arch posenc_transformer_tiny --batch 2000 --bpe 500
)
presets=(gpu)
gpu=(--run-dir runs/cape-gpu --settings de6 --seeds 1 --updates 30600)
gpu_train=(--bf16)

source "$(dirname "$(realpath "$0")")/../lib/recipe.sh"
recipe wmt "$@"

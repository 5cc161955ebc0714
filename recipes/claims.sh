#!/usr/bin/env bash
# Claims of three papers, tried where two cores suffice: with seeds, intervals and a verdict.
#
# Trains small models with several seeds, on a generated corpus, and writes the page of claims: what the
# papers say, what these models say, with 95 % intervals, and a verdict. Two cores need several nights;
# --fast has fewer rows and seeds: an hour and a half. Started again, it continues where it was; after
# --fast, without it, it trains what is missing.

usage=("[options]")
defaults=(
    --run-dir runs/claims --updates 2000 --test 300 --seeds 1,2,3,4,5
    --all-parts length,longer,longest,joined,joined_longer,switch,switch_long,deep_400,deep,plain,speed,bert,bert_longer
    --fast-parts length,joined,deep_400,plain,speed,bert
)
fast=(--seeds 1,2,3)
# K = 40 is SHAPE's best when long sentences are kept from training; α of CAPE is measured
shape="shape=shape --position-max-shift 40"
cape="cape=cape --position-source-scale auto"
# what SHAPE's authors do otherwise than fairseq
authors="--embedding-initialization xavier --no-source-eos"
length_fast=(sinusoidal "$shape" "$cape" shaw rel_scalar)
length_rows=(
    "${length_fast[@]}"
    "cape_global=cape --position-source-scale auto --position-local-shift 0"
    "cape_local=cape --position-source-scale auto --position-global-shift 0" cape_unscaled=cape
    "shape_K10=shape --position-max-shift 10" "shape_K20=shape --position-max-shift 20"
    "shape_K100=shape --position-max-shift 100" t5 alibi rotary
    "t5_24=t5 --position-max-distance 24"
    "t5_16=t5 --position-max-distance 16 --position-num-buckets 16"
    transformer_xl tupe abs_scalar conditional learned none
    "unifpe=unifpe --position-drawn-below 80" "randomized=randomized --position-drawn-below 80"
    "randomized_rotary=randomized --position-inner rotary --position-drawn-below 80" kerple
)
# at equal convergence: fourteen encodings, and what the claims say of SHAPE's K
longer_rows=(
    sinusoidal "$shape" "$cape" shaw rotary alibi t5 rel_scalar transformer_xl tupe abs_scalar
    conditional learned none
    "sinusoidal_authors=sinusoidal $authors" "shape_authors=shape --position-max-shift 40 $authors"
    "shape_K10=shape --position-max-shift 10" "shape_K20=shape --position-max-shift 20"
    "shape_K100=shape --position-max-shift 100"
)
longest_rows=(sinusoidal "$shape" "shape_K100=shape --position-max-shift 100")
joined_rows=(sinusoidal "$shape" shaw)
switch_rows=(sinusoidal rotary alibi shaw "$cape")
plain_fast=(sinusoidal shape)
plain_rows=("${plain_fast[@]}" cape t5 alibi kerple)
# whether their masked-LM bits still fall as much as they differ
bert_longer_rows=(learned shaw abs_scalar rel_scalar)
deep_train=(
    --arch posenc_transformer --share-all-embeddings --encoder-layers 12
    --decoder-layers 12 --encoder-embed-dim 64 --decoder-embed-dim 64
    --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256
    --encoder-attention-heads 4 --decoder-attention-heads 4
    --dropout 0 --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --optimizer posenc_radam --radam-betas '(0.9,0.98)' --lr 0.002 --warmup-updates {quarter}
    --lr-scheduler polynomial_decay --total-num-update {deep-updates} --max-update {deep-updates}
    --max-tokens 1000 --save-interval-updates {quarter} --keep-interval-updates 1
    --no-epoch-checkpoints
)
speed_training=(--lengths 32 --tokens 512 --encodings sinusoidal,shape,cape,shaw,rel_scalar --rounds 5)
speed_bert=(
    --shape bert_small --lengths 128 --encodings none,learned,shaw,rel_scalar --tokens 512 --rounds 5
)

source "$(dirname "$(realpath "$0")")/lib/recipe.sh"
recipe claims "$@"

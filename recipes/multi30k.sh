#!/usr/bin/env bash
# Multi30k, English to German: from the download to a table of BLEU by length.
#
# Trains translation models with different position encodings on Multi30k (29,000 pairs) and scores
# them on the 2016 test set, by length. Started again, it continues where it was.

options=(
    "--raw-dir DIR       take {train,val,test_2016_flickr}.{en,de}.gz from here, do not download"
    "--url URL           download from here (a mirror of the data set's data/task1/raw)"
    "--setting vanilla|extrapolate|interpolate  as in SHAPE, section 3.1: extrapolate: no training pair"
    "                    is longer than --longest; interpolate: ten neighbouring sentences are joined to"
    "                    one ({setting})"
    "--longest N         subwords of either side ({longest}; the paper has 50 for WMT)"
    "--epochs N          ({epochs})"
    "--keep N            average the checkpoints of the last N epochs ({keep})"
    "--dim N             width of the model; the FFN is twice as wide ({dim})"
    "--layers N          layers of encoder and decoder ({layers})"
    "--heads N           attention heads ({heads})"
    "--max-tokens N      tokens per batch ({max-tokens})"
    "--lr X              peak learning rate (0.005; interpolate: 0.004)"
)
notes=(
    "On a GPU, full size:
  bash recipes/multi30k.sh --dim 512 --layers 6 --heads 8 --max-tokens 8192 --lr 0.0007 \\
    --epochs 60 -- --fp16"
)
defaults=(
    --run-dir runs/multi30k --text multi30k --source-lang en --target-lang de --seeds 1
    --setting vanilla --longest 16 --epochs 15 --dim 128 --layers 3 --heads 4 --max-tokens 2048
    --url https://raw.githubusercontent.com/multi30k/dataset/c9be912dc05a3ebf9ae5bb5f7f58c1791cda43ab/data/task1/raw
    --bpe 6000 --keep 5 --bins 10,15,20 --lr 0.005 --train-of short
)
vanilla=()
extrapolate=(--run-dir runs/multi30k_extrapolate)
interpolate=(--run-dir runs/multi30k_interpolate --bins 130,150 --lr 0.004 --train-of joined)
rows=(sinusoidal shape "cape=cape --position-source-scale auto")
train=(
    --arch posenc_transformer --share-all-embeddings
    --encoder-layers {layers} --decoder-layers {layers}
    --encoder-embed-dim {dim} --decoder-embed-dim {dim}
    --encoder-ffn-embed-dim {ffn} --decoder-ffn-embed-dim {ffn}
    --encoder-attention-heads {heads} --decoder-attention-heads {heads}
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --optimizer adam --adam-betas '(0.9,0.98)' --lr-scheduler inverse_sqrt --lr {lr}
    --max-tokens {max-tokens} --max-epoch {epochs}
)
short=(--warmup-updates 1000 --dropout 0.3)
# in the other regime small models hardly learn to align inputs that are so long
joined=(--warmup-updates 400 --dropout 0.1 --encoder-normalize-before --decoder-normalize-before)
generate=(--beam 5 --max-tokens 4000 --max-len-a 1.5 --max-len-b 10)
score=(--bins {bins})
score_interpolate=(--without-token '<sep>')

source "$(dirname "$(realpath "$0")")/lib/recipe.sh"
recipe translation "$@"

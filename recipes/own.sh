#!/usr/bin/env bash
# Your own text, any two languages: from raw files to a report that compares position encodings.
#
# Prepares your text, trains a model for each encoding and seed, translates and scores the test set, and
# compares the encodings in a report: report/report.html in the run folder. Started again, it continues
# where it was. The encodings are compared with the first.

usage=(
    "--source-lang en --target-lang fr --train train --valid valid --test test
         [options] [-- options for fairseq-train]"
)
options=(
    "--source-lang LANG  translate from, for example en"
    "--target-lang LANG  translate to, for example fr"
    "--train PREFIX      text: PREFIX.LANG of both languages, UTF-8, plain, .gz, .bz2 or .xz, a sentence a line"
    "--valid PREFIX      likewise, to validate on"
    "--test PREFIX       likewise, to translate and score"
    "--longest N[,none]  train on pairs of at most N subwords on either side and test on all, as EXTRAPOLATE"
    "                    in SHAPE (Kiyono et al. 2021); validation is limited, too, and the report's ranges"
    "                    are of subwords, the first up to N; N,none also trains each encoding on all, and"
    "                    reports both"
    "--preset NAME       tiny: 2 layers of width 128, for a trial on a CPU; small: posenc_transformer_iwslt_de_en;"
    "                    base: posenc_transformer_wmt_en_de ({preset}). small and base were not run to the end"
    "--sentencepiece N   pieces of raw text (by the size of the text, as posenc prepare translation has it)"
    "--bpe N             instead: Moses' tokens and so many operations of byte pair encoding"
    "--epochs N          (by preset: 20, 50, 20); with more in the same folder, its trainings go on"
    "--keep N            average the checkpoints of the last N epochs ({keep})"
    "--bins LIST         ranges of lengths in words of the source, with --longest in subwords of the longer"
    "                    side; auto: further ones by the data ({bins}; with --longest N,auto)"
    "--gpus N            use so many; each training has one (all)"
    "--slurm             print a script that submits the trainings to SLURM as an array of jobs, and stop"
    "--cell N            only this training of the plan, as a job of that script"
    "--hours N           stop with a checkpoint a quarter of an hour before these are over"
)
defaults=(
    --run-dir runs/own --text own --seeds 1,2,3 --bins 10,20,30,auto --keep 5 --preset tiny
)
rows=(sinusoidal kerple rotary alibi shaw "cape=cape --position-source-scale auto")
prepare=(--sentencepiece {sentencepiece} --bpe {bpe} --max-length {longest})
train=(
    --share-all-embeddings
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --optimizer adam --adam-betas '(0.9,0.98)' --lr-scheduler inverse_sqrt --max-epoch {epochs}
)
generate=(--beam 5 --max-tokens 4000 --max-len-a 1.5 --max-len-b 10)
references=(--score-reference --max-tokens 4000) # bits per token, which do not depend on the search
score=(--bins {bins})
presets=(tiny small base)
tiny=(--epochs 20 --train-of tiny_model)
tiny_model=(
    --arch posenc_transformer --encoder-layers 2 --decoder-layers 2
    --encoder-embed-dim 128 --decoder-embed-dim 128 --encoder-ffn-embed-dim 512
    --decoder-ffn-embed-dim 512 --encoder-attention-heads 4 --decoder-attention-heads 4
    --encoder-normalize-before --decoder-normalize-before
    --dropout 0.1 --lr 0.004 --warmup-updates 300 --max-tokens 1000
)
small=(--epochs 50 --train-of small_model)
small_model=(
    --arch posenc_transformer_iwslt_de_en --dropout 0.3 --weight-decay 0.0001
    --lr 0.0005 --warmup-updates 4000 --max-tokens 4096
)
base=(--epochs 20 --train-of base_model)
base_model=(
    --arch posenc_transformer_wmt_en_de --dropout 0.1
    --lr 0.0007 --warmup-updates 4000 --max-tokens 4096 --update-freq 8
)

source "$(dirname "$(realpath "$0")")/lib/recipe.sh"
recipe translation "$@"

#!/usr/bin/env bash
# From a model of sentences to one of paragraphs: fine-tune it on joined lines, with its own and other
# position encodings.
#
# Takes a trained translation model, joins neighbouring lines of a text to paragraphs, fine-tunes the model on
# them with each encoding, and measures all by length: bits per token of the references, BLEU, CTranslate2's
# models. The first row is the model as it was. Started again, it continues where it was.

usage=(
    "--from FOLDER --source-lang eng_Latn --target-lang spa_Latn --train train --valid valid --test test
         [options] [-- options for fairseq-train]; or --model CHECKPOINT --subwords DIR in place of --from"
)
options=(
    "--from FOLDER       NLLB-200, M2M-100 or mBART-50 of transformers, on disk; or else"
    "--model CHECKPOINT  of translation; or a folder, in which each seed has its own, seed1/checkpoint_last.pt …"
    "--subwords DIR      its binary data, or any folder with its dictionary and sentencepiece.model"
    "--source-lang LANG  translate from, for example en"
    "--target-lang LANG  translate to, for example es"
    "--train PREFIX      text: PREFIX.LANG of both languages, in the order of its documents; a blank line in both"
    "                    ends a document"
    "--valid PREFIX      likewise, to validate on"
    "--test PREFIX       likewise, to translate and score"
    "--smoke             two rows with a tiny model that it makes itself, offline, in a few minutes"
    "--preset NAME       cpu; or gpu8 (not run), gpu24, gpu80: of so many GB, for 600 million parameters ({preset})"
    "--neighbours N      lines of a paragraph ({neighbours})"
    "--edges LIST        ends of the ranges of lengths in subwords, the first that of the model's training ({edges})"
    "--pairs N           test pairs of each range ({pairs})"
    "--updates N         of fine-tuning ({updates})"
    "--lr X              its peak learning rate ({lr})"
    "--train-only GLOB   change these weights alone, for example '*self_attn*' (all)"
)
defaults=(
    --run-dir runs/longer_inputs --text longer --seeds 1,2,3 --preset cpu --keep 0 --warmup 0.1 --neighbours 4
    --edges 32,64,128,256 --shortest 5 --pairs 200 --updates 200 --lr 0.001
)
rows=(before=sinusoidal sinusoidal rotary shape unifpe)
train=(
    --dropout 0.1 --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --optimizer adam --adam-betas '(0.9,0.98)' --lr {lr} --warmup-updates {warmup-updates}
    --lr-scheduler polynomial_decay --total-num-update {updates} --max-update {updates} --max-tokens {tokens}
    --train-only {train-only} --save-interval-updates {updates} --keep-interval-updates 1 --no-epoch-checkpoints
)
generate=(--beam 4 --max-tokens 4000 --max-len-a 1.5 --max-len-b 10)
# what docs/longer_inputs.md expects: of fine-tuning, and of an encoding beside the unchanged one
expect=(--margin 0.1 --expect sinusoidal=less --expect rotary=less --expect shape=less --expect unifpe=less)
expect_tuned=(--margin 0.1 --expect rotary=less --expect shape=equal --expect unifpe=equal)
presets=(cpu gpu8 gpu24 gpu80)
cpu=(--tokens 2000)
gpu8=(--tokens 1024 --lr 0.0001 --train-only '*self_attn*')
gpu8_train=(--memory-efficient-fp16 --checkpoint-activations --update-freq 16)
gpu24=(--tokens 3000 --lr 0.0001)
gpu24_train=(--memory-efficient-fp16 --update-freq 5)
gpu80=(--tokens 12000 --lr 0.0001)
gpu80_train=(--fp16)
smoke=(
    --run-dir runs/longer_inputs-smoke --source-lang en --target-lang de --seeds 1 --updates 10 --pairs 10
    --edges 30,60,120 --neighbours 2 --tokens 500 --encodings before=sinusoidal,sinusoidal,rotary
)

source "$(dirname "$(realpath "$0")")/lib/recipe.sh"
recipe translation "$@"

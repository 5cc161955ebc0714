#!/usr/bin/env bash
# Anchors: models that others have published, through our text, fine-tuning and scoring, against the
# figures that everybody knows.
#
#   wmt14   fairseq's transformer.wmt16.en-de (Ott et al. 2018) translates newstest2014, prepared from
#           sacreBLEU's raw text and scored by posenc score. fairseq's page has 28.6 sacreBLEU (of an
#           average of 10 checkpoints).
#   bert    bert-base-uncased, imported by posenc import, is fine-tuned by recipes/glue/run.sh. Devlin et
#           al. 2019, Table 5, have 84.4 (MNLI-m), 86.7 (MRPC) and 92.7 (SST-2) on the development sets.

usage=("[wmt14|bert] [options]")
defaults=(--run-dir runs/anchors --seeds 1,2,3)
smoke=(--run-dir runs/anchors-smoke --seeds 1)
wmt14=(
    --model https://dl.fbaipublicfiles.com/fairseq/models/wmt16.en-de.joined-dict.transformer.tar.bz2
    --known 28.6
)
generate=(--beam 4 --lenpen 0.6 --max-tokens 8000 --required-batch-size-multiple 1) # as fairseq's page says
bert=(
    --hub https://huggingface.co/google-bert/bert-base-uncased/resolve/86b5e0934494bd15c9632b12f734a8a67f723594
)
known=(MNLI 84.4 MRPC 86.7 SST-2 92.7)
row=(learned --position-segments input)
glue=(--tasks MNLI,MRPC,SST-2 --epochs 3 --lrs 2e-5)
glue_smoke=(--tasks MRPC,SST-2 --epochs 1 --lrs 3e-4 --arch posenc_bert_tiny --length 64)

source "$(dirname "$(realpath "$0")")/lib/recipe.sh"
recipe anchors "$@"

#!/usr/bin/env bash
# IWSLT14, German to English, as in fairseq's example (transformer_iwslt_de_en), with every encoding.
set -euo pipefail
CDPATH= cd "$(dirname "$0")/.."
source recipes/lib/stages.sh
source recipes/lib/wmt.sh

usage() {
    cat <<'HELP'
usage: bash recipes/iwslt14.sh [options] [-- options for fairseq-train]

From the archive of IWSLT14 to a table of tokenised BLEU on lower-cased text, as fairseq-generate
prints it, by length, with 95 % intervals.

HELP
    wmt_usage | sed 's/^\(  --gpus N .*\)(all).*/\1(1: batches are small)/; s/of the papers/of these metrics/'
    cat <<'HELP'

Data and training are those of fairseq's examples/translation: Moses' tokens, 1-175 of them on both
sides with a ratio of at most 1.5, lower-cased, every 23rd pair to validate, joint BPE of 10,000
operations, two dictionaries; Adam (0.9, 0.98), learning rate 0.0005, 4,000 warm-up updates, dropout
0.3, weight decay 0.0001, label smoothing 0.1, 4,096 tokens per update, the checkpoint of best BLEU on
the validation set, beam 5. The example does not say when to stop; its first version stopped after
50,000 updates, which is the default here.
HELP
}

RUN_DIR=runs/iwslt14 SETTINGS=de-en SEEDS='1 2 3' KEEP=0 GPUS=1 JOINED=() WARMUP=4000
TABLES='tokenised_bleu sacrebleu_lowercase'
ROWS=(sinusoidal none learned shape "cape=cape --position-source-scale auto" conditional shaw
    transformer_xl t5 tupe abs_scalar rel_scalar rotary alibi unifpe randomized kerple)

set_smoke() {
    RAW_DIR=recipes/smoke/iwslt14
    RUN_DIR=runs/iwslt14-smoke SEEDS='1 2' UPDATES=60 WARMUP=30 ARCH=posenc_transformer_tiny BATCH=2000
    BPE=500 ROWS=("${ROWS[0]}" "${ROWS[4]}")
}

corpus_of() { echo iwslt14_de_en; }
form_of() { echo vanilla; }
tests_of() { echo iwslt14; }
scoring_of() { SCORE_OPTIONS=(--remove-bpe none --bins 10,20,30,50); }

training_of() {
    SHAPE_OF_MODEL=(6 512 4) TOKENS=4096
    TRAIN_OPTIONS=(--arch "${ARCH:-posenc_transformer_iwslt_de_en}" --share-decoder-input-output-embed
        --optimizer adam --adam-betas '(0.9,0.98)' --clip-norm 0
        --lr 5e-4 --lr-scheduler inverse_sqrt --warmup-updates "$WARMUP"
        --dropout 0.3 --weight-decay 0.0001
        --criterion label_smoothed_cross_entropy --label-smoothing 0.1
        --max-update "${UPDATES:-50000}" --keep-last-epochs 1
        --eval-bleu --eval-bleu-args '{"beam": 5, "max_len_a": 1.2, "max_len_b": 10}'
        --eval-bleu-detok moses --eval-bleu-remove-bpe
        --best-checkpoint-metric bleu --maximize-best-checkpoint-metric)
    GENERATE_OPTIONS=(--batch-size 128 --beam 5 --remove-bpe)
}

# By length, of the cells that are scored.
make_tables() {
    local metric row files=()
    while IFS= read -r row; do
        if [[ $PLAN == yes || -e ${row#*=} ]]; then files+=("$row"); fi
    done < <(cells list | awk -F '\t' '{ print $2 "=" $4 "/score.json" }')
    ((${#files[@]})) || die "no training has been scored: run stages 2 to 8 first"
    for metric in $TABLES; do
        execute posenc table --by-length "${files[@]}" --test iwslt14 --metric "$metric" \
            --output "$RUN_DIR/$metric".{md,csv}
        say "table: $RUN_DIR/$metric.md, .csv"
    done
}

# fairseq's default, which these recipes do not take
MULTIPLE=8
parse_options "$@"
reproduce

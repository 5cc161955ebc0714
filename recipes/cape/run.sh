#!/usr/bin/env bash
# CAPE (Likhomanenko et al. 2021), Table 2 and Figure 8: WMT14 English to German and to French, with
# ADMIN's initialisation, 6 and 18 layers.
set -euo pipefail
CDPATH= cd "$(dirname "$0")/../.."
source recipes/lib/stages.sh
source recipes/lib/wmt.sh

usage() {
    cat <<'HELP'
usage: bash recipes/cape/run.sh [options] [-- options for fairseq-train]

From the archives of WMT14 to the paper's table of tokenised BLEU, also by length (percentiles).
Settings: de6 and de18 (6L-6L and 18L-18L, to German), fr6 (6L-6L, to French). CAPE has the Δmax that
the first version of the paper names as best, 5 for 6 layers and 10 for 18: 27 trainings.

  --epochs N          (150 for German, 75 for French)
  --preset gpu        a first try on one GPU, with bf16: 6 layers, to German, three rows, one seed,
                      30,600 updates, which are 1 billion tokens; not tried on a GPU here
  --sweep LIST        further Δmax of CAPE in every setting (5,10,50 are the later version's: 18
                      trainings more)
HELP
    wmt_usage
    cat <<'HELP'

Defaults are those of the paper and of ADMIN's recipes, which it follows: joint BPE of 32,764 and
40,000 operations, RAdam (0.9, 0.98), learning rate 0.001 and 0.0007, 8,000 warm-up updates, no weight
decay, no clipping, label smoothing 0.1, dropout 0.1, also of attention and after ReLU; 4 × 8192 and
8 × 8000 × 10 tokens per update; the checkpoint of best BLEU on the validation set; beam 4 with
length penalty 0.6 and beam 5 with 0.8. α of CAPE is measured from the training set and written into
the log (the paper has 1.0337 and 1.1632). Only CAPE has <s> before the source.
HELP
}

RUN_DIR=runs/cape SETTINGS='de6 de18 fr6' SEEDS='1 2 3' KEEP=0 EPOCHS='' WARMUP=8000
TABLES=cape-2 ADMIN=yes OWN_ROWS=no SHIFTS=''
ROWS=(sinusoidal learned)

add_shift() {
    ROWS+=("cape_$1=cape --position-global-shift $1 --position-source-scale auto --prepend-source-bos")
}
add_shift 5
add_shift 10

set_smoke() {
    RAW_DIR=recipes/smoke/wmt
    RUN_DIR=runs/cape-smoke SEEDS=1 EPOCHS=3 UPDATES=60 WARMUP=30 ARCH=posenc_transformer_tiny
    BATCH=2000 BPE=500
}

set_gpu() {
    RUN_DIR=runs/cape-gpu SETTINGS=de6 SEEDS=1 UPDATES=30600 EXTRA=(--bf16)
}

OPTIONS='preset epochs'

own_option() {
    case $1 in
        --sweep) SHIFTS=${2//,/ } ;;
        *) wmt_option "$@" ;;
    esac
}

# By default one Δmax of CAPE, and those of the sweep.
rows_of() {
    local row shift best=5
    if [[ $1 == de18 ]]; then best=10; fi
    for row in "${ROWS[@]}"; do
        shift=${row%%=*}
        if [[ $OWN_ROWS == yes || $row != cape_* || " $best $SHIFTS " == *" ${shift#cape_} "* ]]; then
            echo "$row"
        fi
    done
}

corpus_of() { [[ $1 == fr6 ]] && echo wmt14_en_fr || echo wmt14_en_de; }
form_of() { echo vanilla; }
tests_of() { echo valid newstest2014; }
scoring_of() { SCORE_OPTIONS=(--percentiles); }

# Figure 8
analyse() {
    local test files
    mapfile -t files < <(scored "$1" score.json)
    ((${#files[@]})) || return 0
    for test in $(tests_of "$1"); do
        execute posenc plot --by-length "${files[@]}" --test "$test" --metric tokenised_bleu \
            --output "$RUN_DIR/$1/figure_8_$test.png"
    done
}

training_of() {
    local lr=0.001 epochs=${EPOCHS:-150} beam=4 lenpen=0.6 layers=6 arch=posenc_transformer_wmt_en_de
    TOKENS=$((4 * 8192)) PROFILE_TOKENS=8192
    case $1 in
        de18) layers=18 arch=posenc_transformer_wmt_en_de_18l ;;
        fr6) lr=0.0007 epochs=${EPOCHS:-75} TOKENS=$((8 * 8000 * 10)) PROFILE_TOKENS=8000 beam=5 lenpen=0.8 ;;
    esac
    SHAPE_OF_MODEL=("$layers" 512 8)
    TRAIN_OPTIONS=(--arch "${ARCH:-$arch}" --share-all-embeddings
        --dropout 0.1 --attention-dropout 0.1 --activation-dropout 0.1
        --criterion label_smoothed_cross_entropy --label-smoothing 0.1
        --optimizer posenc_radam --radam-betas '(0.9,0.98)' --clip-norm 0 --weight-decay 0
        --lr "$lr" --lr-scheduler inverse_sqrt --warmup-init-lr 1e-7 --warmup-updates "$WARMUP"
        --max-epoch "$epochs" ${UPDATES:+--max-update "$UPDATES"} --keep-last-epochs 1
        --eval-bleu --eval-bleu-remove-bpe --eval-tokenized-bleu
        --eval-bleu-args "{\"beam\":$beam,\"lenpen\":$lenpen,\"max_len_a\":1.2,\"max_len_b\":20}"
        --best-checkpoint-metric bleu --maximize-best-checkpoint-metric)
    GENERATE_OPTIONS=(--beam "$beam" --lenpen "$lenpen" --max-tokens 8000 --max-len-a 1.2
        --max-len-b 20)
}

parse_options "$@"
whole_numbers EPOCHS
no_repeats --sweep $SHIFTS
for shift in $SHIFTS; do
    [[ $shift =~ ^[1-9][0-9]*$ ]] || die "$shift is not a whole number above 0 (--sweep; see --help)"
    if [[ " ${ROWS[*]}" != *" cape_$shift="* ]]; then add_shift "$shift"; fi
done
reproduce

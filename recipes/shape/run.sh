#!/usr/bin/env bash
# SHAPE (Kiyono et al. 2021), Tables 1, 2, 5, 6 and 7, Figures 2, 3, 4, 7 and 8: WMT16 English to German as
# it is, with long sentences kept from training (EXTRAPOLATE), and with ten sentences joined to one
# (INTERPOLATE).
set -euo pipefail
CDPATH= cd "$(dirname "$0")/../.."
source recipes/lib/stages.sh
source recipes/lib/wmt.sh

usage() {
    cat <<'HELP'
usage: bash recipes/shape/run.sh [options] [-- options for fairseq-train]

From the archives of WMT16 (europarl v7, common crawl, news commentary v11) to the paper's tables of
BLEU on newstest2010-2016, with speed and training time, and of sentences moved to the end of a joined
input. As in Table 2, VANILLA alone has five seeds and INTERPOLATE has no Shaw: 21 trainings.
--seeds and --encodings are of all settings.

  --preset gpu        a first try on one GPU, with bf16: EXTRAPOLATE, its three rows, one seed,
                      9,000 updates, which are 1 billion tokens; not tried on a GPU here
  --sweep LIST        further K of SHAPE on EXTRAPOLATE, with the first seed (40, which Table 2's
                      section 3.3 reports; 10,20,30,40,100 are the paper's tuning, 4 trainings more)
  --pairs N           joined pairs of the training text for Table 1 (10000)
  --interval N        updates between checkpoints, of which the last 10 are averaged (5000)
  --lenpen X          length penalty: sums of log-probabilities are divided by length^X (0: none)
  --dictionary N      the most frequent subwords, the others are unknown (32768)
HELP
    wmt_usage
    cat <<'HELP'

Defaults are those of the paper's Table 4: Transformer base, Adam (0.9, 0.98), Noam's schedule with
factor 2 and 8,000 warm-up updates, dropout 0.1, label smoothing 0.1, 112,000 tokens per update,
200,000 updates, beam 4. As in the authors' code: normalisation before each sub-layer, dropout 0.1
also of attention and after ReLU, and no length penalty; for Shaw one table for keys and values, and
embeddings neither scaled nor dropped. The dictionary has the size of Ott et al. 2018, which makes the
61 million parameters of Table 6. Our readings: every setting has the vocabulary of its own training
text; the rest (< 10) of the joined training sentences is dropped, that of validation and test sets is
a shorter one; separators are scored as they stand.
HELP
}

RUN_DIR=runs/shape SETTINGS='vanilla extrapolate interpolate' KEEP=10 PAIRS=10000
SEEDS='1 2 3 4 5' SEEDS_NOTE='elsewhere than on vanilla 1' OWN_SEEDS=no OWN_ROWS=no
INTERVAL=5000 TABLES='shape-1 shape-2 shape-5 shape-6 shape-7' AVERAGE_OPTIONS=(--by updates)
LENPEN=0 DICTIONARY=32768
ROWS=(sinusoidal "shaw=shaw --position-shared-tables --no-scale-embedding --no-embedding-dropout" shape)

set_smoke() {
    RAW_DIR=recipes/smoke/wmt
    RUN_DIR=runs/shape-smoke SEEDS=1 PAIRS=4 KEEP=2 ARCH=posenc_transformer_tiny UPDATES=60 INTERVAL=20
    BATCH=2000 BPE=500 ROWS=(sinusoidal shape)
    set_sweep 40
}

set_gpu() {
    RUN_DIR=runs/shape-gpu SETTINGS=extrapolate SEEDS=1 SWEEP=() UPDATES=9000 INTERVAL=450
    TABLES='shape-2 shape-5' EXTRA=(--bf16)
}

# set_sweep LIST
set_sweep() {
    local shift
    SWEEP=() SWEEP_SETTING=extrapolate
    for shift in ${1//,/ }; do
        [[ $shift =~ ^[1-9][0-9]*$ ]] || die "$shift is not a whole number above 0 (--sweep; see --help)"
        SWEEP+=("shape_K$shift=shape --position-max-shift $shift")
    done
}

OPTIONS='preset interval pairs lenpen dictionary'

own_option() {
    case $1 in
        --sweep) set_sweep "$2" ;;
        --seeds) SEEDS=${2//,/ } OWN_SEEDS=yes ;;
        *) wmt_option "$@" ;;
    esac
}

# By default those of Table 2.
seeds_of() { [[ $1 == vanilla || $OWN_SEEDS == yes ]] && echo "$SEEDS" || echo "${SEEDS%% *}"; }
rows_of() {
    local row
    for row in "${ROWS[@]}"; do
        if [[ $1 == interpolate && $OWN_ROWS == no && $row == shaw=* ]]; then continue; fi
        echo "$row"
    done
}

corpus_of() { echo wmt16_en_de; }
form_of() { echo "$1"; }
# As in Figure 4; for Figures 3 and 7 the paper does not tell them.
bins_of() { [[ $1 == interpolate ]] && echo 100,200,300,400,500 || echo 10,20,30,40,50,60,70; }
# Figure 4 is of the validation sets.
pooled_of() { echo newstest201{0..3}; }
tests_of() { all_tests_of "$1"; }
scoring_of() {
    SCORE_OPTIONS=()
    if [[ $1 == interpolate ]]; then SCORE_OPTIONS=(--without-token '<sep>'); fi
}

training_of() {
    local updates=${UPDATES:-200000} warmup longest=1024
    warmup=$((updates < 16000 ? updates / 2 : 8000))
    if [[ $1 == interpolate ]]; then longest=4096; fi
    SHAPE_OF_MODEL=(6 512 8) TOKENS=112000
    # 2 · 512^-½ · 8000^-½ is the peak of Noam's schedule with factor 2
    TRAIN_OPTIONS=(--arch "${ARCH:-posenc_transformer_wmt_en_de}" --share-all-embeddings
        --encoder-normalize-before --decoder-normalize-before
        --dropout 0.1 --attention-dropout 0.1 --activation-dropout 0.1
        --criterion label_smoothed_cross_entropy --label-smoothing 0.1
        --optimizer adam --adam-betas '(0.9,0.98)' --adam-eps 1e-8 --clip-norm 0
        --lr 0.000988212 --lr-scheduler inverse_sqrt --warmup-updates "$warmup"
        --max-source-positions "$longest" --max-target-positions "$longest"
        --max-update "$updates" --save-interval-updates "$INTERVAL"
        --keep-interval-updates "$KEEP" --no-epoch-checkpoints --skip-invalid-size-inputs-valid-test)
    GENERATE_OPTIONS=(--beam 4 --lenpen "$LENPEN" --max-tokens 8000 --max-len-a 1.2 --max-len-b 20)
}

# Figures 3, 7 and 8 of all seeds; of the first seed Figure 4, and of INTERPOLATE, as in section 3.2, Table
# 1 and Figure 2.
analyse() {
    local folder=$RUN_DIR/$1 seed model models=() named='' files
    local about=(--data "$RUN_DIR/bin/$1" "${DEVICE_OPTIONS[@]}")
    mapfile -t files < <(scored "$1" by_length.json)
    ((${#files[@]})) || return 0
    execute posenc plot --by-length "${files[@]}" --output "$folder/figure_7.png"
    execute posenc plot --by-length "${files[@]}" --differences --output "$folder/figure_3.png"
    mapfile -t files < <(scored "$1" train.log)
    writing "$folder/figure_8.md" posenc plot --curves "${files[@]}" --output "$folder/figure_8.png"
    seed=$(seeds_of "$1")
    for model in $(scored "$1" average.pt); do
        if [[ $model == */"seed${seed%% *}"/* ]]; then models+=("$model") named+=" ${model%%=*} "; fi
    done
    if [[ $1 != vanilla && $named == *" sinusoidal "*" shape "* ]]; then
        mapfile -t files < <(printf '%s\n' "${models[@]}" | grep -E '^(sinusoidal|shape)=')
        once "$folder/figure_4" posenc analyse tokens --models "${files[@]}" "${about[@]}" --subset test1 \
            --position-bins "$(bins_of "$1")"
    fi
    if [[ $1 != interpolate ]]; then return; fi
    once "$folder/figure_2" posenc analyse shift-invariance --models "${models[@]}" "${about[@]}" --sentences 1000
    training_of "$1"
    say "[$1] translate $PAIRS joined pairs of the training text in two orders"
    once "$folder/swap" posenc analyse swap --models "${models[@]}" "${about[@]}" --pairs "$PAIRS" "${GENERATE_OPTIONS[@]}"
}

set_sweep 40
parse_options "$@"
whole_numbers INTERVAL PAIRS DICTIONARY
[[ $LENPEN =~ ^[0-9]*\.?[0-9]+$ ]] || die "--lenpen is a number, not $LENPEN"
reproduce

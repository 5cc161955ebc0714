#!/usr/bin/env bash
# Python's documentation, English to Spanish: real text with long paragraphs, SHAPE's EXTRAPOLATE.
set -euo pipefail
CDPATH= cd "$(dirname "$0")/.."
source recipes/lib/stages.sh
source recipes/lib/translation.sh

usage() {
    cat <<'HELP'
usage: bash recipes/python_docs.sh [options] [-- options for fairseq-train]

Trains translation models with different position encodings on the paragraphs of Python's
documentation that have at most --longest subwords, and scores them on longer ones too. Started
again, it continues where it was.

  --data-dir DIR      take {train,valid,test}.{en,es}, or these with .gz, from here, do not download
  --longest N         subwords of either side in training (48)
  --run-dir DIR       results (runs/python_docs)
  --encodings LIST    comma-separated rows, each `encoding [option…]` or `label=encoding [option…]`
                      (sinusoidal, shape=shape --position-max-shift 80,
                      cape=cape --position-source-scale auto, shaw, rotary, alibi)
  --seeds LIST        comma-separated (1,2,3)
  --updates N         (3000)
  --plan              print the commands, and stop
  --device cpu|cuda   (cuda if there is one)
  --jobs N            trainings at a time (number of cores on a CPU, 1 on a GPU)
  --stage N           start at this stage: 1 set-up, 2 data, 3 subwords, 4 binarise, 5 train,
  --stop-stage N      stop after this one: 6 translate, 7 score, 8 table
HELP
}

SOURCE=en TARGET=es BPE_SIZE=6000 KEEP=0
RUN_DIR=runs/python_docs DATA_DIR='' LONGEST=48 UPDATES=3000 SEEDS='1 2 3'
URL=https://github.com/python/python-docs-es/archive/91f4ccc0.tar.gz
# the longest tests have 128 subwords: SHAPE's K = 80 lets training reach positions up to there
ROWS=(sinusoidal "shape=shape --position-max-shift 80" "cape=cape --position-source-scale auto"
    shaw rotary alibi)

OPTIONS='data-dir longest updates'
parse_arguments "$@"
whole_numbers LONGEST UPDATES
TEXT_DIR=$RUN_DIR/text

get_data() {
    local split language file
    execute mkdir -p "$RUN_DIR/raw" "$TEXT_DIR"
    [[ -n $DATA_DIR ]] || download
    for split in train valid test; do
        for language in $SOURCE $TARGET; do
            file=${DATA_DIR:-$RUN_DIR/raw}/$split.$language
            [[ -e $file || $PLAN == yes ]] || file=$file.gz
            [[ -r $file || $PLAN == yes ]] || die "${file%.gz} is missing (--data-dir)"
            execute posenc prepare tokenise --language "$language" --input "$file" \
                --output "$TEXT_DIR/$split.tok.$language"
        done
    done
}

# The translations at a pinned commit, as text.
download() {
    [[ $PLAN == yes ]] || python -c 'import polib' 2>/dev/null || die "polib reads the translations: pip install polib"
    say "download $URL"
    execute curl --fail --location --silent --show-error --retry 3 "$URL" --output "$RUN_DIR/raw/docs.tar.gz" ||
        die "cannot download $URL; with text that is ready, give --data-dir"
    execute tar -xzf "$RUN_DIR/raw/docs.tar.gz" -C "$RUN_DIR/raw"
    execute python -m recipes.lib.po_text "$RUN_DIR"/raw/python-docs-es-*/ --output "$RUN_DIR/raw" --language "$TARGET"
}

# Training and validation have no long pairs; the test set ends at 128 subwords.
make_binary() {
    local split longest=$LONGEST
    for split in train valid test; do
        if [[ $split == test ]]; then longest=128; fi
        execute posenc prepare pairs setting extrapolate --longest "$longest" --input "$RUN_DIR/$split.bpe" \
            --output "$RUN_DIR/$split.short" --languages "$SOURCE,$TARGET"
    done
    binarise "$RUN_DIR"/{train,valid,test}.short
}

set_up
choose_device
open_run_dir "$RUN_DIR" --longest "$LONGEST"
TRAIN_OPTIONS=(--arch posenc_transformer --share-all-embeddings
    --encoder-layers 3 --decoder-layers 3 --encoder-embed-dim 256 --decoder-embed-dim 256
    --encoder-ffn-embed-dim 1024 --decoder-ffn-embed-dim 1024
    --encoder-attention-heads 4 --decoder-attention-heads 4
    --encoder-normalize-before --decoder-normalize-before
    --dropout 0.1 --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --optimizer adam --adam-betas '(0.9,0.98)' --lr 0.002 --warmup-updates $((UPDATES / 5))
    --lr-scheduler polynomial_decay --total-num-update "$UPDATES" --max-update "$UPDATES"
    --max-tokens 4096 --save-interval-updates 250 --keep-interval-updates 1 --no-epoch-checkpoints
    "${EXTRA[@]}")
GENERATE_OPTIONS=(--beam 4 --max-tokens 4000 --max-len-a 1.5 --max-len-b 10 "${DEVICE_OPTIONS[@]}")
# the limits are of subwords: 1-48, 49-64, 65-96, and up to 128
SCORE_OPTIONS=(--bins "$LONGEST,$((LONGEST * 4 / 3)),$((LONGEST * 2))" --length-unit subwords)

stage 2 "data" "$RUN_DIR/data.done" get_data
stage 3 "subwords" "$RUN_DIR/subwords.done" learn_subwords
stage 4 "binarise" "$RUN_DIR/binarise.done" make_binary
train_translate_score 5

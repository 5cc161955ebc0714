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
documentation that have at most --longest sentencepieces, and scores them on longer ones too: bits
per token of the references, and BLEU. Started again, it continues where it was.

  --data-dir DIR      take {train,valid,test}.{en,es}, or these with .gz, from here, do not download
  --preset NAME       small: 2+2 layers of width 128, at most 32 sentencepieces, 1,800 updates of 2,000
                      tokens, 5 seeds: for a CPU; base: 3+3 layers of width 256, at most 48, 3,000
                      updates of 4,096 tokens, 3 seeds (small; base was not run to the end)
  --longest N         sentencepieces of either side in training (by preset)
  --pieces N          sentencepieces to learn (6000)
  --test N            test pairs of each range of lengths (300)
  --run-dir DIR       results (runs/python_docs)
  --encodings LIST    comma-separated rows, each `encoding [option…]` or `label=encoding [option…]`
                      (sinusoidal, shape=shape --position-max-shift K, K = 2 × longest,
                      cape=cape --position-source-scale auto, shaw, rotary, alibi)
  --seeds LIST        comma-separated (by preset)
  --updates N         (by preset)
  --plan              print the commands, and stop
  --device cpu|cuda   (cuda if there is one)
  --jobs N            trainings at a time (number of cores on a CPU, 1 on a GPU)
  --stage N           start at this stage: 1 set-up, 2 data, 3 subwords, 4 binarise, 5 train,
  --stop-stage N      stop after this one: 6 translate, 7 score, 8 table, 9 bits per token
HELP
}

SOURCE=en TARGET=es KEEP=0 PIECES=6000 TEST=300 PRESET=small LONGEST='' UPDATES='' SEEDS=''
RUN_DIR=runs/python_docs DATA_DIR='' ROWS=()
URL=https://github.com/python/python-docs-es/archive/91f4ccc0.tar.gz

OPTIONS='data-dir preset longest pieces test updates'
parse_arguments "$@"
whole_numbers LONGEST PIECES TEST UPDATES
case $PRESET in
    small) LAYERS=2 WIDTH=128 LR=0.004 TOKENS=2000 LONGEST=${LONGEST:-32} UPDATES=${UPDATES:-1800} SEEDS=${SEEDS:-1 2 3 4 5} ;;
    base) LAYERS=3 WIDTH=256 LR=0.002 TOKENS=4096 LONGEST=${LONGEST:-48} UPDATES=${UPDATES:-3000} SEEDS=${SEEDS:-1 2 3} ;;
    *) die "--preset is small or base, not $PRESET" ;;
esac
# SHAPE's K lets training reach the positions of the longest tests
((${#ROWS[@]})) || ROWS=(sinusoidal "shape=shape --position-max-shift $((2 * LONGEST))"
    "cape=cape --position-source-scale auto" shaw rotary alibi)
# up to the trained length, then up to 1.5, 2 and 3 times that
EDGES=("$LONGEST" $((LONGEST * 3 / 2)) $((LONGEST * 2)) $((LONGEST * 3)))
RANGES=5-${EDGES[0]},$((EDGES[0] + 1))-${EDGES[1]},$((EDGES[1] + 1))-${EDGES[2]},$((EDGES[2] + 1))-${EDGES[3]}
PREPARE=(posenc prepare translation --source-lang "$SOURCE" --target-lang "$TARGET" --workers "$(cores)")

get_data() {
    local split language file
    execute mkdir -p "$RUN_DIR/raw" "$RUN_DIR/text"
    [[ -n $DATA_DIR ]] || download
    for split in train valid test; do
        for language in $SOURCE $TARGET; do
            file=${DATA_DIR:-$RUN_DIR/raw}/$split.$language
            [[ -r $file || -r $file.gz || $PLAN == yes ]] || die "$file is missing (--data-dir)"
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

# From all of the training text, long paragraphs too, so that their words are no others.
learn_subwords() {
    local raw=${DATA_DIR:-$RUN_DIR/raw}
    execute "${PREPARE[@]}" --train "$raw/train" --valid "$raw/valid" --sentencepiece "$PIECES" \
        --output "$RUN_DIR/subwords"
}

# Training and validation have no long pairs; each range of the test has as many as another.
make_binary() {
    local raw=${DATA_DIR:-$RUN_DIR/raw} pick=(python -m recipes.lib.pick_pairs
        --subwords "$RUN_DIR/subwords" --languages "$SOURCE,$TARGET")
    execute "${pick[@]}" --input "$raw/valid" --ranges "1-$LONGEST" --output "$RUN_DIR/text/valid"
    execute "${pick[@]}" --input "$raw/test" --ranges "$RANGES" --each "$TEST" --output "$RUN_DIR/text/test"
    execute "${PREPARE[@]}" --train "$raw/train" --valid "$RUN_DIR/text/valid" --test "$RUN_DIR/text/test" \
        --subwords "$RUN_DIR/subwords" --max-length "$LONGEST" --output "$RUN_DIR/bin"
}

# The references of the test set under each model, by range of lengths.
bits() {
    local seed label folder options
    open_cell "$1"
    once "$folder/bits.json" python -m recipes.claims.bits "$folder/checkpoint_last.pt" --data "$RUN_DIR/bin" \
        --score "$folder/score.json" "${DEVICE_OPTIONS[@]}"
}

# Tables, a picture, and what these say of the expectations on docs/recipes/python_docs.md.
all_bits() {
    local files
    if [[ $PLAN == no ]]; then each_cell bits; fi
    cell_files bits.json
    execute python -m recipes.claims.bits_table "${files[@]}" --output "$RUN_DIR/bits" --margin 0.1 \
        --expect shape=less --expect cape=less --expect shaw=less --expect rotary=equal --expect alibi=less
}

set_up
choose_device
open_run_dir "$RUN_DIR" --longest "$LONGEST" --pieces "$PIECES" --test "$TEST"
TRAIN_OPTIONS=(--arch posenc_transformer --share-all-embeddings
    --encoder-layers "$LAYERS" --decoder-layers "$LAYERS" --encoder-embed-dim "$WIDTH" --decoder-embed-dim "$WIDTH"
    --encoder-ffn-embed-dim $((4 * WIDTH)) --decoder-ffn-embed-dim $((4 * WIDTH))
    --encoder-attention-heads 4 --decoder-attention-heads 4
    --encoder-normalize-before --decoder-normalize-before
    --dropout 0.1 --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --optimizer adam --adam-betas '(0.9,0.98)' --lr "$LR" --warmup-updates $((UPDATES / 5))
    --lr-scheduler polynomial_decay --total-num-update "$UPDATES" --max-update "$UPDATES"
    --max-tokens "$TOKENS" --save-interval-updates 300 --keep-interval-updates 1 --no-epoch-checkpoints
    "${EXTRA[@]}")
GENERATE_OPTIONS=(--beam 4 --max-tokens 4000 --max-len-a 1.5 --max-len-b 10 "${DEVICE_OPTIONS[@]}")
SCORE_OPTIONS=(--bins "${EDGES[0]},${EDGES[1]},${EDGES[2]}" --length-unit subwords)

stage 2 "data" "$RUN_DIR/data.done" get_data
stage 3 "subwords" "$RUN_DIR/subwords.done" learn_subwords
stage 4 "binarise" "$RUN_DIR/binarise.done" make_binary
train_translate_score 5
stage 9 "bits" - all_bits

#!/usr/bin/env bash
# Which position encoding holds up on sentences longer than it was trained on? From nothing to a
# table and a picture, on an embedded English-German corpus.
set -euo pipefail
CDPATH= cd "$(dirname "$0")/.."
source recipes/lib/stages.sh
source recipes/lib/translation.sh

usage() {
    cat <<'HELP'
usage: bash recipes/quickstart.sh [options] [-- options for fairseq-train]

Makes an English-German corpus, trains a small translation model per position encoding on its short
sentences, and scores them on short and on longer ones. Started again, it continues where it was.

  --run-dir DIR       results (runs/quickstart)
  --encodings LIST    comma-separated rows, each `encoding [option…]` or `label=encoding [option…]`
                      (sinusoidal, shape=shape --position-max-shift 40,
                      cape=cape --position-source-scale auto)
  --seeds LIST        comma-separated (1,2,3)
  --train N           training pairs (60000)
  --train-length A-B  their length in English words and marks (4-20)
  --test N            test pairs per range of lengths (300)
  --test-lengths LIST ranges of lengths (4-20,21-30,31-45,46-60); of a single one the table has thirds
  --join N            make a line of N neighbouring sentences, with <sep> between them (1)
  --updates N         (2000)
  --plan              print the commands, and stop
  --device cpu|cuda   (cuda if there is one)
  --jobs N            trainings at a time (number of cores on a CPU, 1 on a GPU)
  --stage N           start at this stage: 1 set-up, 2 corpus, 3 subwords, 4 binarise, 5 train,
  --stop-stage N      stop after this one: 6 translate, 7 score, 8 table
HELP
}

SOURCE=en TARGET=de BPE_SIZE=1000 KEEP=0
RUN_DIR=runs/quickstart TRAIN=60000 TRAIN_LENGTH=4-20 TEST=300 UPDATES=2000 SEEDS='1 2 3' JOIN=1
TEST_LENGTHS=4-20,21-30,31-45,46-60
# K = 40 is what the SHAPE paper found best when long sentences are kept from training (section 3.3)
ROWS=(sinusoidal "shape=shape --position-max-shift 40" "cape=cape --position-source-scale auto")

OPTIONS='train train-length test test-lengths join updates'
parse_arguments "$@"
whole_numbers TRAIN TEST UPDATES JOIN
TEXT_DIR=$RUN_DIR/text

make_corpus() {
    local split language
    execute python -m recipes.corpus --output "$RUN_DIR/corpus" --seed 1 --quiet \
        --train "$TRAIN" --train-length "$TRAIN_LENGTH" --valid 300 \
        --test "$TEST" --test-lengths "$TEST_LENGTHS"
    for split in train valid test; do
        for language in $SOURCE $TARGET; do
            execute posenc prepare tokenise --normalise-punctuation --language "$language" \
                --input "$RUN_DIR/corpus/$split.$language" \
                --output "$TEXT_DIR/$split.tok.$language"
        done
    done
    [[ $PLAN == yes ]] ||
        say "for example: $(head -n 1 "$RUN_DIR/corpus/test.en") = $(head -n 1 "$RUN_DIR/corpus/test.de")"
}

# Of each split lines of JOIN sentences.
make_binary() {
    local split
    if ((JOIN == 1)); then
        binarise "$RUN_DIR"/{train,valid,test}.bpe
        return
    fi
    for split in train valid test; do
        execute posenc prepare pairs setting interpolate --neighbours "$JOIN" --keep-rest \
            --input "$RUN_DIR/$split.bpe" --output "$RUN_DIR/$split.joined" --languages "$SOURCE,$TARGET"
    done
    binarise "$RUN_DIR"/{train,valid,test}.joined
}

# The upper ends of all ranges but the last: the edges of the table's bins.
bin_edges() { tr , '\n' <<<"$TEST_LENGTHS" | sed 's/.*-//' | sed '$d' | paste -s -d , -; }

set_up
choose_device
open_run_dir "$RUN_DIR" --train "$TRAIN" --train-length "$TRAIN_LENGTH" --test "$TEST" \
    --test-lengths "$TEST_LENGTHS" --join "$JOIN"
TRAIN_OPTIONS=(--arch posenc_transformer --share-all-embeddings
    --encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 128 --decoder-embed-dim 128
    --encoder-ffn-embed-dim 512 --decoder-ffn-embed-dim 512
    --encoder-attention-heads 4 --decoder-attention-heads 4
    --encoder-normalize-before --decoder-normalize-before
    --dropout 0 --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --optimizer adam --adam-betas '(0.9,0.98)' --lr 0.004 --warmup-updates $((UPDATES * 3 / 20))
    --lr-scheduler polynomial_decay --total-num-update "$UPDATES" --max-update "$UPDATES"
    --max-tokens 1000 --save-interval-updates 250 --keep-interval-updates 1 --no-epoch-checkpoints
    "${EXTRA[@]}")
GENERATE_OPTIONS=(--beam 4 --max-tokens 4000 --max-len-a 1.5 --max-len-b 10 "${DEVICE_OPTIONS[@]}")
if ((JOIN == 1)); then
    SCORE_OPTIONS=(--reference "$RUN_DIR/corpus/test.$TARGET" --source "$RUN_DIR/corpus/test.$SOURCE")
    if [[ $TEST_LENGTHS == *,* ]]; then
        SCORE_OPTIONS+=(--bins "$(bin_edges)")
    else
        SCORE_OPTIONS+=(--percentiles --length-of source) # a single range has no edges
    fi
else
    SCORE_OPTIONS=(--percentiles --without-token '<sep>')
fi

stage 2 "corpus" "$RUN_DIR/corpus.done" make_corpus
stage 3 "subwords" "$RUN_DIR/subwords.done" learn_subwords
stage 4 "binarise" "$RUN_DIR/binarise.done" make_binary
train_translate_score 5

#!/usr/bin/env bash
# Language models: trained on short pieces of a text, measured on longer ones (Press et al. 2022).
set -euo pipefail
CDPATH= cd "$(dirname "$0")/.."
source recipes/lib/stages.sh
source recipes/lib/translation.sh

usage() {
    cat <<'HELP'
usage: bash recipes/lm.sh [options] [-- options for fairseq-train]

Trains language models with different position encodings on pieces of --length subwords, and measures
bits per subword on the test set in blocks of --lengths. Started again, it continues where it was.

  --data-dir DIR      take {train,valid,test}.txt, or these with .gz, from here, do not download: raw text,
                      a sentence or paragraph a line
  --language CODE     of that text, for Moses' tokeniser (en)
  --url URL           of WikiText-103 as words, when there is no --data-dir
  --run-dir DIR       results (runs/lm)
  --encodings LIST    comma-separated rows, each `encoding [option…]` or `label=encoding [option…]`; the
                      others are compared with the first (sinusoidal, rotary, alibi, t5, shaw)
  --seeds LIST        comma-separated (1,2,3)
  --length N          subwords of a piece in training (128)
  --lengths LIST      of blocks in the test (128,256,512,1024)
  --bpe N             operations of byte pair encoding (6000)
  --arch NAME         (posenc_transformer_lm_small)
  --updates N         (4000)
  --plan              print the commands, and stop
  --device cpu|cuda   (cuda if there is one)
  --jobs N            trainings at a time (number of cores on a CPU, 1 on a GPU)
  --stage N           start at this stage: 1 set-up, 2 data, 3 subwords, 4 binarise, 5 train,
  --stop-stage N      stop after this one: 6 measure
HELP
}

RUN_DIR=runs/lm DATA_DIR='' LANGUAGE=en LENGTH=128 LENGTHS=128,256,512,1024 BPE_SIZE=6000
ARCH=posenc_transformer_lm_small UPDATES=4000 SEEDS='1 2 3'
URL=https://s3.amazonaws.com/research.metamind.io/wikitext/wikitext-103-v1.zip
ROWS=(sinusoidal rotary alibi t5 shaw)

OPTIONS='data-dir language url length lengths bpe:BPE_SIZE arch updates'
parse_arguments "$@"
whole_numbers LENGTH BPE_SIZE UPDATES

# Text of space-separated tokens: RUN_DIR/{train,valid,test}.tok
get_data() {
    local split file
    execute mkdir -p "$RUN_DIR/raw"
    if [[ -z $DATA_DIR ]]; then
        execute posenc prepare download --output "$RUN_DIR/raw/wikitext-103.zip" --unpack "$RUN_DIR/raw" "$URL"
    fi
    for split in train valid test; do
        if [[ -z $DATA_DIR ]]; then
            execute cp "$RUN_DIR/raw/wikitext-103/wiki.$split.tokens" "$RUN_DIR/$split.tok"
            continue
        fi
        file=$DATA_DIR/$split.txt
        [[ -e $file || $PLAN == yes ]] || file=$file.gz
        [[ -r $file || $PLAN == yes ]] || die "${file%.gz} is missing (--data-dir)"
        execute posenc prepare tokenise --normalise-punctuation --language "$LANGUAGE" --input "$file" \
            --output "$RUN_DIR/$split.tok"
    done
}

cut_text() {
    local split
    execute_line "subword-nmt learn-bpe --symbols $BPE_SIZE <${RUN_DIR@Q}/train.tok >${RUN_DIR@Q}/bpe.codes"
    for split in train valid test; do
        execute_line "subword-nmt apply-bpe --codes ${RUN_DIR@Q}/bpe.codes" \
            "<${RUN_DIR@Q}/$split.tok >${RUN_DIR@Q}/$split.bpe"
    done
}

make_binary() {
    [[ $PLAN == yes ]] || rm -rf "$RUN_DIR/bin"
    execute posenc prepare binarise --only-source --destdir "$RUN_DIR/bin" --workers "$(cores)" \
        --trainpref "$RUN_DIR/train.bpe" --validpref "$RUN_DIR/valid.bpe" --testpref "$RUN_DIR/test.bpe"
}

describe_models() {
    local training=(--user-dir fairseq_posenc --task language_modeling --arch "$ARCH"
        --share-decoder-input-output-embed --tokens-per-sample "$LENGTH" --max-tokens 4096 --dropout 0.1
        --optimizer adam --adam-betas '(0.9,0.98)' --clip-norm 1 --lr 0.001
        --lr-scheduler polynomial_decay --warmup-updates $((UPDATES / 10)) --total-num-update "$UPDATES"
        --max-update "$UPDATES" --save-interval-updates 500 --keep-interval-updates 1
        --no-epoch-checkpoints --seed {seed} "${EXTRA[@]}" --position-encoding {encoding})
    new_sheet
    describe_rows
    sheet settings "${training[@]}"
    sheet step train train.done fairseq-train "$RUN_DIR/bin" "${training[@]}" "${DEVICE_OPTIONS[@]}" \
        --save-dir {folder} --log-format simple --log-interval 100
}

# All models at all lengths; bits per word are of the text before it was cut.
measure() {
    local files first
    complete train.done
    cell_files checkpoint_best.pt
    first=$(row_label "${ROWS[0]}")
    execute posenc perplexity --models "${files[@]}" --data "$RUN_DIR/bin" --lengths "$LENGTHS" \
        --text "$RUN_DIR/test.tok" --baseline "$first" --by-position "$LENGTH" \
        "${DEVICE_OPTIONS[@]}" --output "$RUN_DIR/perplexity"
    say "table and picture: $RUN_DIR/perplexity.md, .png"
    make_curves
}

set_up
choose_device
open_run_dir "$RUN_DIR" --language "$LANGUAGE" --bpe "$BPE_SIZE"
stage 2 "data" "$RUN_DIR/data.done" get_data
stage 3 "subwords" "$RUN_DIR/subwords.done" cut_text
stage 4 "binarise" "$RUN_DIR/binarise.done" make_binary
describe_models
if [[ $PLAN == yes ]]; then
    say "stage 5: train"
    cells plan
else
    stage 5 "train" - all_cells train
fi
stage 6 "measure" - measure

#!/usr/bin/env bash
# Multi30k, English to German: from the download to a table of BLEU by length.
set -euo pipefail
CDPATH= cd "$(dirname "$0")/.."
source recipes/lib/stages.sh
source recipes/lib/translation.sh

usage() {
    cat <<'HELP'
usage: bash recipes/multi30k.sh [options] [-- options for fairseq-train]

Trains translation models with different position encodings on Multi30k (29,000 pairs) and scores
them on the 2016 test set, by length. Started again, it continues where it was.

  --raw-dir DIR       take {train,val,test_2016_flickr}.{en,de}.gz from here, do not download
  --url URL           download from here (a mirror of the data set's data/task1/raw)
  --setting NAME      as in SHAPE, section 3.1: vanilla; extrapolate: no training pair is longer than
                      --longest; interpolate: ten neighbouring sentences are joined to one (vanilla)
  --longest N         subwords of either side (16; the paper has 50 for WMT)
  --run-dir DIR       results (runs/multi30k, runs/multi30k_extrapolate, runs/multi30k_interpolate)
  --encodings LIST    comma-separated rows, each `encoding [option…]` or `label=encoding [option…]`
                      (sinusoidal, shape, cape=cape --position-source-scale auto)
  --seeds LIST        (1)
  --epochs N          (15)
  --dim N             width of the model; the FFN is twice as wide (128)
  --layers N          layers of encoder and decoder (3)
  --heads N           attention heads (4)
  --max-tokens N      tokens per batch (2048)
  --lr X              peak learning rate (0.005; interpolate: 0.004)
  --plan              print the commands, and stop
  --device cpu|cuda   (cuda if there is one)
  --jobs N            trainings at a time (number of cores on a CPU, 1 on a GPU)
  --stage N           start at this stage: 1 set-up, 2 data, 3 subwords, 4 binarise, 5 train,
  --stop-stage N      stop after this one: 6 translate, 7 score, 8 table

On a GPU, full size:
  bash recipes/multi30k.sh --dim 512 --layers 6 --heads 8 --max-tokens 8192 --lr 0.0007 \
    --epochs 60 -- --fp16
HELP
}

SOURCE=en TARGET=de BPE_SIZE=6000 KEEP=5
SETTING=vanilla LONGEST=16 RUN_DIR='' RAW_DIR='' EPOCHS=15 DIM=128 LAYERS=3 HEADS=4 MAX_TOKENS=2048
LR=''
URL=https://raw.githubusercontent.com/multi30k/dataset/c9be912dc05a3ebf9ae5bb5f7f58c1791cda43ab/data/task1/raw
ROWS=(sinusoidal shape "cape=cape --position-source-scale auto")

OPTIONS='raw-dir url setting longest epochs dim layers heads max-tokens lr'
parse_arguments "$@"
whole_numbers LONGEST EPOCHS DIM LAYERS HEADS MAX_TOKENS
BINS=10,15,20 REGIME=(--lr "${LR:-0.005}" --warmup-updates 1000 --dropout 0.3)
case $SETTING in
    vanilla) RUN_DIR=${RUN_DIR:-runs/multi30k} ;;
    extrapolate) BINS=$LONGEST,$((LONGEST * 3 / 2)),$((LONGEST * 2)) ;;
    interpolate)
        BINS=130,150
        # in the other regime small models hardly learn to align inputs that are so long
        REGIME=(--lr "${LR:-0.004}" --warmup-updates 400 --dropout 0.1
            --encoder-normalize-before --decoder-normalize-before)
        ;;
    *) die "--setting is vanilla, extrapolate or interpolate, not $SETTING" ;;
esac
RUN_DIR=${RUN_DIR:-runs/multi30k_$SETTING}
TEXT_DIR=$RUN_DIR/text

get_data() {
    local name language split splits=(train:train val:valid test_2016_flickr:test)
    execute mkdir -p "$RUN_DIR/raw" "$TEXT_DIR"
    for split in "${splits[@]}"; do
        for language in $SOURCE $TARGET; do
            name=${split%:*}.$language.gz
            fetch "$name"
            [[ $PLAN == yes ]] || say "tokenise $name"
            execute posenc prepare tokenise --normalise-punctuation --language "$language" --input "$RUN_DIR/raw/$name" \
                --output "$TEXT_DIR/${split#*:}.tok.$language"
        done
    done
}

# --raw-dir has no other files than those that were taken before.
same_raw() {
    local name old
    for name in {train,val,test_2016_flickr}.{"$SOURCE","$TARGET"}.gz; do
        old=$RUN_DIR/raw/$name
        [[ ! -e $old || ! -e $RAW_DIR/$name ]] || cmp -s "$RAW_DIR/$name" "$old" ||
            die "$RUN_DIR was made from another $name than $RAW_DIR/$name; give another --run-dir"
    done
}

fetch() {
    local file=$RUN_DIR/raw/$1 load=(curl --fail --location --silent --show-error --retry 3 --output)
    if [[ $PLAN == yes ]]; then
        if [[ -n $RAW_DIR ]]; then print_command cp "$RAW_DIR/$1" "$file"; fi
        if [[ -z $RAW_DIR ]]; then print_command "${load[@]}" "$file" "$URL/$1"; fi
        return
    fi
    if [[ -e $file ]]; then return; fi
    if [[ -n $RAW_DIR ]]; then
        [[ -r $RAW_DIR/$1 ]] || die "$RAW_DIR/$1 is missing"
        cp "$RAW_DIR/$1" "$file.part"
    else
        say "download $URL/$1"
        "${load[@]}" "$file.part" --continue-at - "$URL/$1" ||
            die "cannot download $URL/$1; fetch the files by hand and give --raw-dir"
    fi
    gzip --test "$file.part" || { rm "$file.part" && die "$1 is damaged; start again"; }
    mv "$file.part" "$file"
}

# Of each split what the setting makes of it.
make_binary() {
    local split options language
    for split in train valid test; do
        case $SETTING-$split in
            extrapolate-train) options=(extrapolate --longest "$LONGEST") ;;
            interpolate-train) options=(interpolate) ;;
            interpolate-*) options=(interpolate --keep-rest) ;;
            *)
                for language in $SOURCE $TARGET; do
                    execute ln -sf "$split.bpe.$language" "$RUN_DIR/$split.$SETTING.$language"
                done
                continue
                ;;
        esac
        execute posenc prepare pairs setting "${options[@]}" --input "$RUN_DIR/$split.bpe" \
            --output "$RUN_DIR/$split.$SETTING" --languages "$SOURCE,$TARGET"
    done
    binarise "$RUN_DIR"/{train,valid,test}."$SETTING"
}

set_up
choose_device
FORM=(--setting "$SETTING")
if [[ $SETTING == extrapolate ]]; then FORM+=(--longest "$LONGEST"); fi
open_run_dir "$RUN_DIR" "${FORM[@]}"
if [[ -n $RAW_DIR && $PLAN == no ]]; then same_raw; fi
TRAIN_OPTIONS=(--arch posenc_transformer --share-all-embeddings
    --encoder-layers "$LAYERS" --decoder-layers "$LAYERS"
    --encoder-embed-dim "$DIM" --decoder-embed-dim "$DIM"
    --encoder-ffn-embed-dim $((2 * DIM)) --decoder-ffn-embed-dim $((2 * DIM))
    --encoder-attention-heads "$HEADS" --decoder-attention-heads "$HEADS"
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --optimizer adam --adam-betas '(0.9,0.98)' --lr-scheduler inverse_sqrt "${REGIME[@]}"
    --max-tokens "$MAX_TOKENS" --max-epoch "$EPOCHS" "${EXTRA[@]}")
GENERATE_OPTIONS=(--beam 5 --max-tokens 4000 --max-len-a 1.5 --max-len-b 10 "${DEVICE_OPTIONS[@]}")
SCORE_OPTIONS=(--bins "$BINS")
case $SETTING in
    # the limit of training is one of subwords
    extrapolate) SCORE_OPTIONS+=(--length-unit subwords) ;;
    interpolate) SCORE_OPTIONS+=(--without-token '<sep>') ;;
esac

stage 2 "data" "$RUN_DIR/data.done" get_data
stage 3 "subwords" "$RUN_DIR/subwords.done" learn_subwords
stage 4 "binarise" "$RUN_DIR/binarise.done" make_binary
train_translate_score 5

#!/usr/bin/env bash
# Anchors: models that others have published, through our text, fine-tuning and scoring, against the
# figures that everybody knows.
set -euo pipefail
CDPATH= cd "$(dirname "$0")/.."
source recipes/lib/stages.sh
source recipes/lib/options.sh
source recipes/lib/rows.sh

usage() {
    cat <<'HELP'
usage: bash recipes/anchors.sh [wmt14|bert] [options]

  wmt14   fairseq's transformer.wmt16.en-de (Ott et al. 2018) translates newstest2014, prepared from
          sacreBLEU's raw text and scored by posenc score. fairseq's page has 28.6 sacreBLEU (of an
          average of 10 checkpoints).
  bert    bert-base-uncased, imported by posenc import, is fine-tuned by recipes/glue/run.sh. Devlin et
          al. 2019, Table 5, have 84.4 (MNLI-m), 86.7 (MRPC) and 92.7 (SST-2) on the development sets.

  --plan              print the commands, without any set-up, for a GPU unless --device says cpu, and stop
  --smoke             tiny stand-ins of the same layout, made here, offline: figures say nothing
  --data-dir DIR      where the downloads are, or go to (<run folder>/raw)
  --run-dir DIR       results (runs/anchors)
  --seeds LIST        comma-separated, of bert (1,2,3)
  --device cpu|cuda   (cuda if there is one)
  --jobs N            fine-tunings at a time (number of GPUs, or of cores on a CPU)
  --stage N           start at this stage: 1 set-up, 2 download, 3 text or import,
  --stop-stage N      stop after this one: 4 translate or fine-tune, 5 compare
HELP
}

RUN_DIR=runs/anchors DATA_DIR='' SEEDS='1 2 3' DEVICE='' JOBS='' SMOKE=no FLAGS='--plan --smoke' ROWS=() SWEEP=() EXTRA=()
OPTIONS=data-dir
set_smoke() { RUN_DIR=runs/anchors-smoke SEEDS=1; }
ANCHOR=wmt14
case ${1:-} in wmt14 | bert) ANCHOR=$1 && shift ;; esac
parse_arguments "$@"
RAW=${DATA_DIR:-$RUN_DIR/raw} DIR=$RUN_DIR/$ANCHOR

HUB=https://huggingface.co/google-bert/bert-base-uncased/resolve/86b5e0934494bd15c9632b12f734a8a67f723594
MODEL=https://dl.fbaipublicfiles.com/fairseq/models/wmt16.en-de.joined-dict.transformer.tar.bz2

# get FILE ADDRESS [OPTION…]
get() {
    execute posenc prepare download --output "$RAW/$1" "${@:3}" "$2" ||
        die "cannot get $1; fetch it by hand, see --data-dir"
}

# logged FILE COMMAND…: what it says on the way goes into the file.
logged() {
    if [[ $PLAN == yes ]]; then "${@:2}"; else "${@:2}" 2>"$1" || die "that failed, see $1"; fi
}

download_wmt14() {
    local url checksum name
    get "${MODEL##*/}" "$MODEL" --unpack "$DIR/model"
    if [[ $PLAN == yes ]]; then
        say "and the file that this names, with its SHA-256, into $RAW: posenc prepare pairs files newstest2014_en_de"
        return
    fi
    while IFS=$'\t' read -r url checksum name _; do
        # the small one of recipes/smoke has another
        get "$name" "$url" $([[ $SMOKE == yes ]] || echo --checksum "$checksum")
    done < <(posenc prepare pairs files newstest2014_en_de)
}

# An archive of a tiny model of stock fairseq.
stand_in_wmt14() {
    local made=$DIR/made
    local model=$made/wmt16.en-de.joined-dict.transformer
    bash recipes/quickstart.sh --run-dir "$made/run" --device cpu --train 400 --test 10 --updates 60 --encodings sinusoidal --stop-stage 5
    mkdir -p "$model" "$RAW" && cp "$made"/run/bin/dict.*.txt "$model" && cp "$made/run/bpe.codes" "$model/bpecodes"
    posenc export --path "$made/run/sinusoidal/seed1/checkpoint_last.pt" --to fairseq --output "$model/model.pt" --force
    python -m tarfile -c "$RAW/${MODEL##*/}" "$model"
    cp recipes/smoke/wmt/wmt14.test-full.tgz "$RAW"
}

model_wmt14() {
    if [[ $PLAN == yes ]]; then echo "$DIR/model/wmt16.en-de.joined-dict.transformer/model.pt"; else find "$DIR/model" -name model.pt; fi
}

text_wmt14() {
    local side model
    model=$(dirname "$(model_wmt14)")
    execute posenc prepare pairs text newstest2014_en_de --raw "$RAW" --output "$DIR/text"
    for side in en de; do
        execute posenc prepare pairs bpe-apply --codes "$model/bpecodes" --input "$DIR/text/newstest2014.tok.$side" \
            --output "$DIR/text/newstest2014.bpe.$side"
    done
    logged "$DIR/binarise.log" execute posenc prepare binarise --source-lang en --target-lang de --srcdict "$model/dict.en.txt" \
        --tgtdict "$model/dict.de.txt" --testpref "$DIR/text/newstest2014.bpe" --destdir "$DIR/bin"
}

# As fairseq's page says.
run_wmt14() {
    logged "$DIR/generate.log" writing "$DIR/generate.out" fairseq-generate "$DIR/bin" --user-dir fairseq_posenc \
        --path "$(model_wmt14)" --beam 4 --lenpen 0.6 --max-tokens 8000 --required-batch-size-multiple 1 "${DEVICE_OPTIONS[@]}"
}

compare_wmt14() {
    writing "$DIR/score.txt" posenc score --generated "$DIR/generate.out" --reference "$DIR/text/newstest2014.raw.de" \
        --language de --source-language en --output "$DIR/score.json"
    if [[ $PLAN == yes ]]; then return; fi
    say "newstest2014: sacreBLEU $(figure all sacrebleu "$DIR/score.json"); fairseq's page has 28.6"
}

# figure KEY KEY … FILE…: the figure of the JSON files, their median.
figure() {
    python -c 'import functools, json, statistics, sys
files = [word for word in sys.argv if word.endswith(".json")]
keys = [word for word in sys.argv[1:] if word not in files]
print(round(statistics.median(functools.reduce(dict.get, keys, json.load(open(one))) for one in files), 2))' "$@"
}

download_bert() {
    local file
    if [[ $SMOKE == yes ]]; then return; fi
    for file in config.json vocab.txt tokenizer_config.json model.safetensors; do get "bert/$file" "$HUB/$file"; done
}

# A folder of transformers, of a tiny model of ours.
stand_in_bert() {
    local made=$DIR/made
    python -m tarfile -e recipes/smoke/benchmarks.tar.xz "$made"
    bash recipes/rel_scalar/pretrain_english.sh --run-dir "$made/pretrain" --device cpu --text "$made/text/train.txt" \
        --valid "$made/text/valid.txt" --vocabulary 1000 --arch posenc_bert_tiny --length 64 --updates 50 --batch 16 \
        --encodings 'bert=learned --position-segments input'
    posenc export --path "$made/pretrain/bert/seed1/checkpoint_last.pt" --data "$made/pretrain/bin" --to huggingface \
        --output "$RAW/bert" --force
}

import_bert() { execute posenc import --from "$RAW/bert" --output "$DIR/import/model.pt" --force; }

run_bert() {
    local options=(--tasks MNLI,MRPC,SST-2 --epochs 3 --lrs 2e-5)
    if [[ $SMOKE == yes ]]; then
        options=(--tasks MRPC,SST-2 --epochs 1 --lrs 3e-4 --arch posenc_bert_tiny --length 64 --raw-dir "$DIR/made/glue")
    fi
    execute bash recipes/glue/run.sh --stage 2 --run-dir "$DIR/glue" --text "$DIR/import" --seeds "${SEEDS// /,}" \
        --encodings 'bert=learned --position-segments input --layer-norm-eps 1e-12' \
        --pretrained "bert=$DIR/import/model.pt" --device "$DEVICE" --jobs "$JOBS" --stop-stage 4 "${options[@]}"
}

compare_bert() {
    local task known
    while read -r task known; do
        [[ -e $DIR/glue/bert/$task ]] || continue
        say "$task, median of seeds ${SEEDS// /, }: accuracy" \
            "$(figure scores valid accuracy "$DIR/glue/bert/$task"/*/*/score.json); Devlin et al. 2019 have $known"
    done <<<$'MNLI 84.4\nMRPC 86.7\nSST-2 92.7'
}

if [[ $PLAN == yes ]]; then
    DEVICE=${DEVICE:-cuda}
    stage 1 "set-up" - execute source scripts/env.sh
else
    set_up
fi
choose_device
open_run_dir "$DIR" --smoke "$SMOKE"
if [[ $SMOKE == yes && $PLAN == no ]]; then stage 2 "stand-ins" "$DIR/stand_in.done" "stand_in_$ANCHOR"; fi
stage 2 "download" "$DIR/download.done" "download_$ANCHOR"
case $ANCHOR in
    wmt14)
        stage 3 "text" "$DIR/text.done" text_wmt14
        stage 4 "translate" "$DIR/run.done" run_wmt14
        ;;
    bert)
        stage 3 "import" "$DIR/import.done" import_bert
        stage 4 "fine-tune" - run_bert # which looks after its own seeds
        ;;
esac
stage 5 "compare" - "compare_$ANCHOR"

#!/usr/bin/env bash
# XTREME: fine-tunes multilingual models with different position encodings on English, as Chen et al.
# 2021 do for Tables 5, 9, 11 and 12, applies them to other languages, and puts the results beside
# the paper's.
set -euo pipefail
CDPATH= cd "$(dirname "$0")/../.."
source recipes/lib/stages.sh
source recipes/lib/finetune.sh

usage() {
    cat <<'HELP'
usage: bash recipes/xtreme/run.sh [options] [-- options for fairseq-train]

Fine-tunes each row (pre-trained model) on English with each learning rate and seed, and applies it
to other languages as it is: MNLI to XNLI (its own test files), SQuAD 1.1 to XQuAD, MLQA and
TyDiQA-GoldP. Figures are means over the benchmark's languages (15, 11, 7 and 9; where some are
missing, the table says how many), medians over seeds, and stand beside the paper's.
Checkpoints and learning rates are chosen on English development sets alone: MNLI matched and XNLI's
English part; SQuAD.

  --raw-dir DIR       official files, without it they are downloaded: MNLI/train.tsv …,
                      XNLI-1.0/xnli.test.tsv …, squad/train-v1.1.json …, xquad/xquad.de.json …,
                      MLQA_V1/test/test-context-de-question-de.json …,
                      tydiqa-goldp-v1.1-dev/tydiqa-goldp-dev-arabic.json …; or in the folders
                      of XTREME's download, which takes the answers away: those are predicted, for
                      its leaderboard, but not scored
  --epochs N          (3)
  --stride N          tokens from one window of a long context to the next (128)
HELP
    finetune_usage
    cat <<'HELP'

A length of 512 is the paper's. XTREME's own, 128 for XNLI and 384 for questions, need models that
were pre-trained with that length, or whose encoding has no length.
HELP
}

RUN_DIR=runs/xtreme PRETRAIN_DIR=runs/pretrain_multilingual LENGTH=512 STRIDE=128 EPOCHS=3
PRETRAIN_RECIPE=recipes/rel_scalar/pretrain_multilingual.sh TASKS='XNLI SQuAD'
TABLES='chen2021-5 chen2021-9 chen2021-11 chen2021-12' ARCHIVES=500000000

set_smoke() {
    RUN_DIR=runs/xtreme-smoke PRETRAIN_DIR=runs/xtreme-smoke/pretrain ARCH=posenc_bert_tiny
    LENGTH=128 STRIDE=64 LRS=3e-4 SEEDS='1 2' EPOCHS=2 BATCH=16 TABLES=chen2021-5
    LANGUAGES='en de ar th zh'
    ROWS=("${ROWS[0]}" "${ROWS[3]}")
}

OPTIONS=stride LANGUAGES='ar bg de el en es fr hi ru sw th tr ur vi zh'

# As LANGUAGE=PATH,LANGUAGE=PATH…
smoke_text() {
    local folder=$RUN_DIR/benchmarks/text-multilingual language
    for language in $LANGUAGES; do echo "$language=$folder/$language/$1.txt"; done |
        paste -s -d , -
}

parse_options "$@"
RAW=${RAW_DIR:-$RUN_DIR/raw}
if [[ $SMOKE == yes ]]; then
    RAW_DIR=$RUN_DIR/benchmarks RAW=$RUN_DIR/benchmarks PRETRAIN_DIR=$RUN_DIR/pretrain
    PRETRAIN="--text $(smoke_text train) --valid $(smoke_text valid) --vocabulary 2000"
    PRETRAIN+=" --arch $ARCH --length $LENGTH --updates 100 --batch 32 --lr 0.001"
fi

# Where raw files are looked for: for a plan small benchmarks are unpacked for a moment.
FOUND=$RAW
if [[ $SMOKE == yes && $PLAN == yes ]]; then
    FOUND=$(mktemp -d)
    TEMPORARY+=("$FOUND")
    python3 -m tarfile -e recipes/smoke/benchmarks.tar.xz "$FOUND"
fi

# Sentence pairs are learned from MNLI.
data_of() { [[ $1 == XNLI ]] && echo "$RUN_DIR/data/MNLI" || echo "$RUN_DIR/data/$1"; }
tested_on() { echo "$RUN_DIR/data/$1"; }
metric_of() { [[ $1 == XNLI ]] && echo accuracy || echo f1; }
epochs_of() { echo "$EPOCHS"; }

subsets_of() {
    local file files=("$RUN_DIR/data/SQuAD"/{mlqa-*,tydiqa-*,valid,xquad-*}.json)
    if [[ $1 == XNLI ]]; then files=("$RUN_DIR/data/XNLI/input0"/{test-*,valid-en}.idx); fi
    if [[ $PLAN == yes && $1 == XNLI ]]; then
        printf 'test-%s\n' $LANGUAGES && echo valid-en
    elif [[ $PLAN == yes ]]; then
        { { questions 2>/dev/null || questions; } && echo valid; } | cut -d ' ' -f 1
    else
        for file in "${files[@]}"; do
            if [[ -e $file ]]; then basename "${file%.*}"; fi
        done
    fi | LC_ALL=C sort | paste -s -d , -
}

options_of() {
    case $1 in
        XNLI) TASK_OPTIONS=(--task posenc_sentence_prediction
            --criterion posenc_sentence_prediction --max-positions "$LENGTH") ;;
        SQuAD) TASK_OPTIONS=(--task posenc_question_answering
            --criterion posenc_question_answering --max-positions "$LENGTH" --stride "$STRIDE") ;;
        *) die "--tasks are XNLI and SQuAD, not $1" ;;
    esac
}

make_data() {
    local task
    if [[ -z $RAW_DIR ]]; then download; fi
    for task in $TASKS; do
        case $task in
            XNLI)
                prepare_pairs MNLI train.tsv MNLI glue/MNLI
                prepare_pairs XNLI xnli.test.tsv XNLI-1.0 xnli xnli/XNLI-1.0
                ;;
            SQuAD) prepare_questions ;;
        esac
    done
}

# raw FILE FOLDER…: the first folder of the raw files that has the file.
raw() {
    local file=$1 folder
    shift
    for folder in "$@"; do
        if [[ -e $FOUND/$folder/$file || $PLAN == yes && -z $RAW_DIR ]]; then
            echo "$RAW/$folder"
            return
        fi
    done
    die "there is no $file in any of these folders of $RAW: $*"
}

# prepare_pairs TASK FILE FOLDER…
prepare_pairs() {
    local input output=$RUN_DIR/data/$1
    if made "$output/task.json" && [[ ! -d $RAW ]]; then return; fi
    input=$(raw "${@:2}")
    same_data "$output/settings" "$input"
    if made "$output/task.json"; then return; fi
    execute posenc prepare glue --task "$1" --input "$input" --subwords "$TEXT" --output "$output"
}

# The test files of questions: split, language, metric, path.
questions() {
    local official=()
    if [[ $PLAN == yes && -z $RAW_DIR ]]; then official=(--official); fi
    python3 -m recipes.lib.find_xtreme "$FOUND" "${official[@]}"
}

prepare_questions() {
    local folder found splits
    folder=$(raw train-v1.1.json squad)
    found=$(questions)
    prepare_split "train en squad $folder/train-v1.1.json"
    mapfile -t splits <<<"valid en squad $folder/dev-v1.1.json"$'\n'"$found"
    in_parallel "$(cores)" prepare_split "${splits[@]}"
}

prepare_split() {
    local split language metric file
    read -r split language metric file <<<"$1"
    [[ $file != "$FOUND"/* ]] || file=$RAW${file#"$FOUND"}
    # what was mistaken before there was a result can be mended
    [[ $PLAN == yes || -e $RUN_DIR/data/SQuAD/$split.json ]] || rm -f "$RUN_DIR/data/SQuAD/$split.settings"
    same_data "$RUN_DIR/data/SQuAD/$split.settings" "$file"
    if made "$RUN_DIR/data/SQuAD/$split.json"; then return; fi
    execute posenc prepare squad --split "$split" --input "$file" --language "$language" \
        --metric "$metric" --subwords "$TEXT" --output "$RUN_DIR/data/SQuAD"
}

# Their addresses name a branch: SHA-256, as TensorFlow Datasets has recorded them (url_checksums/xquad.txt).
SQUAD='train-v1.1.json 3527663986b8295af4f7fcdff1ba1ff3f72d07d61a20f487cb238a6ef92fd955
dev-v1.1.json 95aa6a52d5d6a735563366753ca50492a658031da74f301ac5238b03966972c9'
XQUAD='ar abdabd7afed5c635d99cca0f3f0d0c9d9ed0bc77451e963c2e4e0638c29e486d
de 990b5d746746ed65ed4702ea5f35f99ffa4e2f1c390c07d003642acd937916f9
el 821cf0f88e73fa258fd2f548b19b6ec39f7025059e16f6f9fc8cd797c9c3663e
en e4c57d1c9143aaa1c5d265ba5987a65f4e69528d2a98f29d6e75019b10344f29
es dcbae93ec3a9f4b9e78fd834a171d6f96c1a875e10e15b7530b7e4ef4971e37e
hi df2cce3532b37e9beb8979704b5c9a4bf874358f105395a298b89427b43b9d24
ru 208d5b1aa154c52b1b5c5eda16281e455e8fd198cdb9af3f469f0d6037d973bf
th 5cdda11d0e1e075f7872abf4e6ae830388ce7f617964d542308e9ae4257e0f43
tr 92179a564774b7696100d144c1e10870d0a966b6fccbdd254a65b9d2ab1971cc
vi f619a1eb11fb42d3ab0834259e488a65f585447ef6154437bfb7199d85161a04
zh 691d0b3359bc6b8faa8de931dfdfe21d50a65861ae348e32a0d1a0190b0c8835'

download() {
    local language file checksum
    if [[ $TASKS == *XNLI* ]]; then
        fetch "$RAW" https://dl.fbaipublicfiles.com/glue/data/MNLI.zip
        fetch "$RAW" https://dl.fbaipublicfiles.com/XNLI/XNLI-1.0.zip
    fi
    if [[ $TASKS == *SQuAD* ]]; then
        while read -r file checksum; do
            fetch "$RAW/squad" \
                "https://raw.githubusercontent.com/rajpurkar/SQuAD-explorer/master/dataset/$file" "$checksum"
        done <<<"$SQUAD"
        while read -r language checksum; do
            fetch "$RAW/xquad" \
                "https://raw.githubusercontent.com/deepmind/xquad/master/xquad.$language.json" "$checksum"
        done <<<"$XQUAD"
        fetch "$RAW" https://dl.fbaipublicfiles.com/MLQA/MLQA_V1.zip
        fetch "$RAW" https://storage.googleapis.com/tydiqa/v1.1/tydiqa-goldp-v1.1-dev.tgz
    fi
}

finetune

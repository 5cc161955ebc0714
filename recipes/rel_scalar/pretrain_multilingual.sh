#!/usr/bin/env bash
# Multilingual BERT with different position encodings, as Chen et al. 2021 pre-train it for Tables
# 5, 9, 11 and 12: from Wikipedia in 100 languages to models for recipes/xtreme/run.sh.
set -euo pipefail
CDPATH= cd "$(dirname "$0")/../.."
source recipes/lib/stages.sh
source recipes/lib/pretrain.sh

usage() {
    cat <<'HELP'
usage: bash recipes/rel_scalar/pretrain_multilingual.sh [options] [-- options for fairseq-train]

Downloads Wikipedia in 100 languages (wikimedia/wikipedia 20231101), learns one SentencePiece
vocabulary and pre-trains a masked language model per row. Started again, it continues where it was.

On GPUs, add `-- --bf16` or `-- --fp16`. First try: --plan, or a few --languages.

  --preset gpu        a first try on one GPU, with bf16: XNLI's 15 languages, 7,600 updates of 512 sequences,
                      which are 2 billion tokens, at LAMB's learning rate for 512; not tried on a GPU here
  --languages LIST    as in the wikis' addresses: en,de,simple,zh-yue (the 100 of Lample and
                      Conneau 2019, whom the paper follows)
  --sampling-exponent S  shares of languages become share^S (0.7, as in multilingual BERT; the
                      paper names none)
  --character-coverage SHARE  of the characters, that get an entry of the vocabulary; the others are
                      unknown (0.99995; with SentencePiece's own 0.9995, much of Chinese is)
HELP
    pretrain_usage
    cat <<'HELP'

Here --text is a folder with a folder per language, or LANGUAGE=PATH,LANGUAGE=PATH…
HELP
}

OPTIONS='preset languages, sampling-exponent:EXPONENT character-coverage:COVERAGE'

# as in pretrain_english.sh
set_gpu() {
    RUN_DIR=runs/pretrain_multilingual-gpu UPDATES=7600 BATCH=512 LR=0.000625 INTERVAL=1900 EXTRA=(--bf16)
    LANGUAGES='ar bg de el en es fr hi ru sw th tr ur vi zh'
}

prepare_options() {
    local language texts=()
    case $TEXT in
        '')
            for language in $LANGUAGES; do texts+=("$language=$(text_of "$language")"); done
            PREPARE_OPTIONS=(--train "${texts[@]}")
            ;;
        *=*) PREPARE_OPTIONS=(--train "$TEXT") ;;
        *) PREPARE_OPTIONS=(--train "$TEXT" --language-folders) ;;
    esac
    KIND_OPTIONS=(--kind sentencepiece --sampling-exponent "$EXPONENT" --character-coverage "$COVERAGE")
}

TABLES='chen2021-5 chen2021-9 chen2021-11 chen2021-12'
RUN_DIR=runs/pretrain_multilingual EXPONENT=0.7 COVERAGE=0.99995 UPDATES=125000 LENGTH=512 VOCABULARY=120000
LANGUAGES='en es fr de zh ru pt it ar ja id tr nl pl simple fa vi sv ko he ro no hi uk cs fi hu th
da ca el bg sr ms bn hr sl zh-yue az sk eo ta sh lt et ml la bs sq arz af ka mr eu tl ang gl nn ur
kk be hy te lv mk zh-classical als is wuu my sco mn ceb ast cy kn br an gu bar uz lb ne si war jv
ga zh-min-nan oc ku sw nds ckb ia yi fy scn gan tt am'
LANGUAGES=${LANGUAGES//$'\n'/ }
parse_options "$@"
[[ $COVERAGE =~ ^(1|0?\.9[0-9]*)$ ]] || die "--character-coverage is a share from 0.9 to 1, not $COVERAGE"
pretrain

#!/usr/bin/env bash
# Chen et al. 2021, Table 6: WMT15 English-German in both directions and WMT18 English to Czech, with
# position encodings at the input and inside attention.
set -euo pipefail
CDPATH= cd "$(dirname "$0")/../.."
source recipes/lib/stages.sh
source recipes/lib/wmt.sh

usage() {
    cat <<'HELP'
usage: bash recipes/rel_scalar/translate.sh [options] [-- options for fairseq-train]

From the archives of WMT15 and WMT18 to the paper's table of uncased BLEU on newstest2015.

  --regime NAME       t2t or vaswani, see below (t2t)
  --interval N        updates between checkpoints, of which the last 5 are averaged (1500)
HELP
    wmt_usage
    cat <<'HELP'

The paper follows Vaswani et al. 2017 "closely", in Tensor2Tensor, with 6 layers, and names no other
setting. Both regimes: Transformer base, 100,000 updates of 25,000 tokens, Adam with ε 1e-9, dropout
0.1, label smoothing 0.1, the last 5 checkpoints averaged, beam 4, length penalty 0.6, newstest2013 for
validation.
  t2t      Tensor2Tensor's transformer_base and transformer_relative: normalisation before each
           sub-layer, dropout also of attention and after ReLU, β₂ 0.997, 8,000 warm-up updates,
           Shaw's distances up to 20. The default: it is the framework's base model of the paper's year.
  vaswani  normalisation behind it, β₂ 0.98, 4,000 warm-up updates, Shaw's distances up to 16
Our readings: europarl v7, common crawl, the news commentary of the year, and for Czech CzEng 1.0; 32,000
joint BPE operations; text as it is, its punctuation not normalised, as in Tensor2Tensor; uncased BLEU
is Tensor2Tensor's, sacreBLEU on lower case with international tokenisation (13a stands beside it).
The paper does not tell how long it trains. Vaswani et al. make 100,000 updates; Tensor2Tensor's own
instructions for 8 GPUs have --updates 300000.
HELP
}

RUN_DIR=runs/rel_scalar_translate SETTINGS='en-de de-en en-cs' SEEDS=1 KEEP=5 INTERVAL=1500
TABLES=chen2021-6 AVERAGE_OPTIONS=(--by updates) REGIME=t2t OWN_ROWS=no
ROWS=(sinusoidal "shaw=shaw --position-max-distance 20" t5 rel_scalar)

set_smoke() {
    RAW_DIR=recipes/smoke/wmt
    RUN_DIR=runs/rel_scalar_translate-smoke KEEP=2 ARCH=posenc_transformer_tiny UPDATES=60
    INTERVAL=20 BATCH=2000 BPE=500
}

OPTIONS='interval regime'

corpus_of() {
    case $1 in
        en-cs) echo wmt18_en_cs ;;
        *) echo "wmt15_${1/-/_}" ;;
    esac
}
form_of() { echo vanilla; }
tests_of() { all_tests_of "$1"; }
scoring_of() { SCORE_OPTIONS=(--metrics sacrebleu,sacrebleu_lowercase,sacrebleu_lowercase_intl,tokenised_bleu,chrf); }

training_of() {
    local updates=${UPDATES:-100000} warmup=4000 lr betas='(0.9,0.98)' regime=()
    # peaks of the schedules: 512^-½ · 4000^-½, and 2 · 512^-½ · 8000^-½
    lr=0.000698771
    if [[ $REGIME == t2t ]]; then
        warmup=8000 lr=0.000988212 betas='(0.9,0.997)'
        regime=(--encoder-normalize-before --decoder-normalize-before
            --attention-dropout 0.1 --activation-dropout 0.1)
    fi
    warmup=$((updates < 2 * warmup ? updates / 2 : warmup))
    SHAPE_OF_MODEL=(6 512 8) TOKENS=25000
    TRAIN_OPTIONS=(--arch "${ARCH:-posenc_transformer_wmt_en_de}" --share-all-embeddings
        "${regime[@]}" --dropout 0.1
        --criterion label_smoothed_cross_entropy --label-smoothing 0.1
        --optimizer adam --adam-betas "$betas" --adam-eps 1e-9 --clip-norm 0
        --lr "$lr" --lr-scheduler inverse_sqrt --warmup-updates "$warmup"
        --max-update "$updates" --save-interval-updates "$INTERVAL"
        --keep-interval-updates "$KEEP" --no-epoch-checkpoints)
    GENERATE_OPTIONS=(--beam 4 --lenpen 0.6 --max-tokens 8000 --max-len-a 1 --max-len-b 50)
}

parse_options "$@"
whole_numbers INTERVAL
case $REGIME in
    t2t) ;;
    vaswani) if [[ $OWN_ROWS == no ]]; then ROWS[1]=shaw; fi ;;
    *) die "--regime is t2t or vaswani, not $REGIME" ;;
esac
reproduce

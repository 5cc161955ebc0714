#!/usr/bin/env bash
# Your own text, any two languages: from raw files to a report that compares position encodings.
set -euo pipefail
CDPATH= cd "$(dirname "$0")/.."
source recipes/lib/stages.sh
source recipes/lib/translation.sh
source recipes/lib/slurm.sh

usage() {
    cat <<'HELP'
usage: bash recipes/own.sh --source-lang en --target-lang fr --train train --valid valid --test test
         [options] [-- options for fairseq-train]

Prepares your text, trains a model for each encoding and seed, translates and scores the test set, and
compares the encodings in a report: report/report.html in the run folder. Started again, it continues
where it was.

  --source-lang LANG  translate from, for example en
  --target-lang LANG  translate to, for example fr
  --train PREFIX      text: PREFIX.LANG of both languages, UTF-8, plain or .gz, one sentence a line
  --valid PREFIX      likewise, to validate on
  --test PREFIX       likewise, to translate and score
  --encodings LIST    comma-separated rows, each `encoding [option…]` or `label=encoding [option…]`; the
                      others are compared with the first
                      (sinusoidal, rotary, alibi, shaw, cape=cape --position-source-scale auto)
  --seeds LIST        (1,2,3)
  --longest N         train on pairs of at most N subwords on either side and test on all, as EXTRAPOLATE
                      in SHAPE (Kiyono et al. 2021); the report's ranges are N, 1.5 N and 2 N subwords
  --preset NAME       tiny: 2 layers of width 128, for a trial on a CPU; small: posenc_transformer_iwslt_de_en;
                      base: posenc_transformer_wmt_en_de (tiny). small and base were not run to the end
  --sentencepiece N   pieces of raw text (by the size of the text, as posenc prepare translation has it)
  --bpe N             instead: Moses' tokens and so many operations of byte pair encoding
  --epochs N          (by preset: 20, 50, 20)
  --bins LIST         ranges of lengths in words of the source (10,20,30)
  --run-dir DIR       results (runs/own)
  --device cpu|cuda   (cuda if there is one)
  --gpus N            use so many; each training has one (all)
  --jobs N            trainings at a time (number of cores on a CPU, of GPUs on GPUs)
  --plan              print what would be done, and stop
  --slurm             print a script that submits the trainings to SLURM as an array of jobs, and stop
  --cell N            only this training of the plan, as a job of that script
  --hours N           stop with a checkpoint a quarter of an hour before these are over
  --stage N           start at this stage: 1 set-up, 2 data, 3 train,
  --stop-stage N      stop after this one: 4 translate, 5 score, 6 table and report
HELP
}

SOURCE_LANG='' TARGET_LANG='' TRAIN='' VALID='' TEST='' LONGEST='' PRESET=tiny SENTENCEPIECE='' BPE='' EPOCHS='' BINS=10,20,30
RUN_DIR=runs/own SEEDS='1 2 3' KEEP=5 SLURM=no FLAGS='--plan --slurm'
ROWS=(sinusoidal rotary alibi shaw "cape=cape --position-source-scale auto")

# Files are named from where the recipe was started.
absolute() { if [[ $1 == /* ]]; then echo "$1"; else echo "$OLDPWD/$1"; fi; }

arguments=() before=''
for word in "$@"; do
    case $before in --train | --valid | --test) word=$(absolute "$word") ;; esac
    arguments+=("$word") before=$word
done

OPTIONS='source-lang target-lang train valid test longest preset sentencepiece bpe epochs bins gpus cell hours'
parse_arguments "${arguments[@]}"
whole_numbers LONGEST SENTENCEPIECE BPE EPOCHS GPUS CELL HOURS
for name in SOURCE_LANG TARGET_LANG TRAIN VALID TEST; do
    option=${name,,}
    [[ -n ${!name} ]] || die "--${option//_/-} is missing; see --help"
done
SOURCE=$SOURCE_LANG TARGET=$TARGET_LANG SUBWORDS=(${SENTENCEPIECE:+--sentencepiece "$SENTENCEPIECE"} ${BPE:+--bpe "$BPE"})
case $PRESET in
    tiny)
        EPOCHS=${EPOCHS:-20}
        MODEL=(--arch posenc_transformer --encoder-layers 2 --decoder-layers 2
            --encoder-embed-dim 128 --decoder-embed-dim 128 --encoder-ffn-embed-dim 512
            --decoder-ffn-embed-dim 512 --encoder-attention-heads 4 --decoder-attention-heads 4
            --encoder-normalize-before --decoder-normalize-before
            --dropout 0.1 --lr 0.004 --warmup-updates 300 --max-tokens 1000)
        ;;
    small)
        EPOCHS=${EPOCHS:-50}
        MODEL=(--arch posenc_transformer_iwslt_de_en --dropout 0.3 --weight-decay 0.0001
            --lr 0.0005 --warmup-updates 4000 --max-tokens 4096)
        ;;
    base)
        EPOCHS=${EPOCHS:-20}
        MODEL=(--arch posenc_transformer_wmt_en_de --dropout 0.1
            --lr 0.0007 --warmup-updates 4000 --max-tokens 4096 --update-freq 8)
        ;;
    *) die "--preset is tiny, small or base, not $PRESET" ;;
esac
((KEEP <= EPOCHS)) || KEEP=$EPOCHS # a checkpoint per epoch is averaged
TRAIN_OPTIONS=("${MODEL[@]}" --share-all-embeddings
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --optimizer adam --adam-betas '(0.9,0.98)' --lr-scheduler inverse_sqrt
    --max-epoch "$EPOCHS" "${EXTRA[@]}")
SCORE_OPTIONS=(--bins "$BINS")
if [[ -n $LONGEST ]]; then
    # the limit of training is one of subwords
    SCORE_OPTIONS=(--length-unit subwords --bins "$LONGEST,$((LONGEST * 3 / 2)),$((LONGEST * 2))")
fi

# It continues what was cut, and refuses a folder of other texts. Test pairs are never left out.
make_data() {
    local log=$RUN_DIR/prepare.log command=(posenc prepare translation --source-lang "$SOURCE"
        --target-lang "$TARGET" --train "$TRAIN" --valid "$VALID" --test "$TEST" "${SUBWORDS[@]}"
        ${LONGEST:+--max-length "$LONGEST"} --workers "$(cores)" --output "$RUN_DIR/bin")
    if [[ $PLAN == yes ]]; then print_command "${command[@]}"; return; fi
    say "progress: $log"
    "${command[@]}" >"$log" 2>&1 || die "preparing failed, see $log: $(tail -n 1 "$log")"
    say "$(tail -n 1 "$log")"
}

if [[ $SLURM == yes ]]; then
    ((${GPUS:-1} == 1)) || die "each training has one GPU: with --slurm leave out --gpus"
    GPUS=1
    print_slurm 1 2 6
    exit
fi
set_up
if [[ -z $DEVICE && -n $GPUS ]]; then DEVICE=cuda; fi
if [[ $PLAN == no && ${DEVICE:-cuda} == cuda && $(count_gpus) != 0 ]]; then
    list_gpus
    JOBS=${JOBS:-${#NODE_GPUS[@]}} GPUS=1
fi
choose_device
GENERATE_OPTIONS=(--beam 5 --max-tokens 4000 --max-len-a 1.5 --max-len-b 10 "${DEVICE_OPTIONS[@]}")
open_run_dir "$RUN_DIR" --source-lang "$SOURCE" --target-lang "$TARGET" "${SUBWORDS[@]}" \
    --longest "${LONGEST:-none}"

stage 2 "data" - make_data
train_translate_score 3

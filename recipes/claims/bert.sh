#!/usr/bin/env bash
# What position encodings do in a small BERT, asked by probes with exact answers, on generated text.
# A part of recipes/claims.sh, which may also be run alone.
set -euo pipefail
CDPATH= cd "$(dirname "$0")/../.."
source recipes/lib/stages.sh
source recipes/lib/pretrain.sh

usage() {
    cat <<HELP
usage: bash recipes/claims/bert.sh [options] [-- options for fairseq-train]

Pre-trains a small masked language model per row and seed on generated documents, fine-tunes it on a
task of one sentence and one of two, and writes RUN_DIR/<row>/seed<n>/probes.json: bits per hidden
token beside those of unigrams, how often the model tells the right order of words, both also at
twice the trained length, and the accuracies of the tasks. The row rel_scalar alone is fine-tuned,
with every kind of segments. Started again, it continues where it was.

  --run-dir DIR       results ($RUN_DIR)
  --encodings LIST    comma-separated rows, \`encoding [option…]\` or \`label=encoding [option…]\`:
$(printf '                      %s,\n' "${ROWS[@]}" | sed '$s/,$//')
  --fast              fewer rows and seeds: ${FAST_ROWS[*]}; seeds $FAST_SEEDS
  --seeds LIST        comma-separated (${SEEDS// /,})
  --sentences N       of the training text ($SENTENCES)
  --length N          tokens of a block, and the longest input of the tasks ($LENGTH)
  --updates N         of a pre-training ($UPDATES)
  --batch N           sequences per update ($BATCH)
  --lr X              peak learning rate of pre-training ($LR)
  --optimizer NAME    of pre-training: adam or lamb ($OPTIMIZER)
  --examples N        training examples of each task ($EXAMPLES)
  --task-updates N    of a fine-tuning ($TASK_UPDATES)
  --pairs N           sentences whose order is asked ($PAIRS)
  --device cpu|cuda   (cpu; on a GPU such small models are no faster)
  --jobs N            cells at a time (number of cores)
  --stage N           start at this stage: 1 set-up, 2 corpus, 3 prepare, 4 pre-train,
  --stop-stage N      stop after this one: 5 fine-tune, 6 probe
HELP
}

RUN_DIR=runs/claims/bert SEEDS='1 2 3 4 5' SENTENCES=60000 LENGTH=32 UPDATES=2400 BATCH=16 LR=0.003
EXAMPLES=4000 TASK_UPDATES=500 PAIRS=500 DEVICE=cpu FAST=no FLAGS=--fast
ARCH=posenc_bert_tiny VOCABULARY=1000 OPTIMIZER=adam WARMUP=0.1 WORKERS=1 GPUS=1 MOST=1000
# K covers twice the trained length
ROWS=(none sinusoidal learned "shape=shape --position-max-shift 32" cape conditional shaw
    transformer_xl t5 tupe rotary alibi
    abs_scalar "abs_scalar_layers=abs_scalar --position-sharing layers"
    "abs_scalar_heads=abs_scalar --position-sharing heads"
    rel_scalar "rel_scalar_layers=rel_scalar --position-sharing layers"
    "rel_scalar_heads=rel_scalar --position-sharing heads")
FAST_ROWS=(learned shaw abs_scalar rel_scalar "rel_scalar_layers=rel_scalar --position-sharing layers"
    "rel_scalar_heads=rel_scalar --position-sharing heads") FAST_SEEDS='1 2 3'

set_fast() { ROWS=("${FAST_ROWS[@]}") SEEDS=$FAST_SEEDS; }

OPTIONS='sentences length updates batch lr optimizer examples task-updates pairs'
for argument in "$@"; do
    case $argument in
        --) break ;;
        --fast) set_fast ;;
    esac
done
parse_arguments "$@"
whole_numbers SENTENCES LENGTH UPDATES BATCH EXAMPLES TASK_UPDATES PAIRS

prepare_options() {
    PREPARE_OPTIONS=(--train "$TEXT")
    KIND_OPTIONS=(--kind wordpiece)
}

make_corpus() {
    local split
    python -m recipes.corpus --output "$RUN_DIR/corpus" --seed 1 --quiet --train "$SENTENCES" \
        --train-length 4-12 --valid 3000 --test $((2 * EXAMPLES + 2000)) --test-lengths 4-12
    mkdir -p "$RUN_DIR/text"
    for split in train valid; do
        # a blank line between documents
        paste "$RUN_DIR/corpus/$split".{docs,en} |
            awk -F '\t' 'NR > 1 && $1 != last { print "" } { print $2; last = $1 }' \
                >"$RUN_DIR/text/$split.txt"
    done
    python -m recipes.claims.probe_tasks "$RUN_DIR/corpus/test" \
        --output "$RUN_DIR/text" --train "$EXAMPLES"
}

prepare() {
    local task
    "${PREPARE[@]}"
    for task in one:SST-2 two:WNLI; do
        posenc prepare glue --task "${task#*:}" --input "$RUN_DIR/text/${task%:*}" \
            --subwords "$RUN_DIR/bin" --output "$RUN_DIR/bin/${task%:*}" --workers 1
    done
}

# What a row is fine-tuned on: task, segments, and the ending of its name; most rows are not. Ten times
# the updates let scalars, which move by at most the learning rate an update, move as far as they need.
tunings_of() {
    [[ $1 == rel_scalar ]] || return 0
    printf '%s\n' {one,two}_{none,input,per_head} two_{input,per_head}_5000
}

tune_cell() {
    local seed label folder options name place
    open_cell "$1"
    if [[ ! -e $folder/train.done ]]; then return; fi
    for name in $(tunings_of "$label"); do
        place=$folder/$name
        if [[ ! -e $place/train.done ]]; then tune; fi
    done
    touch "$folder/tuned.done"
}

# From the weights of the cell's pre-training, always from the start: it takes seconds.
tune() {
    local task=${name%%_*} segments=${name#*_} updates=$TASK_UPDATES
    if [[ $name == *_5000 ]]; then segments=${segments%_5000} updates=$((10 * TASK_UPDATES)); fi
    mkdir -p "$place"
    rm -f "$place"/checkpoint*.pt
    say "[$label, seed $seed] task of $task, segments: $segments, $updates updates"
    fairseq-train "$RUN_DIR/bin/$task" --user-dir fairseq_posenc --task posenc_sentence_prediction \
        --criterion posenc_sentence_prediction --arch "$ARCH" --max-positions "$LENGTH" \
        --finetune-from-model "$folder/checkpoint_last.pt" --position-encoding "${options[@]}" \
        --position-segments "$segments" "${MODEL[@]}" --pooler-dropout 0 --seed "$seed" \
        --optimizer adam --adam-betas '(0.9,0.98)' --adam-eps 1e-6 --weight-decay 0.01 --clip-norm 1 \
        --lr 0.001 --lr-scheduler polynomial_decay --warmup-updates $((updates / 10)) \
        --total-num-update "$updates" --max-update "$updates" --batch-size 32 \
        --required-batch-size-multiple 1 --best-checkpoint-metric accuracy \
        --maximize-best-checkpoint-metric "${DEVICE_OPTIONS[@]}" --save-dir "$place" \
        --no-epoch-checkpoints --no-save-optimizer-state --save-interval 1000000 \
        --validate-interval 1000000 --log-format simple --log-interval 100 \
        >"$place/train.log" 2>&1 || die "fine-tuning failed, see $place/train.log"
    touch "$place/train.done"
}

probe_cell() {
    local seed label folder options name task accuracy given=() shown
    open_cell "$1"
    if [[ -e $folder/probes.json || ! -e $folder/tuned.done ]]; then return; fi
    for name in $(tunings_of "$label"); do
        task=${name%%_*} accuracy=${name/_/_sentence_accuracy_}
        given+=(--task "${accuracy%_none}" "$folder/$name/checkpoint_last.pt" "$RUN_DIR/bin/$task")
    done
    shown=$(python -m recipes.claims.probes "$folder/checkpoint_last.pt" \
        --data "$RUN_DIR/bin" --pairs "$PAIRS" --note "encoding=$label" --note "options=${options[*]}" \
        --note "seed=$seed" "${given[@]}" --output "$folder/probes.json" 2>"$folder/probes.log") ||
        die "probing failed, see $folder/probes.log"
    say "[$label, seed $seed] $shown"
}

set_up
choose_device
MODEL=(--encoder-attention-heads 4 --dropout 0 --attention-dropout 0 --num-workers 0 "${EXTRA[@]}")
EXTRA=(--mask-prob 0.25 "${MODEL[@]}")
INTERVAL=$((UPDATES > 4 ? UPDATES / 4 : 1))
open_run_dir "$RUN_DIR" --sentences "$SENTENCES" --length "$LENGTH" --examples "$EXAMPLES" \
    --task-updates "$TASK_UPDATES" --pairs "$PAIRS"
TEXT=$RUN_DIR/text/train.txt VALID=$RUN_DIR/text/valid.txt
make_commands
plan_batch
stage 2 "corpus" "$RUN_DIR/corpus.done" make_corpus
stage 3 "prepare" "$RUN_DIR/prepare.done" prepare
describe_cells
stage 4 "pre-train" - all_cells train
stage 5 "fine-tune" - each_cell tune_cell
stage 6 "probe" - each_cell probe_cell

#!/usr/bin/env bash
# Claims of three papers, tried where two cores suffice: with seeds, intervals and a verdict.
set -euo pipefail
CDPATH= cd "$(dirname "$0")/.."
source recipes/lib/stages.sh
source recipes/lib/translation.sh
source recipes/lib/claim_analyses.sh

usage() {
    cat <<'HELP'
usage: bash recipes/claims.sh [options]

Trains small models with several seeds, on a generated corpus, and writes the page of claims: what the
papers say, what these models say, with 95 % intervals, and a verdict. Two cores need several nights;
--fast has fewer rows and seeds: an hour and a half. Started again, it continues where it was; after
--fast, without it, it trains what is missing.

  --fast              three seeds, and the rows that most claims need
  --parts LIST        comma-separated (length, longer, longest, joined, joined_longer, switch, switch_long,
                      deep_400, deep, plain, speed, bert; --fast: length, joined, deep_400, plain, speed, bert)
  --rows LIST         of the parts' rows only these, such as sinusoidal,rotary; deep, speed and bert
                      have no such choice. A comparison needs both of its rows
  --run-dir DIR       results (runs/claims): claims.md, its claims_appendix.md,
                      and a folder for each part
  --seeds LIST        comma-separated (1,2,3,4,5)
  --updates N         of each translation model (2000)
  --test N            test pairs per range of lengths (300)
  --plan              print the commands of the trainings, and stop
  --device cpu|cuda   (cuda if there is one)
  --jobs N            trainings at a time (number of cores on a CPU, 1 on a GPU)
  --stage N           start at this stage: 1 set-up, 2 the first part, and so on; the page is the last
  --stop-stage N      stop after this one
HELP
}

SOURCE=en TARGET=de KEEP=0 RUN_DIR=runs/claims PARTS=''
SEEDS='' UPDATES=2000 TEST=300 FAST='' FLAGS='--fast --plan' ROWS=() CHOSEN=''
OPTIONS='parts, rows:CHOSEN, updates test'
parse_arguments "$@"
whole_numbers UPDATES TEST
[[ -z $CHOSEN || $PARTS ]] || die "--rows needs --parts: give those whose rows it chooses"
ALL_PARTS='length longer longest joined joined_longer switch switch_long deep_400 deep plain speed bert'
PARTS=${PARTS:-$([[ $FAST ]] && echo length joined deep_400 plain speed bert || echo "$ALL_PARTS")}
for part in $PARTS; do
    [[ " $ALL_PARTS " == *" $part "* ]] ||
        die "no part is called $part (--parts; see --help)"
done
no_repeats --parts $PARTS
((${#ROWS[@]} == 0)) || die "the rows are those that the claims need: there is no --encodings here"
SEEDS=${SEEDS:-$([[ $FAST ]] && echo 1 2 3 || echo 1 2 3 4 5)}

SHAPE_OPTIONS='shape --position-max-shift 40' SHAPE=shape=$SHAPE_OPTIONS
# what SHAPE's authors do otherwise than fairseq
AUTHORS='--embedding-initialization xavier --no-source-eos'
CAPE_OPTIONS='cape --position-source-scale auto' CAPE=cape=$CAPE_OPTIONS
JOINED_ROWS=(sinusoidal "$SHAPE" shaw)
PLAIN_ROWS=(sinusoidal shape)
LENGTH_ROWS=(sinusoidal "$SHAPE" "$CAPE" shaw rel_scalar)
if [[ ! $FAST ]]; then
    LENGTH_ROWS+=("cape_global=$CAPE_OPTIONS --position-local-shift 0"
        "cape_local=$CAPE_OPTIONS --position-global-shift 0" cape_unscaled=cape
        "shape_K10=shape --position-max-shift 10" "shape_K20=shape --position-max-shift 20"
        "shape_K100=shape --position-max-shift 100" t5 alibi rotary
        "t5_24=t5 --position-max-distance 24"
        "t5_16=t5 --position-max-distance 16 --position-num-buckets 16"
        transformer_xl tupe abs_scalar conditional learned none
        "unifpe=unifpe --position-drawn-below 80" "randomized=randomized --position-drawn-below 80"
        "randomized_rotary=randomized --position-inner rotary --position-drawn-below 80" kerple)
    PLAIN_ROWS+=(cape t5 alibi)
fi
# at equal convergence: fourteen encodings, and what the claims say of SHAPE's K
LONGER_ROWS=(sinusoidal "$SHAPE" "$CAPE" shaw rotary alibi t5 rel_scalar transformer_xl tupe abs_scalar
    conditional learned none "sinusoidal_authors=sinusoidal $AUTHORS" "shape_authors=$SHAPE_OPTIONS $AUTHORS"
    "shape_K10=shape --position-max-shift 10"
    "shape_K20=shape --position-max-shift 20" "shape_K100=shape --position-max-shift 100")
SWITCH_ROWS=(sinusoidal rotary alibi shaw "$CAPE")
LONGEST_ROWS=(sinusoidal "$SHAPE" "shape_K100=shape --position-max-shift 100")

# part_rows PART: sets ROWS to all that can be chosen.
part_rows() {
    case $1 in
        length) ROWS=("${LENGTH_ROWS[@]}") ;;
        longer) ROWS=("${LONGER_ROWS[@]}") ;;
        longest) ROWS=("${LONGEST_ROWS[@]}") ;;
        joined*) ROWS=("${JOINED_ROWS[@]}") ;;
        switch*) ROWS=("${SWITCH_ROWS[@]}") ;;
        plain) ROWS=("${PLAIN_ROWS[@]}") ;;
        *) die "part $1 has no choice of rows: leave it out of --parts, or --rows" ;;
    esac
}

labels() { for row in "$@"; do row_label "$row"; done; }

# choose PART: sets ROWS to its rows, with --rows to those of them.
choose() {
    local row all
    part_rows "$1"
    all=("${ROWS[@]}") ROWS=()
    for row in "${all[@]}"; do
        if [[ -z $CHOSEN || " $CHOSEN " == *" $(row_label "$row") "* ]]; then ROWS+=("$row"); fi
    done
    ((${#ROWS[@]})) || die "part $1 has none of these rows (--rows), but $(labels "${all[@]}" | paste -s -d , -)"
}

if [[ $CHOSEN ]]; then
    known=$(for part in $PARTS; do part_rows "$part" && labels "${ROWS[@]}"; done | awk '!seen[$0]++' | paste -s -d , -)
    for row in $CHOSEN; do
        [[ ,$known, == *,$row,* ]] || die "no row is called $row (--rows): there are $known"
    done
    for part in $PARTS; do choose "$part"; done
fi

# needs_length PART [FILE]: which part length makes.
needs_length() {
    [[ -e $RUN_DIR/length/${2:-bin} ]] || die "part $1 takes the data${2:+, and the sinusoidal models of the same seeds,}" \
        "of part length: run --parts length first"
}

comma() { local IFS=,; echo "$*"; }

# quickstart PART OPTION…: its stages, in the folder of a part.
quickstart() {
    execute bash recipes/quickstart.sh --run-dir "$RUN_DIR/$1" --seeds "$(comma $SEEDS)" --device "$DEVICE" \
        --jobs "$JOBS" --updates "$UPDATES" --test "$TEST" --stage 2 "${@:2}"
}

length() { by_length length "$UPDATES"; }
longer() { by_length longer $((3 * UPDATES)); }
longest() { by_length longest $((10 * UPDATES)); }

# by_length PART UPDATES: train on short sentences, test on longer ones.
by_length() {
    choose "$1"
    quickstart "$1" --encodings "$(comma "${ROWS[@]}")" --updates "$2"
    analyse_cells "$1" analyse_length
    if [[ $1 == length ]]; then analyse_cells length score_groups; fi
    write_tables "$1"
}

joined() { joined_part joined "$UPDATES"; }
joined_longer() { joined_part joined_longer $((5 * UPDATES)); }

joined_part() {
    choose "$1"
    quickstart "$1" --encodings "$(comma "${ROWS[@]}")" --updates "$2" --join 4 --train 20000 \
        --train-length 4-10 --test-lengths 4-10 --test $((4 * TEST))
    analyse_cells "$1" analyse_joined
    write_tables "$1"
}

# The sinusoidal models of `length`, with other encodings for a tenth of the updates, on the same text.
switch() { fine_tune switch ../length/bin; }

# The same on text of which a tenth is long.
switch_long() {
    needs_length switch_long
    [[ $PLAN == no && -e $RUN_DIR/switch_long/text/bin.done ]] || mix_long "$RUN_DIR/length" "$RUN_DIR/switch_long/text"
    fine_tune switch_long text/bin
}

# fine_tune PART BIN: seed by seed, as each begins with the model of its seed.
fine_tune() {
    local seed base rows
    execute mkdir -p "$RUN_DIR/$1"
    execute ln -sfn "$2" "$RUN_DIR/$1/bin" && execute ln -sfn ../length/corpus "$RUN_DIR/$1/corpus"
    choose "$1"
    rows=$(comma "${ROWS[@]}")
    for seed in $SEEDS; do
        base=$RUN_DIR/length/sinusoidal/seed$seed
        needs_length "$1" "sinusoidal/seed$seed/train.done"
        quickstart "$1" --encodings "$rows" --seeds "$seed" --updates $((UPDATES / 10)) --stage 5 \
            --stop-stage 7 -- --lr 0.002 --finetune-from-model "$base/checkpoint_last.pt"
    done
    quickstart "$1" --encodings "$rows" --stage 8
    write_tables "$1"
}

# mix_long LENGTH DIR: 18,000 pairs of part length and 2,000 of 21 to 60 words, none of them of the test.
mix_long() {
    local side
    python -m recipes.corpus --output "$2" --seed 1 --quiet --train 2000 --train-length 21-60 --valid 1 \
        --test "$TEST" --test-lengths 4-20,21-30,31-45,46-60
    cmp -s "$1/corpus/test.$SOURCE" "$2/test.$SOURCE" || die "the tests of $1 and $2 differ"
    for side in $SOURCE $TARGET; do
        posenc prepare tokenise --normalise-punctuation --language "$side" --input "$2/train.$side" \
            --output "$2/train.tok.$side"
        head -n 18000 "$1/train.bpe.$side" >"$2/train.mixed.$side"
        subword-nmt apply-bpe --codes "$1/bpe.codes" <"$2/train.tok.$side" >>"$2/train.mixed.$side"
    done
    rm -rf "$2/bin"
    posenc prepare binarise --source-lang "$SOURCE" --target-lang "$TARGET" --joined-dictionary \
        --srcdict "$1/bin/dict.$SOURCE.txt" --trainpref "$2/train.mixed" --validpref "$1/valid.bpe" \
        --testpref "$1/test.bpe" --destdir "$2/bin" >"$2/preprocess.out" 2>&1 ||
        die "binarising failed, see $2/preprocess.out: $(tail -n 1 "$2/preprocess.out")"
    cp "$1/bin/codes" "$2/bin/" && touch "$2/bin.done"
}

# Deep models with norms after the layers, on the data of `length`.
deep() { deep_part deep "$UPDATES"; }
deep_400() { deep_part deep_400 $((UPDATES / 5)); }

# deep_part PART UPDATES
deep_part() {
    needs_length "$1"
    local updates=$2 RUN_DIR=$RUN_DIR/$1
    execute mkdir -p "$RUN_DIR" && execute ln -sfn ../length/bin "$RUN_DIR/bin"
    ROWS=(default=sinusoidal "admin=sinusoidal --admin-profile $RUN_DIR/admin.json")
    TRAIN_OPTIONS=(--arch posenc_transformer --share-all-embeddings --encoder-layers 12
        --decoder-layers 12 --encoder-embed-dim 64 --decoder-embed-dim 64
        --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256
        --encoder-attention-heads 4 --decoder-attention-heads 4
        --dropout 0 --criterion label_smoothed_cross_entropy --label-smoothing 0.1
        --optimizer posenc_radam --radam-betas '(0.9,0.98)' --lr 0.002 --warmup-updates $((updates / 4))
        --lr-scheduler polynomial_decay --total-num-update "$updates" --max-update "$updates"
        --max-tokens 1000 --save-interval-updates $((updates / 4)) --keep-interval-updates 1
        --no-epoch-checkpoints)
    local profile=(posenc profile-admin "$RUN_DIR/bin" --user-dir fairseq_posenc --task posenc_translation
        "${TRAIN_OPTIONS[@]}" "${DEVICE_OPTIONS[@]}" --output "$RUN_DIR/admin.json")
    describe_cells
    if [[ $PLAN == yes ]]; then print_command "${profile[@]}" && cells plan && return; fi
    [[ -e $RUN_DIR/admin.json ]] || "${profile[@]}" >"$RUN_DIR/admin.log" 2>&1 ||
        die "profiling failed, see $RUN_DIR/admin.log"
    all_cells train
    make_curves
}

bert() {
    execute bash recipes/claims/bert.sh --run-dir "$RUN_DIR/bert" --seeds "$(comma $SEEDS)" \
        --device "$DEVICE" --jobs "$JOBS" --stage 2 ${FAST:+--fast}
    ROWS=(learned abs_scalar rel_scalar)
    analyse_cells bert analyse_bert
}

plain() {
    needs_length plain
    choose plain
    new_sheet
    describe_rows
    each_cell plain_cell
}

plain_cell() {
    local seed label folder options train
    open_cell "$1"
    folder=$RUN_DIR/plain/$label/seed$seed
    train=(python -u recipes/claims/plain_transformer.py --run-dir "$RUN_DIR/length" --encoding "$label"
        --seed "$seed" --updates "$UPDATES" --warmup $((UPDATES * 3 / 20)) --output "$folder/plain.json")
    if [[ $PLAN == yes ]]; then print_command "${train[@]}" && return; fi
    if [[ -e $folder/plain.json ]]; then return; fi
    mkdir -p "$folder"
    say "[$label] train torch.nn.Transformer"
    "${train[@]}" >"$folder/train.log" 2>&1 ||
        die "training failed, see $folder/train.log: $(tail -n 1 "$folder/train.log")"
}

# Interleaved rounds in one process, as many times as there are seeds.
speed() {
    local seed folder
    for seed in $SEEDS; do
        folder=$RUN_DIR/speed/repeats/seed$seed
        execute mkdir -p "$folder"
        say "[speed] round $seed"
        writing "$folder/training.md" env OMP_NUM_THREADS=1 posenc benchmark training --lengths 32 --tokens 512 \
            --encodings sinusoidal,shape,cape,shaw,rel_scalar --rounds 5 --output "$folder/training.json"
        writing "$folder/bert.md" env OMP_NUM_THREADS=1 posenc benchmark bert --shape bert_small --lengths 128 \
            --encodings none,learned,shaw,rel_scalar --tokens 512 --rounds 5 --output "$folder/bert.json"
    done
}

write_page() {
    execute python -m recipes.claims.claims --claims recipes/claims/claims.json --runs "$RUN_DIR" \
        --output "$RUN_DIR/claims.md"
}

# A plan leaves out what goes over results, and has no text to mix.
if [[ $PLAN == yes ]]; then
    needs_length() { :; }
    mix_long() { say "the text of $1 with long sentences: $2"; }
    analyse_cells() { say "analyses of these models"; }
    write_tables() { :; }
fi
set_up
choose_device
open_run_dir "$RUN_DIR" --updates "$UPDATES"
number=2
for part in $PARTS; do
    stage $((number++)) "$part" - "$part"
done
stage $number "page" - write_page

# What the fine-tuning recipes share: a grid of cells row × task × learning rate × seed, each in its
# folder RUN_DIR/<row>/<task>/lr<lr>/seed<n>. A recipe sets the variables in capitals below, calls
# parse_options, and defines
#   usage, set_smoke    (other settings for --smoke), make_data (stage 3)
#   ARCHIVES (bytes to load, roughly)
#   and, for a task: data_of (folder to train on), tested_on (folder to predict on), subsets_of (of that
#   folder, with commas), metric_of (that chooses checkpoints), epochs_of, and options_of (sets
#   TASK_OPTIONS, for fairseq-train)
# and calls finetune.

source recipes/lib/rows.sh
source recipes/lib/options.sh
source recipes/lib/finetune_options.sh
source recipes/lib/cells.sh
source recipes/lib/slurm.sh
source recipes/lib/tables.sh

export PYTHONIOENCODING=utf-8

# Pre-train the rows without --pretrained, if PRETRAIN asks for it.
pretrain() {
    local row options rows=()
    for row in "${ROWS[@]}"; do
        [[ -n ${PRETRAINED[$(row_label "$row")]:-} ]] || rows+=("$row")
    done
    ((${#rows[@]})) || return 0
    if [[ -n $PRETRAIN ]]; then
        read -r -a options <<<"$PRETRAIN"
        execute bash "$PRETRAIN_RECIPE" --run-dir "$PRETRAIN_DIR" --device "$DEVICE" \
            --encodings "$(IFS=, && echo "${rows[*]}")" "${options[@]}" || die "pre-training failed"
    elif [[ $PLAN == yes ]]; then
        say "made by $PRETRAIN_RECIPE, which has a --plan"
    fi
}

# Sets TEXT and PRETRAINED where the user has not.
find_pretrained() {
    local row label labels=' '
    for row in "${ROWS[@]}"; do
        label=$(row_label "$row")
        labels+="$label "
        PRETRAINED[$label]=${PRETRAINED[$label]:-$PRETRAIN_DIR/$label/seed1/checkpoint_last.pt}
    done
    for label in "${!PRETRAINED[@]}"; do
        [[ $labels == *" $label "* ]] || die "--pretrained $label=…: the rows are$labels"
    done
    TEXT=${TEXT:-$PRETRAIN_DIR/bin}
}

# Blocks of cells, one for each task. Where COMMAND is given it describes the rest of each block.
describe_rows() {
    local task
    for task in $TASKS; do
        sheet block "$task"
        sheet seeds $SEEDS
        sheet lrs $LRS
        sheet_rows "${ROWS[@]}"
        sheet folder "$RUN_DIR/{row}/$task/lr{lr}/seed{seed}"
        "$@"
    done
}

# The steps of the cells of the task: fine-tune, predict, tidy.
describe_steps() {
    local row label arguments subsets marks=score.json
    for row in "${ROWS[@]}"; do
        label=$(row_label "$row")
        sheet value "$label" pretrained "${PRETRAINED[$label]}"
        sheet value "$label" checksum "${CHECKSUMS[$label]:-}"
    done
    task_arguments "$task"
    arguments+=(--position-encoding {encoding} --seed {seed} --lr {lr}
        --lr-scheduler polynomial_decay --total-num-update "${UPDATES[$task]}"
        --max-update "${UPDATES[$task]}" --warmup-updates "${WARMUP[$task]}")
    sheet settings "${arguments[@]:1}" --pretrained {checksum}
    sheet step train train.done fairseq-train "${arguments[@]}" "${DEVICE_TRAINING[@]}" --save-dir {folder} \
        --no-epoch-checkpoints --keep-interval-updates 1 --save-interval 1000000 \
        --save-interval-updates "$INTERVAL" --log-format simple --log-interval 100 \
        --finetune-from-model {pretrained}
    subsets=$(subsets_of "$task")
    for subset in ${subsets//,/ }; do marks+=,predictions.$subset.*; done
    sheet step train "$marks" posenc predict --path {folder}/checkpoint_best.pt \
        --data "$(tested_on "$task")" --subsets "$subsets" --output {folder} "${DEVICE_OPTIONS[@]}" \
        --note row={spec} --note "task=$task" --note lr={lr} --note seed={seed} \
        --note "pretrained={pretrained} {checksum}" --note "signature={signature}" '>' score.txt
    if [[ $KEEP != yes ]]; then sheet step train - find {folder} -name 'checkpoint*.pt' -delete; fi
}

# Sets the `arguments` that the cells of a task share.
task_arguments() {
    local TASK_OPTIONS
    options_of "$1"
    arguments=("$(data_of "$1")" --user-dir fairseq_posenc "${TASK_OPTIONS[@]}"
        "${TRAIN_OPTIONS[@]}" --batch-size "$BATCH" --required-batch-size-multiple 1
        --max-epoch "$(epochs_of "$1")"
        --best-checkpoint-metric "${METRICS[$1]}" --maximize-best-checkpoint-metric
        --validate-interval 1000000 --validate-interval-updates "$INTERVAL")
}

# Reads what the grid depends on.
read_models_and_data() {
    local row label task
    for row in "${ROWS[@]}"; do
        label=$(row_label "$row")
        [[ -r ${PRETRAINED[$label]} ]] ||
            die "there is no model of $label, ${PRETRAINED[$label]}; run $PRETRAIN_RECIPE, or give" \
                "--pretrained or --pretrain"
        CHECKSUMS[$label]=$(sha256sum "${PRETRAINED[$label]}" | cut -c 1-16)
    done
    for task in $TASKS; do
        METRICS[$task]=$(metric_of "$task")
        count_updates "$task"
    done
}

# Sets UPDATES and WARMUP of a task; counting takes as long as loading the training data, hence a file.
count_updates() {
    local arguments file count epochs
    task_arguments "$1"
    epochs=$(epochs_of "$1")
    count=(python -m recipes.lib.updates_per_epoch "${arguments[@]}")
    if [[ $PLAN == yes ]]; then
        UPDATES[$1]=\$updates WARMUP[$1]=\$warmup
        echo "per_epoch=\$($(print_command "${count[@]}"))"
        echo "updates=\$(($epochs * per_epoch))"
        echo "warmup=\$((updates * $WARMUP_PERCENT / 100))"
        return
    fi
    file=$(data_of "$1")/updates-$(cksum <<<"${arguments[*]}" | cut -d ' ' -f 1)
    if [[ ! -e $file ]]; then
        writing "$file" "${count[@]}" 2>"$file.log" || die "$1 cannot be loaded: $(tail -n 1 "$file.log")"
    fi
    UPDATES[$1]=$(($(cat "$file") * epochs))
    WARMUP[$1]=$((UPDATES[$1] * WARMUP_PERCENT / 100))
    say "$1: ${UPDATES[$1]} updates in $epochs epochs"
}

# The commands of all cells, for each task in loops over seeds and learning rates.
print_cells() {
    local task all=$TASKS
    new_sheet
    describe_rows
    say "$(cells count) trainings: ${#ROWS[@]} rows ×" \
        "$(wc -w <<<"$TASKS") tasks × $(wc -w <<<"$LRS") learning rates × $(wc -w <<<"$SEEDS") seeds"
    say "an update: $BATCH examples = --batch-size $BATCH, on one GPU or CPU"
    for task in $all; do
        say "$task"
        METRICS[$task]=$(metric_of "$task")
        count_updates "$task"
        printf 'for %s in %s; do\n' seed "${SEEDS% }" lr "${LRS% }"
        new_sheet
        SEEDS=\$seed LRS=\$lr TASKS=$task describe_rows describe_steps
        cells plan
        printf 'done\ndone\n'
    done
}

# Fine-tune and score all cells, JOBS at a time.
fine_tune() {
    if [[ $PLAN == yes ]]; then
        print_cells
        return
    fi
    read_models_and_data
    new_sheet
    describe_rows describe_steps
    all_cells train
}

# Sets DEVICE, DEVICE_OPTIONS, and JOBS where the user has not: one per GPU or core.
choose_jobs() {
    local wanted=$JOBS
    choose_device
    if [[ -z $wanted && $DEVICE == cuda ]]; then
        list_gpus
        JOBS=${#NODE_GPUS[@]}
    fi
}

# fetch FOLDER ADDRESS [SHA-256]: download a file into a folder, and unpack it there if it is an archive.
fetch() {
    local name=${2##*/} unpack=()
    if made "$1/$name.done"; then return; fi
    if [[ $name == *.zip || $name == *.tgz ]]; then unpack=(--unpack "$1"); fi
    execute posenc prepare download --output "$1/$name" "${unpack[@]}" ${3:+--checksum "$3"} "${URL:-${2%/*}}/$name" ||
        die "cannot get $name; fetch the files by hand and give --raw-dir"
    [[ $PLAN == yes ]] || touch "$1/$name.done"
}

# made FILE: whether what is complete with this file is there; for a plan nothing is.
made() { [[ $PLAN == no && -e $1 ]]; }

# same_data SETTINGS RAW: what is binary beside the file SETTINGS was made from RAW, a file or folder,
# with TEXT's subwords. Raw files may be gone once that is done.
same_data() {
    local name made subwords=()
    made "$2" || return 0
    for name in dict.txt wordpiece.json sentencepiece.model; do
        if [[ -e $TEXT/$name ]]; then subwords+=("$TEXT/$name"); fi
    done
    made=$(fingerprint "$2" "${subwords[@]}")
    same_settings "$1" --raw-files-and-subwords "$made"
}

unpack_benchmarks() { execute python -m tarfile -e recipes/smoke/benchmarks.tar.xz "$RUN_DIR/benchmarks"; }

# The cells as jobs of SLURM, a GPU for each; the data are made where the script is started.
submit() {
    [[ -z $PRETRAIN ]] ||
        die "--slurm needs models that are there: run $PRETRAIN_RECIPE first, and leave out --pretrain"
    GPUS=1
    print_slurm 3 3 5
}

finetune() {
    [[ " ${GIVEN[*]} " == *" --tables "* ]] || whole_tables
    if [[ $SLURM == yes ]]; then submit; exit; fi
    if [[ $PLAN == yes ]]; then
        DEVICE=${DEVICE:-cuda}
        say "what $0 runs, one after the other, from the top of the repository"
        stage 1 "set-up" - execute source scripts/env.sh
        choose_device
    else
        set_up
        choose_jobs
        open_run_dir "$RUN_DIR"
    fi
    TRAIN_OPTIONS=(--arch "$ARCH" --dropout 0.1 --attention-dropout 0.1 --pooler-dropout 0.1
        --optimizer adam --adam-betas '(0.9,0.999)' --adam-eps 1e-6 --weight-decay 0.01
        --clip-norm 1 "${EXTRA[@]}")
    DEVICE_TRAINING=("${DEVICE_OPTIONS[@]}")
    if [[ $DEVICE == cpu ]]; then DEVICE_TRAINING+=(--num-workers 0); fi
    if [[ $SMOKE == yes ]]; then
        stage 2 "small benchmarks" "$RUN_DIR/benchmarks.done" unpack_benchmarks
    fi
    [[ $PLAN == yes || -n $RAW_DIR ]] || check_disk "$ARCHIVES"
    stage 2 "pre-trained models" - pretrain
    find_pretrained
    stage 3 "data" - make_data
    stage 4 "fine-tune" - fine_tune
    stage 5 "table" - make_tables
}

# What the pre-training recipes share: from dumps of Wikipedia to pre-trained models. A recipe
# defines `usage`, its own OPTIONS and
# `prepare_options` (sets PREPARE_OPTIONS, the text for prepare_text.py, and KIND_OPTIONS, how it is
# to be cut), sets RUN_DIR, LANGUAGES, UPDATES, LENGTH and VOCABULARY, and calls parse_options and
# pretrain.

source recipes/lib/rows.sh
source recipes/lib/options.sh
source recipes/lib/cells.sh
source recipes/lib/batch.sh
source recipes/lib/bert_rows.sh
source recipes/lib/slurm.sh

export PYTHONIOENCODING=utf-8

RAW_DIR='' DATA_DIR='' URL=https://dumps.wikimedia.org DUMP_DATE=latest TEXT='' VALID='' DOCUMENTS=blank
HOLD_OUT=1000 WORKERS=$(cores) SEEDS=1 ARCH=posenc_bert_base BATCH=4096 LR=0.0018 WARMUP=0.025
INTERVAL=20000 OPTIMIZER=adam DEVICE='' JOBS='' GPUS='' GPU_MEMORY='' MOST='' PLAN=no
SLURM=no NO_SPACE_CHECK=${NO_SPACE_CHECK:-no} FLAGS='--plan --slurm --no-space-check' EXTRA=() SEGMENTS=alternating

pretrain_usage() {
    cat <<HELP
  --raw-dir DIR       take the dumps (<language>wiki-…-pages-articles….xml.bz2) from here
  --data-dir DIR      or download them into here, once for all recipes (--run-dir/raw)
  --url LIST          or download them from here, verified; mirrors laid out as the default
                      ($URL)
  --dump-date DATE    YYYYMMDD ($DUMP_DATE)
  --text TEXT         take text instead of dumps, see posenc prepare text
  --valid TEXT        text for validation (default: taken from the training text)
  --hold-out N        that is every N-th document of each language ($HOLD_OUT)
  --documents KIND    what divides documents in --text: blank (lines), or title (lines, WikiText)
  --vocabulary N      entries ($VOCABULARY)
  --run-dir DIR       results ($RUN_DIR)
  --encodings LIST    comma-separated rows, \`encoding [option…]\` or \`label=encoding [option…]\`:
$(printf '                      %s,\n' "${ROWS[@]}" | sed '$s/,$//')
$(bert_rows_usage)
  --segments KIND     alternating: with the documents of a block; none: the models get segments in
                      fine-tuning ($SEGMENTS)
  --seeds LIST        comma-separated ($SEEDS)
  --arch NAME         ($ARCH)
  --updates N         ($UPDATES)
  --batch N           sequences per update ($BATCH)
  --length N          tokens per sequence ($LENGTH)
  --lr X              peak learning rate ($LR)
  --warmup X          share of the updates until it is reached ($WARMUP)
  --interval N        updates between checkpoints, which are also validations ($INTERVAL)
  --optimizer NAME    adam or lamb, which fairseq has only where apex is installed ($OPTIMIZER)
  --device cpu|cuda   (cuda if there is one)
  --gpus N            (all) of each node; --jobs divides them
  --gpu-memory N      GiB of the smallest GPU (as found), from which --sequences is estimated
  --sequences N       the most sequences per GPU and step (16 on a CPU)
  --jobs N            trainings at a time (1; number of cores on a CPU)
  --workers N         processes for extraction and preparation (number of cores)
  --plan              after the set-up, print what the run takes, the commands, tokens per update and
                      --update-freq, and stop
  --no-space-check    go on where disk or memory is less than the run is estimated to take
  --slurm             print a script that submits the trainings to SLURM as an array of jobs, and stop
  --stage N           start at this stage: 1 set-up, 2 download, 3 extract, 4 prepare, 5 train
  --stop-stage N      stop after this one

The batch stays the same on any number of GPUs: sequences per GPU × --update-freq × GPUs. With
several of them a training runs under torchrun; in a SLURM job of several nodes, started once
there, under srun, with --gpus of each. Several jobs on one --run-dir, on any hosts, share the
trainings. Models: RUN_DIR/<row>/seed<n>/checkpoint_last.pt. Their subword model and dict.txt:
RUN_DIR/bin.

Defaults are those of Chen et al. 2021, Table 7. Our reading where the paper is silent: Adam with
β (0.9, 0.98) and ε 1e-6, weight decay 0.01, gradients clipped at norm 1, dropout and attention
dropout 0.1, linear decay to 0; blocks of full sentences that may cross documents. The paper names
no optimiser. By its section 4, models have segments in both trainings or in fine-tuning alone: ours
have in both, where --segments does not say otherwise. A learning rate of 0.0018 for batches of 4096
is usual with LAMB, and high for Adam: if training diverges, take --lr 0.0006 or --optimizer lamb.
HELP
}

own_option() { [[ $1 == --rows ]] && take_rows "$2"; }

parse_options() {
    OPTIONS+=' raw-dir data-dir url dump-date text valid hold-out documents vocabulary arch updates batch length'
    OPTIONS+=' lr warmup interval optimizer segments gpus gpu-memory sequences:MOST workers'
    parse_arguments "$@"
    whole_numbers UPDATES BATCH LENGTH INTERVAL HOLD_OUT VOCABULARY WORKERS GPUS GPU_MEMORY \
        MOST:sequences
    [[ $WARMUP =~ ^(0|0?\.[0-9]+)$ ]] || die "--warmup is a share below 1, not $WARMUP"
    case $SEGMENTS in
        alternating) ;;
        none)
            ROWS=("${ROWS[@]/ --position-segments per_head/}")
            ROWS=("${ROWS[@]/ --position-segments input/}")
            ;;
        *) die "--segments is alternating or none, not $SEGMENTS" ;;
    esac
}

# The list of a language's dumps, one a line; extracted text lies in a folder by its side.
dumps_of() { echo "$RUN_DIR/dumps/$1"; }
text_of() { echo "$RUN_DIR/text/$1"; }

download() {
    local language list dumps made
    mkdir -p "$RUN_DIR/dumps"
    for language in $LANGUAGES; do
        list=$(dumps_of "$language") dumps=('')
        if [[ -e $list ]]; then
            if [[ -e $list.extracted && -z $RAW_DIR ]]; then continue; fi
            mapfile -t dumps <"$list"
            # where they are taken from now; the folder may have been moved
            if [[ $dumps -ef $RAW/${dumps##*/} ]]; then continue; fi
        fi
        if [[ -z $RAW_DIR ]]; then say "download the dump of $language"; fi
        writing "$list" "${DOWNLOAD[@]}" --languages "$language"
        mapfile -t dumps <"$list"
        made=$(fingerprint "${dumps[@]}")
        same_settings "$list.settings" --dumps "$made"
    done
}

extract() {
    local language dumps mark
    for language in $LANGUAGES; do
        mark=$(dumps_of "$language").extracted
        if [[ -e $mark ]]; then continue; fi
        mapfile -t dumps <"$(dumps_of "$language")"
        say "extract the text of $language"
        posenc prepare wikipedia-text --output "$(text_of "$language")" \
            --workers "$WORKERS" "${dumps[@]}"
        touch "$mark"
    done
}

# Sets the commands DOWNLOAD and PREPARE, RAW, the folder of dumps, and TRAIN, the options that all
# trainings share.
make_commands() {
    RAW=${RAW_DIR:-${DATA_DIR:-$RUN_DIR/raw}}
    local optimizer=(--optimizer "$OPTIMIZER" --weight-decay 0.01 --clip-norm 1)
    DOWNLOAD=(posenc prepare wikipedia-dumps)
    if [[ -n $RAW_DIR ]]; then
        DOWNLOAD+=(--local --output "$RAW")
    else
        DOWNLOAD+=(--output "$RAW" --url "$URL" --date "$DUMP_DATE")
    fi
    prepare_options
    PREPARE=(posenc prepare text "${PREPARE_OPTIONS[@]}" "${KIND_OPTIONS[@]}"
        --split-sentences --vocabulary-size "$VOCABULARY" --workers "$WORKERS" --output "$RUN_DIR/bin")
    if [[ -n $VALID ]]; then
        PREPARE+=(--valid "$VALID")
    else
        PREPARE+=(--hold-out "$HOLD_OUT")
    fi
    if [[ -n $TEXT ]]; then PREPARE+=(--documents "$DOCUMENTS"); fi
    case $OPTIMIZER in
        adam) optimizer+=(--adam-betas '(0.9,0.98)' --adam-eps 1e-6) ;;
        lamb) ;;
        *) die "--optimizer is adam or lamb, not $OPTIMIZER" ;;
    esac
    TRAIN=("$RUN_DIR/bin" --user-dir fairseq_posenc --task posenc_masked_lm --criterion masked_lm
        --arch "$ARCH" --tokens-per-sample "$LENGTH" --dropout 0.1 --attention-dropout 0.1
        "${optimizer[@]}" --lr "$LR" --lr-scheduler polynomial_decay
        --warmup-updates "$(awk "BEGIN { printf \"%d\", $UPDATES * $WARMUP }")"
        --total-num-update "$UPDATES" --max-update "$UPDATES"
        --required-batch-size-multiple 1 "${EXTRA[@]}")
}

# Sets LAUNCH, the program that trains, and how it divides the batch: SEQUENCES, UPDATE_FREQ.
plan_batch() {
    local where="on the CPU"
    if [[ $DEVICE == cpu ]]; then GPUS=1 MOST=${MOST:-16}; else look_at_gpus; fi
    choose_launch
    if [[ $DEVICE == cuda ]]; then
        MOST=${MOST:-$(batch sequences "$((GPU_MEMORY * 1024 / PER_GPU))" "$LENGTH" "$VOCABULARY" \
            "$ARCH" "${EXTRA[@]}")}
        where="on each of $GPUS GPUs"
    fi
    divide_batch "$BATCH" "$GPUS" "$MOST"
    say "an update: $BATCH_MADE sequences = $SEQUENCES $where × --update-freq $UPDATE_FREQ," \
        "$((BATCH_MADE * LENGTH)) tokens"
}

# Sets `command`, the training of an opened cell.
training() {
    command=("${LAUNCH[@]}" "${TRAIN[@]}" --position-encoding "${options[@]}" --seed "$seed"
        --batch-size "$SEQUENCES" --update-freq "$UPDATE_FREQ" "${DEVICE_OPTIONS[@]}"
        --save-dir "$folder" --save-interval-updates "$INTERVAL" --validate-interval-updates "$INTERVAL"
        --keep-interval-updates 1 --no-epoch-checkpoints --save-interval 1000000
        --validate-interval 1000000 --log-format simple
        --log-interval $((INTERVAL < 100 ? INTERVAL : 100)))
}

train_cell() {
    local seed row label folder options command restore
    open_cell "$1"
    same_settings "$folder/settings" "${TRAIN[@]:1}" --position-encoding "${options[@]}" \
        --seed "$seed" --batch "$BATCH_NAMED"
    if [[ -e $folder/train.done ]]; then return; fi
    restore=$(python -m fairseq_posenc.tools.recipe.newest_checkpoint "$folder" --update-freq "$UPDATE_FREQ")
    say "[$label] train${restore:+, continuing from $restore}"
    training
    "${command[@]}" ${restore:+--restore-file "$restore"} 2>&1 |
        tee -a "$folder/train.log" | progress "$label" loss ||
        die "training of $label failed, see $folder/train.log"
    touch "$folder/train.done"
    say "[$label] model: $folder/checkpoint_last.pt"
}

# Sets DATA: what the binary data in RUN_DIR were made from, beside dumps, and how.
data_settings() {
    local name text paths files
    DATA=("${KIND_OPTIONS[@]}" --vocabulary "$VOCABULARY")
    if [[ -z $TEXT ]]; then DATA+=(--languages "${LANGUAGES% }" --dump-date "$DUMP_DATE"); fi
    if [[ -z $VALID ]]; then DATA+=(--hold-out "$HOLD_OUT"); fi
    if [[ -n $TEXT ]]; then DATA+=(--documents "$DOCUMENTS"); fi
    for name in TEXT VALID BOOKS; do
        text=${!name:-}
        if [[ -z $text ]]; then continue; fi
        # LANGUAGE=PATH,LANGUAGE=PATH…
        if [[ ! -e $text && $text == *=* ]]; then
            text=$(tr , '\n' <<<"$text" | sed 's/^[^=]*=//')
        fi
        mapfile -t paths <<<"$text"
        files=$(fingerprint "${paths[@]}")
        DATA+=("--${name,,}" "$files")
    done
}

# What there is to do, for check_space.
list_work() {
    local cells cell seed row label folder options left=0 finished=0
    mapfile -t cells < <(list_cells)
    for cell in "${cells[@]}"; do
        open_cell "$cell"
        if [[ -e $folder/train.done ]]; then finished=$((finished + 1)); else left=$((left + 1)); fi
    done
    if [[ -z $TEXT ]]; then echo "wikipedia $LANGUAGES"; fi
    # the last, the best and the newest stay
    echo "bert $ARCH $VOCABULARY $((left + finished)) 0 3"
}

print_plan() {
    local seed row label folder options command cells cell language=${LANGUAGES%% *}
    if [[ -z $TEXT ]]; then
        say "stages 2 and 3, for each of $(wc -w <<<"$LANGUAGES") languages:"
        printf '%q ' "${DOWNLOAD[@]}" --languages "$language" && echo
        printf '%q ' posenc prepare wikipedia-text --output "$(text_of "$language")"
        echo DUMP…
    fi
    say "stage 4:"
    printf '%q ' "${PREPARE[@]}" && echo
    say "stage 5: $((BATCH_MADE * LENGTH * UPDATES / 1000000)) million tokens per training"
    mapfile -t cells < <(list_cells)
    for cell in "${cells[@]}"; do
        open_cell "$cell"
        training
        printf '%q ' "${command[@]}" && echo
    done
}

pretrain() {
    if [[ $SLURM == yes ]]; then
        print_slurm 4
        return
    fi
    set_up
    choose_device
    make_commands
    if [[ $PLAN == no ]]; then
        data_settings
        open_run_dir "$RUN_DIR" "${DATA[@]}"
    fi
    check_space "$RAW" list_work
    plan_batch
    if [[ $PLAN == yes ]]; then
        print_plan
        return
    fi
    if [[ -z $TEXT ]]; then
        stage 2 "download" - once download
        stage 3 "extract" - once extract
    fi
    stage 4 "prepare" "$RUN_DIR/prepare.done" "${PREPARE[@]}"
    stage 5 "train" - all_cells train_cell
}

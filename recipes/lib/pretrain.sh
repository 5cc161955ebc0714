# What the pre-training recipes share: from Wikipedia to pre-trained models. A recipe
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

URL=https://huggingface.co DATASET=datasets/wikimedia/wikipedia SNAPSHOT=20231101
RAW_DIR='' DATA_DIR='' TEXT='''' VALID='' DOCUMENTS=blank
HOLD_OUT=1000 WORKERS=$(cores) SEEDS=1 ARCH=posenc_bert_base BATCH=4096 LR=0.0018 WARMUP=0.025
INTERVAL=20000 OPTIMIZER=lamb DEVICE='' JOBS='' GPUS='' GPU_MEMORY='' MOST='' PLAN=no
SLURM=no FLAGS='--plan --slurm' EXTRA=() SEGMENTS=alternating

pretrain_usage() {
    cat <<HELP
  --raw-dir DIR       take the folders $SNAPSHOT.<language> of wikimedia/wikipedia from here
  --data-dir DIR      or download them into here, once for all recipes (--run-dir/raw)
  --url URL           or download them from here, verified; a mirror laid out as the default
                      ($URL)
  --text TEXT         take other text, see posenc prepare text --train
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
  --optimizer NAME    lamb or adam ($OPTIMIZER)
  --device cpu|cuda   (cuda if there is one)
  --gpus N            (all) of each node; --jobs divides them
  --gpu-memory N      GiB of the smallest GPU (as found), from which --sequences is estimated
  --sequences N       the most sequences per GPU and step (16 on a CPU)
  --jobs N            trainings at a time (1; number of cores on a CPU)
  --cell N            only the N-th training of the plan
  --hours N           end a training with a checkpoint before N hours are over; the exit status is 75
  --workers N         processes for preparation (number of cores)
  --plan              print the commands, tokens per update and --update-freq, and stop
  --slurm             print a script that submits the trainings to SLURM as an array of jobs, and stop
  --stage N           start at this stage: 1 set-up, 2 download, 3 prepare, 4 train,
  --stop-stage N      stop after this one: 5 attention (Figures 2 and 4)

The batch stays the same on any number of GPUs: sequences per GPU × --update-freq × GPUs. With
several of them a training runs under torchrun; in a SLURM job of several nodes, started once
there, under srun, with --gpus of each. Models: RUN_DIR/<row>/seed<n>/checkpoint_last.pt. Their subword model and dict.txt:
RUN_DIR/bin.

Defaults are those of Chen et al. 2021, Table 7. The paper names no optimiser, but its batch of 4096,
0.0018 and warm-up of 0.025 are LAMB's untuned row for batch 4K of You et al. 2020, Table 4 (S.
Bhojanapalli is an author of both). So the default is LAMB with β (0.9, 0.999) and ε 1e-6;
--optimizer adam is Adam with β (0.9, 0.98), for which 0.0018 is high: give --lr 0.0006 with it. Our
reading where the paper is silent: weight decay 0.01, gradients clipped at norm 1, dropout and
attention dropout 0.1, linear decay to 0; blocks of full sentences that may cross documents. By its
section 4, models have segments in both trainings or in fine-tuning alone: ours have in both, where
--segments does not say otherwise.

A training whose loss is higher after warm-up than it was within is stopped, where the warm-up has
100 updates or more.
HELP
}

own_option() { [[ $1 == --rows ]] && take_rows "$2"; }

parse_options() {
    OPTIONS+=' raw-dir data-dir url text valid hold-out documents vocabulary arch updates batch length'
    OPTIONS+=' lr warmup interval optimizer segments gpus gpu-memory sequences:MOST workers cell hours'
    parse_arguments "$@"
    whole_numbers UPDATES BATCH LENGTH INTERVAL HOLD_OUT VOCABULARY WORKERS GPUS GPU_MEMORY \
        MOST:sequences CELL HOURS
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

text_of() { echo "$RAW/$SNAPSHOT.$1"; }

# list_files LANGUAGE: path, SHA-256 and size of the snapshot's files, from the list of the hub.
list_files() {
    local list
    list=$(text_of "$1").json
    posenc prepare download --quiet --output "$list" "$URL/api/$DATASET/tree/main/$SNAPSHOT.$1" &&
        python -m recipes.lib.wikipedia "$list" ||
        die "cannot list the files of $1; fetch $DATASET by hand and give --raw-dir"
}

# Those of all languages; of a folder that is given, nothing.
list_languages() {
    local language
    for language in $LANGUAGES; do
        if [[ -z $RAW_DIR ]]; then
            list_files "$language"
        elif [[ ! -d $(text_of "$language") ]]; then
            die "$(text_of "$language") is missing: it is $URL/$DATASET/tree/main/$SNAPSHOT.$language"
        fi
    done
}

# What is prepared needs them no more.
download() {
    local language path checksum size files made folders=() total=0
    if [[ -e $RUN_DIR/prepare.done && -z $RAW_DIR ]]; then return; fi
    files=$(list_languages) || exit 1
    while read -r path checksum size; do total=$((total + ${size:-0})); done <<<"$files"
    check_disk "$total"
    while IFS=$'\t' read -r path checksum size; do
        if [[ -z $path || -e $RAW/$path ]]; then continue; fi
        say "download $path"
        posenc prepare download --output "$RAW/$path" --checksum "$checksum" \
            "$URL/$DATASET/resolve/main/$path" ||
            die "cannot get $path; fetch it by hand and give --raw-dir"
    done <<<"$files"
    for language in $LANGUAGES; do folders+=("$(text_of "$language")"); done
    made=$(fingerprint "${folders[@]}")
    same_settings "$RUN_DIR/files.settings" --files "$made"
}

# Sets the command PREPARE, RAW, the folder of Wikipedia's text, and TRAIN, the options that all
# trainings share.
make_commands() {
    RAW=${RAW_DIR:-${DATA_DIR:-$RUN_DIR/raw}}
    local optimizer
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
        adam) optimizer=(adam --weight-decay 0.01 --clip-norm 1 --adam-betas '(0.9,0.98)' --adam-eps 1e-6) ;;
        lamb) optimizer=(posenc_lamb --weight-decay 0.01 --clip-norm 1 --lamb-betas '(0.9,0.999)' --lamb-eps 1e-6) ;;
        *) die "--optimizer is lamb or adam, not $OPTIMIZER" ;;
    esac
    TRAIN=("$RUN_DIR/bin" --user-dir fairseq_posenc --task posenc_masked_lm --criterion masked_lm
        --arch "$ARCH" --tokens-per-sample "$LENGTH" --dropout 0.1 --attention-dropout 0.1
        --optimizer "${optimizer[@]}" --lr "$LR" --lr-scheduler polynomial_decay
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

# The cells: each trains.
describe_cells() {
    local training=("${TRAIN[@]}" --position-encoding {encoding} --seed {seed})
    new_sheet
    describe_rows
    sheet settings "${training[@]:1}" --batch "$BATCH_NAMED"
    sheet step train train.done "${LAUNCH[@]}" "${training[@]}" \
        --batch-size "$SEQUENCES" --update-freq "$UPDATE_FREQ" "${DEVICE_OPTIONS[@]}" \
        --save-dir {folder} --save-interval-updates "$INTERVAL" --validate-interval-updates "$INTERVAL" \
        --keep-interval-updates 1 --no-epoch-checkpoints --save-interval 1000000 \
        --validate-interval 1000000 --log-format simple --log-interval $((INTERVAL < 100 ? INTERVAL : 100))
}

# Sets DATA: what the binary data in RUN_DIR were made from, beside Wikipedia, and how.
data_settings() {
    local name text paths files
    DATA=("${KIND_OPTIONS[@]}" --vocabulary "$VOCABULARY")
    if [[ -z $TEXT ]]; then DATA+=(--snapshot "$SNAPSHOT" --languages "${LANGUAGES% }"); fi
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

print_plan() {
    local language=${LANGUAGES%% *}
    if [[ -z $TEXT$RAW_DIR ]]; then
        say "stage 2, for each of $(wc -w <<<"$LANGUAGES") languages, and each file of its list, with its SHA-256:"
        printf '%q ' posenc prepare download --output "$(text_of "$language").json" \
            "$URL/api/$DATASET/tree/main/$SNAPSHOT.$language" && echo
        say "posenc prepare download --output $RAW/FILE --checksum … $URL/$DATASET/resolve/main/FILE"
    fi
    say "stage 3:"
    printf '%q ' "${PREPARE[@]}" && echo
    say "stage 4: $((BATCH_MADE * LENGTH * UPDATES / 1000000)) million tokens per training"
    cells plan
    say "stage 5:"
    analyse_attention
}

# Figures 2 (.ranks.png) and 4 (.png) of the first seed; Shaw's and Transformer-XL's have no such scores.
analyse_attention() {
    local models
    mapfile -t models < <(cells list | awk -F '\t' -v seed="${SEEDS%% *}" \
        '$3 == seed { print $2 "=" $4 "/checkpoint_last.pt" }')
    once "$RUN_DIR/attention" posenc analyse attention --models "${models[@]}" --data "$RUN_DIR/bin" \
        --length $((LENGTH < 64 ? LENGTH : 64)) "${DEVICE_OPTIONS[@]}" ||
        say "note: no figure of attention, see above"
}

pretrain() {
    if [[ $SLURM == yes ]]; then
        print_slurm 2 3 5
        return
    fi
    set_up
    choose_device
    make_commands
    if [[ $PLAN == no ]]; then
        data_settings
        open_run_dir "$RUN_DIR" "${DATA[@]}"
    fi
    plan_batch
    describe_cells
    if [[ $PLAN == yes ]]; then
        print_plan
        return
    fi
    if [[ -z $TEXT ]]; then
        stage 2 "download" - download
    fi
    stage 3 "prepare" "$RUN_DIR/prepare.done" "${PREPARE[@]}"
    export POSENC_STOP_DIVERGED=yes
    stage 4 "train" - all_cells train
    stage 5 "attention" - analyse_attention
}

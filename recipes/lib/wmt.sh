# What the WMT recipes share: from the archives of a corpus to a paper's table, for settings (corpus
# and training) × rows (encodings) × seeds, each cell in RUN_DIR/<setting>/<row>/seed<n>. A recipe
# sets the variables in capitals of its options, and defines
#   usage, set_smoke
#   corpus_of SETTING      a corpus of fairseq_posenc/tools/translation/corpora.py
#   form_of SETTING        vanilla, or the form of SHAPE, section 3.1: extrapolate, interpolate
#   tests_of SETTING       the test sets to be scored, and valid if that is to be, too
#   training_of SETTING    sets TRAIN_OPTIONS (for fairseq-train, without the batch), GENERATE_OPTIONS,
#                          SHAPE_OF_MODEL (layers, channels, heads), and TOKENS, of either side per update
#                          (with ADMIN also PROFILE_TOKENS, of the batch that is profiled)
#   scoring_of SETTING     sets SCORE_OPTIONS, for score_cell.py
# if it wants to
#   seeds_of, rows_of SETTING  what is trained there, if that is not all of SEEDS and ROWS
#   analyse_models         a further analysis before the tables
# and calls reproduce. KEEP checkpoints are averaged; with 0 the best one is taken. With ADMIN=yes
# models are initialised by ADMIN.

source recipes/lib/rows.sh
source recipes/lib/options.sh
source recipes/lib/wmt_options.sh
source recipes/lib/wmt_data.sh
source recipes/lib/batch.sh
source recipes/lib/slurm.sh
source recipes/lib/tables.sh

export PYTHONIOENCODING=utf-8

seeds_of() { echo "$SEEDS"; }
rows_of() {
    local row
    for row in "${ROWS[@]}"; do echo "$row"; done
}

# Cells, `seed setting row`; a table that is cut short has whole seeds. SWEEP has further rows of the
# setting SWEEP_SETTING, for the first seed.
list_cells() {
    local seed setting row seeds
    for seed in $SEEDS; do
        for setting in $SETTINGS; do
            seeds=$(seeds_of "$setting")
            if [[ " $seeds " != *" $seed "* ]]; then continue; fi
            rows_of "$setting" | sed "s/^/$seed $setting /"
            if [[ $setting == "$SWEEP_SETTING" && $seed == "${seeds%% *}" ]]; then
                for row in "${SWEEP[@]}"; do echo "$seed $setting $row"; done
            fi
        done
    done
}

# Sets `seed`, `setting`, `row`, `label`, `folder`, and the `arguments` of the cell's training.
open_cell() {
    read -r seed setting row <<<"$1"
    label=$(row_label "$row")
    folder=$RUN_DIR/$setting/$label/seed$seed
    local options
    read -r -a options <<<"$(row_options "$row")"
    languages_of "$setting"
    training_of "$setting"
    arguments=("$RUN_DIR/bin/$setting" --user-dir fairseq_posenc --task posenc_translation
        --source-lang "$SOURCE" --target-lang "$TARGET" --seed "$seed" "${TRAIN_OPTIONS[@]}"
        --required-batch-size-multiple "$MULTIPLE" --position-encoding "${options[@]}" "${EXTRA[@]}")
}

# Sets SEQUENCES (tokens per GPU and step) and UPDATE_FREQ of a setting.
plan_batch() {
    local most=$MAX_TOKENS
    training_of "$1"
    if [[ -z $most && $DEVICE == cpu ]]; then
        most=4096
    elif [[ -z $most ]]; then
        most=$(batch tokens "$((GPU_MEMORY * 1024 / PER_GPU))" 33000 "${SHAPE_OF_MODEL[@]}" "${EXTRA[@]}")
    fi
    divide_batch "${BATCH:-$TOKENS}" "$GPUS" "$most" tokens
}

say_batch() {
    say "[$1] an update: $BATCH_MADE tokens = --max-tokens $SEQUENCES × --update-freq $UPDATE_FREQ" \
        "× $GPUS $([[ $DEVICE == cpu ]] && echo CPU || echo GPUs)"
}

# Gives each cell its folder, which table.py counts; refuses to go on where one is there with other
# settings.
plan_cells() {
    local setting cell cells finished=0
    for setting in $SETTINGS; do
        plan_batch "$setting"
        say_batch "$setting"
        BATCHES[$setting]="--max-tokens $SEQUENCES --update-freq $UPDATE_FREQ"
        TOKENS_OF[$setting]=$BATCH_NAMED
    done
    mapfile -t cells < <(list_cells)
    for cell in "${cells[@]}"; do
        local seed setting row label folder arguments
        open_cell "$cell"
        same_settings "$RUN_DIR/$setting/$label/row" "$(row_options "$row")"
        same_settings "$folder/settings" "${arguments[@]:1}" --batch "${TOKENS_OF[$setting]}" \
            --admin "$ADMIN" "${GENERATE_OPTIONS[@]}"
        if [[ -e $folder/score.json ]]; then finished=$((finished + 1)); fi
    done
    say "${#cells[@]} cells, $finished finished before"
}

# all_cells FUNCTION: on every cell, JOBS at a time.
all_cells() {
    local cells
    declare -A BATCHES=() TOKENS_OF=()
    once plan_cells
    mapfile -t cells < <(list_cells)
    share_cells "$1" "${cells[@]}"
}

# Sets PROFILE, the command that measures how ADMIN initialises an open cell.
profile_command() {
    PROFILE=(posenc profile-admin "${arguments[@]}" --max-tokens "$PROFILE_TOKENS"
        "${DEVICE_OPTIONS[@]}" --output "$folder/admin.json")
}

train_cell() {
    local seed setting row label folder arguments name restore batch admin=() best=()
    open_cell "$1"
    if [[ -e $folder/train.done || -e $folder/score.json ]]; then
        tidy
        return
    fi
    name="$setting $label seed $seed"
    read -r -a batch <<<"${BATCHES[$setting]}"
    if [[ $ADMIN == yes ]]; then
        admin=(--admin-profile "$folder/admin.json")
        if [[ ! -e $folder/admin.json ]]; then
            say "[$name] profile for ADMIN"
            profile_command
            "${PROFILE[@]}" >"$folder/admin.log" 2>&1 ||
                die "profiling failed, see $folder/admin.log"
        fi
    fi
    ((KEEP)) || best=(--best)
    restore=$(python -m recipes.lib.newest_checkpoint "$folder" "${best[@]}" "${batch[@]:2}")
    say "[$name] train${restore:+, continuing from $restore}"
    "${LAUNCH[@]}" "${arguments[@]}" "${batch[@]}" "${DEVICE_OPTIONS[@]}" "${admin[@]}" \
        --save-dir "$folder" ${restore:+--restore-file "$restore"} --log-format simple --log-interval 100 2>&1 |
        tee -a "$folder/train.log" | progress "$name" ||
        die "training failed, see $folder/train.log"
    touch "$folder/train.done"
    tidy
}

# Sets `model`: the average of the last checkpoints, or the best one.
choose_model() {
    model=$folder/best.pt
    if ((KEEP == 0)); then
        [[ -e $model ]] || model=$folder/checkpoint_best.pt
    else
        model=$folder/average.pt
        if [[ -e $model ]]; then return; fi
        average_command
        "${AVERAGE[@]}" >"$folder/average.log" 2>&1 ||
            die "averaging failed, see $folder/average.log"
    fi
}

# Sets AVERAGE, the command that averages the last checkpoints of an open cell.
average_command() {
    AVERAGE=(posenc average --inputs "$folder" --last "$KEEP" "${AVERAGE_OPTIONS[@]}"
        --output "$folder/average.pt")
}

# generate_command SUBSET MODEL: sets GENERATE, which translates with the model of an open cell.
generate_command() {
    GENERATE=(fairseq-generate "$RUN_DIR/bin/$setting" --user-dir fairseq_posenc
        --task posenc_translation --source-lang "$SOURCE" --target-lang "$TARGET" --path "$2"
        --gen-subset "$1" --required-batch-size-multiple 1 "${GENERATE_OPTIONS[@]}"
        "${DEVICE_OPTIONS[@]}")
}

# translate SUBSET: of the binary data, with the cell's model, into SUBSET.out of its folder.
translate() {
    local model
    if [[ -e $folder/$1.out ]]; then return; fi
    choose_model
    say "[$setting $label seed $seed] translate the $1 set"
    generate_command "$1" "$model"
    writing "$folder/$1.out" "${GENERATE[@]}" 2>"$folder/generate.log" ||
        die "translation failed, see $folder/generate.log"
}

translate_cell() {
    local seed setting row label folder arguments test first=0 count
    open_cell "$1"
    if [[ -e $folder/score.json || ! -e $folder/train.done ]]; then return; fi
    if [[ " $(tests_of "$setting") " == *" valid "* ]]; then translate valid; fi
    translate test
    # which has all test sets, one after the other
    for test in $(all_tests_of "$setting"); do
        count=$(wc -l <"$(data_of "$setting")/$test.bpe.$SOURCE")
        writing "$folder/$test.out" sentences "$first" "$count" "$folder/test.out"
        first=$((first + count))
    done
    touch "$folder/translate.done"
}

# sentences FIRST COUNT FILE: of an output of fairseq-generate those numbered from FIRST, from 0.
sentences() {
    awk -F '\t' -v OFS='\t' -v first="$1" -v count="$2" '$1 ~ /^[A-Z]-[0-9]+$/ {
        number = substr($1, 3) - first
        if (number >= 0 && number < count) { $1 = substr($1, 1, 2) number; print }
    }' "$3"
}

# Sets SCORE, the command that scores an open cell.
score_command() {
    local test tests=()
    scoring_of "$setting"
    for test in $(tests_of "$setting"); do
        tests+=(--test "$test=$(reference_of "$setting" "$test")")
    done
    SCORE=(python -m recipes.lib.score_cell "$folder" "${tests[@]}" --language "$TARGET"
        --source-language "$SOURCE" "${SCORE_OPTIONS[@]}" --note "row=$row" --note "seed=$seed")
}

score_cell() {
    local seed setting row label folder arguments
    open_cell "$1"
    if [[ -e $folder/score.json || ! -e $folder/translate.done ]]; then return; fi
    score_command
    "${SCORE[@]}" >"$folder/score.txt" || die "scoring failed"
    say "[$setting $label seed $seed] scored: $folder/score.json"
}

# Of a finished training one model stays, without an optimiser's state: average.pt or best.pt.
tidy() {
    local model
    if [[ $KEEP_CHECKPOINTS == yes ]] || ! compgen -G "$folder/checkpoint*.pt" >/dev/null; then return; fi
    choose_model
    if [[ $model == */checkpoint_best.pt && -e $model ]]; then
        posenc average --inputs "$model" --output "$folder/best.pt" >/dev/null || die "$model cannot be read"
    fi
    rm -f "$folder"/checkpoint*.pt
}

# The commands, but for those that go over single files (bpe-apply, clean), and for what divides test.out
# by test sets.
print_plan() {
    local cell cells command seed setting row label folder arguments model subset
    each_corpus plan_text
    for setting in $SETTINGS; do
        say "[$setting] binarise"
        binarise_commands "$setting"
        print_command "${REFORM[@]}"
        print_command "${BINARISE[@]}"
        plan_batch "$setting"
        say_batch "$setting"
    done
    mapfile -t cells < <(list_cells)
    say "trainings: ${#cells[@]}"
    for cell in "${cells[@]}"; do
        open_cell "$cell"
        plan_batch "$setting" >/dev/null
        command=("${LAUNCH[@]}" "${arguments[@]}" --max-tokens "$SEQUENCES"
            --update-freq "$UPDATE_FREQ" "${DEVICE_OPTIONS[@]}")
        if [[ $ADMIN == yes ]]; then
            profile_command
            print_command "${PROFILE[@]}"
            command+=(--admin-profile "$folder/admin.json")
        fi
        print_command "${command[@]}" --save-dir "$folder"
        model=$folder/checkpoint_best.pt
        if ((KEEP)); then
            average_command
            print_command "${AVERAGE[@]}"
            model=$folder/average.pt
        fi
        for subset in valid test; do
            if [[ $subset == valid && " $(tests_of "$setting") " != *" valid "* ]]; then continue; fi
            generate_command "$subset" "$model"
            writing "$folder/$subset.out" "${GENERATE[@]}"
        done
        score_command
        print_command "${SCORE[@]}"
    done
    make_tables
}

reproduce() {
    if [[ $SLURM == yes ]]; then
        print_slurm 5
        return
    fi
    set_up
    choose_device
    if [[ $DEVICE == cpu ]]; then GPUS=1; else look_at_gpus; fi
    choose_launch
    if [[ $PLAN == yes ]]; then
        print_plan
        return
    fi
    data_settings
    open_run_dir "$RUN_DIR" "${DATA[@]}"
    stage 2 "download" - once download_archives
    stage 3 "text" - once each_corpus prepare_text
    stage 4 "subwords" - once each_corpus learn_subwords
    stage 5 "binarise" - once each_setting binarise
    stage 6 "train" - all_cells train_cell
    stage 7 "translate" - all_cells translate_cell
    stage 8 "score" - all_cells score_cell
    if declare -F analyse_models >/dev/null; then stage 9 "analyse" - once analyse_models; fi
    stage 10 "table" - once make_tables
}

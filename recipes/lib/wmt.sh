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
#   bins_of SETTING        edges of lengths in subwords; then all test sets together are scored by length,
#                          in by_length.json
#   pooled_of SETTING      test sets that together are the subset test1, for analyses
#   analyse SETTING        the paper's figures, of the models that are scored
# and calls reproduce. KEEP checkpoints are averaged; with 0 the best one is taken. With ADMIN=yes
# models are initialised by ADMIN.

source recipes/lib/rows.sh
source recipes/lib/options.sh
source recipes/lib/wmt_options.sh
source recipes/lib/wmt_data.sh
source recipes/lib/paper_numbers.sh
source recipes/lib/batch.sh
source recipes/lib/cells.sh
source recipes/lib/slurm.sh
source recipes/lib/tables.sh

export PYTHONIOENCODING=utf-8

seeds_of() { echo "$SEEDS"; }
rows_of() {
    local row
    for row in "${ROWS[@]}"; do echo "$row"; done
}

# Blocks of cells, one for each setting; SWEEP has further rows of the setting SWEEP_SETTING, for the
# first seed. Where COMMAND is given it describes the rest of each block.
describe_rows() {
    local setting
    for setting in $SETTINGS; do
        describe_block "$(seeds_of "$setting")" "$(rows_of "$setting")" "$@"
        if [[ $setting == "$SWEEP_SETTING" && ${#SWEEP[@]} -gt 0 ]]; then
            describe_block "${SEEDS%% *}" "$(printf '%s\n' "${SWEEP[@]}")" "$@"
        fi
    done
}

# describe_block SEEDS ROWS [COMMAND]: of the setting.
describe_block() {
    local rows
    mapfile -t rows <<<"$2"
    sheet block "$setting"
    sheet seeds $1
    sheet_rows "${rows[@]}"
    sheet folder "$RUN_DIR/$setting/{row}/seed{seed}"
    "${@:3}"
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

# On a setting: how the batch is divided.
say_batch() {
    plan_batch "$1"
    say "[$1] an update: $BATCH_MADE tokens = --max-tokens $SEQUENCES × --update-freq $UPDATE_FREQ" \
        "× $GPUS $([[ $DEVICE == cpu ]] && echo CPU || echo GPUs)"
}

# The steps of the cells of the setting: train, of the finished training keep one model without the state
# of its optimiser, translate, score.
describe_steps() {
    local test tests=() subset model={folder}/average.pt sources=() admin=()
    local about=(--user-dir fairseq_posenc --task posenc_translation)
    local bin=$RUN_DIR/bin/$setting
    languages_of "$setting"
    scoring_of "$setting"
    plan_batch "$setting" >/dev/null
    about+=(--source-lang "$SOURCE" --target-lang "$TARGET")
    local training=("${about[@]}" --seed {seed} "${TRAIN_OPTIONS[@]}"
        --required-batch-size-multiple "$MULTIPLE" --position-encoding {encoding} "${EXTRA[@]}")
    sheet settings "${training[@]}" --batch "$BATCH_NAMED" --admin "$ADMIN" "${GENERATE_OPTIONS[@]}"
    if [[ $ADMIN == yes ]]; then
        sheet step train admin.json posenc profile-admin "$bin" "${training[@]}" \
            --max-tokens "$PROFILE_TOKENS" "${DEVICE_OPTIONS[@]}" --output {folder}/admin.json
        admin=(--admin-profile {folder}/admin.json)
    fi
    sheet step train train.done "${LAUNCH[@]}" "$bin" "${training[@]}" --max-tokens "$SEQUENCES" \
        --update-freq "$UPDATE_FREQ" "${DEVICE_OPTIONS[@]}" "${admin[@]}" --save-dir {folder} \
        --log-format simple --log-interval 100
    if ((KEEP)); then
        sheet step train average.pt posenc average --inputs {folder} --last "$KEEP" "${AVERAGE_OPTIONS[@]}" \
            --output "$model"
    else
        model={folder}/best.pt
        sheet step train best.pt posenc average --inputs {folder}/checkpoint_best.pt --output "$model"
    fi
    if [[ $KEEP_CHECKPOINTS == no ]]; then
        sheet step train - find {folder} -name 'checkpoint*.pt' -delete
    fi
    for test in $(tests_of "$setting"); do tests+=(--test "$test=$(reference_of "$setting" "$test")"); done
    for test in $(all_tests_of "$setting"); do sources+=("$test=$(data_of "$setting")/$test.bpe.$SOURCE"); done
    for subset in valid test; do
        if [[ $subset == valid && " ${tests[*]} " != *" valid="* ]]; then continue; fi
        sheet step translate "$subset.out" fairseq-generate "$bin" "${about[@]}" --path "$model" \
            --gen-subset "$subset" --required-batch-size-multiple 1 "${GENERATE_OPTIONS[@]}" \
            "${DEVICE_OPTIONS[@]}" '>' "$subset.out"
    done
    sheet step translate translate.done python -m recipes.lib.test_sets {folder} "${sources[@]}"
    if declare -F bins_of >/dev/null; then
        sheet step score by_length.json posenc score --generated {folder}/test.out --data "$bin" \
            --reference "$(data_of "$setting")/tests.raw.$TARGET" --bins "$(bins_of "$setting")" \
            --length-unit subwords --note seed={seed} --output {folder}/by_length.json '>' by_length.txt
    fi
    sheet step score score.json python -m recipes.lib.score_cell {folder} "${tests[@]}" --language "$TARGET" \
        --source-language "$SOURCE" "${SCORE_OPTIONS[@]}" --note row={spec} --note seed={seed} '>' score.txt
}

# scored SETTING FILE: `label=path` of that file of each cell of the setting that is scored; for a plan all
# are.
scored() {
    local label folder
    while IFS=$'\t' read -r label folder; do
        if [[ $PLAN == yes || -e $folder/score.json ]]; then echo "$label=$folder/$2"; fi
    done < <(cells list | awk -F '\t' -v at="$RUN_DIR/$1/" 'index($4, at) == 1 { print $2 "\t" $4 }')
}

describe_cells() {
    new_sheet
    describe_rows describe_steps
}

# What goes before the cells, but for commands that go over single files (bpe-apply, clean).
print_plan() {
    each_corpus plan_text
    for setting in $SETTINGS; do
        say "[$setting] binarise"
        binarise_commands "$setting"
        print_command "${REFORM[@]}"
        print_command "${BINARISE[@]}"
        say_batch "$setting"
    done
    say "trainings: $(cells count)"
    cells plan
    if declare -F analyse >/dev/null; then
        say "figures"
        each_setting analyse
    fi
    say "tables"
    make_tables
}

reproduce() {
    if [[ $SLURM == yes ]]; then
        print_slurm 2 5 9
        return
    fi
    set_up
    choose_device
    if [[ $DEVICE == cpu ]]; then GPUS=1; else look_at_gpus; fi
    choose_launch
    if [[ $PLAN == no ]]; then
        data_settings
        open_run_dir "$RUN_DIR" "${DATA[@]}"
        stage 2 "download" - download_archives
        stage 3 "text" - each_corpus prepare_text
        stage 4 "subwords" - each_corpus learn_subwords
        stage 5 "binarise" - each_setting binarise
        if ((LAST_STAGE < 6)); then return; fi
    fi
    describe_cells
    if [[ $PLAN == yes ]]; then
        print_plan
        return
    fi
    each_setting say_batch
    stage 6 "train" - all_cells train
    stage 7 "translate" - all_cells translate
    stage 8 "score" - all_cells score
    if declare -F analyse >/dev/null; then stage 9 "analyse" - each_setting analyse; fi
    stage 10 "table" - make_tables
}

# What recipes/claims.sh measures of trained models, each in the folder of its cell, and its tables.
# A function `analyse_…` takes a line of `cells list`. What is there is not measured again.

# analyse_cells PART FUNCTION: call it on every cell of a part, which has the ROWS.
analyse_cells() {
    local RUN_DIR=$RUN_DIR/$1
    new_sheet
    describe_rows
    each_cell "$2"
}

# analyse NAME OPTION…: of the opened cell's model, written to NAME.json in its folder.
analyse() {
    local output=$folder/$1 log
    if [[ -e $output.json ]]; then return; fi
    log=$output.log
    posenc analyse "${@:2}" --data "$RUN_DIR/bin" "${DEVICE_OPTIONS[@]}" --output "$output" \
        >"$log" 2>&1 || die "analysis failed, see $log: $(tail -n 1 "$log")"
}

analyse_length() {
    local seed label folder options
    open_cell "$1"
    if [[ ! -e $folder/bits.json ]]; then
        python -m recipes.claims.bits "$folder/checkpoint_last.pt" --data "$RUN_DIR/bin" \
            --score "$folder/score.json" "${DEVICE_OPTIONS[@]}" --output "$folder/bits.json" \
            >"$folder/bits.log" 2>&1 || die "see $folder/bits.log: $(tail -n 1 "$folder/bits.log")"
    fi
    case $label in sinusoidal | shape) ;; *) return ;; esac
    analyse shift shift-invariance --models "$label=$folder/checkpoint_last.pt" \
        --offsets 0,10,20,40 --subset valid
    if [[ $label == shape ]]; then analyse_tokens && decode_in_stock; fi
}

# As a model of stock fairseq, translated without this plugin.
decode_in_stock() {
    local log=$folder/stock.log
    if [[ -e $folder/stock.json ]]; then return; fi
    posenc export --path "$folder/checkpoint_last.pt" --to fairseq --output "$folder/stock.pt" \
        >"$log" 2>&1 || die "export failed, see $log"
    # as recipes/quickstart.sh translates
    fairseq-generate "$RUN_DIR/bin" --path "$folder/stock.pt" --required-batch-size-multiple 1 --beam 4 \
        --max-tokens 4000 --max-len-a 1.5 --max-len-b 10 "${DEVICE_OPTIONS[@]}" \
        >"$folder/stock.out" 2>"$log" || die "translation with stock fairseq failed, see $log"
    rm "$folder/stock.pt"
    score_against "$folder/stock.out" "$folder/stock.json" --bins 20,30,45
}

# score_against GENERATED OUTPUT OPTION…: a translation of the test set of sentences.
score_against() {
    posenc score --generated "$1" --output "$2" --data "$RUN_DIR/bin" --note "seed=$seed" \
        --reference "$RUN_DIR/corpus/test.$TARGET" --source "$RUN_DIR/corpus/test.$SOURCE" "${@:3}" \
        >/dev/null || die "scoring of $1 failed"
}

# By the number of clauses, and by how far a subject stands from its verb.
score_groups() {
    local seed label folder options group bins
    open_cell "$1"
    for group in clauses:1,2,3,4,5 agreement:1,4,6,8,11; do
        bins=${group#*:} group=${group%:*}
        if [[ -e $folder/$group.json ]]; then continue; fi
        score_against "$folder/generate.out" "$folder/$group.json" --bins "$bins" \
            --group-by "$RUN_DIR/corpus/test.$group"
    done
}

# found_files PART FILE: sets `files` to that file of all that is trained, with whatever --rows and
# --seeds, as `label=path`.
found_files() {
    local label file ROWS
    part_rows "$1"
    files=()
    for label in $(labels "${ROWS[@]}"); do
        for file in "$RUN_DIR/$1/$label"/seed*/"$2"; do
            if [[ -e $file && -e ${file%/*}/score.json ]]; then files+=("$label=$file"); fi
        done
    done
}

# write_tables PART: of all that is trained.
write_tables() {
    local files name folder=$RUN_DIR/$1
    for name in score clauses agreement; do
        found_files "$1" "$name.json"
        ((${#files[@]})) || continue
        posenc table --by-length "${files[@]}" --output "$folder/${name/score/table}.md" >/dev/null
    done
    found_files "$1" train.log
    writing "$folder/curves.md" posenc plot --curves "${files[@]}" --output "$folder/curves.png"
}

# Token by token against sinusoids of the same seed.
analyse_tokens() {
    if [[ ! -e $RUN_DIR/sinusoidal/seed$seed/train.done ]]; then
        say "[$label, seed $seed] tokens are not compared: row sinusoidal is not trained"
        return
    fi
    analyse tokens tokens --subset test --frequency-bins 50,150 --position-bins 20,40,60 --models \
        "sinusoidal=$RUN_DIR/sinusoidal/seed$seed/checkpoint_last.pt" "$label=$folder/checkpoint_last.pt"
}

analyse_joined() {
    local seed label folder options
    open_cell "$1"
    analyse swap swap --models "$label=$folder/checkpoint_last.pt" --subset test --pairs 1000000
    if [[ $label == shape ]]; then analyse_tokens; fi
}

analyse_bert() {
    local seed label folder options threshold
    open_cell "$1"
    for threshold in 0.001 0.01 0.1; do
        analyse "attention_$threshold" attention --models "$label=$folder/checkpoint_last.pt" \
            --length 32 --threshold "$threshold"
    done
}

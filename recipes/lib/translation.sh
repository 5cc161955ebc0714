# What the translation recipes share: from parallel text to a table of BLEU by length.
# The recipe sets the variables in capitals and calls the functions in its stages:
#   RUN_DIR        folder of all results          TEXT_DIR    {train,valid,test}.tok.{SOURCE,TARGET}
#   SOURCE TARGET  languages                      BPE_SIZE    joint BPE operations
#   ROWS           rows of the table: `label=encoding option…`, or `encoding option…`
#   SEEDS JOBS     seeds; how many trainings at a time
#   TRAIN_OPTIONS GENERATE_OPTIONS SCORE_OPTIONS  for fairseq-train, fairseq-generate, score.py
#   KEEP           checkpoints of epochs to average; 0: the last checkpoint translates

source recipes/lib/rows.sh
source recipes/lib/cells.sh
source recipes/lib/options.sh

export PYTHONIOENCODING=utf-8

SEEDS=1 DEVICE='' JOBS='' FLAGS='' EXTRA=()

learn_subwords() {
    cat "$TEXT_DIR"/train.tok.{"$SOURCE","$TARGET"} |
        writing "$RUN_DIR/bpe.codes" subword-nmt learn-bpe --symbols "$BPE_SIZE"
    local split language
    for split in train valid test; do
        for language in "$SOURCE" "$TARGET"; do
            say "apply BPE to $split.$language"
            writing "$RUN_DIR/$split.bpe.$language" subword-nmt apply-bpe \
                --codes "$RUN_DIR/bpe.codes" <"$TEXT_DIR/$split.tok.$language"
        done
    done
}

# binarise TRAIN VALID TEST: files without their languages.
binarise() {
    rm -rf "$RUN_DIR/bin"
    posenc prepare binarise --source-lang "$SOURCE" --target-lang "$TARGET" \
        --joined-dictionary --trainpref "$1" --validpref "$2" --testpref "$3" --destdir "$RUN_DIR/bin" \
        --workers "$(cores)" >"$RUN_DIR/preprocess.out" 2>&1 ||
        die "binarising failed, see $RUN_DIR/preprocess.out: $(tail -n 1 "$RUN_DIR/preprocess.out")"
    posenc prepare pairs bpe-keep --codes "$RUN_DIR/bpe.codes" --output "$RUN_DIR/bin"
}

train_cell() {
    local seed row label folder options restore
    open_cell "$1"
    local arguments=("$RUN_DIR/bin" --user-dir fairseq_posenc --task posenc_translation
        --source-lang "$SOURCE" --target-lang "$TARGET" --seed "$seed" "${TRAIN_OPTIONS[@]}"
        --position-encoding "${options[@]}")
    same_settings "$folder/settings" "${arguments[@]:1}"
    if [[ -e $folder/train.done ]]; then return; fi
    restore=$(python -m recipes.lib.newest_checkpoint "$folder")
    say "[$label] train${restore:+, continuing from $restore}"
    fairseq-train "${arguments[@]}" "${DEVICE_OPTIONS[@]}" --save-dir "$folder" \
        ${restore:+--restore-file "$restore"} --keep-last-epochs "$KEEP" --log-format simple --log-interval 100 2>&1 |
        tee -a "$folder/train.log" | progress "$label" ||
        die "training of $label failed, see $folder/train.log"
    touch "$folder/train.done"
}

translate_cell() {
    local seed row label folder options model
    open_cell "$1"
    model=$folder/checkpoint_last.pt
    if [[ -e $folder/generate.out || ! -e $folder/train.done ]]; then return; fi
    say "[$label] translate the test set"
    if ((KEEP)); then
        model=$folder/average.pt
        posenc average --inputs "$folder" --last "$KEEP" --output "$model" \
            >"$folder/average.log" 2>&1 || die "averaging failed, see $folder/average.log"
    fi
    writing "$folder/generate.out" fairseq-generate "$RUN_DIR/bin" --user-dir fairseq_posenc \
        --task posenc_translation --source-lang "$SOURCE" --target-lang "$TARGET" \
        --path "$model" --required-batch-size-multiple 1 "${GENERATE_OPTIONS[@]}" \
        2>"$folder/generate.log" || die "translation with $label failed, see $folder/generate.log"
    say "[$label] $(tail -n 1 "$folder/generate.out" | head -c 60)"
}

score_cell() {
    local seed row label folder options
    open_cell "$1"
    if [[ -e $folder/score.json || ! -e $folder/generate.out ]]; then return; fi
    posenc score --generated "$folder/generate.out" --output "$folder/score.json" \
        --data "$RUN_DIR/bin" --note "row=$row" --note "seed=$seed" \
        --note "signature=$(grep -o 'position:.*' "$folder/train.log" | tail -n 1)" \
        "${SCORE_OPTIONS[@]}" >"$folder/score.txt" || die "scoring of $label failed"
    say "[$label] sacreBLEU $(awk '$1 == "all" { print $3 }' "$folder/score.txt")"
}

# The table and the picture, and how far the trainings are from their end.
make_table() {
    local files
    complete score.json || return 0
    cell_files score.json
    posenc table --by-length "${files[@]}" --output "$RUN_DIR"/table.{md,csv}
    posenc plot --by-length "${files[@]}" --output "$RUN_DIR/bleu_by_length.png"
    say "table:   $RUN_DIR/table.md, .csv"
    say "picture: $RUN_DIR/bleu_by_length.png"
    make_curves
}

make_curves() {
    local files
    cell_files train.log
    if writing "$RUN_DIR/curves.md" posenc plot --curves "${files[@]}" --output "$RUN_DIR/curves.png"; then
        say "validation loss by update: $RUN_DIR/curves.png, .md"
    fi
}

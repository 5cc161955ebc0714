# What the translation recipes share: from parallel text to a table of BLEU by length.
# The recipe sets the variables in capitals and calls the functions in its stages:
#   RUN_DIR        folder of all results          TEXT_DIR    {train,valid,test}.tok.{SOURCE,TARGET}
#   SOURCE TARGET  languages                      BPE_SIZE    joint BPE operations
#   ROWS           rows of the table: `label=encoding option…`, or `encoding option…`
#   SEEDS JOBS     seeds; how many trainings at a time
#   TRAIN_OPTIONS GENERATE_OPTIONS SCORE_OPTIONS  for fairseq-train, fairseq-generate, posenc score
#   KEEP           checkpoints of epochs to average; 0: the last checkpoint translates

source recipes/lib/rows.sh
source recipes/lib/cells.sh
source recipes/lib/options.sh

export PYTHONIOENCODING=utf-8

SEEDS=1 DEVICE='' JOBS='' GPUS='' GPU_MEMORY='' FLAGS=--plan EXTRA=()

learn_subwords() {
    local split language
    execute_line "cat ${TEXT_DIR@Q}/train.tok.$SOURCE ${TEXT_DIR@Q}/train.tok.$TARGET |" \
        "subword-nmt learn-bpe --symbols $BPE_SIZE >${RUN_DIR@Q}/bpe.codes"
    for split in train valid test; do
        for language in "$SOURCE" "$TARGET"; do
            [[ $PLAN == yes ]] || say "apply BPE to $split.$language"
            execute_line "subword-nmt apply-bpe --codes ${RUN_DIR@Q}/bpe.codes" \
                "<${TEXT_DIR@Q}/$split.tok.$language >${RUN_DIR@Q}/$split.bpe.$language"
        done
    done
}

# binarise TRAIN VALID TEST: files without their languages.
binarise() {
    local log=$RUN_DIR/preprocess.out command=(posenc prepare binarise --source-lang "$SOURCE"
        --target-lang "$TARGET" --joined-dictionary --trainpref "$1" --validpref "$2" --testpref "$3"
        --destdir "$RUN_DIR/bin" --workers "$(cores)")
    if [[ $PLAN == yes ]]; then
        print_command "${command[@]}"
    else
        rm -rf "$RUN_DIR/bin"
        "${command[@]}" >"$log" 2>&1 || die "binarising failed, see $log: $(tail -n 1 "$log")"
    fi
    execute posenc prepare pairs bpe-keep --normalise-punctuation --codes "$RUN_DIR/bpe.codes" \
        --output "$RUN_DIR/bin"
}

# The cells: train, translate, score.
describe_cells() {
    local model={folder}/checkpoint_last.pt
    local about=(--user-dir fairseq_posenc --task posenc_translation
        --source-lang "$SOURCE" --target-lang "$TARGET")
    local training=("${about[@]}" --seed {seed} "${TRAIN_OPTIONS[@]}" --position-encoding {encoding})
    new_sheet
    describe_rows
    sheet settings "${training[@]}"
    sheet step train train.done fairseq-train "$RUN_DIR/bin" "${training[@]}" "${DEVICE_OPTIONS[@]}" \
        --save-dir {folder} --keep-last-epochs "$KEEP" --log-format simple --log-interval 100
    if ((KEEP)); then
        model={folder}/average.pt
        sheet step translate average.pt posenc average --inputs {folder} --last "$KEEP" --output "$model"
    fi
    sheet step translate generate.out fairseq-generate "$RUN_DIR/bin" "${about[@]}" --path "$model" \
        --required-batch-size-multiple 1 "${GENERATE_OPTIONS[@]}" '>' generate.out
    sheet step score score.json posenc score --generated {folder}/generate.out --output {folder}/score.json \
        --data "$RUN_DIR/bin" --note row={spec} --note seed={seed} \
        --note "signature={signature}" "${SCORE_OPTIONS[@]}" '>' score.txt
}

# The stages of the cells, from FIRST on.
train_translate_score() {
    local number=$1
    describe_cells
    if [[ $PLAN == yes ]]; then
        say "stages $number to $((number + 2)): train, translate, score"
        cells plan
    else
        stage "$number" "train" - all_cells train
        stage $((number + 1)) "translate" - all_cells translate
        stage $((number + 2)) "score" - all_cells score
    fi
    stage $((number + 3)) "table" - make_table
}

# The table and the picture, and how far the trainings are from their end.
make_table() {
    local files
    complete score.json
    cell_files score.json
    execute posenc table --by-length "${files[@]}" --output "$RUN_DIR"/table.{md,csv}
    execute posenc plot --by-length "${files[@]}" --output "$RUN_DIR/bleu_by_length.png"
    execute posenc compare "${files[@]}" --output "$RUN_DIR/report"
    say "table:   $RUN_DIR/table.md, .csv"
    say "picture: $RUN_DIR/bleu_by_length.png"
    say "report:  $RUN_DIR/report/report.html"
    make_curves
}

make_curves() {
    local files
    cell_files train.log
    if writing "$RUN_DIR/curves.md" posenc plot --curves "${files[@]}" --output "$RUN_DIR/curves.png"; then
        say "validation loss by update: $RUN_DIR/curves.png, .md"
    fi
}

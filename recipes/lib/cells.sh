# The cells of a recipe: described in shell on a sheet, printed and run by cells.py, which says how.
# Needs rows.sh, and of a recipe RUN_DIR, ROWS, SEEDS, JOBS and DEVICE.

SHEET='' HOURS=''

# new_sheet: what is described from now on is all there is.
new_sheet() {
    [[ -n $SHEET ]] || { SHEET=$(mktemp) && TEMPORARY+=("$SHEET"); }
    : >"$SHEET"
}

# sheet WORD…: a line of it.
sheet() { printf '%s\n' "${*@Q}" >>"$SHEET"; }

# sheet_rows ROW…
sheet_rows() {
    local row options
    for row in "$@"; do
        read -r -a options <<<"$(row_options "$row")"
        sheet row "$(row_label "$row")" "${options[@]}"
    done
}

# Rows × seeds, each in RUN_DIR/<row>/seed<n>.
describe_rows() {
    sheet block ''
    sheet seeds $SEEDS
    sheet_rows "${ROWS[@]}"
    sheet folder "$RUN_DIR/{row}/seed{seed}"
}

# cells QUESTION…: see cells.py, which needs no environment.
cells() { python3 -m recipes.lib.cells "$SHEET" "$@"; }

# Writes down what each cell is, which tables count, in its cell.json; refuses to go on where one has
# results of other settings. With --cell only that one.
check_cells() {
    local line folder row options about settings count=0 finished=0
    while IFS= read -r line; do
        # a tab before a tab would be skipped
        IFS=$'\t' read -r _ _ folder options row about settings <<<"${line#*$'\t'}"
        same_settings "$row/settings" "$options"
        same_settings "$folder/settings" "$settings"
        writing "$folder/cell.json" echo "$about"
        count=$((count + 1))
        if [[ -e $folder/score.json ]]; then finished=$((finished + 1)); fi
    done < <(cells list | if [[ -n $CELL ]]; then sed -n "${CELL}p"; else cat; fi)
    say "$count cells, $finished finished before"
}

# all_cells STAGE: train, and what comes after it, of every cell, JOBS at a time, each with GPUs of its own; with --cell of that one.
all_cells() {
    local count
    count=$(cells count)
    ((${CELL:-1} <= count)) || die "--cell is $CELL, and there are $count"
    if [[ $1 == train ]]; then check_cells; fi
    share_cores
    share_gpus
    if [[ -n $HOURS ]]; then
        # a quarter of an hour is for the last validation and checkpoint
        export POSENC_UNTIL=$(($(date +%s) - SECONDS + 3600 * HOURS - 900))
    fi
    if [[ -n $CELL ]]; then
        python -m recipes.lib.cells "$SHEET" run "$1" "$CELL" || exit "$?"
        return
    fi
    seq "$count" | xargs -P "$JOBS" -I{} --process-slot-var=POSENC_SLOT \
        python -m recipes.lib.cells "$SHEET" run "$1" {} || die "not all cells are done, see above"
}

# each_cell FUNCTION: call it with each line of `cells list`, JOBS at a time.
each_cell() {
    local lines
    mapfile -t lines < <(cells list)
    share_cores
    in_parallel "$JOBS" "$1" "${lines[@]}"
}

# open_cell LINE: sets `label`, `seed`, `folder` and `options`, those of its row.
open_cell() {
    # a tab before a tab would be skipped
    IFS=$'\t' read -r label seed folder options _ <<<"${1#*$'\t'}"
    read -r -a options <<<"$options"
}

# cell_files FILE: sets `files` to that file of every cell, as `label=path`.
cell_files() { mapfile -t files < <(cells list | awk -F '\t' -v file="$1" '{ print $2 "=" $4 "/" file }'); }

# complete FILE: ends unless every cell has it.
complete() {
    local files file missing=0
    if [[ $PLAN == yes ]]; then return; fi
    cell_files "$1"
    for file in "${files[@]#*=}"; do
        if [[ ! -e $file ]]; then missing=$((missing + 1)); fi
    done
    ((missing == 0)) || die "$missing of ${#files[@]} cells are not finished: run the stages before"
}

# once OUTPUT COMMAND…: its output, made again where the command was another; with --plan the command.
once() {
    if [[ $PLAN == yes ]]; then print_command "${@:2}" --output "$1" && return; fi
    if [[ -e $1.done && $(cat "$1.done") == "${*:2}" ]]; then return; fi
    "${@:2}" --output "$1" && echo "${*:2}" >"$1.done"
}

# Cells of a table, row × seed, each in its folder RUN_DIR/<row>/seed<n>. Needs rows.sh, and
# RUN_DIR, ROWS, SEEDS and JOBS.

# The cells of the table: `seed row`.
list_cells() {
    local row seed
    for seed in $SEEDS; do
        for row in "${ROWS[@]}"; do echo "$seed $row"; done
    done
}

# Sets `row`, `seed`, `label`, `folder` and `options` for a cell.
open_cell() {
    seed=${1%% *} row=${1#* }
    label=$(row_label "$row")
    folder=$RUN_DIR/$label/seed$seed
    read -r -a options <<<"$(row_options "$row")"
}

all_cells() {
    local cells
    mapfile -t cells < <(list_cells)
    share_cells "$1" "${cells[@]}"
}

# cell_files FILE: sets `files` to that file of every cell, as `label=path`.
cell_files() {
    local seed row label folder options cell
    files=()
    while read -r cell; do
        open_cell "$cell"
        files+=("$label=$folder/$1")
    done < <(list_cells)
}

# complete FILE: whether every cell has it. If not, other jobs are to make it.
complete() {
    local files file missing=0
    cell_files "$1"
    for file in "${files[@]#*=}"; do
        if [[ ! -e $file ]]; then missing=$((missing + 1)); fi
    done
    ((missing)) || return 0
    other_jobs || die "$missing of ${#files[@]} cells are not finished: run the stages before"
    say "$missing of ${#files[@]} cells are not finished: the last job will go on here"
    return 1
}

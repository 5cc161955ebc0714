# The papers' tables of a run. Needs stages.sh, and TABLES, RUN_DIR and SMOKE.

make_tables() {
    local name note=()
    if [[ $SMOKE == yes ]]; then
        note=(--note "Ours are of tiny models on a generated corpus, and say nothing about encodings.")
    fi
    for name in $TABLES; do
        execute posenc table --paper "$name" --runs "$RUN_DIR" "${note[@]}" \
            --output "$RUN_DIR/$name.md" "$RUN_DIR/$name.csv"
        say "table: $RUN_DIR/$name.md, .csv"
    done
}

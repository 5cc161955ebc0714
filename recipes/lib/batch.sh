# A paper's batch on whatever GPUs there are: sequences (or tokens) per GPU × updates gathered × GPUs.

batch() { python -m recipes.lib.batch "$@"; }

# divide_batch BATCH GPUS MOST [UNIT]: sets SEQUENCES (per GPU and step, at most MOST), UPDATE_FREQ
# and BATCH_MADE, their product with GPUS; where that is not BATCH a line says so, in UNIT. Also sets
# BATCH_NAMED, by which a run is known on whatever GPUs: BATCH, unless it is missed by more than 1 %.
divide_batch() {
    local off
    read -r SEQUENCES UPDATE_FREQ BATCH_MADE < <(batch divide "$1" "$2" "$3")
    off=$((BATCH_MADE - $1))
    BATCH_NAMED=$((${off#-} * 100 > $1 ? BATCH_MADE : $1))
    if ((off)); then
        say "note: $1 ${4:-sequences} do not divide among $2 GPUs: $BATCH_MADE are taken instead"
    fi
}

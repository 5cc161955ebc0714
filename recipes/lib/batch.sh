# A paper's batch on whatever GPUs there are: sequences (or tokens) per GPU × updates gathered × GPUs.

batch() { python -m fairseq_posenc.tools.recipe.batch "$@"; }

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

# look_at_gpus: sets GPUS and GPU_MEMORY (GiB, of the smallest) where the user has not.
look_at_gpus() {
    local found
    if [[ -n $GPUS && -n $GPU_MEMORY ]]; then return; fi
    found=$(batch gpus) || die "cannot count the GPUs"
    GPUS=${GPUS:-${found% *}} GPU_MEMORY=${GPU_MEMORY:-${found#* }}
    ((GPUS > 0)) || die "there is no GPU; give --device cpu"
}

# choose_launch: sets LAUNCH, the program that trains on all GPUs: torchrun, or with several nodes of
# a SLURM job srun, for which fairseq finds the other nodes itself.
choose_launch() {
    local nodes=${SLURM_JOB_NUM_NODES:-1}
    if [[ $DEVICE == cuda ]] && ((nodes > 1)); then
        LAUNCH=(srun --nodes "$nodes" --ntasks-per-node 1 --kill-on-bad-exit fairseq-train
            --distributed-port 29500 --distributed-world-size $((nodes * GPUS)))
        GPUS=$((nodes * GPUS))
    elif [[ $DEVICE == cuda ]] && ((GPUS > 1)); then
        LAUNCH=(torchrun --standalone --nproc-per-node "$GPUS" \
            "$(type -P fairseq-train || echo fairseq-train)")
    else
        # fairseq would take all GPUs on its own, whatever --gpus says
        LAUNCH=(fairseq-train --distributed-world-size 1)
    fi
}

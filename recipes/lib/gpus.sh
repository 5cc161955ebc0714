# Which GPUs there are, and which of them a training has. Needs DEVICE and JOBS, and of recipes that
# train on several GPUs, batch.sh and GPUS, those of a node that are to be used, or nothing for all.

NODE_GPUS=()

# list_gpus: sets NODE_GPUS: those that CUDA_VISIBLE_DEVICES names, or all; no more than GPUS.
list_gpus() {
    IFS=, read -r -a NODE_GPUS <<<"${CUDA_VISIBLE_DEVICES:-}"
    if ((${#NODE_GPUS[@]} == 0)); then
        mapfile -t NODE_GPUS < <(seq 0 $((${GPUS:-$(count_gpus)} - 1)))
    fi
    ((${#NODE_GPUS[@]})) || die "there is no GPU; give --device cpu"
    ((${#NODE_GPUS[@]} >= ${GPUS:-1})) ||
        die "--gpus is $GPUS, but CUDA_VISIBLE_DEVICES names ${#NODE_GPUS[@]}"
    NODE_GPUS=("${NODE_GPUS[@]:0:${GPUS:-${#NODE_GPUS[@]}}}")
}

count_gpus() { python -c 'import torch; print(torch.cuda.device_count())'; }

# look_at_gpus: sets GPUS and GPU_MEMORY (GiB, of the smallest) where the user has not.
look_at_gpus() {
    list_gpus
    GPUS=${#NODE_GPUS[@]}
    [[ -n $GPU_MEMORY ]] || read -r _ GPU_MEMORY < <(batch gpus) || die "cannot look at the GPUs"
}

# choose_launch: from now on GPUS are those of a training, and PER_GPU are the trainings on each. Sets
# LAUNCH, the program that trains on them: torchrun, or with several nodes of a SLURM job srun, for
# which fairseq finds the other nodes itself, and would take all GPUs that it sees.
choose_launch() {
    local nodes=${SLURM_JOB_NUM_NODES:-1}
    PER_GPU=$((JOBS > GPUS ? (JOBS + GPUS - 1) / GPUS : 1))
    GPUS=$((JOBS > GPUS ? 1 : GPUS / JOBS))
    if [[ $DEVICE == cuda ]] && ((nodes > 1)); then
        ((JOBS == 1)) || die "on several nodes trainings run one at a time: leave out --jobs"
        LAUNCH=(srun --nodes "$nodes" --ntasks-per-node 1 --kill-on-bad-exit
            env "CUDA_VISIBLE_DEVICES=$(gpus_of 0)" fairseq-train
            --distributed-port "$(free_port)" --distributed-world-size $((nodes * GPUS)))
        GPUS=$((nodes * GPUS))
    elif [[ $DEVICE == cuda ]] && ((GPUS > 1)); then
        # on a free port: the one of `--standalone` is always the same before torch 2.1
        LAUNCH=(torchrun --rdzv-backend c10d --rdzv-endpoint localhost:0 --nproc-per-node "$GPUS"
            "$(type -P fairseq-train || echo fairseq-train)")
    else
        # fairseq would take all GPUs on its own, whatever --gpus says
        LAUNCH=(fairseq-train --distributed-world-size 1)
    fi
}

# gpus_of NUMBER: those of the training of that number, of all that run at a time.
gpus_of() {
    local count=${GPUS:-1}
    local gpus=("${NODE_GPUS[@]:$1 * count % ${#NODE_GPUS[@]}:count}")
    (IFS=, && echo "${gpus[*]}")
}

# share_gpus: sets POSENC_GPUS, of which each training that runs at a time takes a part.
share_gpus() {
    local number
    [[ $DEVICE == cuda ]] || return 0
    ((${#NODE_GPUS[@]})) || list_gpus
    POSENC_GPUS=$(for ((number = 0; number < JOBS; number++)); do gpus_of "$number"; done | paste -s -d ';')
    export POSENC_GPUS
}

# share_cores: the processes of all trainings divide them.
share_cores() {
    local processes=$((JOBS * ${GPUS:-1} / ${SLURM_JOB_NUM_NODES:-1}))
    export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$(($(cores) > processes ? $(cores) / processes : 1))}
}

free_port() {
    local port=$((20000 + RANDOM % 20000))
    while (: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((20000 + RANDOM % 20000)); done
    echo "$port"
}

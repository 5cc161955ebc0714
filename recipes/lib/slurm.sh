# Trainings as jobs of SLURM. Needs what parse_arguments sets, and list_cells.

# print_slurm STAGE: a script that submits the recipe twice: up to STAGE, which needs no GPU, and then
# as an array of jobs, which share the cells.
print_slurm() {
    local cells tasks cpus recipe gpus=()
    recipe=$(cd "$OLDPWD" && realpath "$0")
    recipe=${recipe#"$PWD/"}
    mapfile -t cells < <(list_cells)
    DEVICE=${DEVICE:-cuda} JOBS=${JOBS:-1}
    tasks=$(((${#cells[@]} + JOBS - 1) / JOBS)) cpus=$WORKERS
    if [[ $DEVICE == cuda ]]; then
        [[ -n $GPUS ]] || die "--slurm needs --gpus N: how many of a node a job is to have"
        gpus=(--device cuda) cpus=$((4 * GPUS))
    fi
    cat <<SCRIPT
#!/usr/bin/env bash
# ${#cells[@]} trainings of $recipe on SLURM. Started as 'bash FILE [OPTION…]' it submits two
# jobs with these options of sbatch, such as --partition, --account and --mem. First the data, without GPUs;
# then an array, each of whose jobs takes the next training that is free, and the last makes the tables.
# Two minutes before its time is up a job is put back into the queue; what it has trained since its last
# checkpoint (--save-interval-updates, or an epoch) is trained anew.
set -euo pipefail
cd $(printf %q "$PWD")
mkdir -p $(printf %q "$RUN_DIR")
options=(--nodes=1 --ntasks-per-node=1 --time=24:00:00 --requeue --open-mode=append
    --output=$(printf %q "$RUN_DIR")/slurm-%j.log)
data=\$(sbatch --parsable "\${options[@]}" --job-name=data --cpus-per-task=$WORKERS "\$@" <<'JOB'
#!/usr/bin/env bash
$(recipe_command --device cpu --stop-stage "$1")
JOB
)
sbatch "\${options[@]}" --job-name=train --dependency="afterok:\${data%%;*}" --array=1-$tasks \\
    --signal=B:USR1@120 --cpus-per-task=$cpus${gpus:+ --gpus-per-node=$GPUS} "\$@" <<'JOB'
#!/usr/bin/env bash
trap 'scontrol requeue "\$SLURM_JOB_ID"' USR1
$(recipe_command "${gpus[@]}") &
# a signal ends a wait, not the recipe
until wait \$! && status=0 || status=\$?; ! kill -0 \$! 2>/dev/null; do :; done
exit "\$status"
JOB
SCRIPT
}

# recipe_command OPTION…: what the user has given, and these options.
recipe_command() {
    local words=(bash "$recipe" "${GIVEN[@]}" "$@")
    ((${#EXTRA[@]} == 0)) || words+=(-- "${EXTRA[@]}")
    printf '%q ' "${words[@]}"
}

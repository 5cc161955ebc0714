# Trainings as jobs of SLURM. Needs what parse_arguments sets, cells.sh, and `describe_rows`, which puts the
# blocks, seeds, rows and folders of all cells on the sheet.

# print_slurm LOAD DATA [TABLE]: a script that runs the stages up to LOAD where it is started, and submits the
# others: up to DATA, which need no GPU; an array of jobs, each of which has a cell; from TABLE on.
print_slurm() {
    local recipe count gpus=() cpus=8 memory=32 train
    recipe=$(cd "$OLDPWD" && realpath "$0")
    recipe=${recipe#"$PWD/"}
    [[ -z $JOBS ]] || die "--slurm has a job for each training: leave out --jobs"
    DEVICE=${DEVICE:-cuda}
    if [[ $DEVICE == cuda ]]; then
        [[ -n $GPUS ]] || die "--slurm needs --gpus N: how many of a node a training is to have"
        gpus=(--device cuda) cpus=$((4 * GPUS)) memory=$((32 * GPUS))
    fi
    new_sheet
    describe_rows
    count=$(cells count)
    train="--cpus-per-task=$cpus --mem=${memory}G${gpus:+ --gpus-per-node=$GPUS}"
    cat <<SCRIPT
#!/usr/bin/env bash
# $count trainings of $recipe on SLURM: 'bash FILE [OPTION…]', on a login node.
# Here it sets up and downloads, as computing nodes may have no network. Then it submits, with these
# options of sbatch, such as --partition and --account: what makes the data, without GPUs; an array, each
# job of which has one training; and, once all have ended, what makes the tables.
# A training stops with a checkpoint a quarter of an hour before its job's HOURS are over, and the job is put
# back into the queue. What is cut otherwise goes on from the last checkpoint, too.
set -euo pipefail
hours=\${HOURS:-24}
cd $(printf %q "$PWD")
${gpus:+bash scripts/setup.sh --gpu
}$(recipe_command --device cpu --stop-stage "$1")
options=(--nodes=1 --ntasks-per-node=1 --time="\$hours:00:00" --requeue --open-mode=append
    --output=$(printf %q "$RUN_DIR")/slurm-%j.log)
data=\$(sbatch --parsable "\${options[@]}" --job-name=data --cpus-per-task=8 --mem=32G "\$@" <<'JOB'
#!/usr/bin/env bash
$(recipe_command --device cpu --stop-stage "$2")
JOB
)
train=\$(sbatch --parsable "\${options[@]}" --job-name=train --dependency="afterok:\${data%%;*}" \\
    --array=1-$count --signal=B:USR1@120 $train --export="ALL,HOURS=\$hours" "\$@" <<'JOB'
#!/usr/bin/env bash
requeue() { scontrol requeue "\$SLURM_JOB_ID"; }
trap requeue USR1
$(recipe_command "${gpus[@]}" --cell '"$SLURM_ARRAY_TASK_ID"' --hours '"$HOURS"') &
# a signal ends a wait, not the recipe
until wait \$! && status=0 || status=\$?; ! kill -0 \$! 2>/dev/null; do :; done
# the training has stopped for its time
if ((status == 75)); then requeue; fi
exit "\$status"
JOB
)
SCRIPT
    [[ -z ${3:-} ]] || cat <<SCRIPT
sbatch "\${options[@]}" --job-name=table --dependency="afterany:\${train%%;*}" --cpus-per-task=2 --mem=8G "\$@" <<'JOB'
#!/usr/bin/env bash
source scripts/env.sh
$(recipe_command --device cpu --stage "$3")
JOB
SCRIPT
}

# recipe_command OPTION…: what the user has given, and these options, in which variables stay variables.
recipe_command() {
    printf '%q ' bash "$recipe" "${GIVEN[@]}"
    printf '%s ' "$@"
    ((${#EXTRA[@]} == 0)) || printf '%q ' -- "${EXTRA[@]}"
}

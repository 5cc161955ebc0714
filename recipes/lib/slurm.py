"""The trainings of a recipe as an array of jobs of SLURM: a script, printed by --slurm."""

import os
from itertools import chain
from typing import List, Sequence

from fairseq_posenc.errors import UsageError
from recipes.lib.cell import PlannedCell, shell
from recipes.lib.recipe import Recipe

SCRIPT = """\
#!/usr/bin/env bash
# {count} trainings of {recipe} on SLURM: 'bash FILE [OPTION…]', on a login node.
# Here it sets up and downloads, as computing nodes may have no network. Then it submits, with these
# options of sbatch, such as --partition and --account: what makes the data, without GPUs; an
# array, each job of which has one training; and, once all have ended, what makes the tables.
# A training stops with a checkpoint a quarter of an hour before its job's HOURS are over, and the
# job is put back into the queue. What is cut otherwise goes on from the last checkpoint, too.
set -euo pipefail
hours=${{HOURS:-24}}
cd {here}
{set_up}{load}
options=(--nodes=1 --ntasks-per-node=1 --time="$hours:00:00" --requeue --open-mode=append
    --output={logs})
data=$(sbatch --parsable "${{options[@]}}" --job-name=data --cpus-per-task=8 --mem=32G \\
    "$@" <<'{end}'
#!/usr/bin/env bash
{data}
{end}
)
train=$(sbatch --parsable "${{options[@]}}" --job-name=train --dependency="afterok:${{data%%;*}}" \\
    --array=1-{count} --signal=B:USR1@120 {resources} --export="ALL,HOURS=$hours" "$@" <<'{end}'
#!/usr/bin/env bash
requeue() {{ scontrol requeue "$SLURM_JOB_ID"; }}
trap requeue USR1
{train} &
# a signal ends a wait, not the recipe
until wait $! && status=0 || status=$?; ! kill -0 $! 2>/dev/null; do :; done
# the training has stopped for its time
if ((status == 75)); then requeue; fi
exit "$status"
{end}
)
sbatch "${{options[@]}}" --job-name=table --dependency="afterany:${{train%%;*}}" \\
    --cpus-per-task=2 --mem=8G "$@" <<'{end}'
#!/usr/bin/env bash
source scripts/env.sh
{table}
{end}
"""


def print_script(
    recipe: Recipe, cells: Sequence[PlannedCell], load: int, data: int, table: int, gpus: int = 1
) -> None:
    """Print the script that submits a recipe.

    Args:
        recipe: with what the user has given.
        cells: one for each job of the array.
        load: the last stage that runs where the script is started.
        data: the last stage without GPUs.
        table: the first stage once all trainings have ended.
        gpus: of a training.

    Raises:
        UsageError: an option does not go with it, or --gpus is missing.
    """
    for name in "jobs", "cell", "stage", "stop-stage":
        if recipe.config[name]:
            raise UsageError(
                f"--slurm has all stages, and a job for each training: leave out --{name}"
            )
    if recipe.config["hours"]:
        raise UsageError("the hours of a job are given to the script: HOURS=12 bash FILE")
    on_gpu = recipe.config["device"] != "cpu"
    if on_gpu and not gpus:
        raise UsageError("--slurm needs --gpus N: how many of a node a training is to have")
    cpus, memory = (4 * gpus, 32 * gpus) if on_gpu else (8, 32)
    resources = f"--cpus-per-task={cpus} --mem={memory}G"
    device = ["--device", "cuda"] * on_gpu
    variables = '--cell "$SLURM_ARRAY_TASK_ID" --hours "$HOURS"'
    end, words = "JOB", [*chain(*recipe.parsed.words.values()), *recipe.parsed.passthrough]
    while any(end in word for word in words):  # the line that ends a here-document
        end += "_"
    print(SCRIPT.format(
        end=end,
        count=len(cells), recipe=recipe.script.name, here=shell([os.getcwd()]),
        set_up="bash scripts/setup.sh --gpu\n" * on_gpu,
        load=_command(recipe, ["--device", "cpu", "--stop-stage", str(load)]),
        # SLURM fills in %x and the like, also in the names of folders
        logs=shell([f"{recipe.run_dir.replace('%', '%%')}/slurm-%j.log"]),
        data=_command(recipe, ["--device", "cpu", "--stop-stage", str(data)]),
        resources=resources + f" --gpus-per-node={gpus}" * on_gpu,
        train=_command(recipe, device, variables),
        table=_command(recipe, ["--device", "cpu", "--stage", str(table)]),
    ), end="")  # fmt: skip


def _command(recipe: Recipe, words: List[str], variables: str = "") -> str:
    """What the user has given, with these options in place of the user's own."""
    user_words = (parts for name, parts in recipe.parsed.words.items() if name not in words)
    command = shell(["bash", recipe.script.name, *chain(*user_words), *words])
    options = recipe.parsed.passthrough
    passthrough = shell(["--", *options]) if options else ""
    return " ".join(filter(None, [command, variables, passthrough]))

"""The trainings of a recipe as an array of jobs of SLURM: a script, printed by --slurm."""

import os
from itertools import chain
from pathlib import Path
from typing import List, Sequence

from fairseq_posenc.errors import UsageError
from recipes.lib.cell import PlannedCell, shell
from recipes.lib.config import Config
from recipes.lib.recipe import Recipe

SCRIPT = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")


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
    values = {
        "end": end, "count": str(len(cells)), "recipe": recipe.script.name,
        "here": shell([os.getcwd()]), "set-up": "bash scripts/setup.sh --gpu\n" * on_gpu,
        "load": _command(recipe, ["--device", "cpu", "--stop-stage", str(load)]),
        # SLURM fills in %x and the like, also in the names of folders
        "logs": shell([f"{recipe.run_dir.replace('%', '%%')}/slurm-%j.log"]),
        "data": _command(recipe, ["--device", "cpu", "--stop-stage", str(data)]),
        "resources": resources + f" --gpus-per-node={gpus}" * on_gpu,
        "train": _command(recipe, device, variables),
        "table": _command(recipe, ["--device", "cpu", "--stage", str(table)]),
    }  # fmt: skip
    print(Config([values]).text(SCRIPT), end="")


def _command(recipe: Recipe, words: List[str], variables: str = "") -> str:
    """What the user has given, with these options in place of the user's own."""
    user_words = (parts for name, parts in recipe.parsed.words.items() if name not in words)
    command = shell(["bash", recipe.script.name, *chain(*user_words), *words])
    options = recipe.parsed.passthrough
    passthrough = shell(["--", *options]) if options else ""
    return " ".join(filter(None, [command, variables, passthrough]))

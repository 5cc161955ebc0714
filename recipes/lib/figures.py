"""What is made of the cells of a recipe: the papers' tables and figures, and analyses of models."""

import glob
import os
from typing import Callable, Dict, List, Sequence

from fairseq_posenc.errors import UsageError
from recipes.lib.cell import PlannedCell, shell
from recipes.lib.config import FLAG
from recipes.lib.recipe import Recipe
from recipes.lib.runner import finished_cells, map_parallel
from recipes.lib.settings import read_lines, write
from recipes.lib.wmt_data import CorpusSetting

SMOKE = "Ours are of tiny models on a generated corpus, and say nothing about encodings."


def make_tables(recipe: Recipe, cells: Sequence[PlannedCell] = ()) -> None:
    """Make the papers' tables of a run; of a recipe without papers, tables of metrics by length."""
    note = ["--note", SMOKE] if recipe.config["smoke"] == FLAG else []
    test = recipe.config["tables-of"]
    files = [
        cell.labelled_path("score.json") for cell in cells if recipe.is_plan or cell.is_finished
    ]
    if test and not files:
        raise UsageError("no training has been scored: run stages 2 to 8 first")
    for name in recipe.config.list("tables"):
        outputs = [recipe.path(f"{name}.md"), recipe.path(f"{name}.csv")]
        if test:
            source = ["--by-length", *files, "--test", test, "--metric", name]
        else:
            source = ["--paper", name, "--runs", recipe.run_dir, *note]
        recipe.execute(["posenc", "table", *source, "--output", *outputs])
        recipe.say(f"table: {outputs[0]}, .csv")


def once(recipe: Recipe, output: str, words: Sequence[str], required: bool = True) -> None:
    """Run a command that writes OUTPUT, or files whose names begin so; in a plan print it.

    It runs again where it was another, or its files are gone.
    """
    command, done_file = [*words, "--output", output], f"{output}.done"
    is_made = set(glob.glob(f"{glob.escape(output)}*")) - {done_file}
    if recipe.is_plan or not is_made or "\n".join(read_lines(done_file)) != shell(words):
        try:
            recipe.execute(command)
        except UsageError:
            if required:
                raise
            recipe.say(f"note: no figure {os.path.basename(output)}, see above")
            return
        if not recipe.is_plan:
            write(done_file, shell(words))


def shape(recipe: Recipe, setting: CorpusSetting, cells: Sequence[PlannedCell]) -> None:
    """SHAPE's figures.

    Figures 3, 7 and 8 are of all seeds; of the first seed Figure 4, and of INTERPOLATE, as in
    section 3.2, Table 1 and Figure 2.
    """
    folder, config = f"{recipe.run_dir}/{setting.name}", setting.config
    inputs = ["--data", setting.bin, *recipe.devices.options]
    lengths = [cell.labelled_path("by_length.json") for cell in cells]
    plot = ["posenc", "plot", "--by-length", *lengths]
    recipe.execute([*plot, "--output", f"{folder}/figure_7.png"])
    recipe.execute([*plot, "--differences", "--output", f"{folder}/figure_3.png"])
    curves = ["posenc", "plot", "--curves", *(cell.labelled_path("train.log") for cell in cells)]
    recipe.execute([*curves, "--output", f"{folder}/figure_8.png"], output=f"{folder}/figure_8.md")
    first = [cell for cell in cells if cell.seed == config.list("seeds")[0]]
    models = [cell.labelled_path("average.pt") for cell in first]
    compared = [
        cell.labelled_path("average.pt") for cell in first if cell.row in ("sinusoidal", "shape")
    ]
    if setting.form != "vanilla" and len(compared) == 2:
        tokens = ["posenc", "analyse", "tokens", "--models", *compared, *inputs]
        bins = ["--subset", "test1", "--position-bins", config["bins"]]
        once(recipe, f"{folder}/figure_4", [*tokens, *bins])
    if setting.form != "interpolate":
        return
    shift = ["posenc", "analyse", "shift-invariance", "--models", *models, *inputs]
    once(recipe, f"{folder}/figure_2", [*shift, "--sentences", "1000"])
    pairs = config["pairs"]
    recipe.say(
        f"[{setting.name}] translate {pairs} joined pairs of the training text in two orders"
    )
    generate = config.interpolate(recipe.script.arrays["generate"])
    swap = ["posenc", "analyse", "swap", "--models", *models, *inputs, "--pairs", pairs, *generate]
    once(recipe, f"{folder}/swap", swap)


def cape(recipe: Recipe, setting: CorpusSetting, cells: Sequence[PlannedCell]) -> None:
    """CAPE's Figure 8."""
    for test in setting.tests:
        recipe.execute(
            ["posenc", "plot", "--by-length", *(cell.labelled_path("score.json") for cell in cells),
             "--test", test,
             "--metric", "tokenised_bleu", "--output",
             f"{recipe.run_dir}/{setting.name}/figure_8_{test}.png"]
        )  # fmt: skip


def bits_by_range(
    recipe: Recipe, data: str, cells: Sequence[PlannedCell], expect: List[str], name: str = "bits"
) -> None:
    """Bits per token of the references by range of lengths: of each model, and tables of all."""
    finished = finished_cells(recipe, cells)

    def measure(cell: PlannedCell) -> None:
        once(recipe, cell.path("bits.json"), [
            "python", "-m", "recipes.claims.bits", cell.path("checkpoint_last.pt"), "--data", data,
            "--score", cell.path("score.json"), *recipe.devices.options,
        ])  # fmt: skip

    if not recipe.is_plan:
        map_parallel(recipe, finished, measure)
    files = [cell.labelled_path("bits.json") for cell in finished]
    table = ["python", "-m", "recipes.claims.bits_table", *files, "--output", recipe.path(name)]
    recipe.execute([*table, *expect])


FIGURES: Dict[str, Callable[[Recipe, CorpusSetting, Sequence[PlannedCell]], None]] = {
    "shape": shape,
    "cape": cape,
}

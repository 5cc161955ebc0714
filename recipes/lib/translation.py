"""Translation recipes on small text: from parallel text to a table of BLEU by length.

A page names its text, one of :data:`recipes.lib.own_texts.TEXTS` or ``longer``, as ``--text``. Its
other arrays are train, generate and score; ``--keep`` checkpoints of epochs are averaged, with 0
the last one translates.
"""

from functools import partial
from typing import List, Sequence

from fairseq_posenc.errors import UsageError
from recipes.lib import slurm
from recipes.lib.cell import PlannedCell, Step, placement, plan
from recipes.lib.longer_text import LongerText
from recipes.lib.own_texts import TEXTS
from recipes.lib.page import FLAG, Page, Values, no_repeats, own_options, pairs, read_options
from recipes.lib.recipe import Recipe, labelled
from recipes.lib.rows import PlannedRow, read_rows
from recipes.lib.runner import check_passthrough, chosen, in_order, run_cells
from recipes.lib.settings import as_lines, epochs_of, read_lines
from recipes.lib.texts import ALL_LENGTHS, RecipeText

HELP = """{own options}
  --run-dir DIR       results ({run-dir})
  --encodings LIST    comma-separated rows, each `encoding [option…]` or `label=encoding [option…]`
                      ({rows})
  --seeds LIST        comma-separated ({seeds})
  --plan              print the commands, and stop
  --device cpu|cuda   (cuda if there is one)
  --jobs N            trainings at a time (number of cores on a CPU, 1 on a GPU)
  --stage N           start at this stage: {stages}
  --stop-stage N      stop after this one
"""
STAGES = "train", "translate", "score"


def rows_of(page: Page, values: Values) -> List[PlannedRow]:
    """Return the rows that the user, a preset or the page has chosen."""
    chosen = values["encodings"]
    rows = chosen.split(",") if chosen else page.arrays.get("rows", [])
    return read_rows([values.text(row) for row in rows] if not values.given("encodings") else rows)


def main(page: Page, arguments: List[str]) -> None:
    """Run a recipe."""
    page.arrays.setdefault("defaults", []).extend(["--rows", ", ".join(page.arrays["rows"])])
    presets = page.arrays.get("presets", [])
    command_line = read_options(page, HELP, arguments, presets)
    setting = command_line.values["setting"]
    if setting:
        command_line = command_line._replace(
            values=command_line.values.over(pairs(page.arrays[setting]))
        )
    values = command_line.values
    if values.given("encodings"):
        rows_of(page, values)  # a mistake is told before the text is looked at
    recipe = Recipe(page, command_line)
    text = {**TEXTS, "longer": LongerText}[values["text"]](recipe)
    rows = rows_of(page, values)
    if values["slurm"] == FLAG:
        if values.number("gpus", 1) > 1:
            raise UsageError("each training has one GPU: with --slurm leave out --gpus")
        data = len(text.stages) + 1
        slurm.print_script(recipe, cells_of(recipe, text, rows), 1, data, data + 4)
        return
    recipe.set_up()
    recipe.choose_devices(job_per_gpu=text.job_per_gpu)
    values.number("hours")  # read where a training begins
    planned = cells_of(recipe, text, rows)
    values.check_read(own_options(page))
    check_passthrough(recipe, lambda: planned)
    tell_single_seed(recipe)
    recipe.open_folder(*text.settings)
    number = 1
    for number, (title, action, done_file, makes) in enumerate(text.stages, 2):
        recipe.stage(
            number, title, action, done_file and recipe.path(done_file), text.settings, makes
        )
    cells = cells_of(recipe, text, rows)
    _train_translate_score(recipe, cells, number + 1)
    if not recipe.cell:
        for remark in () if recipe.is_plan else text.remarks():
            recipe.say(f"note: {remark}")
    recipe.stage(number + 4, "table", lambda: make_table(recipe, cells, text.remarks()))
    for title, finish in text.analyses:
        number += 1
        recipe.stage(number + 4, title, partial(finish, cells))


def tell_single_seed(recipe: Recipe) -> None:
    """Say that ``--seeds 3`` is one seed, where three may have been meant."""
    seed = recipe.values["seeds"]
    if recipe.values.given("seeds") and seed.isdecimal() and int(seed) > 1 and not recipe.cell:
        several = ",".join(str(number) for number in range(1, min(int(seed), 5) + 1))
        recipe.say(f"note: --seeds {seed} is seed {seed} alone; several are listed: {several}")


def _train_translate_score(recipe: Recipe, cells: Sequence[PlannedCell], first: int) -> None:
    stages = [name for number, name in enumerate(STAGES, first) if recipe.wants(number)]
    if not stages:
        return
    number = first + STAGES.index(stages[0])
    if recipe.is_plan:
        last = f" to {number + len(stages) - 1}" * (len(stages) > 1)
        recipe.say(f"stage{'s' * bool(last)} {number}{last}: {', '.join(stages)}")
        print(*plan(chosen(recipe, cells), stages), sep="\n")
        return
    drawn: List[str] = []  # seeds; the first may be a part of one

    def draw(cell: PlannedCell) -> None:
        """Show a table and a picture after the first two trainings, and after each seed."""
        seed = [peer.is_finished for peer in cells if peer.seed == cell.seed]
        there = [peer for peer in cells if peer.is_finished]
        is_first = not drawn and sum(seed) >= 2
        if recipe.cell or len(there) == len(cells) or not (all(seed) or is_first):
            return
        name = cell.seed if all(seed) else f"part of {cell.seed}"
        if name not in drawn:
            drawn.append(name)
            seeds = len({peer.seed for peer in there})
            recipe.say(f"{len(there)} of {len(cells)} cells are finished: "
                       + ("one seed alone, nothing is ranked" if seeds == 1 else f"{seeds} "
                          "seeds"))  # fmt: skip
            draw_scores(recipe, there)

    def work() -> None:
        run_cells(recipe, cells, stages, draw if "score" in stages else lambda cell: None)

    recipe.stage(number, ", ".join(stages), work, of_cells=True)


def cells_of(recipe: Recipe, text: RecipeText, rows: Sequence[PlannedRow]) -> List[PlannedCell]:
    """Return the cells: each trains, translates and scores."""
    planned = [(text, row) for row in rows]
    if text.beside:
        labels = [f"{row.label}{ALL_LENGTHS}" for row in rows]
        no_repeats("--encodings", [*labels, *(row.label for row in rows)])
        planned += [
            (text.beside, PlannedRow(*pair)) for pair in zip(labels, (r.options for r in rows))
        ]
    seeds = recipe.values.list("seeds")
    return in_order(_cell(recipe, text, row, seed) for text, row in planned for seed in seeds)


def _cell(recipe: Recipe, text: RecipeText, row: PlannedRow, seed: str) -> PlannedCell:
    page, values, device = recipe.page, recipe.values, placement(*recipe.devices.options)
    folder = recipe.path(row.label, f"seed{seed}")
    data, keep = text.data, text.keep
    about = ["--user-dir", "fairseq_posenc", *text.task]
    train = values.fill([*page.arrays["train"], *page.arrays.get(values["train-of"], [])])
    steps = [text.train_step(row, seed, folder, [
        "fairseq-train", *placement(data), *about, "--seed", seed, *train, *recipe.extra,
        "--position-encoding", *row.options, *device, *placement("--save-dir", folder),
        "--keep-last-epochs", str(keep), "--log-format", "simple", "--log-interval", "100",
    ])]  # fmt: skip
    log = placement("--training-log", f"{folder}/train.log") * (steps[0].program == "train")
    model = f"{folder}/checkpoint_last.pt"
    if keep:
        model = f"{folder}/average.pt"
        average = ["posenc", "average", *placement("--inputs", folder), "--last", str(keep)]
        steps.append(Step("translate", [*average, *placement("--output", model)], ("average.pt",)))
    generate = ["fairseq-generate", *placement(data), *about, *text.pair,
                *placement("--path", model), "--required-batch-size-multiple", "1"]  # fmt: skip
    beam_search = [*generate, *values.fill(page.arrays["generate"]), *device]
    steps.append(Step("translate", beam_search, ("generate.out",), "generate.out"))
    bits = []
    if "references" in page.arrays:
        forced = [*generate, *values.fill(page.arrays["references"]), *device]
        # not among the settings: a cell that was finished without it gains it, and nothing else
        steps.append(Step("translate", placement(*forced), ("references.out",), "references.out"))
        bits = placement("--reference-scores", f"{folder}/references.out")
    steps.append(Step("score", [
        "posenc", "score", *placement("--generated", f"{folder}/generate.out"),
        *placement("--output", f"{folder}/score.json", "--data", data),
        "--note", f"row={row.spec}", "--note", f"seed={seed}",
        *placement("--note", f"epochs={values['epochs']}") * bool(values["epochs"]),
        *text.notes(row), *log, *text.score, *bits,
    ], ("score.json",), "score.txt"))  # fmt: skip
    made_from = text.made_from(seed)
    return PlannedCell(
        "", row.label, row.options, seed, "", folder, recipe.path(row.label), steps, made_from
    )


def labelled_results(recipe: Recipe, cells: Sequence[PlannedCell], name: str) -> List[str]:
    """Return `label=path` of a file of each cell that is finished; for a plan of each.

    Raises:
        UsageError: none is, or one is of more epochs.
    """
    for cell in () if recipe.is_plan else cells:
        epochs, trained = map(
            epochs_of, (as_lines(cell.settings), read_lines(cell.path("settings")))
        )
        if epochs and trained and int(trained) > int(epochs):
            raise UsageError(
                f"{cell.folder} is of {trained} epochs, not {epochs}: give --epochs {trained}"
            )
    there = [cell for cell in cells if recipe.is_plan or cell.is_finished]
    if not there:
        raise UsageError("no cell is finished: run the stages before")
    if len(there) < len(cells):
        recipe.say(f"note: {len(cells) - len(there)} of {len(cells)} cells are not finished")
    return [cell.labelled_path(name) for cell in there]


def draw_scores(recipe: Recipe, cells: Sequence[PlannedCell]) -> None:
    """Write the table and the picture of BLEU by length."""
    files = [cell.labelled_path("score.json") for cell in cells]
    table = [recipe.path("table.md"), recipe.path("table.csv")]
    recipe.execute(["posenc", "table", "--by-length", *files, "--output", *table])
    picture = recipe.path("bleu_by_length.png")
    recipe.execute(["posenc", "plot", "--by-length", *files, "--output", picture])
    recipe.say(f"table:   {table[0]}, .csv")
    recipe.say(f"picture: {picture}")


def make_table(recipe: Recipe, cells: Sequence[PlannedCell], remarks: Sequence[str] = ()) -> None:
    """Write the table, the picture and the report, and how far the trainings are from their end.

    Remarks are shown at the top of the report.
    """
    files = labelled_results(recipe, cells, "score.json")
    draw_scores(recipe, [cell for cell in cells if cell.labelled_path("score.json") in files])
    shown = [] if recipe.is_plan else [word for text in remarks for word in ("--remark", text)]
    metrics = ["--metric", "sacrebleu,bits"] if "references" in recipe.page.arrays else []
    report = ["posenc", "compare", *files, *metrics, *shown, "--output", recipe.path("report")]
    recipe.execute(report)
    recipe.say(f"report:  {recipe.path('report/report.html')}")
    draw_curves(recipe, cells)


def draw_curves(recipe: Recipe, cells: Sequence[PlannedCell]) -> None:
    """Draw the validation loss by update of all trainings that have begun."""
    logs = [cell.labelled_path("train.log") for cell in cells if cell.steps[0].program == "train"]
    logs = logs if recipe.is_plan else labelled(logs)
    curves = ["posenc", "plot", "--curves", *logs, "--output", recipe.path("curves.png")]
    try:
        recipe.execute(curves, output=recipe.path("curves.md"))
    except UsageError as error:
        recipe.say(f"note: {error}: there is no picture of the validation losses")
        return
    recipe.say(f"validation loss by update: {recipe.path('curves.png')}, .md")

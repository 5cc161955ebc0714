"""Translation recipes on small text: from parallel text to a table of BLEU by length.

A script names its text, one of :data:`TEXTS`, as ``--text``. Its arrays are train, generate and
score, and, where it has them, references, presets and those of its settings. ``--keep`` checkpoints
of epochs are averaged; in a script with 0 the last one translates.
"""

from typing import Dict, List, Sequence, Tuple, Type

from fairseq_posenc.errors import UsageError
from recipes.lib.cell import PlannedCell, Step, placement
from recipes.lib.config import (
    Config,
    ParsedArguments,
    RecipeScript,
    own_options,
    pairs,
    read_options,
)
from recipes.lib.experiment import Experiment, stage_help
from recipes.lib.longer_text import LongerText
from recipes.lib.own_texts import Own, PythonDocs
from recipes.lib.recipe import Recipe, labelled
from recipes.lib.rows import PlannedRow, read_rows
from recipes.lib.runner import finished_cells, run_cells
from recipes.lib.settings import as_lines, epochs_of
from recipes.lib.texts import ALL_LENGTHS, GrammarText, Multi30k, RecipeText
from recipes.lib.value_checks import no_repeats

HELP = """{own options}
  --run-dir DIR       results ({run-dir})
  --encodings LIST    comma-separated rows, each `encoding [option…]` or `label=encoding [option…]`
                      ({rows})
  --seeds LIST        comma-separated ({seeds})
  --plan              print the commands, and stop
  --device cpu|cuda   (cuda if there is one)
  --jobs N            trainings at a time (number of cores on a CPU, {jobs-on-gpus})
  --stage N           start at this stage: {stages}
  --stop-stage N      stop after this one
"""
ONE_JOB = "1 on a GPU"
TEXTS: Dict[str, Type[RecipeText]] = {
    "corpus": GrammarText, "multi30k": Multi30k, "own": Own, "python_docs": PythonDocs,
    "longer": LongerText,
}  # fmt: skip


def rows_of(script: RecipeScript, config: Config) -> List[PlannedRow]:
    """Return the rows that the user, a preset or the script has chosen."""
    chosen = config["encodings"]
    rows = chosen.split(",") if chosen else script.arrays.get("rows", [])
    return read_rows(
        [config.text(row) for row in rows] if not config.is_given("encodings") else rows
    )


def stages_of(text: Type[RecipeText]) -> Tuple[str, ...]:
    """Return the titles of all stages of a recipe with this text."""
    return ("set-up", *text.data_stages, *Translation.cell_stages, "table", *text.analyses)


def main(script: RecipeScript, arguments: List[str]) -> None:
    """Run a recipe."""
    defaults = script.arrays["defaults"]
    text = TEXTS[pairs(defaults)["text"]]
    jobs = "of GPUs on GPUs" if text.job_per_gpu else ONE_JOB
    defaults += ["--rows", ", ".join(script.arrays["rows"]), "--jobs-on-gpus", jobs,
                 "--stages", stage_help(stages_of(text))]  # fmt: skip
    parsed = read_options(script, HELP, arguments, script.arrays.get("presets", []))
    setting = parsed.config["setting"]
    if setting:
        config = parsed.config.with_overrides(pairs(script.arrays[setting]))
        parsed = parsed._replace(config=config)
    if parsed.config.is_given("encodings"):
        rows_of(script, parsed.config)  # a mistake is told before the text is looked at
    Translation(script, parsed).run()


class Translation(Experiment):
    """Translation models of one text.

    Attributes:
        text: of the recipe.
        text_of: text by the label of a row.
    """

    cell_stages = "train", "translate", "score"

    def __init__(self, script: RecipeScript, parsed: ParsedArguments):
        super().__init__(script, parsed)
        self.text: RecipeText = TEXTS[self.config["text"]](self)
        self.stages, self.job_per_gpu = stages_of(type(self.text)), self.text.job_per_gpu
        rows = rows_of(script, self.config)
        self.text_of = {row.label: self.text for row in rows}
        self.rows = rows
        if self.text.beside:
            beside = [PlannedRow(f"{row.label}{ALL_LENGTHS}", row.options) for row in rows]
            self.rows = [*rows, *beside]
            no_repeats("--encodings", [row.label for row in self.rows])
            self.text_of.update((row.label, self.text.beside) for row in beside)

    def data_fingerprint(self) -> List[str]:
        """See :meth:`Experiment.data_fingerprint`."""
        return self.text.fingerprint

    def cell_fingerprint(self, cell: PlannedCell) -> List[str]:
        """See :meth:`Experiment.cell_fingerprint`."""
        return self.text_of[cell.row].data_fingerprint(cell.seed)

    def check(self) -> None:
        """See :meth:`Experiment.check`."""
        self.config.number("hours")  # read where a training begins
        self.cells()  # read the options that count
        self.config.check_read(own_options(self.script))
        super().check()

    def submit(self) -> None:
        """See :meth:`Experiment.submit`."""
        if self.config.number("gpus", 1) > 1:
            raise UsageError("each training has one GPU: with --slurm leave out --gpus")
        super().submit()

    def data(self) -> None:
        """See :meth:`Experiment.data`."""
        self.text.data()

    def steps(self, cell: PlannedCell) -> List[Step]:
        """Train, translate, score."""
        script, config, text = self.script, self.config, self.text_of[cell.row]
        row, folder = PlannedRow(cell.row, cell.options), cell.folder
        device = placement(*self.devices.options)
        data, keep = text.bin, text.keep
        task = ["--user-dir", "fairseq_posenc", *text.task]
        train = config.interpolate(
            [*script.arrays["train"], *script.arrays.get(config["train-of"], [])]
        )
        steps = [text.train_step(cell, [
            "fairseq-train", *placement(data), *task, "--seed", cell.seed, *train, *self.extra,
            "--position-encoding", *cell.options, *device, *placement("--save-dir", folder),
            "--keep-last-epochs", str(keep), "--log-format", "simple", "--log-interval", "100",
        ])]  # fmt: skip
        log = []
        if steps[0].program == "train":
            log = placement("--training-log", f"{folder}/train.log")
        model = f"{folder}/checkpoint_last.pt"
        if keep:
            model = f"{folder}/average.pt"
            average = ["posenc", "average", *placement("--inputs", folder), "--last", str(keep)]
            average += placement("--output", model)
            steps.append(Step("translate", average, ("average.pt",)))
        generate = ["fairseq-generate", *placement(data), *task, *text.pair,
                    *placement("--path", model), "--required-batch-size-multiple", "1"]  # fmt: skip
        beam_search = [*generate, *config.interpolate(script.arrays["generate"]), *device]
        steps.append(Step("translate", beam_search, ("generate.out",), "generate.out"))
        epochs, bits = [], []
        number = epochs_of(as_lines(steps[0].words))
        if config["epochs"] and number:
            epochs = placement("--note", f"epochs={number}")
        if "references" in script.arrays:
            # not among the settings: a cell that was finished without it gains it and a new score
            forced = placement(*generate, *config.interpolate(script.arrays["references"]), *device)
            steps.append(Step("translate", forced, ("references.out",), "references.out"))
            bits = placement("--reference-scores", f"{folder}/references.out")
        steps.append(Step("score", [
            "posenc", "score", *placement("--generated", f"{folder}/generate.out"),
            *placement("--output", f"{folder}/score.json", "--data", data),
            "--note", f"row={row.spec}", "--note", f"seed={cell.seed}",
            *epochs, *text.notes(cell), *log, *text.score, *bits,
        ], ("score.json",), "score.txt"))  # fmt: skip
        return steps

    def run_cells(self, titles: Sequence[str]) -> None:
        """Do the stages; show a table and a picture after two trainings, and after each seed."""
        cells = self.cells()
        drawn: List[str] = []  # seeds; the first may be a part of one

        def draw(cell: PlannedCell) -> None:
            seed = [peer.is_finished for peer in cells if peer.seed == cell.seed]
            finished = [peer for peer in cells if peer.is_finished]
            is_first = not drawn and sum(seed) >= 2
            if self.cell or len(finished) == len(cells) or not (all(seed) or is_first):
                return
            name = cell.seed if all(seed) else f"part of {cell.seed}"
            if name not in drawn:
                drawn.append(name)
                seeds = len({peer.seed for peer in finished})
                self.say(f"{len(finished)} of {len(cells)} cells are finished: "
                         + ("one seed alone, nothing is ranked" if seeds == 1
                            else f"{seeds} seeds"))  # fmt: skip
                draw_scores(self, finished)

        run_cells(self, cells, titles, draw if "score" in titles else lambda cell: None)

    def tables(self) -> None:
        """Table, picture and report, and what the text has beside."""
        remarks = [] if self.is_plan or self.cell else self.text.remarks()
        for remark in remarks:
            self.say(f"note: {remark}")
        self.run_stage("table", lambda: make_table(self, self.cells(), remarks))
        self.text.analyse()


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
    """Write the table, the picture, the report and the curves of validation.

    Remarks are shown at the top of the report.
    """
    finished = finished_cells(recipe, cells)
    draw_scores(recipe, finished)
    files = [cell.labelled_path("score.json") for cell in finished]
    shown = [word for text in remarks for word in ("--remark", text)]
    metrics = ["--metric", "sacrebleu,bits"] if "references" in recipe.script.arrays else []
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

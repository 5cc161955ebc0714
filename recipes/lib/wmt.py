"""The WMT recipes and IWSLT14: from the archives of a corpus to a paper's table.

Cells are settings (corpus and training) × rows (encodings) × seeds, each in
RUN_DIR/<setting>/<row>/seed<n>. A script has, beside what all scripts have, an array for each
setting with what differs there, and names that only it can give

    --corpus, --form       of fairseq_posenc/tools/translation/corpora.py; vanilla, or a form of
                      SHAPE
    --tests                that are scored: names, or ``all``
    --bins                 edges in subwords; then all tests together are scored by length, too
    --pooled               tests that together are the subset test1, for analyses
    --tokens               of either side per update; --profile-tokens of the batch that ADMIN
                      profiles
    --shape                of the model: layers, channels, heads
    --keep                 checkpoints that are averaged; with 0 the best one is taken
    --sweep-row            a row for each number of --sweep, with {} in its place
    --figures, --tables-by of recipes/lib/figures.py
"""

from typing import Dict, List, Sequence

from fairseq_posenc.errors import UsageError
from recipes.lib import figures
from recipes.lib.batch import Division, divide, tokens
from recipes.lib.cell import PlannedCell, Step, placement
from recipes.lib.config import Config, ParsedArguments, RecipeScript, pairs, read_options
from recipes.lib.experiment import Experiment, complete_help, help_text
from recipes.lib.rows import PlannedRow, read_row, read_rows
from recipes.lib.runner import chosen
from recipes.lib.wmt_data import Corpora, CorpusSetting


def main(script: RecipeScript, arguments: List[str]) -> None:
    """Run a recipe."""
    script.arrays["defaults"] += ["--keep-checkpoints", "no"]
    complete_help(script, Wmt.stages)
    parsed = read_options(script, help_text("wmt"), arguments)
    parsed.config.exclude("ready", "add", "moses")
    Wmt(script, parsed).run()


class Wmt(Experiment):
    """Translation models of settings, each with a corpus of its own or a form of it."""

    stages = ("set-up", "download", "text", "subwords", "binarise", "train", "translate", "score",
              "analyse", "table")  # fmt: skip
    cell_stages = "train", "translate", "score"
    last_online_stage = "download"
    several_gpus = True

    def __init__(self, script: RecipeScript, parsed: ParsedArguments):
        super().__init__(script, parsed)
        self.settings: Dict[str, CorpusSetting] = {}
        defaults = script.arrays["defaults"]
        settings = defaults[defaults.index("--settings") + 1].split(",")
        for name in self.config.list("settings"):
            if name not in settings:
                raise UsageError(f"--settings are {','.join(settings)}, not {name}")
            config = self.config
            for array in config["regime"], name.replace("-", "_"):
                config = config.with_overrides(pairs(script.arrays.get(array, [])))
            self.settings[name] = CorpusSetting(name, config, self.run_dir)
        self.rows_of = {
            name: _rows(script, setting.config) for name, setting in self.settings.items()
        }
        self.corpora = Corpora(self, list(self.settings.values()))

    def recipe_rows(self) -> List[PlannedRow]:
        """See :meth:`Experiment.recipe_rows`."""
        rows, configs = self.script.arrays["rows"], [s.config for s in self.settings.values()]
        return [read_row(config.text(row)) for config in configs for row in rows]

    def data_fingerprint(self) -> List[str]:
        """What the text is made from, beside the archives, and how."""
        return self.corpora.fingerprint()

    def data(self) -> None:
        """From archives to binary data."""
        corpora = self.corpora
        self.run_stage("download", corpora.download)
        self.run_stage("text", lambda: corpora.each("text.done", corpora.prepare_text))
        self.run_stage("subwords", lambda: corpora.each("subwords.done", corpora.learn_subwords))
        self.run_stage("binarise", corpora.binarise_all)
        for setting in self.settings.values() if self.last >= self.stage_number("train") else ():
            self.say_batch(setting)

    def tables(self) -> None:
        """The paper's figures and tables."""
        if self.config["figures"]:
            self.run_stage("analyse", self.draw)
        self.run_stage("table", lambda: figures.make_tables(self, self.cells()))

    def print_plan(self) -> None:
        """What goes before the cells, but for commands that go over single files; cells; tables."""
        if self.first <= self.stage_number("binarise") and not self.cell:
            self.corpora.print_plan(self.say_batch)
        else:
            for setting in self.settings.values():
                self.say_batch(setting)
        self.train_and_evaluate()
        self.tables()

    def print_cells(self, titles: Sequence[str]) -> None:
        """See :meth:`Experiment.print_cells`."""
        self.say(f"trainings: {len(chosen(self, self.cells()))}")
        super().print_cells(titles)

    def draw(self) -> None:
        """Draw the paper's figures of what is scored."""
        cells = self.cells()
        for setting in self.settings.values():
            finished = [cell for cell in cells if cell.setting == setting.name]
            finished = [cell for cell in finished if self.is_plan or cell.is_finished]
            if finished:
                figures.FIGURES[self.config["figures"]](self, setting, finished)

    def divide(self, setting: CorpusSetting) -> Division:
        """Divide the tokens of an update among the GPUs."""
        config, devices = setting.config, self.devices
        most = config.number("max-tokens")
        if not most and devices.type == "cpu":
            most = 4096
        elif not most:
            memory = devices.memory * 1024 // devices.trainings_per_gpu
            layers, channels, heads = map(int, config.list("shape"))
            most = tokens(memory, 33000, layers, channels, heads, self.extra)
        batch_size = config.number("batch") or config.number("tokens")
        return divide(batch_size, devices.num_gpus, most, "tokens")

    def say_batch(self, setting: CorpusSetting) -> None:
        """Tell how the batch is divided."""
        made = self.divide(setting)
        if made.note:
            self.say(made.note)
        unit = "CPU" if self.devices.type == "cpu" else "GPUs"
        self.say(f"[{setting.name}] an update: {made.made} tokens = --max-tokens {made.per_gpu} × "
                 f"--update-freq {made.steps} × {self.devices.num_gpus} {unit}")  # fmt: skip

    def grid(self) -> List[PlannedCell]:
        """All cells without their steps, of each setting its rows and seeds."""
        cells: List[PlannedCell] = []
        for setting in self.settings.values():
            rows, seeds = self.rows_of[setting.name], setting.config.list("seeds")
            swept = seeds[:1] if setting.config["sweep-seeds"] == "first" else seeds
            trainings = [(row, seed) for row in rows for seed in seeds]
            trainings += [(row, seed) for row in _sweep(setting.config, rows) for seed in swept]
            for row, seed in trainings:
                folder = f"{self.run_dir}/{setting.name}/{row.label}"
                cells.append(PlannedCell(setting.name, row.label, row.options, seed, "",
                                         f"{folder}/seed{seed}", folder))  # fmt: skip
        return cells

    def cell_fingerprint(self, cell: PlannedCell) -> List[str]:
        """The batch, on whatever GPUs, and the text."""
        named = self.divide(self.settings[cell.setting]).named
        return ["--batch", str(named), *self.corpora.fingerprint()]

    def steps(self, cell: PlannedCell) -> List[Step]:
        """The training of a row, what is kept of it, its translations, and their scores."""
        setting, script, folder = self.settings[cell.setting], self.script, cell.folder
        config, device, batch = setting.config, self.devices.options, self.divide(setting)
        admin, keep = bool(config["profile-tokens"]), config.number("keep")
        task = ["--user-dir", "fairseq_posenc", "--task", "posenc_translation",
                 "--source-lang", setting.source, "--target-lang", setting.target]  # fmt: skip
        training = [
            *task, "--seed", cell.seed, *config.interpolate([*script.arrays["train"],
                                                  *script.arrays.get(config["train-of"], [])]),
            "--required-batch-size-multiple", config["multiple"] or "1",
            "--position-encoding", *cell.options, *self.extra,
        ]  # fmt: skip
        steps = []
        if admin:
            steps.append(Step("train", [
                "posenc", "profile-admin", *placement(setting.bin), *training, "--max-tokens",
                config["profile-tokens"],
                *placement(*device, "--output", f"{folder}/admin.json"),
            ], ("admin.json",)))  # fmt: skip
        steps.append(Step("train", [
            *placement(*self.devices.launch(), setting.bin), *training,
            *placement("--max-tokens", batch.per_gpu, "--update-freq", batch.steps, *device),
            *placement("--admin-profile", f"{folder}/admin.json") * admin,
            *placement("--save-dir", folder), "--log-format", "simple", "--log-interval", "100",
        ], ("train.done",)))  # fmt: skip
        model = f"{folder}/{'average' if keep else 'best'}.pt"
        if keep:
            last = ["--last", str(keep), "--by", "updates"]
            average = ["posenc", "average", *placement("--inputs", folder), *last]
        else:
            average = ["posenc", "average", *placement("--inputs", f"{folder}/checkpoint_best.pt")]
        # one model is kept, without the state of its optimiser
        steps.append(
            Step("train", [*average, *placement("--output", model)], (model.rpartition("/")[2],))
        )
        if config["keep-checkpoints"] == "no":
            steps.append(Step("train", ["find", folder, "-name", "checkpoint*.pt", "-delete"]))
        steps += self.translations(setting, task, folder, model)
        return [*steps, *self.scores(setting, cell)]

    def translations(
        self, setting: CorpusSetting, task: List[str], folder: str, model: str
    ) -> List[Step]:
        """All test sets as one, which is cut into theirs afterwards, and the validation set if it
        counts.
        """
        steps = []
        generate = setting.config.interpolate(self.script.arrays["generate"])
        for subset in (["valid"] if "valid" in setting.tests else []) + ["test"]:
            steps.append(Step("translate", [
                "fairseq-generate", *placement(setting.bin), *task, *placement("--path", model),
                "--gen-subset", subset, "--required-batch-size-multiple", "1", *generate,
                *placement(*self.devices.options),
            ], (f"{subset}.out",), f"{subset}.out"))  # fmt: skip
        sources = [
            f"{test}={setting.data}/{test}.bpe.{setting.source}" for test in setting.all_tests
        ]
        translate = ["python", "-m", "recipes.lib.test_sets", *placement(folder, *sources)]
        return [*steps, Step("translate", translate, ("translate.done",))]

    def scores(self, setting: CorpusSetting, cell: PlannedCell) -> List[Step]:
        """The scores of each test set, and by length of all together."""
        steps, bins, folder = [], setting.config["bins"], cell.folder
        row = PlannedRow(cell.row, cell.options)
        if bins and setting.config["pooled"]:
            steps.append(Step("score", [
                "posenc", "score", *placement("--generated", f"{folder}/test.out", "--data",
                                          setting.bin),
                *placement("--reference", f"{setting.data}/tests.raw.{setting.target}"),
                "--bins", bins, "--length-unit", "subwords", "--note", f"seed={cell.seed}",
                *placement("--output", f"{folder}/by_length.json"),
            ], ("by_length.json",), "by_length.txt"))  # fmt: skip
        tests = []
        for test in setting.tests:
            tests += ["--test", *placement(f"{test}={setting.reference(test, self.is_plan)}")]
        options = setting.config.interpolate(
            [
                *self.script.arrays.get("score", []),
                *self.script.arrays.get(setting.config["score-of"], []),
            ]
        )
        steps.append(Step("score", [
            "python", "-m", "recipes.lib.score_cell", *placement(folder), *tests, "--language",
            setting.target,
            "--source-language", setting.source, *options,
            "--note", f"row={row.spec}", "--note", f"seed={cell.seed}",
        ], ("score.json",), "score.txt"))  # fmt: skip
        return steps


def _rows(script: RecipeScript, config: Config) -> List[PlannedRow]:
    """The user's rows, or those of --smoke, a preset, the setting or the script."""
    if config.is_given("encodings"):
        return read_rows(config["encodings"].split(","))
    chosen = config["encodings"]
    return read_rows([config.text(row) for row in chosen.split(",") if row]
                     or [config.text(row) for row in script.arrays["rows"]])  # fmt: skip


def _sweep(config: Config, rows: Sequence[PlannedRow]) -> List[PlannedRow]:
    """Further rows of --sweep, where the setting has any; a user's own rows have none by
    default.
    """
    form = config["sweep-row"]
    if not form or (config.is_given("encodings") and not config.is_given("sweep")):
        return []
    swept = read_rows([form.replace("{}", number) for number in config.list("sweep")])
    labels = {row.label for row in rows}
    return [row for row in swept if row.label not in labels]

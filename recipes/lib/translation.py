"""Translation recipes on small text: from parallel text to a table of BLEU by length.

A script names its text as ``--text``, see :mod:`recipes.lib.texts`. Its arrays are train, generate
and score, and, where it has them, references, presets and those of its settings. ``--keep``
checkpoints of epochs are averaged; in a script with 0 the last one translates.
"""

import os
import shutil
from typing import List, Mapping, Sequence

from fairseq_posenc.data.languages import check_language
from fairseq_posenc.errors import UsageError
from recipes.lib.cell import PlannedCell, Step, placement
from recipes.lib.config import Config, ParsedArguments, RecipeScript, own_options
from recipes.lib.devices import cores
from recipes.lib.experiment import Experiment
from recipes.lib.recipe import Recipe, labelled
from recipes.lib.rows import PlannedRow, read_rows
from recipes.lib.runner import finished_cells, run_cells
from recipes.lib.settings import as_lines, epochs_of

ONE_JOB = "1 on a GPU"
SPLITS = "train", "valid", "test"
# options of fairseq-train that end a training
_ENDS = "--max-update", "--max-epoch", "--patience", "--stop-min-lr", "--stop-time-hours"


def rows_of(script: RecipeScript, config: Config) -> List[PlannedRow]:
    """Return the rows that the user, a preset or the script has chosen."""
    chosen = config["encodings"]
    rows = chosen.split(",") if chosen else script.arrays.get("rows", [])
    return read_rows(
        [config.text(row) for row in rows] if not config.is_given("encodings") else rows
    )


class Translation(Experiment):
    """Translation models of one text; its subclasses make the text.

    Attributes:
        source, target: languages.
        bin: the folder of binary data.
        keep: checkpoints to be averaged; 0: the last one translates.
        fingerprint: what the text was made from, see :mod:`.settings`.
        data_stages: titles of those that make the binary data.
        subword_model: the file or folder of it, in the run folder.
        analyses: titles of further stages behind the table.
        score: options for posenc score.
        task: options of fairseq-train and fairseq-generate; ``pair`` are of the latter alone.
    """

    cell_stages = "train", "translate", "score"
    data_stages: Sequence[str] = ("data", "subwords", "binarise")
    analyses: Sequence[str] = ()
    pair: Sequence[str] = ()
    subword_model = "bpe.codes"

    def __init_subclass__(cls) -> None:
        cls.stages = ("set-up", *cls.data_stages, *cls.cell_stages, "table", *cls.analyses)

    def __init__(self, script: RecipeScript, parsed: ParsedArguments):
        super().__init__(script, parsed)
        self.source, self.target = self.config["source-lang"], self.config["target-lang"]
        self.bin = self.path("bin")
        self.keep = min(self.config.number("keep"), self.config.number("epochs"))
        ends = [word for word in self.extra if word.partition("=")[0] in _ENDS]
        if ends and self.keep and not self.config.is_given("keep"):
            raise UsageError(
                f"with {ends[0]} a training may end before {self.keep} epochs, whose "
                "checkpoints are averaged: give --epochs in its place, or say how many with --keep"
            )
        for name in "--no-epoch-checkpoints", "--no-save":
            if self.keep and name in self.extra:
                raise UsageError(
                    f"with {name} there are no checkpoints of epochs to be averaged: leave it out"
                )
        self.task = ["--task", "posenc_translation",
                     "--source-lang", self.source, "--target-lang", self.target]  # fmt: skip
        self.fingerprint: List[str] = []
        self.score = self.config.interpolate(script.arrays.get("score", []))

    def require(self, *names: str) -> None:
        """Raise a UsageError for an option without value, or a language that is named wrongly."""
        for name in names:
            if not self.config[name]:
                raise UsageError(f"--{name} is missing; see --help")
            if name.endswith("-lang"):
                check_language(self.config[name], f"--{name}")

    @property
    def languages(self) -> List[str]:
        """Both of them."""
        return [self.source, self.target]

    def text(self, name: str) -> str:
        """A file of text in the run folder."""
        return self.path("text", name)

    def choose_rows(self) -> List[PlannedRow]:
        """The rows of the table, once the text has set its defaults."""
        return rows_of(self.script, self.config)

    def remarks(self) -> List[str]:
        """What a reader of the report should know of the text."""
        return []

    def bin_of(self, cell: PlannedCell) -> str:
        """The binary data of a cell."""
        return self.bin

    def train_step(self, cell: PlannedCell, words: List[str]) -> Step:
        """The first step of a cell, of the words of its training."""
        return Step("train", words, ("train.done",))

    def notes(self, cell: PlannedCell) -> List[str]:
        """Options of posenc score that say more of a cell's results."""
        return []

    def run(self) -> None:
        """See :meth:`Experiment.run`."""
        self.rows = self.choose_rows()
        super().run()

    def data_fingerprint(self) -> List[str]:
        """See :meth:`Experiment.data_fingerprint`."""
        return self.fingerprint

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
        """Get the text, cut it into subwords, and make binary data, as the subclass says."""
        self.data_stage(self.data_stages[0], self.get)
        self.data_stage("subwords", self.learn_subwords, self.path(self.subword_model))
        self.data_stage("binarise", self.cut, self.bin)

    def get(self) -> None:
        """Get the text, and the tokens that subwords are learned from."""
        raise NotImplementedError

    def cut(self) -> None:
        """Make binary data of the subwords."""
        raise NotImplementedError

    def binarise(self, ending: str) -> None:
        """Make binary data of RUN_DIR/{train,valid,test}.ENDING.LANGUAGE."""
        prefixes = [word for split in SPLITS
                    for word in (f"--{split}pref", self.path(f"{split}.{ending}"))]  # fmt: skip
        if not self.is_plan:
            shutil.rmtree(self.bin, ignore_errors=True)
        self.execute(
            ["posenc", "prepare", "binarise", "--source-lang", self.source, "--target-lang",
             self.target, "--joined-dictionary", *prefixes, "--destdir", self.bin,
             "--workers", str(cores())],
            log=self.path("preprocess.out"),
        )  # fmt: skip
        self.execute(["posenc", "prepare", "pairs", "bpe-keep", "--normalise-punctuation",
                      "--codes", self.path("bpe.codes"), "--output", self.bin])  # fmt: skip

    @property
    def prepare(self) -> List[str]:
        """The beginning of the command that makes binary data of raw text."""
        return ["posenc", "prepare", "translation", "--source-lang", self.source,
                "--target-lang", self.target, "--workers", str(cores())]  # fmt: skip

    def pick(
        self, subwords: str, text: str, first: int, edges: Sequence[int], name: str, each: str = ""
    ) -> None:
        """Write pairs of a text in ranges of lengths, from ``first`` on up to each edge."""
        starts = [first, *(edge + 1 for edge in edges)]
        ranges = ",".join(f"{start}-{edge}" for start, edge in zip(starts, edges))
        self.execute(["python", "-m", "recipes.lib.pick_pairs", "--subwords", subwords,
                      "--languages", ",".join(self.languages), "--input", text,
                      "--ranges", ranges, *(["--each", each] if each else []),
                      "--output", self.text(name)])  # fmt: skip

    def cut_picked(self, subwords: str, train: str, longest: int) -> None:
        """Make binary data of training text, and of the picked pairs."""
        self.execute([*self.prepare, "--train", train, "--valid", self.text("valid"),
                      "--test", self.text("test"), "--subwords", subwords,
                      "--max-length", str(longest), "--output", self.bin])  # fmt: skip

    def learn_subwords(self) -> None:
        """Learn joint BPE from the tokens of the training text, and apply it to all."""
        names = [f"{split}.{{}}.{language}" for split in SPLITS for language in self.languages]
        tokens = {self.text(name.format("tok")): self.path(name.format("bpe")) for name in names}
        learn_bpe(self, [*tokens][:2], tokens)

    def steps(self, cell: PlannedCell) -> List[Step]:
        """Train, translate, score."""
        script, config, folder = self.script, self.config, cell.folder
        data, device = self.bin_of(cell), placement(*self.devices.options)
        row, keep = PlannedRow(cell.row, cell.options), self.keep
        task = ["--user-dir", "fairseq_posenc", *self.task]
        train = config.interpolate(
            [*script.arrays["train"], *script.arrays.get(config["train-of"], [])]
        )
        steps = [self.train_step(cell, [
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
        generate = ["fairseq-generate", *placement(data), *task, *self.pair,
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
            *epochs, *self.notes(cell), *log, *self.score, *bits,
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
        """Table, picture and report."""
        remarks = [] if self.is_plan or self.cell else self.remarks()
        for remark in remarks:
            self.say(f"note: {remark}")
        self.run_stage("table", lambda: make_table(self, self.cells(), remarks))


def learn_bpe(recipe: Recipe, train: Sequence[str], tokens: Mapping[str, str]) -> None:
    """Learn BPE from the tokens of training text, and write each file of tokens as subwords.

    Args:
        recipe: gets RUN_DIR/bpe.codes, of as many operations as its option ``bpe`` says.
        train: the files to learn from.
        tokens: by file of tokens, the file of its subwords.
    """
    codes = recipe.path("bpe.codes")
    learn = ["subword-nmt", "learn-bpe", "--symbols", recipe.config["bpe"]]
    recipe.execute(learn, inputs=train, output=codes)
    for file, output in tokens.items():
        if not recipe.is_plan:
            recipe.say(f"apply BPE to {os.path.basename(file)}")
        apply = ["subword-nmt", "apply-bpe", "--codes", codes]
        recipe.execute(apply, inputs=[file], output=output)


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

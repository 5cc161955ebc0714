"""The fine-tuning recipes: a grid of cells row × task × learning rate × seed, on GLUE or XTREME.

Each cell is in RUN_DIR/<row>/<task>/lr<lr>/seed<n>. What the benchmarks differ in is in
:mod:`recipes.lib.benchmarks`; a script names one as ``--benchmark``.
"""

import hashlib
import os
import shlex
from itertools import takewhile
from typing import Dict, List, NamedTuple, Sequence

from fairseq_posenc.errors import UsageError
from recipes.lib import figures
from recipes.lib.benchmarks import BENCHMARKS
from recipes.lib.bert_rows import complete_bert_help, rows_of, whole_tables
from recipes.lib.cell import PlannedCell, Step, placement, plan, shell, variable
from recipes.lib.config import FLAG, ParsedArguments, RecipeScript, pairs, read_options
from recipes.lib.experiment import Experiment, help_text
from recipes.lib.processes import printed
from recipes.lib.rows import PlannedRow
from recipes.lib.runner import chosen
from recipes.lib.settings import check_disk, checksum, read_lines, write


class Length(NamedTuple):
    """Updates of a task's training, and those of its warm-up."""

    updates: str
    warmup: str


def main(script: RecipeScript, arguments: List[str]) -> None:
    """Run a recipe."""
    benchmark = BENCHMARKS[pairs(script.arrays["defaults"])["benchmark"]]
    complete_bert_help(script, [*FineTuning.stages, *benchmark.further_stages])
    FineTuning(script, read_options(script, help_text("finetune"), arguments)).run()


class FineTuning(Experiment):
    """Pre-trained models, fine-tuned, and applied to test sets."""

    stages: Sequence[str] = ("set-up", "pre-trained models", "data", "fine-tune", "table")
    cell_stages = ("fine-tune",)
    last_online_stage = "data"
    plan_includes_setup = True
    job_per_gpu = True

    def __init__(self, script: RecipeScript, parsed: ParsedArguments):
        super().__init__(script, parsed)
        config = self.config
        self.is_smoke = config["smoke"] == FLAG
        self.rows = rows_of(config)
        self.pretrained = self._pretrained()
        try:
            self.pretrain_options = shlex.split(config["pretrain"])
        except ValueError as error:  # a quote that is not closed
            raise UsageError(f"--pretrain {config['pretrain']}: {error}") from None
        pretrain_dir = self.path("pretrain") if self.is_smoke else config["pretrain-dir"]
        made = {
            row.label: f"{pretrain_dir}/{row.label}/seed1/checkpoint_last.pt" for row in self.rows
        }
        self.models = {**made, **self.pretrained}
        self.pretrain_dir = pretrain_dir
        self.text = config["text"] or f"{pretrain_dir}/bin"
        self.benchmark = BENCHMARKS[config["benchmark"]](self)
        self.stages = [*self.stages, *self.benchmark.further_stages]
        self.tasks = self.benchmark.tasks()
        self._checksums: Dict[str, str] = {}
        self._lengths: Dict[str, Length] = {}
        if not config.is_given("tables"):
            tables = whole_tables(config.list("tables"), self.rows)
            config.set({"tables": ",".join(tables)})

    def _pretrained(self) -> Dict[str, str]:
        checkpoints: Dict[str, str] = {}
        named_paths = self.config["pretrained"]
        for pair in named_paths.split("\n") if named_paths else []:
            label, _, path = pair.partition("=")
            if not (label and path):
                raise UsageError(f"--pretrained wants ROW=CHECKPOINT, not {pair}")
            if not os.access(path, os.R_OK):
                raise UsageError(f"cannot read the checkpoint {path}")
            if label not in {row.label for row in self.rows}:
                labels = " ".join(row.label for row in self.rows)
                raise UsageError(f"--pretrained {label}=…: the rows are {labels}")
            checkpoints[label] = path
        return checkpoints

    def run(self) -> None:
        """See :meth:`Experiment.run`."""
        if self.is_plan and self.config["slurm"] != FLAG:
            self.say(
                f"what {self.script.name} runs, one after the other, from the top of the repository"
            )
        super().run()

    def data(self) -> None:
        """The models, and the tasks as binary data."""
        models, config = "pre-trained models", self.config
        if self.is_smoke:
            unpack = ["python", "-m", "tarfile", "-e", "recipes/smoke/benchmarks.tar.xz"]
            self.stage(self.stage_number(models), "small benchmarks",
                       lambda: self.execute([*unpack, self.path("benchmarks")]),
                       self.path("benchmarks.done"))  # fmt: skip
        elif not self.is_plan and not config["raw-dir"]:
            check_disk(self.run_dir, config.number("archives"))
        self.run_stage(models, self.pretrain)
        self.run_stage("data", self.benchmark.make_data)

    def tables(self) -> None:
        """The papers' tables, and what GLUE's leaderboard takes."""
        self.run_stage("table", lambda: figures.make_tables(self))
        if self.config["submission"] == FLAG:
            self.run_stage("submissions", self.write_submissions)

    def submit(self) -> None:
        """The cells as jobs of SLURM, a GPU for each; the data are made where the script is
        started.
        """
        if self.config["pretrain"] or self.is_smoke:
            recipe = self.config["pretrain-recipe"]
            raise UsageError(
                f"--slurm needs models that are there: run {recipe} first, and leave out --pretrain"
            )
        super().submit()

    def pretrain(self) -> None:
        """Pre-train the rows without --pretrained, if that is asked."""
        rows = [row for row in self.rows if row.label not in self.pretrained]
        recipe = self.config["pretrain-recipe"]
        options = self.pretrain_options
        if self.is_smoke:
            options = self.benchmark.smoke_pretraining()
        before = list(takewhile(lambda word: word != "--", options))
        if options and self.config["hours"] and "--hours" not in before:
            options = ["--hours", self.config["hours"], *options]
        if rows and options:
            self.execute(
                ["bash", recipe, "--stage", "2", "--run-dir", self.pretrain_dir,
                 "--device", self.devices.type,
                 "--encodings", ",".join(row.spec for row in rows), *options],
                failure="pre-training failed",
            )  # fmt: skip
        elif rows and self.is_plan:
            self.say(f"made by {recipe}, which has a --plan")

    def training(self, task: str, metric: str) -> List[str]:
        """The options that the trainings of a task share, but for those of the learning rate."""
        config = self.config.with_overrides({"epochs": self.benchmark.epochs(task)})
        arrays, interval = self.script.arrays, config["interval"]
        return [
            "--user-dir", "fairseq_posenc", *self.benchmark.options(task),
            *config.interpolate(arrays["train"]), *self.extra,
            *config.interpolate(arrays["examples"]),
            "--best-checkpoint-metric", metric, "--maximize-best-checkpoint-metric",
            "--validate-interval", "1000000", "--validate-interval-updates", interval,
        ]  # fmt: skip

    def counting(self, task: str) -> List[str]:
        """What tells the updates of an epoch."""
        words = self.training(task, self.benchmark.metric(task))
        return ["python", "-m", "recipes.lib.updates_per_epoch", self.benchmark.data(task), *words]

    def count_updates(self, task: str) -> Length:
        """How long the trainings of a task are; counting takes as long as loading data, hence a
        file.
        """
        words, epochs = self.counting(task), int(self.benchmark.epochs(task))
        digest = hashlib.sha256("\0".join(words[4:]).encode()).hexdigest()[:10]
        file = f"{self.benchmark.data(task)}/updates-{digest}"
        if not os.path.exists(file):
            with open(f"{file}.log", "w") as log:
                text, status = printed(words, stderr=log)
            if status:
                last = (read_lines(f"{file}.log") or [""])[-1]
                raise UsageError(f"{task} cannot be loaded: {last}")
            write(file, text)
        updates = int(read_lines(file)[0]) * epochs
        self.say(f"{task}: {updates} updates in {epochs} epochs")
        percent = self.config.number("warmup-percent")
        return Length(str(updates), str(updates * percent // 100))

    def grid(self, lrs: Sequence[str] = (), seeds: Sequence[str] = ()) -> List[PlannedCell]:
        """All cells without their steps: tasks × rows × learning rates × seeds."""
        lrs, seeds = lrs or self.config.list("lrs"), seeds or self.config.list("seeds")
        return [
            PlannedCell(task, row.label, row.options, seed, lr,
                        self.path(row.label, task, f"lr{lr}", f"seed{seed}"), self.path(row.label))
            for task in self.tasks for row in self.rows for lr in lrs for seed in seeds
        ]  # fmt: skip

    def cell_fingerprint(self, cell: PlannedCell) -> List[str]:
        """The model, and the data of the task."""
        checksum = self._checksums.get(cell.row, "")
        return ["--pretrained", checksum, *self.benchmark.data_fingerprint(cell.setting)]

    def steps(self, cell: PlannedCell) -> List[Step]:
        """Fine-tune, predict, tidy."""
        task, lr, seed, folder = cell.setting, cell.lr, cell.seed, cell.folder
        row, length = PlannedRow(cell.row, cell.options), self._lengths.get(task, Length("", ""))
        config, device = self.config, self.devices.options
        model, checksum = self.models[row.label], self._checksums.get(row.label, "")
        metric = self.benchmark.metric(task)
        schedule = config.with_overrides({"lr": lr, **length._asdict()})
        steps = [Step("fine-tune", [
            "fairseq-train", *placement(self.benchmark.data(task)), *self.training(task, metric),
            "--position-encoding", *row.options, "--seed", seed,
            *schedule.interpolate(self.script.arrays["schedule"]),
            *placement(*device, *(["--num-workers", "0"] if device else []), "--save-dir", folder),
            "--no-epoch-checkpoints", "--keep-interval-updates", "1", "--save-interval", "1000000",
            "--save-interval-updates", config["interval"], "--log-format", "simple",
            "--log-interval", "100", *placement("--finetune-from-model", model),
        ], ("train.done",))]  # fmt: skip
        subsets = self.benchmark.subsets(task)
        notes = {"row": row.spec, "task": task, "lr": lr, "seed": seed,
                 "pretrained": f"{model} {checksum}".rstrip()}  # fmt: skip
        steps.append(Step("fine-tune", placement(
            "posenc", "predict", "--path", f"{folder}/checkpoint_best.pt",
            "--data", self.benchmark.tested_on(task), "--subsets", ",".join(subsets), "--output",
            folder,
            *device, *(word for name, note in notes.items() for word in ("--note",
                                                                         f"{name}={note}")),
            "--training-log", f"{folder}/train.log",
        ), ("score.json", *(f"predictions.{subset}.*" for subset in subsets)),
        "score.txt"))  # fmt: skip
        if config["keep-checkpoints"] == "no":
            steps.append(Step("fine-tune", ["find", folder, "-name", "checkpoint*.pt", "-delete"]))
        return steps

    def run_cells(self, titles: Sequence[str]) -> None:
        """Fine-tune and score all cells."""
        for label, model in self.models.items():
            if not os.access(model, os.R_OK):
                raise UsageError(
                    f"there is no model of {label}, {model}; run "
                    f"{self.config['pretrain-recipe']}, or give --pretrained or --pretrain"
                )
            self._check_finished(label, model)
            self._checksums[label] = checksum([model])
        self._check_predictable()
        self._lengths = {task: self.count_updates(task) for task in self.tasks}
        super().run_cells(titles)

    def _check_predictable(self) -> None:
        """Refuse to predict further test sets by trainings whose models were deleted."""
        lost = [
            cell for cell in chosen(self, self.cells())
            if cell.next_step() == 1 and not os.path.exists(cell.path("checkpoint_best.pt"))
        ]  # fmt: skip
        if lost:
            raise UsageError(
                f"{len(lost)} finished cells lack predictions, and have no model any more that "
                "could make them: without --keep-checkpoints yes it goes once a cell is finished; "
                "give another --run-dir"
            )

    def _check_finished(self, label: str, model: str) -> None:
        """Refuse a model whose pre-training has not finished, and tell of one that was given."""
        folder = os.path.dirname(model)
        if os.path.exists(f"{folder}/train.done") or not os.path.exists(f"{folder}/cell.json"):
            return
        if label in self.pretrained:
            self.say(f"warning: the pre-training in {folder} has not finished")
        else:
            raise UsageError(
                f"the pre-training in {folder} has not finished: start "
                f"{self.config['pretrain-recipe']} again, which goes on, or give --pretrained "
                f"{label}={model} to fine-tune it as it is"
            )

    def print_cells(self, titles: Sequence[str]) -> None:
        """Print the commands of all cells, for each task in loops over seeds and learning rates."""
        config, tasks, rows = self.config, self.tasks, self.rows
        lrs, seeds = config.list("lrs"), config.list("seeds")
        self.say(f"{len(self.grid())} trainings: {len(rows)} rows × {len(tasks)} tasks × "
                 f"{len(lrs)} learning rates × {len(seeds)} seeds")  # fmt: skip
        batch = config["batch"]
        self.say(f"an update: {batch} examples = --batch-size {batch}, on one GPU or CPU")
        length = Length(variable("updates"), variable("warmup"))
        self._lengths = {task: length for task in tasks}
        for task in tasks:
            self.say(task)
            print(f"per_epoch=$({shell(self.counting(task))})")
            print(f"updates=$(({self.benchmark.epochs(task)} * per_epoch))")
            print(f"warmup=$((updates * {config['warmup-percent']} / 100))")
            for name, several in ("seed", seeds), ("lr", lrs):
                print(f"for {name} in {shell(several)}; do")
            grid = self.grid([variable("lr")], [variable("seed")])
            cells = [self.complete(cell) for cell in grid if cell.setting == task]
            print(*plan(cells), sep="\n")
            print("done\ndone")

    def write_submissions(self) -> None:
        """What GLUE's leaderboard takes."""
        for row in self.rows:
            listing = self.path(row.label, "submission.txt")
            size = ["--any-size"] if self.is_smoke else []
            submit = ["posenc", "glue-submission", self.run_dir, row.label, *size]
            self.execute(submit, output=listing, log=self.path("submission.log"))
            self.say(f"{self.path(row.label, 'submission.zip')}, from the cells in {listing}")

"""The recipe of claims: parts, each a few small models and what is measured of them, and the page.

What is there is not trained or measured again. A page has for each part with a choice of rows an
array of them; ``NAME_fast`` are those of --fast.
"""

import filecmp
import glob
import os
import shutil
from functools import partial
from itertools import islice
from typing import Callable, Dict, List, Sequence

from fairseq_posenc.errors import UsageError
from recipes.claims.measuring import LANGUAGES, Measuring
from recipes.lib.cell import PlannedCell, Step, placement, plan
from recipes.lib.config import FLAG, ParsedArguments, RecipeScript, read_options
from recipes.lib.experiment import help_text
from recipes.lib.rows import PlannedRow, read_rows
from recipes.lib.runner import in_order, map_parallel, run_cells
from recipes.lib.settings import make_folder

# tenths of --updates that the models of a part are trained for
TENTHS = {
    "length": 10, "longer": 30, "longest": 100, "joined": 10, "joined_longer": 50,
    "switch": 1, "switch_long": 1, "deep": 10, "deep_400": 2,
}  # fmt: skip
RANGES = "4-20,21-30,31-45,46-60"


def main(script: RecipeScript, arguments: List[str]) -> None:
    """Run the recipe."""
    Claims(script, read_options(script, help_text("claims"), arguments)).run()


class Claims(Measuring):
    """All parts of a run: each is a stage, which trains and measures a few small models."""

    cell_stages = ()

    def __init__(self, script: RecipeScript, parsed: ParsedArguments):
        super().__init__(script, parsed)
        config = self.config
        self.is_fast = config["fast"] == FLAG
        self.all_parts = config.list("all-parts")
        self.seeds, self.updates = config.list("seeds"), config.number("updates")
        self.parts = config.list("parts")
        if not self.parts:
            self.parts = config.list("fast-parts") if self.is_fast else self.all_parts
        for part in self.parts:
            if part not in self.all_parts:
                raise UsageError(f"no part is called {part} (--parts; see --help)")
        self.stages = ["set-up", *self.parts, "page"]
        self.chosen = config.list("rows")
        if self.chosen and not config["parts"]:
            raise UsageError("--rows needs --parts: give those whose rows it chooses")
        if self.chosen:
            labels = [row.label for part in self.parts for row in self.all_rows(part)]
            for label in self.chosen:
                if label not in labels:
                    row_labels = ",".join(dict.fromkeys(labels))
                    raise UsageError(f"no row is called {label} (--rows): there are {row_labels}")
            for part in self.parts:
                self.rows_of(part)

    def data_fingerprint(self) -> List[str]:
        """How long models are trained."""
        return ["--updates", str(self.updates)]

    def data(self) -> None:
        """None: every part makes its own."""

    def train_and_evaluate(self) -> None:
        """Run all parts."""
        kinds: Dict[str, Callable[[str], None]] = {
            "length": self.by_length, "longer": self.by_length, "longest": self.by_length,
            "joined": self.joined, "joined_longer": self.joined, "switch": self.switch,
            "switch_long": self.switch, "deep": self.deep, "deep_400": self.deep,
            "plain": self.plain, "speed": self.speed, "bert": self.bert, "bert_longer": self.bert,
        }  # fmt: skip
        for part in self.parts:
            self.run_stage(part, partial(kinds[part], part))

    def tables(self) -> None:
        """The page of claims."""
        self.run_stage("page", self.write_page)

    def write_page(self) -> None:
        """Write the page of what is there."""
        claims = ["python", "-m", "recipes.claims.claims", "--claims", "recipes/claims/claims.json"]
        self.execute([*claims, "--runs", self.run_dir, "--output", self.path("claims.md")])

    def all_rows(self, part: str) -> List[PlannedRow]:
        """The rows that a part can have."""
        name = {"joined_longer": "joined", "switch_long": "switch"}.get(part, part)
        arrays = self.script.arrays
        rows = arrays.get(f"{name}_fast" if self.is_fast else "") or arrays.get(f"{name}_rows")
        if not rows:
            raise UsageError(
                f"part {part} has no choice of rows: leave it out of --parts, or --rows"
            )
        return read_rows(rows)

    def rows_of(self, part: str) -> List[PlannedRow]:
        """Its rows, with --rows those of them."""
        possible = self.all_rows(part)
        rows = [row for row in possible if not self.chosen or row.label in self.chosen]
        if not rows:
            labels = ",".join(row.label for row in possible)
            raise UsageError(f"part {part} has none of these rows (--rows), but {labels}")
        return rows

    def cells_of(self, part: str, rows: Sequence[PlannedRow]) -> List[PlannedCell]:
        """The cells of a part, without steps."""
        folder = self.path(part)
        return in_order(
            PlannedCell("", row.label, row.options, seed, "", f"{folder}/{row.label}/seed{seed}",
                 f"{folder}/{row.label}")
            for row in rows for seed in self.seeds
        )  # fmt: skip

    def needs_length(self, part: str, file: str = "bin") -> None:
        """End where part length has not made something."""
        if not self.is_plan and not os.path.exists(self.path("length", file)):
            models = "" if file == "bin" else ", and the sinusoidal models of the same seeds,"
            raise UsageError(
                f"part {part} takes the data{models} of part length: run --parts length first"
            )

    def run_recipe(self, recipe: str, part: str, options: Dict[str, str], *extra: str) -> None:
        """Another recipe from its second stage on, in the folder of a part."""
        own = {"--run-dir": self.path(part), "--seeds": ",".join(self.seeds), "--stage": "2",
               "--device": self.devices.type, "--jobs": str(self.devices.jobs)}  # fmt: skip
        words = [word for option in {**own, **options}.items() for word in option]
        self.execute(["bash", recipe, *words, *extra], failure=f"part {part} failed, see above")

    def quickstart(self, part: str, options: Dict[str, str], *extra: str) -> None:
        """The stages of quickstart.sh."""
        rows = ",".join(row.spec for row in self.rows_of(part))
        own = {"--updates": str(self.updates_of(part)), "--test": self.config["test"]}
        options = {**own, "--encodings": rows, **options}
        self.run_recipe("recipes/quickstart.sh", part, options, *extra)

    def updates_of(self, part: str) -> int:
        """How long the models of a part are trained."""
        return self.updates * TENTHS[part] // 10

    def by_length(self, part: str) -> None:
        """Train on short sentences, test on longer ones."""
        self.quickstart(part, {})
        self.measure(part, self.cells_of(part, self.rows_of(part)), self.analyse_length)
        self.write_tables(part)

    def joined(self, part: str) -> None:
        """Train on four sentences joined to one."""
        tests = str(4 * self.config.number("test"))
        options = {"--join": "4", "--train": "20000", "--train-length": "4-10"}
        self.quickstart(part, {**options, "--test-lengths": "4-10", "--test": tests})
        self.measure(part, self.cells_of(part, self.rows_of(part)), self.analyse_joined)
        self.write_tables(part)

    def switch(self, part: str) -> None:
        """The sinusoidal models of part length, with other encodings for a tenth of the updates.

        On the same text, or on text of which a tenth is long; seed by seed, as each begins with the
        model of its seed.
        """
        self.needs_length(part)
        binary = "../length/bin"
        if part == "switch_long":
            binary = "text/bin"
            self.mix_long(self.path("length"), self.path(part, "text"))
        self.execute(["mkdir", "-p", self.path(part)])
        self.execute(["ln", "-sfn", binary, self.path(part, "bin")])
        self.execute(["ln", "-sfn", "../length/corpus", self.path(part, "corpus")])
        for seed in self.seeds:
            base = f"sinusoidal/seed{seed}"
            self.needs_length(part, f"{base}/train.done")
            model = self.path("length", base, "checkpoint_last.pt")
            options = {"--seeds": seed, "--stage": "5", "--stop-stage": "7"}
            self.quickstart(part, options, "--", "--lr", "0.002", "--finetune-from-model", model)
        # not by a last stage of the recipe, which knows each model by the options of its training
        self.write_tables(part)

    def mix_long(self, length: str, folder: str) -> None:
        """18,000 pairs of part length and 2,000 of 21 to 60 words, none of them of the test."""
        if self.is_plan:
            self.say(f"the text of {length} with long sentences: {folder}")
            return
        if os.path.exists(f"{folder}/bin.done"):
            return
        source, target = LANGUAGES
        self.execute(["python", "-m", "recipes.corpus", "--output", folder, "--seed", "1",
                      "--quiet", "--train", "2000", "--train-length", "21-60", "--valid", "1",
                      "--test", self.config["test"], "--test-lengths", RANGES])  # fmt: skip
        tests = f"{length}/corpus/test.{source}", f"{folder}/test.{source}"
        if not filecmp.cmp(*tests, shallow=False):
            raise UsageError(f"the tests of {length} and {folder} differ")
        for side in LANGUAGES:
            tokens, long = f"{folder}/train.tok.{side}", f"{folder}/train.long.{side}"
            self.execute(["posenc", "prepare", "tokenise", "--normalise-punctuation",
                          "--language", side, "--input", f"{folder}/train.{side}",
                          "--output", tokens])  # fmt: skip
            apply = ["subword-nmt", "apply-bpe", "--codes", f"{length}/bpe.codes"]
            self.execute(apply, inputs=[tokens], output=long)
            with open(f"{folder}/train.mixed.{side}", "wb") as mixed:
                with open(f"{length}/train.bpe.{side}", "rb") as short:
                    mixed.writelines(islice(short, 18000))
                with open(long, "rb") as stream:
                    shutil.copyfileobj(stream, mixed)
        shutil.rmtree(f"{folder}/bin", ignore_errors=True)
        self.execute(
            ["posenc", "prepare", "binarise", "--source-lang", source, "--target-lang", target,
             "--joined-dictionary", "--srcdict", f"{length}/bin/dict.{source}.txt",
             "--trainpref", f"{folder}/train.mixed", "--validpref", f"{length}/valid.bpe",
             "--testpref", f"{length}/test.bpe", "--destdir", f"{folder}/bin"],
            log=f"{folder}/preprocess.out",
        )  # fmt: skip
        shutil.copy(f"{length}/bin/codes", f"{folder}/bin/")
        with open(f"{folder}/bin.done", "w"):
            pass

    def deep(self, part: str) -> None:
        """Deep models with norms after the layers, on the data of part length."""
        self.needs_length(part)
        folder, profile = self.path(part), self.path(part, "admin.json")
        self.execute(["mkdir", "-p", folder])
        self.execute(["ln", "-sfn", "../length/bin", f"{folder}/bin"])
        updates = self.updates_of(part)
        self.config.set_defaults({"deep-updates": str(updates), "quarter": str(updates // 4)})
        task = ["--user-dir", "fairseq_posenc", "--task", "posenc_translation"]
        train = self.config.interpolate(self.script.arrays["deep_train"])
        device = self.devices.options
        self.once(profile, ["posenc", "profile-admin", f"{folder}/bin", *task, *train, *device,
                            "--output", profile], log=f"{folder}/admin.log")  # fmt: skip
        rows = [
            PlannedRow("default", ["sinusoidal"]),
            PlannedRow("admin", ["sinusoidal", "--admin-profile", *placement(profile)]),
        ]
        cells = [
            cell._replace(steps=[Step("train", [
                "fairseq-train", *placement(f"{folder}/bin"), *task, "--source-lang", LANGUAGES[0],
                "--target-lang", LANGUAGES[1], "--seed", cell.seed, *train,
                "--position-encoding", *cell.options,
                *placement(*device, "--save-dir", cell.folder),
                "--keep-last-epochs", "0", "--log-format", "simple", "--log-interval", "100",
            ], ("train.done",))])
            for cell in self.cells_of(part, rows)
        ]  # fmt: skip
        if self.is_plan:
            print(*plan(cells), sep="\n")
            return
        run_cells(self, cells, ["train"])
        logs = [cell.labelled_path("train.log") for cell in cells]
        self.execute(["posenc", "plot", "--curves", *logs, "--output", f"{folder}/curves.png"],
                     output=f"{folder}/curves.md")  # fmt: skip

    def bert(self, part: str) -> None:
        """Small BERTs and where they attend, or for twice as many updates and not fine-tuned."""
        options: Dict[str, str] = {}
        flags = ["--fast"] if self.is_fast else []
        if part == "bert_longer":
            rows = ",".join(row.spec for row in self.rows_of(part))
            options, flags = {"--encodings": rows, "--updates": "4800"}, ["--no-fine-tuning"]
        self.run_recipe("recipes/claims/bert.sh", part, options, *flags)
        if part == "bert":
            analysed = read_rows(["learned", "abs_scalar", "rel_scalar"])
            self.measure(part, self.cells_of(part, analysed), self.analyse_bert)

    def plain(self, part: str) -> None:
        """The same models as a plain torch.nn.Transformer."""
        self.needs_length(part)

        def train(cell: PlannedCell) -> None:
            output = cell.path("plain.json")
            words = ["python", "-u", "recipes/claims/plain_transformer.py", "--run-dir",
                     self.path("length"),
                     "--encoding", cell.row, "--seed", cell.seed, "--updates", str(self.updates),
                     "--warmup", str(self.updates * 3 // 20), "--output", output]  # fmt: skip
            if not self.is_plan and not os.path.exists(output):
                self.say(f"[{cell.row}] train torch.nn.Transformer")
            self.once(output, words, log=cell.path("train.log"))

        map_parallel(self, self.cells_of(part, self.rows_of(part)), train)

    def speed(self, part: str) -> None:
        """Interleaved rounds in one process, as many times as there are seeds."""
        benchmark = ["env", "OMP_NUM_THREADS=1", "python", "-m", "recipes.benchmark"]
        for seed in self.seeds:
            folder = self.path(part, "repeats", f"seed{seed}")
            self.execute(["mkdir", "-p", folder])
            self.say(f"[speed] round {seed}")
            for name in "training", "bert":
                table, words = f"{folder}/{name}.md", self.script.arrays[f"speed_{name}"]
                self.once(table, [*benchmark, name, *words, "--output", f"{folder}/{name}.csv"],
                          output=table)  # fmt: skip

    def trained_files(self, part: str, name: str) -> List[str]:
        """`label=path` of a file of all that is trained, with whatever --rows and --seeds."""
        return [
            f"{row.label}={path}"
            for row in self.all_rows(part)
            for path in sorted(glob.glob(f"{glob.escape(self.path(part, row.label))}/seed*/{name}"))
            if os.path.exists(f"{os.path.dirname(path)}/score.json")
        ]

    def write_tables(self, part: str) -> None:
        """Tables and curves of all that is trained."""
        if self.is_plan:
            return
        scores = ["--by-length", *self.trained_files(part, "score.json")]
        table = self.path(part, "table.md")
        self.execute(["posenc", "table", *scores, "--output", table], log=os.devnull)
        make_folder(self.path(part))
        curves = ["posenc", "plot", "--curves", *self.trained_files(part, "train.log")]
        picture, table = self.path(part, "curves.png"), self.path(part, "curves.md")
        self.execute([*curves, "--output", picture], output=table)

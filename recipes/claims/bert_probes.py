"""The recipe of probes: small BERTs on generated documents, fine-tuned and asked."""

from typing import List

from recipes.lib.cell import PlannedCell, Step, placement
from recipes.lib.config import FLAG, ParsedArguments, RecipeScript, read_options
from recipes.lib.experiment import complete_help, help_text
from recipes.lib.pretrain import Pretraining
from recipes.lib.rows import PlannedRow
from recipes.lib.settings import make_folder, read_lines, write
from recipes.lib.translation import rows_of


def main(script: RecipeScript, arguments: List[str]) -> None:
    """Run the recipe."""
    complete_help(script, Probes.stages)
    Probes(script, read_options(script, help_text("bert_probes"), arguments)).run()


class Probes(Pretraining):
    """Rows that are pre-trained, fine-tuned and probed."""

    stages = "set-up", "corpus", "prepare", "pre-train", "fine-tune", "probe"
    cell_stages = "pre-train", "fine-tune", "probe"
    default_device = "cpu"
    stop_diverged = False

    def __init__(self, script: RecipeScript, parsed: ParsedArguments):
        super().__init__(script, parsed)
        updates = self.config.number("updates")
        self.config.set_defaults(
            {"interval": str(updates // 4 if updates > 4 else 1),
             "text": self.path("text/train.txt"), "valid": self.path("text/valid.txt")}
        )  # fmt: skip

    def choose_rows(self) -> List[PlannedRow]:
        """The page's, or the user's."""
        return rows_of(self.script, self.config)

    def data_fingerprint(self) -> List[str]:
        """What the text is generated from."""
        names = "sentences", "length", "examples", "task-updates", "pairs"
        return [word for name in names for word in (f"--{name}", self.config[name])]

    def data(self) -> None:
        """Documents and tasks, as binary data."""
        self.data_stage("corpus", self.make_corpus)
        self.data_stage("prepare", self.prepare, self.path("bin"))

    def tables(self) -> None:
        """None: recipes/claims.sh has tables of the probes."""

    def make_corpus(self) -> None:
        """Documents, and the tasks of one and of two sentences."""
        corpus, examples = self.path("corpus"), self.config.number("examples")
        self.execute(["python", "-m", "recipes.corpus", "--output", corpus, "--seed", "1",
                      "--quiet",
                      "--train", self.config["sentences"], "--train-length", "4-12", "--valid",
                      "3000",
                      "--test", str(2 * examples + 2000), "--test-lengths", "4-12"])  # fmt: skip
        make_folder(self.path("text"))
        for split in "train", "valid":
            lines: List[str] = []
            last = ""
            documents, sentences = (
                read_lines(f"{corpus}/{split}.{suffix}") for suffix in ("docs", "en")
            )
            for document, sentence in zip(documents, sentences):
                # a blank line between documents
                lines += ([""] if lines and document != last else []) + [sentence]
                last = document
            write(self.path(f"text/{split}.txt"), "".join(f"{line}\n" for line in lines))
        self.execute(["python", "-m", "recipes.claims.probe_tasks", f"{corpus}/test",
                      "--output", self.path("text"), "--train", str(examples)])  # fmt: skip

    def prepare(self) -> None:
        """Make binary data of all."""
        binary = self.path("bin")
        self.execute(self.prepare_command())
        for name, task in ("one", "SST-2"), ("two", "WNLI"):
            self.execute(["posenc", "prepare", "glue", "--task", task, "--input", self.path("text",
                                                                                            name),
                          "--subwords", binary, "--output", f"{binary}/{name}", "--workers",
                          "1"])  # fmt: skip

    def steps(self, cell: PlannedCell) -> List[Step]:
        """Pre-train, fine-tune where the row is to be, probe."""
        binary, model = self.path("bin"), cell.path("checkpoint_last.pt")
        arrays, steps = self.script.arrays, super().steps(cell)
        is_tuned = cell.row in arrays["tuned_row"] and self.config["no-fine-tuning"] != FLAG
        tunings = arrays["tunings"] if is_tuned else []
        asked = []
        for name in tunings:
            task, _, segments = name.partition("_")
            segment_type = segments.replace("_5000", "")
            updates = self.config.number("task-updates") * (10 if segment_type != segments else 1)
            steps.append(Step("fine-tune", [
                "fairseq-train", *placement(f"{binary}/{task}"), "--user-dir", "fairseq_posenc",
                "--task", "posenc_sentence_prediction", "--criterion", "posenc_sentence_prediction",
                "--arch", self.config["arch"], "--max-positions", self.config["length"],
                *placement("--finetune-from-model", model), "--position-encoding", *cell.options,
                "--position-segments", segment_type, *arrays["tune"], *self.extra,
                "--seed", cell.seed,
                "--warmup-updates", str(updates // 10), "--total-num-update", str(updates),
                "--max-update", str(updates), *placement(*self.devices.options, "--save-dir",
                                                     cell.path(name)),
                "--no-epoch-checkpoints", "--no-save-optimizer-state", "--save-interval", "1000000",
                "--validate-interval", "1000000", "--log-format", "simple", "--log-interval", "100",
            ], (f"{name}/train.done",), subfolder=name))  # fmt: skip
            figure = f"{task}_sentence_accuracy" + (f"_{segments}" if segments != "none" else "")
            tuned = placement(f"{cell.path(name)}/checkpoint_last.pt", f"{binary}/{task}")
            asked += ["--task", figure, *tuned]
        steps.append(Step("probe", [
            "python", "-m", "recipes.claims.probes", *placement(model, "--data", binary),
            "--pairs", self.config["pairs"], "--note", f"encoding={cell.row}",
            "--note", f"options={' '.join(cell.options)}", "--note", f"seed={cell.seed}", *asked,
            *placement("--output", cell.path("probes.json")),
        ], ("probes.json",), "score.txt"))  # fmt: skip
        return steps

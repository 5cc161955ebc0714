"""What the recipe of claims measures of trained models, each in the folder of its cell."""

import os
from typing import Callable, Sequence

from recipes.lib.cell import PlannedCell
from recipes.lib.experiment import Experiment
from recipes.lib.runner import map_parallel

LANGUAGES = "en", "de"


class Measuring(Experiment):
    """A recipe whose models are measured; what is there is not measured again."""

    def measure(
        self, part: str, cells: Sequence[PlannedCell], action: Callable[[str, PlannedCell], None]
    ) -> None:
        """Measure every cell of a part; a plan leaves out what goes over results."""
        if self.is_plan:
            self.say("analyses of these models")
            return
        map_parallel(self, cells, lambda cell: action(part, cell))

    def once(self, path: str, words: Sequence[str], log: str = "", output: str = "") -> None:
        """Run a command that writes the file ``path``, unless it is there; in a plan print it."""
        if self.is_plan or not os.path.exists(path):
            self.execute(words, log=log, output=output)

    def analyse(self, part: str, cell: PlannedCell, name: str, *options: str) -> None:
        """Analyse the cell's model, into NAME.json in its folder."""
        data = ["--data", self.path(part, "bin"), *self.devices.options]
        words = ["posenc", "analyse", *options, *data, "--output", cell.path(name)]
        self.once(cell.path(f"{name}.json"), words, log=cell.path(f"{name}.log"))

    def analyse_length(self, part: str, cell: PlannedCell) -> None:
        """Bits per token; of sinusoidal and shape shifts, of shape also each token, and stock
        fairseq.
        """
        model, bits = cell.path("checkpoint_last.pt"), cell.path("bits.json")
        self.once(bits, ["python", "-m", "recipes.claims.bits", model, "--data",
                         self.path(part, "bin"), "--score", cell.path("score.json"),
                         *self.devices.options, "--output", bits],
                  log=cell.path("bits.log"))  # fmt: skip
        if cell.row in ("sinusoidal", "shape"):
            self.analyse(part, cell, "shift", "shift-invariance", "--models", f"{cell.row}={model}",
                         "--offsets", "0,10,20,40", "--subset", "valid")  # fmt: skip
        if cell.row == "shape" and self.analyse_tokens(part, cell):
            self.decode_in_stock(part, cell)

    def analyse_tokens(self, part: str, cell: PlannedCell) -> bool:
        """Token by token against sinusoids of the same seed, if these are trained."""
        base = self.path(part, "sinusoidal", f"seed{cell.seed}")
        if not os.path.exists(f"{base}/train.done"):
            self.say(
                f"[{cell.row}, seed {cell.seed}] tokens are not compared: row sinusoidal is "
                f"not trained"
            )
            return False
        models = [f"sinusoidal={base}/checkpoint_last.pt", cell.labelled_path("checkpoint_last.pt")]
        self.analyse(part, cell, "tokens", "tokens", "--subset", "test", "--frequency-bins",
                     "50,150",
                     "--position-bins", "20,40,60", "--models", *models)  # fmt: skip
        return True

    def decode_in_stock(self, part: str, cell: PlannedCell) -> None:
        """As a model of stock fairseq, translated without this plugin, as quickstart.sh
        translates.
        """
        if os.path.exists(cell.path("stock.json")):
            return
        log, stock = cell.path("stock.log"), cell.path("stock.pt")
        # --force: where this was cut before, half a file may be there
        self.execute(["posenc", "export", "--path", cell.path("checkpoint_last.pt"), "--to",
                      "fairseq", "--output", stock, "--force"], log=log)  # fmt: skip
        self.execute(
            ["fairseq-generate", self.path(part, "bin"), "--path", stock,
             "--required-batch-size-multiple", "1",
             "--beam", "4", "--max-tokens", "4000", "--max-len-a", "1.5", "--max-len-b", "10",
             *self.devices.options],
            output=cell.path("stock.out"), log=log,
        )  # fmt: skip
        os.unlink(stock)
        source, reference = (self.path(part, f"corpus/test.{side}") for side in LANGUAGES)
        self.execute(["posenc", "score", "--generated", cell.path("stock.out"), "--output",
                      cell.path("stock.json"), "--data", self.path(part, "bin"),
                      "--note", f"seed={cell.seed}", "--reference", reference, "--source", source,
                      "--bins", "20,30,45", "--length-unit", "tokens"],
                     log=log)  # fmt: skip

    def analyse_joined(self, part: str, cell: PlannedCell) -> None:
        """Sentences in two orders; of shape also each token."""
        model = cell.labelled_path("checkpoint_last.pt")
        self.analyse(
            part, cell, "swap", "swap", "--models", model, "--subset", "test", "--pairs", "1000000"
        )
        if cell.row == "shape":
            self.analyse_tokens(part, cell)

    def analyse_bert(self, part: str, cell: PlannedCell) -> None:
        """Where heads attend."""
        for threshold in "0.001", "0.01", "0.1":
            self.analyse(part, cell, f"attention_{threshold}", "attention", "--models",
                         cell.labelled_path("checkpoint_last.pt"), "--length", "32", "--threshold",
                         threshold)  # fmt: skip

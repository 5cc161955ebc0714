"""The recipe of language models: from a text to bits per subword at lengths beyond the trained
one.
"""

import shutil
from typing import List

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import existing
from recipes.lib.cell import PlannedCell, Step, placement
from recipes.lib.config import ParsedArguments, RecipeScript, read_options
from recipes.lib.devices import cores
from recipes.lib.experiment import Experiment, complete_help, help_text
from recipes.lib.runner import finished_cells
from recipes.lib.settings import make_folder
from recipes.lib.translation import ONE_JOB, SPLITS, draw_curves, learn_bpe, rows_of


def main(script: RecipeScript, arguments: List[str]) -> None:
    """Run the recipe."""
    script.arrays["defaults"] += ["--jobs-on-gpus", ONE_JOB]
    complete_help(script, LanguageModels.stages)
    LanguageModels(script, read_options(script, help_text("translation"), arguments)).run()


class LanguageModels(Experiment):
    """Models of one text."""

    stages = "set-up", "data", "subwords", "binarise", "train", "measure"

    def __init__(self, script: RecipeScript, parsed: ParsedArguments):
        super().__init__(script, parsed)
        self.rows = rows_of(script, self.config)
        self.folder = self.config["data-dir"]
        if self.folder and not self.config.is_given("language"):
            raise UsageError(
                "--data-dir needs --language: Moses' tokeniser takes the text for one of that "
                "language, as in --language en"
            )
        self.config.exclude("data-dir", "url")
        files = [existing(f"{self.folder}/{split}.txt") for split in SPLITS]
        self.files = dict(zip(SPLITS, files))
        self.text = self.config["url"]
        if self.folder and not self.is_plan:
            self.text = self.known_sum("--text", files)

    def data_fingerprint(self) -> List[str]:
        """The text, and how it is cut into subwords."""
        return [*self.config.interpolate(["--language", "{language}", "--bpe", "{bpe}", "--text"]),
                self.text]  # fmt: skip

    def data(self) -> None:
        """Text, subwords, binary data."""
        self.data_stage("data", self.get)
        self.data_stage("subwords", self.learn_subwords, self.path("bpe.codes"))
        self.data_stage("binarise", self.binarise, self.path("bin"))

    def tables(self) -> None:
        """Bits per subword."""
        self.run_stage("measure", self.measure)

    def get(self) -> None:
        """Text of space-separated tokens: RUN_DIR/{train,valid,test}.tok."""
        raw, url = self.path("raw"), self.config["url"]
        if not self.is_plan:
            make_folder(raw)
        if not self.folder:
            self.fetch(f"{raw}/wikitext-103.zip", url, unpack=raw,
                       advice="give another --url, or other text by --data-dir")  # fmt: skip
        for split in SPLITS:
            tokens = self.path(f"{split}.tok")
            if not self.folder:
                self.execute(["cp", f"{raw}/wikitext-103/wiki.{split}.tokens", tokens])
                continue
            self.execute(["posenc", "prepare", "tokenise", "--normalise-punctuation", "--language",
                          self.config["language"], "--input", self.files[split], "--output",
                          tokens])  # fmt: skip

    def learn_subwords(self) -> None:
        """Learn BPE, and apply it."""
        tokens = {self.path(f"{split}.tok"): self.path(f"{split}.bpe") for split in SPLITS}
        learn_bpe(self, [*tokens][:1], tokens)

    def binarise(self) -> None:
        """Make binary data."""
        if not self.is_plan:
            shutil.rmtree(self.path("bin"), ignore_errors=True)
        texts = [word for split in SPLITS for word in (f"--{split}pref", self.path(f"{split}.bpe"))]
        self.execute(["posenc", "prepare", "binarise", "--only-source", "--destdir",
                      self.path("bin"),
                      "--workers", str(cores()), *texts])  # fmt: skip

    def steps(self, cell: PlannedCell) -> List[Step]:
        """Its training."""
        words = [
            "fairseq-train", *placement(self.path("bin")),
            "--user-dir", "fairseq_posenc", "--task", "language_modeling",
            *self.config.interpolate(self.script.arrays["train"]), "--seed", cell.seed, *self.extra,
            "--position-encoding", *cell.options,
            *placement(*self.devices.options, "--save-dir", cell.folder),
            "--log-format", "simple", "--log-interval", "100",
        ]  # fmt: skip
        return [Step("train", words, ("train.done",))]

    def measure(self) -> None:
        """Measure all models at all lengths; bits per word are of the text before it was cut."""
        cells = finished_cells(self, self.cells())
        models = [cell.labelled_path("checkpoint_best.pt") for cell in cells]
        config, output = self.config, self.path("perplexity")
        self.execute(["posenc", "perplexity", "--models", *models, "--data", self.path("bin"),
                      "--lengths", config["lengths"], "--text", self.path("test.tok"),
                      "--baseline", cells[0].row, "--by-position", config["length"],
                      *self.devices.options, "--output", output])  # fmt: skip
        self.say(f"table and picture: {output}.md, .png")
        draw_curves(self, cells)

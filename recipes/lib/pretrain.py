"""The pre-training recipes: from Wikipedia, or other text, to masked language models."""

import os
import re
from typing import List, Sequence, Tuple

from fairseq_posenc.errors import UsageError
from recipes.lib import wikipedia
from recipes.lib.batch import Division, divide, sequences
from recipes.lib.bert_rows import complete_bert_help, rows_of
from recipes.lib.cell import PlannedCell, Step, placement
from recipes.lib.config import ParsedArguments, RecipeScript, read_options
from recipes.lib.devices import cores
from recipes.lib.experiment import Experiment, help_text
from recipes.lib.figures import once
from recipes.lib.rows import PlannedRow
from recipes.lib.settings import check_disk, checksum, record_fingerprint

SNAPSHOT = "20231101"
DATASET = "datasets/wikimedia/wikipedia"
_ADVICE = f"fetch {DATASET} by hand and give --raw-dir"


def main(script: RecipeScript, arguments: List[str]) -> None:
    """Run a recipe."""
    complete_bert_help(script, Pretraining.stages)
    Pretraining(
        script,
        read_options(script, help_text("pretrain"), arguments),
    ).run()


class Pretraining(Experiment):
    """Masked language models of one text."""

    stages: Sequence[str] = ("set-up", "download", "prepare", "train", "attention")
    last_online_stage = "download"
    several_gpus = True
    stop_diverged = True

    def __init__(self, script: RecipeScript, parsed: ParsedArguments):
        super().__init__(script, parsed)
        config = self.config
        if not re.fullmatch(r"0|0?\.[0-9]+", config["warmup"]):
            raise UsageError(f"--warmup is a share below 1, not {config['warmup']}")
        coverage = config["character-coverage"]
        if coverage and not re.fullmatch(r"1|0?\.9[0-9]*", coverage):
            raise UsageError(f"--character-coverage is a share from 0.9 to 1, not {coverage}")
        config.exclude("text", "languages", "raw-dir", "data-dir", "url")
        config.exclude("valid", "hold-out")
        if config.is_given("documents") and not config["text"]:
            raise UsageError("--documents would be without effect without --text: leave it out")
        self.rows = self.choose_rows()
        if config["segments"] == "none":
            self.rows = [PlannedRow(row.label, _without_segments(row.options)) for row in self.rows]
        self.raw = config["raw-dir"] or config["data-dir"] or self.path("raw")
        self.subwords = config.interpolate(script.arrays["kind"])
        self._fingerprint: List[str] = []

    def choose_rows(self) -> List[PlannedRow]:
        """The models of Chen et al., or the user's."""
        return rows_of(self.config)

    def data(self) -> None:
        """Wikipedia, unless there is other text, as binary data."""
        self.say_batch()
        if not self.config["text"]:
            self.run_stage("download", self.download)
        self.data_stage("prepare", self.prepare, self.path("bin"))

    def prepare(self) -> None:
        """Make the binary data."""
        self.execute(self.prepare_command())

    def say_batch(self) -> None:
        """Tell how the batch is divided."""
        division = self.divide()
        if division.note:
            self.say(division.note)
        on = (
            "on the CPU"
            if self.devices.type == "cpu"
            else f"on each of {self.devices.num_gpus} GPUs"
        )
        self.say(f"an update: {division.made} sequences = {division.per_gpu} {on} × --update-freq "
                 f"{division.steps}, {self.tokens_per_update} tokens")  # fmt: skip

    @property
    def tokens_per_update(self) -> int:
        """Tokens per update, of all GPUs."""
        return self.divide().made * self.config.number("length")

    def tables(self) -> None:
        """Pictures of attention."""
        self.run_stage("attention", self.draw_attention)

    def text_of(self, language: str) -> str:
        """The folder of a language's Wikipedia."""
        return f"{self.raw}/{SNAPSHOT}.{language}"

    @property
    def given_texts(self) -> List[Tuple[str, List[str]]]:
        """What the user gives in place of Wikipedia, and beside it: option and paths."""
        texts = []
        for name in "text", "valid", "books-folder":
            text = self.config[name]
            if text and not os.path.exists(text) and "=" in text:
                # LANGUAGE=PATH,LANGUAGE=PATH…
                texts.append((name, [part.partition("=")[2] for part in text.split(",")]))
            elif text:
                texts.append((name, [text]))
        return texts

    def data_fingerprint(self) -> List[str]:
        """What the binary data are made from, beside Wikipedia's files, and how."""
        if self.is_plan or self._fingerprint:
            return self._fingerprint
        config = self.config
        fingerprint = [*self.subwords, "--vocabulary", config["vocabulary"]]
        if config["text"]:
            fingerprint += ["--documents", config["documents"]]
        else:
            fingerprint += ["--snapshot", SNAPSHOT, "--languages", *config.list("languages")]
        if not config["valid"]:
            fingerprint += ["--hold-out", config["hold-out"]]
        for name, paths in self.given_texts:
            fingerprint += [f"--{name}", self.known_sum(f"--{name}", paths)]
        self._fingerprint = fingerprint
        return fingerprint

    def prepare_command(self) -> List[str]:
        """What makes the binary data."""
        config, text = self.config, self.config["text"]
        languages = config.list("languages")
        train = [text] if text else [self.text_of(language) for language in languages]
        if config["per-language"] and not text:
            train = [f"{language}={path}" for language, path in zip(languages, train)]
        if config["books-folder"]:
            train.append(config["books-folder"])
        command = ["posenc", "prepare", "text", "--train", *train]
        command += (
            ["--language-folders"] if config["per-language"] and text and "=" not in text else []
        )
        command += [*self.subwords, "--split-sentences", "--vocabulary-size", config["vocabulary"],
                    "--workers", config["workers"] or str(cores()), "--output",
                    self.path("bin")]  # fmt: skip
        valid = (
            ["--valid", config["valid"]] if config["valid"] else ["--hold-out", config["hold-out"]]
        )
        return [*command, *valid, *(["--documents", config["documents"]] if text else [])]

    def divide(self) -> Division:
        """Divide the sequences of an update among the GPUs."""
        config, devices = self.config, self.devices
        most = config.number("sequences")
        if not most and devices.type == "cpu":
            most = 16
        elif not most:
            memory = devices.memory * 1024 // devices.trainings_per_gpu
            length, vocabulary = config.number("length"), config.number("vocabulary")
            most = sequences(memory, length, vocabulary, config["arch"], self.extra)
        return divide(config.number("batch"), devices.num_gpus, most, "sequences")

    def cell_fingerprint(self, cell: PlannedCell) -> List[str]:
        """The batch, on whatever GPUs, and the data."""
        return ["--batch", str(self.divide().named), *self.data_fingerprint()]

    def steps(self, cell: PlannedCell) -> List[Step]:
        """The training."""
        config, made = self.config, self.divide()
        interval = config["interval"]
        arrays = self.script.arrays
        options = [*arrays["model"], *arrays[config["optimizer"]], *arrays["train"]]
        train = [
            "--user-dir", "fairseq_posenc", "--task", "posenc_masked_lm", "--criterion",
            "masked_lm", *config.interpolate(options), *self.extra,
            "--position-encoding", *cell.options, "--seed", cell.seed,
        ]  # fmt: skip
        step = Step(self.cell_stages[0], [
            *placement(*self.devices.launch(), self.path("bin")), *train,
            *placement("--batch-size", made.per_gpu, "--update-freq", made.steps),
            *placement(*self.devices.options),
            *placement("--save-dir", cell.folder),
            "--save-interval-updates", interval, "--validate-interval-updates", interval,
            "--keep-interval-updates", "1", "--no-epoch-checkpoints", "--save-interval", "1000000",
            "--validate-interval", "1000000", "--log-format", "simple",
            "--log-interval", str(min(int(interval), 100)),
        ], ("train.done",))  # fmt: skip
        return [step]

    def list_files(self, language: str) -> List[Tuple[str, str, int]]:
        """Path, SHA-256 and size of the snapshot's files, from the list of the hub."""
        listed, url = f"{self.text_of(language)}.json", self.config["url"]
        self.fetch(listed, f"{url}/api/{DATASET}/tree/main/{SNAPSHOT}.{language}",
                   advice=_ADVICE)  # fmt: skip
        return wikipedia.files_of(listed)

    def download(self) -> None:
        """Get the text of all languages; what is prepared needs it no more."""
        raw_dir, url = self.config["raw-dir"], self.config["url"]
        if self.is_plan:
            if not raw_dir:
                self._print_download()
            return
        if os.path.exists(self.path("prepare.done")) and not raw_dir:
            return
        files: List[Tuple[str, str, int]] = []
        for language in self.config.list("languages"):
            if not raw_dir:
                files += self.list_files(language)
            elif not os.path.isdir(self.text_of(language)):
                raise UsageError(f"{self.text_of(language)} is missing: it is "
                                 f"{url}/{DATASET}/tree/main/{SNAPSHOT}.{language}")  # fmt: skip
        check_disk(self.run_dir, sum(size for *_, size in files))
        for path, digest, _ in files:
            if not os.path.exists(f"{self.raw}/{path}"):
                self.say(f"download {path}")
                address = f"{url}/{DATASET}/resolve/main/{path}"
                self.fetch(f"{self.raw}/{path}", address, checksum=digest, advice=_ADVICE)
        folders = [self.text_of(language) for language in self.config.list("languages")]
        record_fingerprint(self.path("files.settings"), ["--files", checksum(folders)])

    def print_cells(self, titles: Sequence[str]) -> None:
        """See :meth:`Experiment.print_cells`."""
        millions = self.tokens_per_update * self.config.number("updates") // 10**6
        self.say(f"{millions} million tokens per training")
        super().print_cells(titles)

    def _print_download(self) -> None:
        languages, url = self.config.list("languages"), self.config["url"]
        self.say(f"for each of {len(languages)} languages, and each file of its list, with its "
                 "SHA-256:")  # fmt: skip
        self.fetch(f"{self.text_of(languages[0])}.json",
                   f"{url}/api/{DATASET}/tree/main/{SNAPSHOT}.{languages[0]}")  # fmt: skip
        self.say(f"posenc prepare download --output {self.raw}/FILE --checksum … "
                 f"{url}/{DATASET}/resolve/main/FILE")  # fmt: skip

    def draw_attention(self) -> None:
        """Figures 2 (.ranks.png), 4 and 6 (.png) of the first seed.

        At 128 tokens, n of Chen et al. 2021, section 4.4.3: fewer would limit ranks. Shaw's models
        have no such scores.
        """
        first = self.config.list("seeds")[0]
        cells = [cell for cell in self.cells() if cell.seed == first]
        models = [cell.labelled_path("checkpoint_last.pt") for cell in cells]
        length = str(min(self.config.number("length"), 128))
        attention = ["posenc", "analyse", "attention", "--models", *models]
        about = ["--data", self.path("bin"), "--length", length, *self.devices.options]
        once(self, self.path("attention"), [*attention, *about], required=False)


def _without_segments(options: Sequence[str]) -> List[str]:
    if "--position-segments" not in options:
        return list(options)
    index = options.index("--position-segments")
    return [*options[:index], *options[index + 2 :]]

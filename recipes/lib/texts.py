"""The text of small translation recipes: where it comes from, and the stages that make it binary
data.
"""

import gzip
import os
import re
import shutil
import zlib
from typing import Callable, List, Optional, Sequence, Tuple

from fairseq_posenc.errors import UsageError
from recipes.lib.cell import PlannedCell, Step, placement
from recipes.lib.devices import cores
from recipes.lib.experiment import Experiment
from recipes.lib.settings import read_lines

SPLITS = "train", "valid", "test"
ALL_LENGTHS = "-all"  # ends the labels of rows that are trained on long pairs, too
# options of fairseq-train that end a training
_ENDS = "--max-update", "--max-epoch", "--patience", "--stop-min-lr", "--stop-time-hours"


class RecipeText:
    """Parallel text of a recipe.

    Attributes:
        source, target: languages.
        bin: the folder of binary data.
        keep: checkpoints to be averaged; 0: the last one translates.
        fingerprint: what the text was made from, see :mod:`.settings`.
        data_stages: titles of those that make the binary data.
        score: options for posenc score.
        analyses: titles of further stages behind the table.
        beside: text on which each row is trained, too, if any.
        task: options of fairseq-train and fairseq-generate; ``pair`` are of the latter alone.
    """

    pair: Sequence[str] = ()
    data_stages: Sequence[str] = ()
    analyses: Sequence[str] = ()
    job_per_gpu = False

    def __init__(self, recipe: Experiment):
        self.recipe, self.config = recipe, recipe.config
        self.source, self.target = self.config["source-lang"], self.config["target-lang"]
        self.bin = recipe.path("bin")
        self.keep = min(self.config.number("keep"), self.config.number("epochs"))
        ends = [word for word in recipe.extra if word.partition("=")[0] in _ENDS]
        if ends and self.keep and not self.config.is_given("keep"):
            raise UsageError(
                f"with {ends[0]} a training may end before {self.keep} epochs, whose "
                "checkpoints are averaged: give --epochs in its place, or say how many with --keep"
            )
        for name in "--no-epoch-checkpoints", "--no-save":
            if self.keep and name in recipe.extra:
                raise UsageError(
                    f"with {name} there are no checkpoints of epochs to be averaged: leave it out"
                )
        self.task = ["--task", "posenc_translation",
                     "--source-lang", self.source, "--target-lang", self.target]  # fmt: skip
        self.fingerprint: List[str] = []
        self.beside: Optional[RecipeText] = None
        self.score = self.config.interpolate(recipe.script.arrays.get("score", []))

    def data(self) -> None:
        """Run the stages that make the binary data."""
        raise NotImplementedError

    def analyse(self) -> None:
        """Run the stages behind the table."""

    def remarks(self) -> List[str]:
        """Return what a reader of the report should know of the text."""
        return []

    @property
    def languages(self) -> Tuple[str, str]:
        """Both of them."""
        return self.source, self.target

    def train_step(self, cell: PlannedCell, words: List[str]) -> Step:
        """Return the first step of a cell, of the words of its training."""
        return Step("train", words, ("train.done",))

    def data_fingerprint(self, seed: str) -> List[str]:
        """Return what the cells of a seed are known by beside the words of their steps."""
        return self.fingerprint

    def notes(self, cell: PlannedCell) -> List[str]:
        """Return options of posenc score that say more of a cell's results."""
        return []

    def path(self, name: str) -> str:
        """A file of text in the run folder."""
        return self.recipe.path("text", name)

    def learn_subwords(self) -> None:
        """Learn joint BPE from the tokens of the training text, and apply it to all."""
        recipe, codes = self.recipe, self.recipe.path("bpe.codes")
        tokens = [self.path(f"train.tok.{language}") for language in self.languages]
        learn = ["subword-nmt", "learn-bpe", "--symbols", self.config["bpe"]]
        recipe.execute(learn, inputs=tokens, output=codes)
        for split in SPLITS:
            for language in self.languages:
                if not recipe.is_plan:
                    recipe.say(f"apply BPE to {split}.{language}")
                recipe.execute(
                    ["subword-nmt", "apply-bpe", "--codes", codes],
                    inputs=[self.path(f"{split}.tok.{language}")],
                    output=recipe.path(f"{split}.bpe.{language}"),
                )

    def binarise(self, ending: str) -> None:
        """Make binary data of RUN_DIR/{train,valid,test}.ENDING.LANGUAGE."""
        recipe = self.recipe
        prefixes = [word for split in SPLITS
                    for word in (f"--{split}pref", recipe.path(f"{split}.{ending}"))]  # fmt: skip
        if not recipe.is_plan:
            shutil.rmtree(self.bin, ignore_errors=True)
        recipe.execute(
            ["posenc", "prepare", "binarise", "--source-lang", self.source, "--target-lang",
             self.target,
             "--joined-dictionary", *prefixes, "--destdir", self.bin, "--workers", str(cores())],
            log=recipe.path("preprocess.out"),
        )  # fmt: skip
        keep = ["posenc", "prepare", "pairs", "bpe-keep", "--normalise-punctuation",
                "--codes", recipe.path("bpe.codes")]  # fmt: skip
        recipe.execute([*keep, "--output", self.bin])

    def three_stages(
        self, title: str, get: Callable[[], object], binarise: Callable[[], object]
    ) -> None:
        """Run the stages of a recipe that gets tokens, cuts them into subwords, and makes them
        binary.
        """
        self.recipe.data_stage(title, get)
        self.recipe.data_stage("subwords", self.learn_subwords, self.recipe.path("bpe.codes"))
        self.recipe.data_stage("binarise", binarise, self.bin)


class GrammarText(RecipeText):
    """The embedded English-German grammar, of which a test set has ranges of lengths."""

    data_stages = "corpus", "subwords", "binarise"

    def __init__(self, recipe: Experiment):
        super().__init__(recipe)
        self.made = self.config.interpolate(
            ["--train", "{train}", "--train-length", "{train-length}", "--valid", "300",
             "--test", "{test}", "--test-lengths", "{test-lengths}"]
        )  # fmt: skip
        self.join = self.config.number("join")
        self.fingerprint = [*self.made, "--join", str(self.join)]
        ends = re.findall(r"(\d+)-(\d+)", self.config["test-lengths"])
        if any(int(low) <= int(before) for (_, before), (low, _) in zip(ends, ends[1:])):
            raise UsageError(
                "--test-lengths takes rising ranges such as 4-20,21-30, not "
                + self.config["test-lengths"]
            )
        raw = [recipe.path(f"corpus/test.{language}") for language in self.languages]
        if self.join > 1:
            self.score = ["--percentiles", "--without-token", "<sep>"]
            return
        self.score = placement("--reference", raw[1], "--source", raw[0])
        # the upper ends of all ranges but the last are the edges of the bins; a single range has
        # none
        edges = [high for _, high in ends[:-1]]
        self.score += (
            ["--bins", ",".join(edges)] if edges else ["--percentiles", "--length-of", "source"]
        )
        # in which the corpus has its lengths; cells that were scored in another stay finished
        self.score += placement("--length-unit", "tokens")

    def data(self) -> None:
        """See :meth:`RecipeText.data`."""
        self.three_stages("corpus", self.make, self.cut)

    def make(self) -> None:
        """Make the corpus, and its tokens."""
        recipe = self.recipe
        output = recipe.path("corpus")
        make = ["python", "-m", "recipes.corpus", "--output", output, "--seed", "1", "--quiet"]
        recipe.execute([*make, *self.made])
        for split in SPLITS:
            for language in self.languages:
                recipe.execute(
                    ["posenc", "prepare", "tokenise", "--normalise-punctuation", "--language",
                     language,
                     "--input", f"{output}/{split}.{language}",
                     "--output", self.path(f"{split}.tok.{language}")]
                )  # fmt: skip
        if not recipe.is_plan:
            first = [read_lines(f"{output}/test.{language}")[0] for language in self.languages]
            recipe.say(f"for example: {' = '.join(first)}")

    def cut(self) -> None:
        """Join neighbouring sentences if that is asked, and make binary data."""
        if self.join == 1:
            self.binarise("bpe")
            return
        for split in SPLITS:
            self.recipe.execute(
                ["posenc", "prepare", "pairs", "setting", "interpolate", "--neighbours",
                 str(self.join),
                 "--keep-rest", "--input", self.recipe.path(f"{split}.bpe"),
                 "--output", self.recipe.path(f"{split}.joined"), "--languages",
                 ",".join(self.languages)]
            )  # fmt: skip
        self.binarise("joined")


class Multi30k(RecipeText):
    """Multi30k, as it is, or in one of the forms of SHAPE, section 3.1."""

    data_stages = "data", "subwords", "binarise"
    raw = {"train": "train", "valid": "val", "test": "test_2016_flickr"}

    def __init__(self, recipe: Experiment):
        super().__init__(recipe)
        self.form, self.longest = self.config["setting"], self.config.number("longest")
        self.score += recipe.script.arrays.get(f"score_{self.form}", [])
        if self.config.is_given("longest") and self.form != "extrapolate":
            raise UsageError("--longest needs --setting extrapolate: leave it out")
        self.config.set_defaults({"ffn": str(2 * self.config.number("dim"))})
        self.fingerprint = ["--setting", self.form]
        if self.form == "extrapolate":
            self.fingerprint += ["--longest", str(self.longest)]
            edges = self.longest, self.longest * 3 // 2, self.longest * 2
            # the limit of training is one of subwords
            self.score = ["--bins", ",".join(map(str, edges)), "--length-unit", "subwords"]
        self.folder = self.config["raw-dir"]
        names = [f"{self.folder}/{name}.{language}.gz"
                 for name in self.raw.values() for language in self.languages]  # fmt: skip
        self.fingerprint += [
            "--text",
            recipe.known_sum("--text", names) if self.folder else self.config["url"],
        ]

    def data(self) -> None:
        """See :meth:`RecipeText.data`."""
        self.three_stages("data", self.get, self.cut)

    def get(self) -> None:
        """Get the files, and make tokens of them."""
        for split, raw in self.raw.items():
            for language in self.languages:
                name = f"{raw}.{language}.gz"
                file = self.recipe.path("raw", name)
                self._fetch(name, file)
                if not self.recipe.is_plan:
                    self.recipe.say(f"tokenise {name}")
                self.recipe.execute(
                    ["posenc", "prepare", "tokenise", "--language", language, "--input", file,
                     "--output", self.path(f"{split}.tok.{language}")]
                )  # fmt: skip

    def _fetch(self, name: str, file: str) -> None:
        recipe, source = self.recipe, f"{self.folder}/{name}"
        if not recipe.is_plan and os.path.exists(file):
            return
        if self.folder:
            recipe.execute(["cat", source], output=file, failure=f"{source} is missing")
        else:
            recipe.execute(
                ["posenc", "prepare", "download", "--output", file, f"{self.config['url']}/{name}"],
                failure=f"cannot download {name}; fetch the files by hand and give --raw-dir",
            )
        if not recipe.is_plan:
            try:
                with gzip.open(file) as stream:
                    while stream.read(1 << 20):
                        pass
            except (OSError, EOFError, zlib.error):
                os.unlink(file)
                raise UsageError(f"{name} is damaged; start again") from None

    def cut(self) -> None:
        """Make of each split what the setting makes of it, and binary data."""
        recipe, form = self.recipe, self.form
        for split in SPLITS:
            options = {
                ("extrapolate", "train"): ["extrapolate", "--longest", str(self.longest)],
                ("interpolate", "train"): ["interpolate"],
                ("interpolate", "valid"): ["interpolate", "--keep-rest"],
                ("interpolate", "test"): ["interpolate", "--keep-rest"],
            }.get((form, split))
            if options:
                recipe.execute(
                    ["posenc", "prepare", "pairs", "setting", *options,
                     "--input", recipe.path(f"{split}.bpe"), "--output",
                     recipe.path(f"{split}.{form}"),
                     "--languages", ",".join(self.languages)]
                )  # fmt: skip
                continue
            for language in self.languages:
                link = recipe.path(f"{split}.{form}.{language}")
                recipe.execute(["ln", "-sf", f"{split}.bpe.{language}", link])
        self.binarise(form)

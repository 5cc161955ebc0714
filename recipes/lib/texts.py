"""The kinds of text of translation recipes; here those that Moses' tokens and BPE cut."""

import os
import re
from typing import Dict, List, Type

from fairseq_posenc.errors import UsageError
from recipes.lib.cell import placement
from recipes.lib.config import ParsedArguments, RecipeScript, pairs, read_options
from recipes.lib.experiment import complete_help, help_text
from recipes.lib.longer_text import LongerText
from recipes.lib.own_texts import Own, PythonDocs
from recipes.lib.settings import read_lines
from recipes.lib.translation import ONE_JOB, SPLITS, Translation, rows_of


def main(script: RecipeScript, arguments: List[str]) -> None:
    """Run a recipe."""
    kind = TEXTS[pairs(script.arrays["defaults"])["text"]]
    jobs = "of GPUs on GPUs" if kind.job_per_gpu else ONE_JOB
    script.arrays["defaults"] += ["--jobs-on-gpus", jobs]
    complete_help(script, kind.stages)
    parsed = read_options(script, help_text("translation"), arguments)
    setting = parsed.config["setting"]
    if setting:
        config = parsed.config.with_overrides(pairs(script.arrays[setting]))
        parsed = parsed._replace(config=config)
    if parsed.config.is_given("encodings"):
        rows_of(script, parsed.config)  # a mistake is told before the text is looked at
    kind(script, parsed).run()


class GrammarText(Translation):
    """The embedded English-German grammar, of which a test set has ranges of lengths."""

    data_stages = "corpus", "subwords", "binarise"

    def __init__(self, script: RecipeScript, parsed: ParsedArguments):
        super().__init__(script, parsed)
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
        raw = [self.path(f"corpus/test.{language}") for language in self.languages]
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

    def get(self) -> None:
        """Make the corpus, and its tokens."""
        output = self.path("corpus")
        make = ["python", "-m", "recipes.corpus", "--output", output, "--seed", "1", "--quiet"]
        self.execute([*make, *self.made])
        for split in SPLITS:
            for language in self.languages:
                self.execute(
                    ["posenc", "prepare", "tokenise", "--normalise-punctuation", "--language",
                     language,
                     "--input", f"{output}/{split}.{language}",
                     "--output", self.text(f"{split}.tok.{language}")]
                )  # fmt: skip
        if not self.is_plan:
            first = [read_lines(f"{output}/test.{language}")[0] for language in self.languages]
            self.say(f"for example: {' = '.join(first)}")

    def cut(self) -> None:
        """Join neighbouring sentences if that is asked, and make binary data."""
        if self.join == 1:
            self.binarise("bpe")
            return
        for split in SPLITS:
            self.execute(
                ["posenc", "prepare", "pairs", "setting", "interpolate", "--neighbours",
                 str(self.join),
                 "--keep-rest", "--input", self.path(f"{split}.bpe"),
                 "--output", self.path(f"{split}.joined"), "--languages",
                 ",".join(self.languages)]
            )  # fmt: skip
        self.binarise("joined")


class Multi30k(Translation):
    """Multi30k, as it is, or in one of the forms of SHAPE, section 3.1."""

    raw = {"train": "train", "valid": "val", "test": "test_2016_flickr"}

    def __init__(self, script: RecipeScript, parsed: ParsedArguments):
        super().__init__(script, parsed)
        self.form, self.longest = self.config["setting"], self.config.number("longest")
        self.score += script.arrays.get(f"score_{self.form}", [])
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
            self.known_sum("--text", names) if self.folder else self.config["url"],
        ]

    def get(self) -> None:
        """Get the files, and make tokens of them."""
        for split, raw in self.raw.items():
            for language in self.languages:
                name = f"{raw}.{language}.gz"
                file = f"{self.folder or self.path('raw')}/{name}"
                if not self.folder and (self.is_plan or not os.path.exists(file)):
                    self.fetch(file, f"{self.config['url']}/{name}")
                if not self.is_plan:
                    self.say(f"tokenise {name}")
                self.execute(
                    ["posenc", "prepare", "tokenise", "--language", language, "--input", file,
                     "--output", self.text(f"{split}.tok.{language}")]
                )  # fmt: skip

    def cut(self) -> None:
        """Make of each split what the setting makes of it, and binary data."""
        form = self.form
        for split in SPLITS:
            options = {
                ("extrapolate", "train"): ["extrapolate", "--longest", str(self.longest)],
                ("interpolate", "train"): ["interpolate"],
                ("interpolate", "valid"): ["interpolate", "--keep-rest"],
                ("interpolate", "test"): ["interpolate", "--keep-rest"],
            }.get((form, split))
            if options:
                self.execute(
                    ["posenc", "prepare", "pairs", "setting", *options,
                     "--input", self.path(f"{split}.bpe"), "--output",
                     self.path(f"{split}.{form}"),
                     "--languages", ",".join(self.languages)]
                )  # fmt: skip
                continue
            for language in self.languages:
                link = self.path(f"{split}.{form}.{language}")
                self.execute(["ln", "-sf", f"{split}.bpe.{language}", link])
        self.binarise(form)


TEXTS: Dict[str, Type[Translation]] = {
    "corpus": GrammarText, "multi30k": Multi30k, "own": Own, "python_docs": PythonDocs,
    "longer": LongerText,
}  # fmt: skip

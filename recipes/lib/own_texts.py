"""Text that `posenc prepare translation` makes binary: the user's own, and Python's
documentation.
"""

import os
import re
from typing import List, Sequence

from fairseq_posenc.data.languages import check_language
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import existing
from recipes.lib.cell import PlannedCell
from recipes.lib.devices import cores
from recipes.lib.experiment import Experiment
from recipes.lib.figures import bits_by_range
from recipes.lib.settings import make_folder, read_lines
from recipes.lib.texts import ALL_LENGTHS, SPLITS, RecipeText


class Own(RecipeText):
    """The user's own text, which `posenc prepare translation` makes binary in one stage."""

    data_stages = ("data",)
    job_per_gpu = True

    def __init__(self, recipe: Experiment):
        super().__init__(recipe)
        for name in ("source-lang", "target-lang", *SPLITS):
            if not self.config[name]:
                raise UsageError(f"--{name} is missing; see --help")
            if name.endswith("-lang"):
                check_language(self.config[name], f"--{name}")
        self.prefixes = {split: self.config[split] for split in SPLITS}
        match = re.fullmatch("([1-9][0-9]*)(,none)?|", self.config["longest"])
        if not match:
            raise UsageError(f"--longest is N or N,none, not {self.config['longest']}")
        longest = match[1]
        if longest:
            # the rest of the program knows the limit alone
            self.config.set({"longest": longest})
            bins = self.config["bins"] if self.config.is_given("bins") else f"{longest},auto"
            self.score = ["--length-unit", "subwords", "--length-of", "longer", "--bins", bins]
        self.prepare = self.config.interpolate(recipe.script.arrays["prepare"])
        if longest:
            self.prepare.append("--clean-valid")
        files = [existing(f"{prefix}.{language}")
                 for prefix in self.prefixes.values() for language in self.languages]  # fmt: skip
        self.fingerprint = [
            "--source-lang", self.source, "--target-lang", self.target, *self.prepare,
            *self.score, "--text", recipe.known_sum("--text", files),
        ]  # fmt: skip
        if match[2]:
            self.beside = _LongTextToo(self, longest)

    def data(self) -> None:
        """See :meth:`RecipeText.data`."""
        # it continues what was cut, and refuses a folder of other texts; test pairs are never left
        # out
        makes = f"{self.beside.bin}/dict.{self.target}.txt" if self.beside else self.bin
        self.recipe.data_stage("data", self.make, makes)

    def make(self) -> None:
        """Make binary data, and with ``--longest N,none`` that of all lengths by its subwords."""
        self._prepare(self.prepare, self.bin)
        if isinstance(self.beside, _LongTextToo):
            self._check_limit()
            self._prepare(self.beside.prepare, self.beside.bin)

    def _check_limit(self) -> None:
        """Raise a UsageError where every pair is within the limit: all would be trained twice."""
        longest = self.config["longest"]
        lines = [] if self.recipe.is_plan else read_lines(self.recipe.path("prepare.log"))
        counts = [line for line in lines if re.match(r"train: [\d,]+ .*pairs", line)]
        if counts and not any("longer than --max-length" in line for line in counts):
            raise UsageError(
                f"no training pair is longer than {longest} subwords, so that both trainings of "
                f"--longest {longest},none would be the same: give a smaller number, or no "
                "--longest, in another --run-dir"
            )

    def _prepare(self, options: Sequence[str], output: str) -> None:
        recipe, log = self.recipe, self.recipe.path("prepare.log")
        texts = [word for split in SPLITS for word in (f"--{split}", self.prefixes[split])]
        if not recipe.is_plan:
            recipe.say(f"progress: {log}")
        recipe.execute(
            ["posenc", "prepare", "translation", "--source-lang", self.source, "--target-lang",
             self.target,
             *texts, *options, "--workers", str(cores()), "--output", output],
            log=log, appends=True,
        )  # fmt: skip
        if not recipe.is_plan:
            recipe.say((read_lines(log) or [""])[-1])

    def remarks(self) -> List[str]:
        """Return which training pairs were left out and why, as the log of the data has it."""
        longest = self.config["longest"]
        # the first is of the limited text, which is made first
        for line in read_lines(self.recipe.path("prepare.log")):
            counts = re.search(r"train: [\d,]+ of ([\d,]+) pairs kept; (.*) left out: (.*)", line)
            if not counts:
                continue
            text = f"{counts[2]} of {counts[1]} training pairs were left out: {counts[3]}"
            if self.beside:
                text += (
                    f" (--longest {longest},none). Rows that end in {ALL_LENGTHS} are trained and "
                    "validated on the long ones, too"
                )
            elif longest:
                text += (
                    f" (--longest {longest}). To train on them, too, is the other answer to long "
                    f"text: --longest {longest},none has both in one report"
                )
            return [f"{text}."]
        return []


class _LongTextToo(RecipeText):
    """The text of :class:`Own` with its long pairs, cut by the same subwords."""

    def __init__(self, limited: Own, longest: str):
        super().__init__(limited.recipe)
        self.bin, self.score = self.recipe.path("bin-all"), limited.score
        self.prepare = ["--subwords", limited.bin]
        # of the text, all words but the limit
        self.fingerprint = [*limited.fingerprint]
        start = self.fingerprint.index("--max-length")
        del self.fingerprint[start : start + 2]
        self.fingerprint += ["--all-lengths-beside", longest]

    def notes(self, cell: PlannedCell) -> List[str]:
        """Return that the trained lengths are others than those of the rows beside."""
        return ["--note", "longest=none"]


class PythonDocs(RecipeText):
    """Python's documentation, or text that is given, cut by SentencePiece; tests have ranges of
    lengths.
    """

    data_stages = "data", "subwords", "binarise"
    analyses = ("bits",)

    def __init__(self, recipe: Experiment):
        super().__init__(recipe)
        longest = self.config.number("longest")
        # up to the trained length, then up to 1.5, 2 and 3 times that
        self.edges = [longest, longest * 3 // 2, longest * 2, longest * 3]
        # SHAPE's K lets training reach the positions of the longest tests
        # as many positions as the longest tests have, with the end of the sentence
        self.config.set_defaults({"reach": str(2 * longest), "positions": str(3 * longest + 1)})
        self.score = ["--bins", ",".join(map(str, self.edges[:3])), "--length-unit", "subwords"]
        data_dir = self.config["data-dir"]
        self.raw = data_dir or recipe.path("raw")
        files = [existing(f"{self.raw}/{split}.{language}")
                 for split in SPLITS for language in self.languages]  # fmt: skip
        for file in files if data_dir and not recipe.is_plan else []:
            if not os.path.exists(file) and recipe.first <= 2:
                raise UsageError(f"{file} is missing (--data-dir)")
        self.fingerprint = self.config.interpolate(
            ["--longest", "{longest}", "--pieces", "{pieces}", "--test", "{test}", "--text"]
        )
        self.fingerprint.append(
            recipe.known_sum("--text", files) if data_dir else self.config["url"]
        )
        self.prepare = ["posenc", "prepare", "translation", "--source-lang", self.source,
                        "--target-lang", self.target, "--workers", str(cores())]  # fmt: skip

    def data(self) -> None:
        """See :meth:`RecipeText.data`."""
        self.recipe.data_stage("data", self.get)
        self.recipe.data_stage("subwords", self.learn, self.recipe.path("subwords"))
        self.recipe.data_stage("binarise", self.cut, self.bin)

    def analyse(self) -> None:
        """See :meth:`RecipeText.analyse`."""
        self.recipe.run_stage("bits", self.bits)

    def get(self) -> None:
        """Download the translations at a pinned commit, as text."""
        recipe, raw = self.recipe, self.raw
        if self.config["data-dir"]:
            return
        if not recipe.is_plan:
            make_folder(raw)
        url = self.config["url"]
        recipe.say(f"download {url}")
        archive = f"{raw}/docs.tar.gz"
        download = ["posenc", "prepare", "download", "--output", archive, "--unpack", raw, url]
        recipe.execute(
            download, failure="cannot download it; with text that is ready, give --data-dir"
        )
        commit = url.rpartition("/")[2].partition(".")[0]
        unpacked = sorted(os.listdir(raw)) if os.path.isdir(raw) else []
        names = [name for name in unpacked if name.startswith("python-docs-es-")]
        folder = f"{raw}/{(names or [f'python-docs-es-{commit}'])[0]}"
        recipe.execute(["python", "-m", "recipes.lib.po_text", folder, "--output", raw,
                        "--language", self.target])  # fmt: skip

    def learn(self) -> None:
        """Learn subwords of all of the training text, long paragraphs too: their words are no
        others.
        """
        self.recipe.execute(
            [*self.prepare, "--train", f"{self.raw}/train", "--valid", f"{self.raw}/valid",
             "--sentencepiece", self.config["pieces"], "--output", self.recipe.path("subwords")]
        )  # fmt: skip

    def cut(self) -> None:
        """Make binary data: training and validation have no long pairs, each range of the test as
        many.
        """
        subwords, longest = self.recipe.path("subwords"), self.edges[0]
        pick = ["python", "-m", "recipes.lib.pick_pairs", "--subwords", subwords,
                "--languages", ",".join(self.languages)]  # fmt: skip
        starts = [5, *(edge + 1 for edge in self.edges)]
        ranges = ",".join(f"{start}-{edge}" for start, edge in zip(starts, self.edges))
        self.recipe.execute([*pick, "--input", f"{self.raw}/valid", "--ranges", f"1-{longest}",
                             "--output", self.path("valid")])  # fmt: skip
        self.recipe.execute([*pick, "--input", f"{self.raw}/test", "--ranges", ranges,
                             "--each", self.config["test"], "--output",
                             self.path("test")])  # fmt: skip
        self.recipe.execute(
            [*self.prepare, "--train", f"{self.raw}/train", "--valid", self.path("valid"),
             "--test", self.path("test"), "--subwords", subwords, "--max-length", str(longest),
             "--output", self.bin]
        )  # fmt: skip

    def bits(self) -> None:
        """Bits per token of the references, by range, and what they say of the expectations."""
        recipe = self.recipe
        bits_by_range(recipe, self.bin, recipe.cells(), recipe.script.arrays["expect"])

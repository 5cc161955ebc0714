"""Text that `posenc prepare translation` makes binary: the user's own, and Python's
documentation.
"""

import os
import re
from typing import List, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import existing
from recipes.lib.cell import PlannedCell
from recipes.lib.config import ParsedArguments, RecipeScript
from recipes.lib.figures import bits_by_range
from recipes.lib.rows import PlannedRow
from recipes.lib.settings import make_folder, read_lines
from recipes.lib.translation import SPLITS, Translation
from recipes.lib.value_checks import no_repeats

ALL_LENGTHS = "-all"  # ends the labels of rows that are trained on long pairs, too


class Own(Translation):
    """The user's own text, which `posenc prepare translation` makes binary in one stage."""

    data_stages = ("data",)
    job_per_gpu = True

    def __init__(self, script: RecipeScript, parsed: ParsedArguments):
        super().__init__(script, parsed)
        self.require("source-lang", "target-lang", *SPLITS)
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
        self.preparation = self.config.interpolate(script.arrays["prepare"])
        if longest:
            self.preparation.append("--clean-valid")
        files = [existing(f"{prefix}.{language}")
                 for prefix in self.prefixes.values() for language in self.languages]  # fmt: skip
        self.fingerprint = [
            "--source-lang", self.source, "--target-lang", self.target, *self.preparation,
            *self.score, "--text", self.known_sum("--text", files),
        ]  # fmt: skip
        # whether each row is trained a second time, on pairs of all lengths
        self.is_twofold, self.bin_of_all = bool(match[2]), self.path("bin-all")
        self.labels_of_all: List[str] = []

    def choose_rows(self) -> List[PlannedRow]:
        """See :meth:`Translation.choose_rows`."""
        rows = super().choose_rows()
        if self.is_twofold:
            of_all = [PlannedRow(f"{row.label}{ALL_LENGTHS}", row.options) for row in rows]
            self.labels_of_all = [row.label for row in of_all]
            rows += of_all
            no_repeats("--encodings", [row.label for row in rows])
        return rows

    def bin_of(self, cell: PlannedCell) -> str:
        """See :meth:`Translation.bin_of`."""
        return self.bin_of_all if cell.row in self.labels_of_all else self.bin

    def notes(self, cell: PlannedCell) -> List[str]:
        """Return that the trained lengths are others than those of the rows beside."""
        return ["--note", "longest=none"] if cell.row in self.labels_of_all else []

    def cell_fingerprint(self, cell: PlannedCell) -> List[str]:
        """See :meth:`Experiment.cell_fingerprint`; of all lengths, all words but the limit."""
        if cell.row not in self.labels_of_all:
            return self.fingerprint
        at = self.fingerprint.index("--max-length")
        unlimited = [*self.fingerprint[:at], *self.fingerprint[at + 2 :]]
        return [*unlimited, "--all-lengths-beside", self.config["longest"]]

    def data(self) -> None:
        """See :meth:`Experiment.data`."""
        # it continues what was cut, and refuses a folder of other texts; test pairs are never left
        # out
        makes = f"{self.bin_of_all}/dict.{self.target}.txt" if self.is_twofold else self.bin
        self.data_stage("data", self.get, makes)

    def get(self) -> None:
        """Make binary data, and with ``--longest N,none`` that of all lengths by its subwords."""
        self._prepare(self.preparation, self.bin)
        if self.is_twofold:
            self._check_limit()
            self._prepare(["--subwords", self.bin], self.bin_of_all)

    def _check_limit(self) -> None:
        """Raise a UsageError where every pair is within the limit: all would be trained twice."""
        longest = self.config["longest"]
        lines = [] if self.is_plan else read_lines(self.path("prepare.log"))
        counts = [line for line in lines if re.match(r"train: [\d,]+ .*pairs", line)]
        if counts and not any("longer than --max-length" in line for line in counts):
            raise UsageError(
                f"no training pair is longer than {longest} subwords, so that both trainings of "
                f"--longest {longest},none would be the same: give a smaller number, or no "
                "--longest, in another --run-dir"
            )

    def _prepare(self, options: Sequence[str], output: str) -> None:
        log = self.path("prepare.log")
        texts = [word for split in SPLITS for word in (f"--{split}", self.prefixes[split])]
        if not self.is_plan:
            self.say(f"progress: {log}")
        command = [*self.prepare, *texts, *options, "--output", output]
        self.execute(command, log=log, appends=True)
        if not self.is_plan:
            self.say((read_lines(log) or [""])[-1])

    def remarks(self) -> List[str]:
        """Return which training pairs were left out and why, as the log of the data has it."""
        longest = self.config["longest"]
        # the first is of the limited text, which is made first
        for line in read_lines(self.path("prepare.log")):
            counts = re.search(r"train: [\d,]+ of ([\d,]+) pairs kept; (.*) left out: (.*)", line)
            if not counts:
                continue
            text = f"{counts[2]} of {counts[1]} training pairs were left out: {counts[3]}"
            if self.is_twofold:
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


class PythonDocs(Translation):
    """Python's documentation, or text that is given, cut by SentencePiece; tests have ranges of
    lengths.
    """

    subword_model = "subwords"
    analyses = ("bits",)

    def __init__(self, script: RecipeScript, parsed: ParsedArguments):
        super().__init__(script, parsed)
        longest = self.config.number("longest")
        # up to the trained length, then up to 1.5, 2 and 3 times that
        self.edges = [longest, longest * 3 // 2, longest * 2, longest * 3]
        # SHAPE's K lets training reach the positions of the longest tests
        # as many positions as the longest tests have, with the end of the sentence
        self.config.set_defaults({"reach": str(2 * longest), "positions": str(3 * longest + 1)})
        self.score = ["--bins", ",".join(map(str, self.edges[:3])), "--length-unit", "subwords"]
        data_dir = self.config["data-dir"]
        self.raw = data_dir or self.path("raw")
        files = [existing(f"{self.raw}/{split}.{language}")
                 for split in SPLITS for language in self.languages]  # fmt: skip
        self.fingerprint = self.config.interpolate(
            ["--longest", "{longest}", "--pieces", "{pieces}", "--test", "{test}", "--text"]
        )
        self.fingerprint.append(self.known_sum("--text", files) if data_dir else self.config["url"])

    def tables(self) -> None:
        """See :meth:`Experiment.tables`; and bits per token of the references, by range."""
        super().tables()
        expect = self.script.arrays["expect"]
        self.run_stage("bits", lambda: bits_by_range(self, self.bin, self.cells(), expect))

    def get(self) -> None:
        """Download the translations at a pinned commit, as text."""
        raw = self.raw
        if self.config["data-dir"]:
            return
        if not self.is_plan:
            make_folder(raw)
        url = self.config["url"]
        self.say(f"download {url}")
        self.fetch(f"{raw}/docs.tar.gz", url, unpack=raw,
                   advice="with text that is ready, give --data-dir")  # fmt: skip
        commit = url.rpartition("/")[2].partition(".")[0]
        unpacked = sorted(os.listdir(raw)) if os.path.isdir(raw) else []
        names = [name for name in unpacked if name.startswith("python-docs-es-")]
        folder = f"{raw}/{(names or [f'python-docs-es-{commit}'])[0]}"
        self.execute(["python", "-m", "recipes.lib.po_text", folder, "--output", raw,
                      "--language", self.target])  # fmt: skip

    def learn_subwords(self) -> None:
        """Learn subwords of all of the training text, long paragraphs too: their words are no
        others.
        """
        self.execute(
            [*self.prepare, "--train", f"{self.raw}/train", "--valid", f"{self.raw}/valid",
             "--sentencepiece", self.config["pieces"], "--output", self.path("subwords")]
        )  # fmt: skip

    def cut(self) -> None:
        """Make binary data: training and validation have no long pairs, each range of the test as
        many.
        """
        subwords, longest = self.path("subwords"), self.edges[:1]
        self.pick(subwords, f"{self.raw}/valid", 1, longest, "valid")
        self.pick(subwords, f"{self.raw}/test", 5, self.edges, "test", self.config["test"])
        self.cut_picked(subwords, f"{self.raw}/train", longest[0])

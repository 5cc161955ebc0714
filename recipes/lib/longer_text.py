"""Paragraphs for a model that was trained on sentences: neighbouring lines of a text joined."""

import os
from typing import Dict, List

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import existing
from fairseq_posenc.json_files import load_json
from recipes.lib.cell import PlannedCell, Step, placement
from recipes.lib.config import FLAG, ParsedArguments, RecipeScript
from recipes.lib.figures import bits_by_range
from recipes.lib.settings import checksum, read_lines
from recipes.lib.translation import SPLITS, Translation

UNTOUCHED = "before"  # the row of the model as it was given, without fine-tuning
# types of models of many languages in transformers, and fairseq's name for how they write languages
_STYLES = {"m2m_100": "multilingual", "mbart": "mbart"}


class LongerText(Translation):
    """A model that is there, and text in the order of its documents, of which lines are joined."""

    data_stages = "model", "paragraphs", "binarise"
    analyses = "bits per token", "CTranslate2"
    job_per_gpu = True

    def __init__(self, script: RecipeScript, parsed: ParsedArguments):
        super().__init__(script, parsed)
        config, self.is_smoke = self.config, self.config["smoke"] == FLAG
        model_folder, self.imported = self.path("model"), config["from"]
        self.is_made = self.is_smoke or bool(self.imported)
        config.exclude("from", "model", "subwords", "smoke")
        config.exclude("smoke", "model", "subwords", *SPLITS)
        if self.imported:
            self._read_kind(model_folder)
            config.set({"model": f"{model_folder}/model.pt", "subwords": model_folder})
        if self.is_smoke:
            config.set(
                {"model": f"{model_folder}/checkpoint_last.pt", "subwords": f"{model_folder}/bin",
                 **{split: f"{model_folder}/{split}" for split in SPLITS}}
            )  # fmt: skip
        self.require("source-lang", "target-lang", *SPLITS, "model", "subwords")
        self.source, self.target = config["source-lang"], config["target-lang"]
        self.edges = [int(edge) for edge in config.list("edges")]
        inner = ",".join(map(str, self.edges[:-1]))
        self.score = ["--bins", inner, "--length-unit", "subwords"]
        texts = [existing(f"{config[split]}.{language}")
                 for split in SPLITS for language in self.languages]  # fmt: skip
        self.fingerprint = config.interpolate(
            ["--neighbours", "{neighbours}", "--edges", "{edges}", "--test", "{pairs}"]
        )
        if not self.is_smoke:
            self.fingerprint += ["--text", self.known_sum("--text", texts)]
        if not self.is_made:
            names = "sentencepiece.model", "wordpiece.json"
            paths = [f"{config['subwords']}/{name}" for name in names]
            subword_models = [path for path in paths if os.path.exists(path)] or paths[:1]
            self.fingerprint += ["--subwords", self.known_sum("--subwords", subword_models)]
        if self.imported:
            files = [entry.path for entry in os.scandir(self.imported) if entry.is_file()]
            self.fingerprint += ["--from", self.known_sum("--from", sorted(files))]
        self._sums: Dict[str, str] = {}

    def data(self) -> None:
        """See :meth:`Experiment.data`."""
        self.data_stage("model", self.make_model)
        self.data_stage("paragraphs", self.join, self.path("text"))
        self.data_stage("binarise", self.cut, self.bin)

    def tables(self) -> None:
        """See :meth:`Experiment.tables`; and bits per token, and models for CTranslate2."""
        super().tables()
        self.run_stage("bits per token", self.bits)
        self.run_stage("CTranslate2", self.export)

    def _read_kind(self, model_folder: str) -> None:
        """Take the task of the model of many languages that --from names."""
        config_file = os.path.join(self.imported, "config.json")
        model_type = load_json(config_file, {"model_type": str}, "transformers")["model_type"]
        if model_type not in _STYLES:
            raise UsageError(
                f"{config_file} is of type {model_type:.40}; --from takes {' and '.join(_STYLES)} "
                "(NLLB-200, M2M-100, mBART-50); for others see posenc import, and give --model"
            )
        if model_type == "mbart" and not self.config["encodings"]:  # its own are learned
            self.config.set({"encodings": "before=learned,learned,rotary"})
        source, target = self.languages
        self.pair = ["--source-lang", source, "--target-lang", target]
        self.task = ["--task", "posenc_multilingual",
                     *placement("--lang-dict", f"{model_folder}/langs.txt"),
                     "--lang-pairs", f"{source}-{target}", "--encoder-langtok", "src",
                     "--decoder-langtok", "--lang-tok-style", _STYLES[model_type]]  # fmt: skip

    def model(self, seed: str) -> str:
        """The checkpoint that a seed begins with: each its own where a folder has several."""
        model = self.config["model"]
        return f"{model}/seed{seed}/checkpoint_last.pt" if os.path.isdir(model) else model

    def cell_fingerprint(self, cell: PlannedCell) -> List[str]:
        """What a cell is made from: the text, and the model of its seed."""
        model = self.model(cell.seed)
        if not (self.is_plan or self.is_made) and model not in self._sums:
            self._sums[model] = checksum([model])
        return [*self.fingerprint, "--model", self._sums.get(model, "")]

    def notes(self, cell: PlannedCell) -> List[str]:
        """Return that all seeds of the model as it was given are one model."""
        is_one = cell.row == UNTOUCHED and not os.path.isdir(self.config["model"])
        return ["--note", "one-model=yes"] if is_one else []

    def train_step(self, cell: PlannedCell, words: List[str]) -> Step:
        """Fine-tune; the first row's model stays as it is."""
        model = self.model(cell.seed)
        if cell.row == UNTOUCHED:
            copy = ["cp", *placement(model, cell.path("checkpoint_last.pt"))]
            return Step("train", copy, ("checkpoint_last.pt",))
        begin = ["python", "-m", "recipes.lib.train_from"]
        words = [*begin, *words, *placement("--finetune-from-model", model)]
        return Step("train", words, ("train.done",))

    def make_model(self) -> None:
        """Import a model; or, with --smoke, train a tiny one for 20 updates on generated text."""
        model_folder = self.path("model")
        if self.imported:
            self.execute(["posenc", "import", "--from", self.imported,
                            "--output", f"{model_folder}/model.pt", "--force"])  # fmt: skip
            languages = read_lines(f"{model_folder}/langs.txt")
            missing = [language for language in self.languages if language not in languages]
            if missing and not self.is_plan:
                raise UsageError(f"{self.imported} has no language {missing[0]}; it has "
                                 f"{' '.join(languages)}")  # fmt: skip
        if not self.is_smoke:
            return
        self.execute(["python", "-m", "recipes.corpus", "--output", model_folder,
                        "--train", "400", "--valid", "40", "--test", "60", "--quiet"])  # fmt: skip
        texts = [word for split in SPLITS for word in (f"--{split}", f"{model_folder}/{split}")]
        self.execute([*self.prepare, *texts, "--sentencepiece", "200",
                        "--output", f"{model_folder}/bin"])  # fmt: skip
        self.execute(
            ["fairseq-train", f"{model_folder}/bin", "--user-dir", "fairseq_posenc", *self.task,
             "--arch", "posenc_transformer_tiny", "--share-all-embeddings", "--cpu",
             "--optimizer", "adam", "--max-tokens", "500", "--max-update", "20",
             "--save-dir", model_folder, "--log-format", "simple"], log=f"{model_folder}/train.log",
        )  # fmt: skip

    def join(self) -> None:
        """Join neighbouring lines; the test has as many pairs of each range of lengths, of lines as
        they are and of joined ones.
        """
        config = self.config
        joined = {"train": config["neighbours"], "valid": config["neighbours"],
                  "test": config["neighbours"], "lines": "1"}  # fmt: skip
        for name, neighbours in joined.items():
            text = config["test" if name == "lines" else name]
            self.execute(
                ["posenc", "prepare", "pairs", "setting", "interpolate", "--input", text,
                 "--output", self.text(f"{name}.joined"), "--languages", ",".join(self.languages),
                 "--neighbours", neighbours, "--separator", "", "--keep-rest"]
            )  # fmt: skip
        # of one line each, the joined ones are the same pairs again
        names = ("lines", "test") if config.number("neighbours") > 1 else ("lines",)
        for language in self.languages:
            texts = [self.text(f"{name}.joined.{language}") for name in names]
            self.execute(["cat"], inputs=texts, output=self.text(f"all.{language}"))
        subwords, shortest = config["subwords"], config.number("shortest")
        self.pick(subwords, self.text("all"), shortest, self.edges, "test", config["pairs"])
        self.pick(subwords, self.text("valid.joined"), 1, self.edges[-1:], "valid")

    def cut(self) -> None:
        """Make binary data by the model's own subwords and dictionary."""
        self.cut_picked(self.config["subwords"], self.text("train.joined"), self.edges[-1])

    def bits(self) -> None:
        """Bits per token of the references by range: less the given model's, then of the fine-tuned
        models less the first of them.
        """
        arrays, cells = self.script.arrays, self.cells()
        bits_by_range(self, self.bin, cells, arrays["expect"])
        tuned = [cell for cell in cells if cell.row != UNTOUCHED]
        bits_by_range(self, self.bin, tuned, arrays["expect_tuned"], "bits_tuned")

    def export(self) -> None:
        """Write the first seed of each row for CTranslate2, where that has the encoding."""
        first = self.config.list("seeds")[0]
        for cell in [cell for cell in self.cells() if cell.seed == first]:
            output = f"{cell.row_folder}/ctranslate2"
            checkpoint = cell.path("checkpoint_last.pt")
            if not self.is_plan and _is_newer(f"{output}/model.bin", checkpoint):
                continue
            # an imported model's dictionary is of all languages
            data = self.config["subwords"] if self.imported else self.bin
            try:
                self.execute(
                    ["posenc", "export", "--path", checkpoint, "--data", data, "--to",
                     "ctranslate2", "--output", output, "--force"]
                )  # fmt: skip
            except UsageError:
                self.say(f"note: {cell.row} is not there for CTranslate2, see above")


def _is_newer(file: str, source: str) -> bool:
    """Return whether a file has been made of its source, as that is now."""
    return os.path.exists(file) and os.path.getmtime(file) >= os.path.getmtime(source)

"""The recipe of anchors: published models through our text, fine-tuning and scoring."""

import glob
import json
import os
import shutil
import statistics
from typing import Callable, List, Sequence

from fairseq_posenc.errors import UsageError
from recipes.lib.config import FLAG, ParsedArguments, RecipeScript, pairs, read_options
from recipes.lib.experiment import Experiment, help_text
from recipes.lib.settings import make_folder

LANGUAGES = "en", "de"
_ADVICE = "fetch it by hand, see --data-dir"


def main(script: RecipeScript, arguments: List[str]) -> None:
    """Run the anchor that the first argument names."""
    name = "wmt14"
    if arguments[:1] in (["wmt14"], ["bert"]):
        name, *arguments = arguments
    parsed = read_options(script, help_text("anchors"), arguments)
    config = parsed.config.with_overrides(pairs(script.arrays[name]))
    anchor = {"wmt14": TranslationAnchor, "bert": BertAnchor}[name]
    anchor(script, parsed._replace(config=config), name).run()


class Anchor(Experiment):
    """A published model, or with --smoke a tiny one in its place.

    Attributes:
        run_dir: of its results.
        raw: of downloads.
    """

    cell_stages = ()
    plan_includes_setup = True
    job_per_gpu = True
    made_once: Sequence[str] = ()  # titles of stages that do not look after their own parts

    def __init__(self, script: RecipeScript, parsed: ParsedArguments, name: str):
        super().__init__(script, parsed)
        self.raw = self.config["data-dir"] or self.path("raw")
        self.run_dir = self.path(name)
        self.is_smoke = self.config["smoke"] == FLAG

    def data_fingerprint(self) -> List[str]:
        """Whether it is of a stand-in."""
        return ["--smoke", "yes" if self.is_smoke else "no"]

    def actions(self) -> List[Callable[[], None]]:
        """What makes the stand-in, and then the action of each stage behind set-up."""
        raise NotImplementedError

    def run_stages(self) -> None:
        """Make the stand-in if it is to be, and run the stages."""
        stand_in, *actions = self.actions()
        if self.is_smoke and not self.is_plan:
            self.stage(2, "stand-ins", stand_in, self.path("stand_in.done"))
        for title, action in zip(self.stages[1:], actions):
            done_file = self.path(f"{title}.done") if title in self.made_once else ""
            self.run_stage(title, action, done_file)


class TranslationAnchor(Anchor):
    """fairseq's transformer.wmt16.en-de on newstest2014."""

    stages = "set-up", "download", "text", "translate", "compare"
    made_once = "download", "text", "translate"

    def actions(self) -> List[Callable[[], None]]:
        """See :meth:`Anchor.actions`."""
        return [self.stand_in, self.download, self.prepare, self.translate, self.compare]

    @property
    def archive(self) -> str:
        """The name of the model's archive."""
        return self.config["model"].rpartition("/")[2]

    @property
    def model(self) -> str:
        """The checkpoint in it."""
        paths = glob.glob(f"{glob.escape(self.path('model'))}/**/model.pt", recursive=True)
        name = self.archive.partition(".tar")[0]
        return paths[0] if paths else self.path("model", name, "model.pt")

    def stand_in(self) -> None:
        """An archive of a tiny model of stock fairseq."""
        folder = self.path("made")
        name = self.archive.partition(".tar")[0]
        model = f"{folder}/{name}"
        self.execute(["bash", "recipes/quickstart.sh", "--stage", "2", "--run-dir",
                      f"{folder}/run", "--device", "cpu", "--train", "400", "--test", "10",
                      "--updates", "60", "--encodings", "sinusoidal",
                      "--stop-stage", "5"])  # fmt: skip
        make_folder(model)
        make_folder(self.raw)
        for path in glob.glob(f"{glob.escape(folder)}/run/bin/dict.*.txt"):
            shutil.copy(path, model)
        shutil.copy(f"{folder}/run/bpe.codes", f"{model}/bpecodes")
        checkpoint = f"{folder}/run/sinusoidal/seed1/checkpoint_last.pt"
        self.execute(["posenc", "export", "--path", checkpoint, "--to", "fairseq",
                      "--output", f"{model}/model.pt", "--force"])  # fmt: skip
        self.execute(["python", "-m", "tarfile", "-c", f"{self.raw}/{self.archive}", model])
        shutil.copy("recipes/smoke/wmt/wmt14.test-full.tgz", self.raw)

    def download(self) -> None:
        """Get the model and the test set."""
        self.fetch(f"{self.raw}/{self.archive}", self.config["model"], unpack=self.path("model"),
                   advice=_ADVICE)  # fmt: skip
        files = ["posenc", "prepare", "pairs", "files", "newstest2014_en_de"]
        if self.is_plan:
            named = " ".join(files)
            self.say(f"and the file that this names, with its SHA-256, into {self.raw}: {named}")
            return
        for line in self.read(files).splitlines():
            url, checksum, name, *_ = line.split("\t")
            # the small one of recipes/smoke has another
            checksum = "" if self.is_smoke else checksum
            self.fetch(f"{self.raw}/{name}", url, checksum=checksum, advice=_ADVICE)

    def prepare(self) -> None:
        """The test set in the model's subwords, as binary data."""
        text, model = self.path("text"), os.path.dirname(self.model)
        pairs_ = ["posenc", "prepare", "pairs"]
        self.execute([*pairs_, "text", "newstest2014_en_de", "--raw", self.raw, "--output", text])
        for side in LANGUAGES:
            self.execute([*pairs_, "bpe-apply", "--codes", f"{model}/bpecodes",
                          "--input", f"{text}/newstest2014.tok.{side}",
                          "--output", f"{text}/newstest2014.bpe.{side}"])  # fmt: skip
        self.execute(["posenc", "prepare", "binarise", "--source-lang", "en", "--target-lang", "de",
                      "--srcdict", f"{model}/dict.en.txt", "--tgtdict", f"{model}/dict.de.txt",
                      "--testpref", f"{text}/newstest2014.bpe", "--destdir", self.path("bin")],
                     log=self.path("binarise.log"))  # fmt: skip

    def translate(self) -> None:
        """Translate."""
        self.execute(["fairseq-generate", self.path("bin"), "--user-dir", "fairseq_posenc",
                      "--path", self.model, *self.script.arrays["generate"], *self.devices.options],
                     output=self.path("generate.out"), log=self.path("generate.log"))  # fmt: skip

    def compare(self) -> None:
        """BLEU."""
        score = self.path("score.json")
        self.execute(["posenc", "score", "--generated", self.path("generate.out"),
                      "--reference", self.path("text/newstest2014.raw.de"), "--language", "de",
                      "--source-language", "en", "--output", score],
                      output=self.path("score.txt"))  # fmt: skip
        if not self.is_plan:
            bleu = _figure([score], "all", "sacrebleu")
            self.say(f"newstest2014: sacreBLEU {bleu}; fairseq's page has {self.config['known']}")


class BertAnchor(Anchor):
    """bert-base-uncased on three tasks of GLUE."""

    stages = "set-up", "download", "import", "fine-tune", "compare"
    made_once = "download", "import"

    def actions(self) -> List[Callable[[], None]]:
        """See :meth:`Anchor.actions`."""
        return [self.stand_in, self.download, self.convert, self.fine_tune, self.compare]

    @property
    def row(self) -> str:
        """The row of the model."""
        return " ".join(self.script.arrays["row"])

    def stand_in(self) -> None:
        """A folder of transformers, of a tiny model of ours."""
        folder = self.path("made")
        self.execute(["python", "-m", "tarfile", "-e", "recipes/smoke/benchmarks.tar.xz", folder])
        self.execute(["bash", "recipes/rel_scalar/pretrain_english.sh", "--stage", "2",
                      "--run-dir", f"{folder}/pretrain", "--device", "cpu",
                      "--text", f"{folder}/text/train.txt",
                      "--valid", f"{folder}/text/valid.txt", "--vocabulary", "1000",
                      "--arch", "posenc_bert_tiny", "--length", "64", "--updates", "50", "--batch",
                      "16",
                      "--encodings", f"bert={self.row}"])  # fmt: skip
        self.execute(["posenc", "export", "--path",
                      f"{folder}/pretrain/bert/seed1/checkpoint_last.pt",
                      "--data", f"{folder}/pretrain/bin", "--to", "huggingface",
                      "--output", f"{self.raw}/bert", "--force"])  # fmt: skip

    def download(self) -> None:
        """Get the model."""
        names = "config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors"
        for name in names if self.is_plan or not self.is_smoke else ():
            url = f"{self.config['hub']}/{name}"
            self.fetch(f"{self.raw}/bert/{name}", url, advice=_ADVICE)

    def convert(self) -> None:
        """Make it a model of ours."""
        self.execute(["posenc", "import", "--from", f"{self.raw}/bert",
                      "--output", self.path("import/model.pt"), "--force"])  # fmt: skip

    def fine_tune(self) -> None:
        """Fine-tune it by GLUE's recipe."""
        options = self.script.arrays["glue"]
        if self.is_smoke:
            options = [*self.script.arrays["glue_smoke"], "--raw-dir", self.path("made/glue")]
        self.execute(["bash", "recipes/glue/run.sh", "--stage", "2", "--run-dir", self.path("glue"),
                      "--text", self.path("import"), "--seeds", self.config["seeds"],
                      "--encodings", f"bert={self.row} --layer-norm-eps 1e-12",
                      "--pretrained", f"bert={self.path('import/model.pt')}",
                      "--device", self.devices.type, "--jobs", str(self.devices.jobs),
                      "--stop-stage", "4", *options])  # fmt: skip

    def compare(self) -> None:
        """Accuracy on the development sets, the median over seeds."""
        published, seeds = self.script.arrays["known"], self.config.list("seeds")
        for task, published_accuracy in zip(published[::2], published[1::2]):
            rates = f"{glob.escape(self.path('glue/bert', task))}/lr*"
            files = [file for seed in seeds for file in glob.glob(f"{rates}/seed{seed}/score.json")]
            if files:
                accuracy = _figure(files, "scores", "valid", "accuracy")
                self.say(
                    f"{task}, median of seeds {', '.join(seeds)}: accuracy {accuracy}; "
                    f"Devlin et al. 2019 have {published_accuracy}"
                )


def _figure(files: Sequence[str], *keys: str) -> float:
    """The figure of JSON files, their median."""
    figures = []
    for file in files:
        with open(file, encoding="utf-8") as stream:
            content = json.load(stream)
        for key in keys:
            if key not in content:
                raise UsageError(f"{file} has no {key}")
            content = content[key]
        figures.append(content)
    return round(statistics.median(figures), 2)

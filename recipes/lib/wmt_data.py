"""The data of the WMT recipes.

Text of a corpus is in RUN_DIR/text/<corpus>: {train,valid,<test>}.{raw,tok,bpe}.<language>; what a
setting makes of it in RUN_DIR/data/<setting>; binary data in RUN_DIR/bin/<setting>.
"""

import glob
import os
import shutil
from typing import Callable, List, Sequence, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.translation.corpora import named
from recipes.lib.cell import shell
from recipes.lib.config import FLAG, Config
from recipes.lib.devices import cores
from recipes.lib.paper_numbers import compare_with_paper
from recipes.lib.recipe import Recipe
from recipes.lib.settings import (
    check_disk,
    checksum,
    make_folder,
    read_lines,
    record_fingerprint,
    write,
)


class CorpusSetting:
    """A corpus, a form of it, and a way of training.

    Attributes:
        name: of the setting.
        config: its options.
        corpus, form, source, target: of its text.
        text, data, bin: folders: of the corpus, of what the form makes of it, of binary data.
    """

    def __init__(self, name: str, config: Config, run_dir: str):
        self.name, self.config = name, config
        self.corpus, self.form = config["corpus"], config["form"] or "vanilla"
        _, self.source, self.target = self.corpus.split("_")
        self.text = f"{run_dir}/text/{self.corpus}"
        self.data = self.text if self.form == "vanilla" else f"{run_dir}/data/{name}"
        self.bin = f"{run_dir}/bin/{name}"

    @property
    def all_tests(self) -> List[str]:
        """The test sets of the corpus; with text that is ready those that are there."""
        return read_lines(f"{self.text}/tests") or list(named(self.corpus).tests)

    @property
    def tests(self) -> List[str]:
        """What is scored; the validation set if it is to be, too."""
        chosen = self.config.list("tests")
        return self.all_tests if chosen == ["all"] else chosen

    @property
    def pooled(self) -> List[str]:
        """Test sets that together are test1, for analyses."""
        return self.config.list("pooled")

    def reference(self, test: str, is_plan: bool) -> str:
        """Raw text, or nothing where a set was held out from training text, as a plan cannot
        see.
        """
        file = f"{self.data}/{test}.raw.{self.target}"
        return file if os.path.exists(file) or (is_plan and test != "valid") else ""


class Corpora:
    """The text of all settings of a recipe."""

    def __init__(self, recipe: Recipe, settings: Sequence[CorpusSetting]):
        self.recipe, self.config, self.settings = recipe, recipe.config, settings
        self.names = sorted({setting.corpus for setting in settings})
        self.raw = self.config["raw-dir"] or self.config["data-dir"] or recipe.path("raw")
        self.workers = self.config["workers"] or str(cores())
        self.is_smoke = self.config["smoke"] == FLAG
        self._fingerprint: List[str] = []

    def fingerprint(self) -> List[str]:
        """What the text is made from, beside the archives, and how."""
        if self.recipe.is_plan or self._fingerprint:
            return self._fingerprint
        fingerprint = ["--bpe", self.config["bpe"] or "default"]
        if self.config["dictionary"]:
            fingerprint += ["--dictionary", self.config["dictionary"]]
        ready, moses, prefixes = (self.config[name] for name in ("ready", "moses", "add"))
        if ready:
            fingerprint += ["--ready", self.recipe.known_sum("--ready", [ready])]
        if moses:
            if not shutil.which("perl"):
                raise UsageError("--moses needs perl, which is not installed")
            scripts = sorted(glob.glob(f"{glob.escape(moses)}/scripts/tokenizer/*.perl"))
            scripts = scripts or [f"{moses}/scripts/tokenizer/tokenizer.perl"]
            prefix_files = f"{moses}/scripts/share/nonbreaking_prefixes"
            fingerprint += ["--moses", checksum([*scripts, prefix_files])]
        for prefix in prefixes.split("\n") if prefixes else []:
            files = sorted(glob.glob(f"{glob.escape(prefix)}.*")) or [f"{prefix}.*"]
            fingerprint += ["--add", checksum(files)]
        self._fingerprint = fingerprint
        return fingerprint

    def each(self, done_file: str, action: Callable[[str, str], object]) -> None:
        """Do something with each corpus that is not done of the same text, says its done file."""
        for name in self.names:
            folder = self.recipe.path("text", name)
            current = [*self.fingerprint(), *read_lines(f"{folder}/settings")]
            if read_lines(f"{folder}/{done_file}") != current:
                action(name, folder)
                write(f"{folder}/{done_file}", "".join(f"{line}\n" for line in current))

    def files(self, corpus: str) -> List[Tuple[str, str, str, str]]:
        """Address, checksum, name and size of what is to be downloaded; - where it is not known."""
        command = ["posenc", "prepare", "pairs", "files", corpus]
        if self.config["ready"]:
            command += ["--tests-only"]
        lines = self.recipe.read(command).splitlines()
        return [tuple(line.split("\t")) for line in lines]  # type: ignore[misc]

    def download(self) -> None:
        """Get the archives of all corpora, and know the text by what they hold."""
        files = {corpus: self.files(corpus) for corpus in self.names}
        sizes = {}
        for _, _, name, size in {file for several in files.values() for file in several}:
            path = f"{self.raw}/{name}"
            on_disk = os.path.getsize(path) if os.path.exists(path) else 0
            sizes[name] = on_disk or int(size.replace("-", "0"))
        check_disk(self.recipe.run_dir, sum(sizes.values()))
        for corpus, several in files.items():
            for url, digest, name, size in several:
                self._fetch(url, digest, name, size)
            archives = [f"{self.raw}/{file[2]}" for file in several]
            record_fingerprint(
                self.recipe.path("text", corpus, "settings"), ["--archives", checksum(archives)]
            )

    def _fetch(self, url: str, digest: str, name: str, size: str) -> None:
        path = f"{self.raw}/{name}"
        if os.path.exists(path):
            on_disk = str(os.path.getsize(path))
            if size not in ("-", on_disk) and not self.is_smoke:
                self.recipe.say(f"note: {path} has {on_disk} bytes, not the {size} of {url}")
            return
        if self.config["raw-dir"]:
            raise UsageError(f"{path} is missing: it is {url}")
        mirrors = self.config.list("url")
        urls = [f"{mirror}/{url.split('/', 3)[3]}" for mirror in mirrors] or [url]
        self.recipe.say(f"download {' '.join(urls)}")
        is_known = digest != "-" and not self.is_smoke
        self.recipe.fetch(path, *urls, checksum=digest if is_known else "")

    def prepare_command(self, corpus: str) -> List[str]:
        """What makes the tokenised text of a corpus."""
        output = ["--output", self.recipe.path("text", corpus), "--workers", self.workers]
        if self.config["ready"]:
            ready = ["posenc", "prepare", "pairs", "ready", corpus, "--input", self.config["ready"]]
            return [*ready, "--raw", self.raw, *output]
        command = ["posenc", "prepare", "pairs", "text", corpus, "--raw", self.raw, *output]
        if self.config["moses"]:
            command += ["--moses", self.config["moses"]]
        added = self.config["add"]
        return [*command, *(word for text in added.split("\n") if text for word in ("--add", text))]

    def learn_command(self, corpus: str) -> List[str]:
        """What learns its joint BPE."""
        text, definition = self.recipe.path("text", corpus), named(corpus)
        tokens = [
            f"{text}/train.tok.{language}" for language in (definition.source, definition.target)
        ]
        return ["posenc", "prepare", "pairs", "bpe-learn", "--input", *tokens, "--operations",
                self.config["bpe"] or str(definition.operations), "--output", f"{text}/codes",
                "--workers", self.workers]  # fmt: skip

    def prepare_text(self, corpus: str, text: str) -> None:
        """Make the tokenised text of a corpus."""
        self.recipe.execute(self.prepare_command(corpus))

    def learn_subwords(self, corpus: str, text: str) -> None:
        """Learn joint BPE of the training text, and apply it to all.

        Training text, and a validation set held out from it, are cleaned in subwords; before that
        they are train.cut and valid.cut: of two languages, one alone cannot be cleaned a second
        time.
        """
        recipe, definition = self.recipe, named(corpus)
        languages = definition.source, definition.target
        cut, tokens = (f"{text}/train.{suffix}.{definition.source}" for suffix in ("bpe", "tok"))
        if self.config["ready"] and os.path.exists(cut) and not os.path.exists(tokens):
            recipe.say("the text is cut into subwords already")
            return
        has_valid = os.path.exists(f"{text}/valid.raw.{definition.target}")
        cleaned = ["train"] if has_valid else ["train", "valid"]
        if not os.path.exists(f"{text}/codes"):
            recipe.say("learn the BPE operations")
            recipe.execute(self.learn_command(corpus))
        for language in languages:
            for file in sorted(glob.glob(f"{glob.escape(text)}/*.tok.{language}")):
                split = os.path.basename(file).rpartition(".tok.")[0]
                output = f"{text}/{split}.{'cut' if split in cleaned else 'bpe'}.{language}"
                if os.path.exists(output):
                    continue
                recipe.say(f"apply BPE to {os.path.basename(file)}")
                recipe.execute(
                    ["posenc", "prepare", "pairs", "bpe-apply", "--codes", f"{text}/codes",
                     "--input", file, "--output", output, "--workers", self.workers]
                )  # fmt: skip
        for split in cleaned:
            clean = ["posenc", "prepare", "pairs", "clean", corpus]
            files = ["--input", f"{text}/{split}.cut", "--output", f"{text}/{split}.bpe"]
            recipe.say(f"{split}: {recipe.read([*clean, *files])}")
        for split in cleaned:
            for language in languages:
                os.unlink(f"{text}/{split}.cut.{language}")

    def form_command(self, setting: CorpusSetting, split: str, suffix: str) -> List[str]:
        """What makes a setting's text of a split of the corpus."""
        return ["posenc", "prepare", "pairs", "setting", setting.form,
                "--input", f"{setting.text}/{split}.{suffix}", "--output",
                f"{setting.data}/{split}.{suffix}",
                "--languages", f"{setting.source},{setting.target}"]  # fmt: skip

    def reform(self, setting: CorpusSetting) -> None:
        """Make of the text what the setting wants."""
        text, data = setting.text, setting.data
        for split in ["train", "valid", *setting.all_tests]:
            counts = ""
            for suffix in "bpe", "raw":
                if not os.path.exists(f"{text}/{split}.{suffix}.{setting.target}"):
                    continue
                if setting.form == "extrapolate" and split != "train":
                    for language in setting.source, setting.target:
                        name = f"{split}.{suffix}.{language}"
                        _link(f"../../text/{setting.corpus}/{name}", f"{data}/{name}")
                    continue
                keep_rest = ["--keep-rest"] if split != "train" else []
                counts = self.recipe.read([*self.form_command(setting, split, suffix), *keep_rest])
            if counts:
                self.recipe.say(f"[{setting.name}] {split}: {counts}")

    def binarise_command(self, setting: CorpusSetting) -> List[str]:
        """What makes a setting's binary data."""
        data, size = setting.data, self.config["dictionary"]
        tests = f"{data}/tests" + (f",{data}/pooled" if setting.pooled else "")
        joined = [] if setting.config["dictionaries"] == "two" else ["--joined-dictionary"]
        return ["posenc", "prepare", "binarise", "--source-lang", setting.source,
                "--target-lang", setting.target, *joined, "--trainpref", f"{data}/train.bpe",
                "--validpref", f"{data}/valid.bpe", "--testpref", tests, "--destdir", setting.bin,
                "--workers", self.workers,
                *(["--nwordssrc", size, "--nwordstgt", size] if size else [])]  # fmt: skip

    def binarise_all(self) -> None:
        """Make the binary data of all settings; all test sets become one, and so do the pooled
        ones.
        """
        for setting in self.settings:
            text = read_lines(f"{setting.text}/settings")
            current = [*self.fingerprint(), *text, setting.form, *setting.pooled]
            done_file = f"{setting.bin}/binarise.done"
            if read_lines(done_file) == current:
                continue
            make_folder(setting.data)
            if setting.form != "vanilla":
                self.reform(setting)
            for language in setting.source, setting.target:
                _pool(setting, "tests", "bpe", setting.all_tests, language)
                if setting.pooled:
                    _pool(setting, "pooled", "bpe", setting.pooled, language)
                    _pool(setting, "tests.raw", "raw", setting.all_tests, language)
            shutil.rmtree(setting.bin, ignore_errors=True)
            self.recipe.say(f"[{setting.name}] binarise")
            self.recipe.execute(self.binarise_command(setting), log=f"{setting.bin}/preprocess.out")
            self.recipe.execute(["posenc", "prepare", "pairs", "bpe-keep", setting.corpus,
                                 "--output", setting.bin, "--codes",
                                 f"{setting.text}/codes"])  # fmt: skip
            if not self.is_smoke:
                compare_with_paper(self.recipe.say, setting)
            write(done_file, "".join(f"{line}\n" for line in current))

    def print_plan(self, say_batch: Callable[[CorpusSetting], object]) -> None:
        """The commands, but for those that go over single files (bpe-apply, clean)."""
        recipe = self.recipe
        for corpus in self.names:
            recipe.say(f"[{corpus}] download into {self.raw}:")
            if recipe.has_environment:
                for file in self.files(corpus):
                    print(*file, sep="\t")
            else:
                print(shell(["posenc", "prepare", "pairs", "files", corpus]))
            recipe.say(f"[{corpus}] text and subwords")
            recipe.execute(self.prepare_command(corpus))
            if not self.config["ready"]:
                recipe.execute(self.learn_command(corpus))
        for setting in self.settings:
            recipe.say(f"[{setting.name}] binarise")
            if setting.form != "vanilla":
                recipe.execute(self.form_command(setting, "train", "bpe"))
            recipe.execute(self.binarise_command(setting))
            say_batch(setting)


def _link(target: str, path: str) -> None:
    if os.path.lexists(path):
        os.unlink(path)
    os.symlink(target, path)


def _pool(
    setting: CorpusSetting, name: str, suffix: str, tests: Sequence[str], language: str
) -> None:
    """Write these test sets, one behind the other."""
    with open(f"{setting.data}/{name}.{language}", "wb") as pool:
        for test in tests:
            with open(f"{setting.data}/{test}.{suffix}.{language}", "rb") as stream:
                shutil.copyfileobj(stream, pool)

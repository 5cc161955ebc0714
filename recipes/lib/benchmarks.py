"""GLUE and XTREME: which data their tasks have, from which files, and how models are trained on
them.
"""

import os
import shutil
import tempfile
from typing import TYPE_CHECKING, Dict, List, Sequence, Type

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert.glue_tasks import TASKS
from fairseq_posenc.tools.bert.xtreme import SENTENCE_PAIRS, TestFile, find_questions
from recipes.lib.config import FLAG
from recipes.lib.runner import map_parallel
from recipes.lib.settings import checksum, make_folder, read_lines, record_fingerprint, write

if TYPE_CHECKING:
    from recipes.lib.finetune import FineTuning

_FACEBOOK = "https://dl.fbaipublicfiles.com"
_SUBWORDS = "dict.txt", "wordpiece.json", "sentencepiece.model"


class TaskSet:
    """What the tasks of a benchmark have in common."""

    further_stages: Sequence[str] = ()  # titles of stages behind the table

    def __init__(self, recipe: "FineTuning"):
        self.recipe, self.config = recipe, recipe.config
        self.raw = self.config["raw-dir"] or recipe.path("raw")
        self.is_given = bool(self.config["raw-dir"]) or recipe.is_smoke
        if recipe.is_smoke and not self.config.is_given("raw-dir"):
            self.raw = recipe.path("benchmarks", self.config["smoke-raw"]).rstrip("/")

    def tasks(self) -> List[str]:
        """Those that are wanted."""
        return self.config.list("tasks")

    def data(self, task: str) -> str:
        """The folder to train on."""
        return self.recipe.path("data", task)

    def tested_on(self, task: str) -> str:
        """The folder to predict on."""
        return self.recipe.path("data", task)

    def data_fingerprint(self, task: str) -> List[str]:
        """What its data were made from."""
        return read_lines(f"{self.data(task)}/settings")

    def epochs(self, task: str) -> str:
        """Of a training."""
        return self.config["epochs"]

    def metric(self, task: str) -> str:
        """That chooses checkpoints."""
        raise NotImplementedError

    def subsets(self, task: str) -> List[str]:
        """That are predicted."""
        raise NotImplementedError

    def options(self, task: str) -> List[str]:
        """Of fairseq-train."""
        return ["--task", "posenc_sentence_prediction", "--criterion", "posenc_sentence_prediction",
                "--max-positions", self.config["length"]]  # fmt: skip

    def make_data(self) -> None:
        """From files, which are downloaded if they are not given, to binary data."""
        raise NotImplementedError

    def smoke_pretraining(self) -> List[str]:
        """Options of the small pre-training of --smoke."""
        config, options = self.config, self.recipe.script.arrays["pretrain_smoke"]
        return [*config.interpolate(options), "--arch", config["arch"],
                "--length", config["length"]]  # fmt: skip

    def is_made(self, path: str) -> bool:
        """Return whether what is complete with this file is there; for a plan nothing is."""
        return not self.recipe.is_plan and os.path.exists(path)

    def same_data(self, settings: str, raw: str) -> None:
        """Make sure that what is binary beside the file was made from these files and subwords.

        Raw files may be gone once that is done.
        """
        if self.is_made(raw):
            subwords = [f"{self.recipe.text}/{name}" for name in _SUBWORDS]
            existing = [path for path in subwords if os.path.exists(path)]
            record_fingerprint(settings, ["--raw-files-and-subwords", checksum([raw, *existing])])

    def fetch(self, folder: str, address: str, digest: str = "") -> None:
        """Download a file into a folder, and unpack it there if it is an archive."""
        base, _, name = address.rpartition("/")
        if self.is_made(f"{folder}/{name}.done"):
            return
        unpack = folder if name.endswith((".zip", ".tgz")) else ""
        url = f"{self.config['url'] or base}/{name}"
        self.recipe.fetch(f"{folder}/{name}", url, unpack=unpack, checksum=digest)
        if not self.recipe.is_plan:
            write(f"{folder}/{name}.done", "")


class Glue(TaskSet):
    """The General Language Understanding Evaluation, on development sets, and for its
    leaderboard.
    """

    further_stages = ("submissions",)

    def tasks(self) -> List[str]:
        """All nine for a submission, unless the user says otherwise."""
        chosen = self.config.list("tasks")
        if self.config["submission"] == FLAG and not self.config.is_given("tasks"):
            chosen = self.config.list("submitted-tasks")
        for task in chosen:
            if task not in TASKS:
                raise UsageError(f"no task of GLUE is called {task} (--tasks)")
        return chosen

    def subsets(self, task: str) -> List[str]:
        """Development sets; for a submission also the test sets that are there."""
        valid, tests = ["valid"], ["test"]
        if task == "MNLI":
            valid, tests = ["valid", "valid1"], ["test", "test1", "ax"]
        if self.config["submission"] != FLAG:
            return valid
        folder = f"{self.data(task)}/input0"
        existing = [
            test for test in tests if self.recipe.is_plan or os.path.exists(f"{folder}/{test}.idx")
        ]
        return [*valid, *existing]

    def metric(self, task: str) -> str:
        """The task's own."""
        return TASKS[task].best

    def epochs(self, task: str) -> str:
        """10 below 10,000 examples."""
        small = task in ("CoLA", "STS-B", "MRPC", "RTE", "WNLI")
        return self.config["epochs"] or ("10" if small else "5")

    def make_data(self) -> None:
        """Of each task."""
        recipe, raw = self.recipe, self.raw
        if recipe.is_smoke and not self.config.is_given("raw-dir"):
            recipe.execute(["cut", "-f", "1,9,10", f"{raw}/MNLI/test_matched.tsv"],
                           output=f"{raw}/MNLI/AX.tsv")  # fmt: skip
        for task in recipe.tasks:
            settings = f"{self.data(task)}/settings"
            self.same_data(settings, f"{raw}/{task}")
            if self.is_made(f"{self.data(task)}/task.json"):
                continue
            if not self.is_given:
                self.download(task)
            self.same_data(settings, f"{raw}/{task}")
            # some lines of the official training file have no label
            skip = ["--skip-malformed"] if task == "QQP" else []
            recipe.execute(
                ["posenc", "prepare", "glue", "--task", task, "--input", f"{raw}/{task}",
                 "--subwords", recipe.text, "--output", self.data(task), *skip]
            )  # fmt: skip

    def download(self, task: str) -> None:
        """Get the official files of a task."""
        raw = self.raw
        if task == "MRPC":
            for file in "msr_paraphrase_train.txt", "msr_paraphrase_test.txt":
                self.fetch(f"{raw}/MRPC", f"{_FACEBOOK}/senteval/senteval_data/{file}")
            self.fetch(f"{raw}/MRPC", f"{_FACEBOOK}/glue/data/mrpc_dev_ids.tsv")
            return
        name = {"QQP": "QQP-clean", "QNLI": "QNLIv2"}.get(task, task)
        self.fetch(raw, f"{_FACEBOOK}/glue/data/{name}.zip")
        if task == "MNLI":
            self.fetch(f"{raw}/MNLI", f"{_FACEBOOK}/glue/data/AX.tsv")


class Xtreme(TaskSet):
    """Models trained on English, applied to other languages: XNLI, XQuAD, MLQA, TyDiQA-GoldP."""

    def __init__(self, recipe: "FineTuning"):
        super().__init__(recipe)
        self.searched = self.raw  # where raw files are looked for
        if recipe.is_plan and recipe.is_smoke:
            self._unpacked = tempfile.TemporaryDirectory()
            self.searched = self._unpacked.name
            shutil.unpack_archive("recipes/smoke/benchmarks.tar.xz", self.searched)

    def tasks(self) -> List[str]:
        """XNLI and SQuAD."""
        for task in self.config.list("tasks"):
            if task not in ("XNLI", "SQuAD"):
                raise UsageError(f"--tasks are XNLI and SQuAD, not {task}")
        return self.config.list("tasks")

    def data(self, task: str) -> str:
        """Sentence pairs are learned from MNLI."""
        return self.recipe.path("data", "MNLI" if task == "XNLI" else task)

    def data_fingerprint(self, task: str) -> List[str]:
        """Of questions, what each split was made from."""
        if task == "XNLI":
            return super().data_fingerprint(task)
        return read_lines(f"{self.data(task)}/train.settings")

    def metric(self, task: str) -> str:
        """Of the English development set."""
        return "accuracy" if task == "XNLI" else "f1"

    def options(self, task: str) -> List[str]:
        """Long contexts of questions are cut into windows."""
        if task == "XNLI":
            return super().options(task)
        return ["--task", "posenc_question_answering", "--criterion", "posenc_question_answering",
                "--max-positions", self.config["length"], "--stride",
                self.config["stride"]]  # fmt: skip

    def subsets(self, task: str) -> List[str]:
        """The languages that are there; for a plan those that are to be there."""
        if task == "XNLI":
            subsets = [f"test-{language}" for language in self.config.list("languages")]
        else:
            subsets = ["valid"]
        if self.recipe.is_plan:
            subsets += ["valid-en"] if task == "XNLI" else [file.split for file in self.questions()]
            return sorted(subsets)
        folder = self.tested_on(task) + ("/input0" if task == "XNLI" else "")
        kinds = ("test-", "valid-en") if task == "XNLI" else ("mlqa-", "tydiqa-", "valid", "xquad-")
        ending = ".idx" if task == "XNLI" else ".json"
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return sorted(name[: -len(ending)] for name in names
                      if name.endswith(ending) and name.startswith(kinds))  # fmt: skip

    def smoke_pretraining(self) -> List[str]:
        """With a text for each language."""
        folder = self.recipe.path("benchmarks", "text-multilingual")
        texts = {}
        for split in "train", "valid":
            languages = self.config.list("languages")
            files = (f"{language}={folder}/{language}/{split}.txt" for language in languages)
            texts[split] = ",".join(files)
        return ["--text", texts["train"], "--valid", texts["valid"], *super().smoke_pretraining()]

    def questions(self, says_missing: bool = True) -> List[TestFile]:
        """The test files of questions; for a plan the official ones, or those of --smoke."""
        official = self.recipe.is_plan and not self.is_given
        files, missing = find_questions(self.searched, official=official)
        for line in missing if says_missing else ():
            self.recipe.say(line)
        return [file._replace(path=file.path.replace(self.searched, self.raw, 1)) for file in files]

    def make_data(self) -> None:
        """Of both tasks."""
        for task in self.recipe.tasks:
            of_pairs = (self.recipe.path("data", each, "task.json") for each in SENTENCE_PAIRS)
            made = of_pairs if task == "XNLI" else [self.all_questions]
            if not (self.is_given or all(map(self.is_made, made))):
                self.download(task)
        for task in self.recipe.tasks:
            if task == "XNLI":
                for pairs in SENTENCE_PAIRS:
                    self.prepare_pairs(pairs)
            else:
                self.prepare_questions()

    @property
    def all_questions(self) -> str:
        """The file that says that all splits of questions are made."""
        return self.recipe.path("data", "SQuAD", "questions.done")

    def find(self, *files: str, needed: bool = True) -> str:
        """The folder of the first of the raw files that is there, empty where none is there and
        needed; for a plan of downloads of the first.
        """
        is_there = self.recipe.is_plan and not self.is_given
        for file in files:
            if is_there or os.path.exists(f"{self.searched}/{file}"):
                return os.path.dirname(f"{self.raw}/{file}")
        if needed:
            raise UsageError(f"{self.raw} holds none of {', '.join(files)}")
        return ""

    def prepare_pairs(self, task: str) -> None:
        """Make binary data of MNLI or XNLI."""
        output = self.recipe.path("data", task)
        made = self.is_made(f"{output}/task.json")
        raw = self.find(*SENTENCE_PAIRS[task], needed=not made)
        if raw:
            self.same_data(f"{output}/settings", raw)
        if not made:
            self.recipe.execute(
                ["posenc", "prepare", "glue", "--task", task, "--input", raw,
                 "--subwords", self.recipe.text, "--output", output]
            )  # fmt: skip

    def prepare_questions(self) -> None:
        """Make data of SQuAD and of the test files in other languages."""
        made = self.is_made(self.all_questions)
        folder = self.find("squad/train-v1.1.json", needed=not made)
        if not folder:
            return
        tests = self.questions(says_missing=not made)
        self.prepare_split(TestFile("train", "en", "squad", f"{folder}/train-v1.1.json"))
        valid = TestFile("valid", "en", "squad", f"{folder}/dev-v1.1.json")
        map_parallel(self.recipe, [valid, *tests], self.prepare_split)
        if not self.recipe.is_plan:
            write(self.all_questions, "")

    def prepare_split(self, file: TestFile) -> None:
        """Make data of one file."""
        output = self.recipe.path("data", "SQuAD")
        settings, made = (f"{output}/{file.split}.{ending}" for ending in ("settings", "json"))
        if not self.recipe.is_plan:
            make_folder(output)
            # what was mistaken before there was a result can be mended
            if not os.path.exists(made) and os.path.exists(settings):
                os.unlink(settings)
        self.same_data(settings, file.path)
        if not self.is_made(made):
            self.recipe.execute(
                ["posenc", "prepare", "squad", "--split", file.split, "--input", file.path,
                 "--language", file.language, "--metric", file.metric,
                 "--subwords", self.recipe.text, "--output", output]
            )  # fmt: skip

    def download(self, task: str) -> None:
        """Get the official files of a task; some addresses name a branch, and have a SHA-256."""
        github, raw = "https://raw.githubusercontent.com", self.raw
        arrays = self.recipe.script.arrays
        if task == "XNLI":
            self.fetch(raw, f"{_FACEBOOK}/glue/data/MNLI.zip")
            self.fetch(raw, f"{_FACEBOOK}/XNLI/XNLI-1.0.zip")
        else:
            squad = f"{github}/rajpurkar/SQuAD-explorer/master/dataset"
            for file, digest in zip(arrays["squad"][::2], arrays["squad"][1::2]):
                self.fetch(f"{raw}/squad", f"{squad}/{file}", digest)
            for language, digest in zip(arrays["xquad"][::2], arrays["xquad"][1::2]):
                address = f"{github}/deepmind/xquad/master/xquad.{language}.json"
                self.fetch(f"{raw}/xquad", address, digest)
            self.fetch(raw, f"{_FACEBOOK}/MLQA/MLQA_V1.zip")
            self.fetch(raw, "https://storage.googleapis.com/tydiqa/v1.1/tydiqa-goldp-v1.1-dev.tgz")


BENCHMARKS: Dict[str, Type[TaskSet]] = {"glue": Glue, "xtreme": Xtreme}

"""Recipes with stand-ins for what prepares, trains, scores and predicts."""

import ast
import json
import os
import sys
import time

import pytest

from fairseq_posenc.tools.bert.xtreme import BENCHMARKS

# "Trains" update by update on a chain of text that says what has happened. A checkpoint comes every
# 3 updates and at the end; with the file `kill` there, it dies at that update.
TRAIN = f"""#!{sys.executable}
import json, os, sys, time
from pathlib import Path

words = sys.argv[1:]
value = lambda name: words[words.index(name) + 1]
folder, home = Path(value("--save-dir")), Path(os.environ["STAND_IN"])
with open(home / "commands", "a") as log:
    print(json.dumps(["fairseq-train", *words]), file=log)
folder.mkdir(parents=True, exist_ok=True)
start = value("--restore-file") if "--restore-file" in words else value("--finetune-from-model")
if "--restore-file" not in words and (folder / "checkpoint_last.pt").exists():
    sys.exit("fairseq would load checkpoint_last.pt")
chain = Path(start).read_text()
begin = len(chain.split("+")) - 1
print(f"| position:stand-in", os.environ.get("CUDA_VISIBLE_DEVICES"))
for update in range(begin + 1, int(value("--max-update")) + 1):
    with open(home / "log" / f"{{time.time_ns()}}-{{os.getpid()}}", "w") as log:
        cell = folder.relative_to(folder.parents[3])
        gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "-")
        print(cell, update, gpu, Path(words[0]).name, file=log)
    time.sleep(0.01)
    kill = home / "kill"
    if kill.exists() and update == int(kill.read_text()):
        kill.unlink()
        sys.exit(137)
    chain += f"+{{value('--seed')}}"
    if update % 3 == 0 or update == int(value("--max-update")):
        (folder / "checkpoint_best.pt").write_text(chain)
        (folder / "checkpoint_last.pt").write_text(chain)
"""

PYTHON = f"""#!{sys.executable}
import json, os, shutil, sys
from pathlib import Path

words = sys.argv[1:]
ours = Path(sys.argv[0]).name == "posenc"
program = " ".join(words[: 1 + (words[0] == "prepare")]) if ours else words[1].rpartition(".")[2]
value = lambda name: sys.argv[sys.argv.index(name) + 1]
with open(Path(os.environ["STAND_IN"], "commands"), "a") as log:
    print(json.dumps([program, *words]), file=log)
if program == "updates_per_epoch":
    print(1)
elif program == "newest_checkpoint":
    if Path(os.environ["STAND_IN"], "out of memory").exists():
        sys.exit("fairseq_posenc: error: cannot read checkpoint: Cannot allocate memory")
    folder, best = sys.argv[3:]
    last = Path(folder, "checkpoint_last.pt")
    if last.exists() and last.read_text() != "half":
        print(last)
elif program == "prepare glue":
    Path(value("--output"), "input0").mkdir(parents=True)
    Path(value("--output"), "task.json").write_text('{{"best": "matthews"}}')
    languages = {("valid-de", "valid-en", *BENCHMARKS["XNLI"].splits())!r}
    for split in languages if value("--task") == "XNLI" else ("valid", "test"):
        Path(value("--output"), "input0", split + ".idx").touch()
elif program == "prepare squad":
    Path(value("--output")).mkdir(parents=True, exist_ok=True)
    about = {{name: value("--" + name) for name in ("language", "metric", "input")}}
    Path(value("--output"), value("--split") + ".json").write_text(json.dumps(about))
elif program == "predict":
    chain = Path(value("--path")).read_text()
    scores = {{name: {{"matthews": float(len(chain))}} for name in value("--subsets").split(",")}}
    for name in scores:
        Path(value("--output"), f"predictions.{{name}}.tsv").write_text("index\\n0\\n")
        print(f"{{name}}: {{'accuracy 33.33' if 'valid' in name else 'no labels'}}")
    Path(value("--output"), "score.json").write_text(json.dumps(
        {{"scores": scores, "of": chain, "data": Path(value("--data")).name}}))
    print("note: the model predicts one class, 'neutral': it has learned nothing")
else:
    real = shutil.which(Path(sys.argv[0]).name, path=os.environ["PATH"].partition(":")[2])
    os.execv(real, [real, *words])
"""


def stand_ins(home, programs):
    """Write programs, by name, and return the environment of a recipe that finds them first."""
    (home / "bin").mkdir(parents=True)
    for name, text in programs.items():
        (home / "bin" / name).write_text(text)
        (home / "bin" / name).chmod(0o755)
    return {"PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}", "STAND_IN": str(home)}


def lay_out(folder, program):
    """Write text, and a program in place of all; return the environment of what is to use them."""
    for split in ("train", "valid", "test", "other"):
        for language in ("en", "fr", "es", "txt"):
            (folder / f"{split}.{language}").write_text(f"{split} in {language}\n")
    names = "python", "posenc", "fairseq-train", "fairseq-generate", "subword-nmt"
    return stand_ins(folder, dict.fromkeys(names, program))


def texts_in(folder):
    return [word for s in ("train", "valid", "test") for word in (f"--{s}", folder / s)]


# Every program: leaves what --output and the like name, and its words behind; trains on nothing.
STAND_IN = f"""#!{sys.executable} -IS
import os, sys
from pathlib import Path

name, words = Path(sys.argv[0]).name, sys.argv[1:]
if name == "python" and words[:2] == ["-m", "recipes.lib"]:
    os.execv({sys.executable!r}, [{sys.executable!r}, *words])
with open(os.environ["STAND_IN"] + "/log", "a") as log:
    print(repr([name, *words]), file=log)
for flag in "--output", "--destdir", "--save-dir":
    place = words.index(flag) + 1 if flag in words else len(words)
    for word in words[place : place + 1]:
        folder = flag != "--output" or not Path(word).suffix
        Path(word if folder else os.path.dirname(word)).mkdir(parents=True, exist_ok=True)
        if not folder:
            Path(word).write_text("made")
if name == "fairseq-train":
    Path(words[words.index("--save-dir") + 1], "checkpoint_last.pt").write_text("model")
print("| position:stand-in")
"""
# a training that only says which process it is, until the file `go` is there
WAITS = STAND_IN.replace(
    'if name == "fairseq-train":',
    """home = Path(os.environ["STAND_IN"])
if name == "fairseq-train" and not (home / "go").exists():
    import time
    Path(home, "part").write_text(str(os.getpid()))
    Path(home, "part").rename(home / "training")
    time.sleep(60)
if name == "fairseq-train":""",
)
OWN = (
    "recipes/own.sh --source-lang en --target-lang fr --encodings shaw --seeds 1 --epochs 1".split()
)


def wait_for(happened):
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.05)


@pytest.fixture
def environment(tmp_path):
    """The environment of recipes that find text, and stand-ins for all programs."""
    return lay_out(tmp_path, STAND_IN)


@pytest.fixture
def work(start, environment):
    """A function that runs a recipe with stand-ins; returns what it prints, and its status."""

    def work(*command, **others):
        process = start("bash", *command, "--device", "cpu", **environment, **others)
        return process.communicate()[0], process.returncode

    return work


def given_once(words):
    """Return the words of a recipe's call; of options that come again before ``--``, the last.

    ``--pretrained`` may be given several times.
    """
    words = [*map(str, words)]
    end = words.index("--") if "--" in words else len(words)
    last = {name: n for n, name in enumerate(words[:end]) if name.startswith("--")}
    last.pop("--pretrained", None)
    repeated = {n for n, name in enumerate(words[:end]) if last.get(name, n) != n}
    return [word for n, word in enumerate(words) if not {n, n - 1} & repeated]


@pytest.fixture
def own(work, tmp_path):
    """A function that runs own.sh from its data on, with the text beside the run folder."""

    def own(*options, run="run", **environment):
        run_dir = "--run-dir", run if run.startswith("-") else tmp_path / run
        words = [*OWN, *texts_in(tmp_path), *run_dir, "--stage", "2", *options]
        return work(*given_once(words), **environment)

    return own


def log(tmp_path):
    """Lists of the words of all commands that stand-ins have run."""
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    return [ast.literal_eval(line) for line in lines]


def trainings(tmp_path):
    return [words for words in log(tmp_path) if words[0] == "fairseq-train"]


class Recipe:
    """Runs a recipe with stand-ins, in a folder of its own."""

    def __init__(self, start, home, recipe="recipes/glue/run.sh"):
        self.home, self.start, self.recipe = home, start, recipe
        self.runs = home / "run"
        programs = {"fairseq-train": TRAIN, "python": PYTHON, "posenc": PYTHON}
        self.environment = stand_ins(home, programs)
        (home / "text").mkdir()
        (home / "text" / "dict.txt").write_text("a 1")
        (home / "log").mkdir()
        (home / "model.pt").write_text("model")

    def __call__(self, *options, status=0, **environment):
        words = [
            "bash", self.recipe, "--stage", "3", "--stop-stage", "4",
            "--run-dir", self.runs, "--text", self.home / "text", "--raw-dir", self.home,
            "--encodings", "a=learned", "--pretrained", f"a={self.home / 'model.pt'}",
            "--tasks", "CoLA", "--lrs", "1e-5", "--seeds", "1", "--device", "cpu", "--epochs", "8",
            *options,
        ]  # fmt: skip
        return self.run(*given_once(words), status=status, **environment)

    def run(self, *command, status=0, **environment):
        process = self.start(*command, **self.environment, **environment)
        printed = process.communicate()[0]
        assert (process.returncode == 0) == (status == 0), printed
        return printed

    def score(self, task="CoLA"):
        return json.loads((self.runs / f"a/{task}/lr1e-5/seed1/score.json").read_text())

    def updates(self):
        """Lines of the stand-in for fairseq-train: folder, update, GPU, data."""
        return [line.read_text().split() for line in sorted((self.home / "log").iterdir())]

    def commands(self):
        """Lists of the words of all commands that have run, each after the program's name."""
        log = self.home / "commands"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def kill_at(self, update):
        (self.home / "kill").write_text(str(update))


@pytest.fixture
def finetuning(start, tmp_path):
    """A function that lays out a recipe of its own, in a folder of the temporary one."""
    return lambda name, *recipe: Recipe(start, tmp_path / name, *recipe)

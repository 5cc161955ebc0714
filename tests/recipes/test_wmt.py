"""WMT recipes: a run that is killed in every stage, on a small mirror.

Whole runs with --smoke are tested end to end.
"""

import http.server
import json
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from recipes.lib import test_sets
from tests.recipes.conftest import given_once, stand_ins

REPOSITORY = Path(__file__).resolve().parents[2]
REL_SCALAR = "recipes/rel_scalar/translate.sh"

# Goes before every program: logs its good end, and kills it half-way, with the recipe, if the file
# `kill` names it.
PROGRAM = f"""#!{sys.executable}
import os, shutil, signal, subprocess, sys, time
from pathlib import Path

home, name, words = Path(os.environ["STAND_IN"]), Path(sys.argv[0]).name, sys.argv[1:]
if name == "python":
    module, words = words[1], words[2:]
    script = module.rpartition(".")[2]
else:
    script = " ".join([name, *words[: 1 + (words[0] == "prepare")]]) if name == "posenc" else name
call = " ".join([name, *words]) if name == "posenc" else " ".join([script, *words])
real = [shutil.which(name, path=os.environ["PATH"].partition(":")[2])]
real += [*(["-m", module] if name == "python" else []), *words]
kill = home / "kill"
if kill.exists() and kill.read_text() in call:
    kill.unlink()
    process = subprocess.Popen(real)
    time.sleep(0.2)
    process.kill()
    os.killpg(0, signal.SIGKILL)
status = subprocess.call(real)
if status == 0:
    (home / "log" / f"{{time.time_ns()}}-{{os.getpid()}}").write_text(call)
sys.exit(status)
"""


class Site(http.server.SimpleHTTPRequestHandler):
    """Serves the archives of --smoke at the paths of the original sites."""

    asked, seconds = [], 0.0

    def do_GET(self):
        self.asked.append(self.path)
        time.sleep(self.seconds)
        super().do_GET()

    def translate_path(self, path):
        return str(REPOSITORY / "recipes/smoke/wmt" / path.strip("/").replace("/", "."))

    def log_message(self, *args):
        pass


@pytest.fixture
def url(serve):
    """The address of the site."""
    return serve(Site).url


class Recipe:
    """Runs the recipe of Chen et al.'s Table 6 for English to Czech, with one row."""

    def __init__(self, start, home, url):
        self.start, self.home, self.runs, self.url = start, home, home / "run", url
        programs = "python", "posenc", "fairseq-train", "fairseq-generate"
        self.environment = stand_ins(home, dict.fromkeys(programs, PROGRAM))
        (home / "log").mkdir()

    def __call__(self, *options):
        process = self.begin(*options)
        return process.communicate()[0], process.returncode

    def begin(self, *options, **environment):
        own_group = "import os, sys; os.setsid(); os.execvp('bash', ['bash', *sys.argv[1:]])"
        words = [
            sys.executable, "-c", own_group, REL_SCALAR, "--smoke", "--stage", "2",
            "--raw-dir", "", "--url", self.url,
            "--settings", "en-cs", "--encodings", "rel_scalar",
            "--run-dir", self.runs, "--device", "cpu", "--workers", "1", *options,
        ]  # fmt: skip
        return self.start(*given_once(words), **self.environment, **environment)

    def finished_calls(self):
        calls = [path.read_text() for path in sorted((self.home / "log").iterdir())]
        return [re.sub(rf"{self.home}/run\d*", "RUN", call) for call in calls]

    def table(self):
        return (self.runs / "chen2021-6.md").read_text()


STAGES = [
    "posenc prepare download", "pairs text", "pairs bpe-learn", "pairs bpe-apply",
    "pairs clean", "posenc prepare binarise", "fairseq-train", "posenc average",
    "fairseq-generate", "test_sets", "score_cell", "posenc table",
]  # fmt: skip


@pytest.mark.slow
def test_killed_in_every_stage_it_ends_with_the_same_table_and_repeats_nothing(
    start, tmp_path, url, monkeypatch
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")  # as if there were one
    unbroken, broken = (Recipe(start, tmp_path / name, url) for name in ("unbroken", "broken"))
    printed, status = unbroken()
    assert status == 0, printed
    for number, stage in enumerate(STAGES):
        (broken.home / "kill").write_text(stage)
        printed, status = broken()
        assert status == -signal.SIGKILL, printed
        # a run is the same wherever it lies
        broken.runs = broken.runs.rename(broken.home / f"run{number}")
    printed, status = broken("--device", "cuda", "--gpus", "1", "--gpu-memory", "16")
    assert status == 0, printed
    assert broken.table() == unbroken.table()
    cells = [run.runs / "en-cs/rel_scalar/seed1" for run in (unbroken, broken)]
    translations = [(cell / "newstest2015.out").read_text() for cell in cells]
    assert translations[0] == translations[1] and "\nH-9\t" in translations[0]
    results = [json.loads((cell / "score.json").read_text()) for cell in cells]
    assert results[0]["tests"] != {} and _figures(results[0]) == _figures(results[1])
    dear = [call for call in broken.finished_calls() if any(stage in call for stage in STAGES)]
    assert len(dear) >= len(STAGES)
    assert len(dear) == len(set(dear)), [call for call in dear if dear.count(call) > 1]
    assert not list(broken.runs.rglob("score.json.part*"))


def test_two_recipes_load_each_file_into_a_shared_folder_once(start, tmp_path, url, monkeypatch):
    monkeypatch.setattr(Site, "asked", [])
    monkeypatch.setattr(Site, "seconds", 0.3)
    shared = tmp_path / "data"
    options = "--data-dir", shared, "--stop-stage", "3", "--url", f"{url}/gone,{url}"
    recipes = [Recipe(start, tmp_path / name, url) for name in ("one", "two")]
    jobs = [recipe.begin(*options) for recipe in recipes]
    printed = [job.communicate()[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], printed
    names = [path[1:].replace("/", ".") for path in Site.asked if not path.startswith("/gone/")]
    assert sorted(names) == sorted(path.name for path in shared.iterdir()) and len(names) > 3
    for path in shared.iterdir():
        assert path.read_bytes() == (REPOSITORY / "recipes/smoke/wmt" / path.name).read_bytes()
    one, two = (next(recipe.runs.rglob("train.tok.cs")) for recipe in recipes)
    assert one.read_bytes() == two.read_bytes()


def _figures(result):
    return {name: test["all"] for name, test in result["tests"].items()}


def test_other_data_or_training_does_not_mix_into_a_run(start, tmp_path, url):
    recipe = Recipe(start, tmp_path / "home", url)
    printed, status = recipe("--stop-stage", "2")
    assert status == 0, printed
    printed, status = recipe("--stop-stage", "2", "--bpe", "300")
    assert status == 1 and "was made with other settings" in printed


def test_moses_own_scripts_tokenise_where_they_are_asked_for(start, tmp_path, url):
    recipe, moses = Recipe(start, tmp_path / "home", url), tmp_path / "mosesdecoder"
    printed, status = recipe("--stop-stage", "3", "--moses", moses)
    assert status == 1 and f"cannot read {moses}/scripts/tokenizer/" in printed
    scripts = moses / "scripts" / "tokenizer"
    (moses / "scripts" / "share" / "nonbreaking_prefixes").mkdir(parents=True)
    scripts.mkdir()
    for name in ("normalize-punctuation", "remove-non-printing-char", "tokenizer"):
        (scripts / f"{name}.perl").write_text('while (<STDIN>) { print "perl $_"; }')
    printed, status = recipe("--stop-stage", "3", "--moses", moses)
    assert status == 0, printed
    for split in ("train", "valid", "newstest2015"):
        lines = next(recipe.runs.rglob(f"{split}.tok.cs")).read_bytes().split(b"\n")[:-1]
        assert lines and all(line.startswith(b"perl ") for line in lines)
    assert "was made with other settings" in recipe("--stop-stage", "3")[0]


def test_the_output_for_all_test_sets_is_cut_into_theirs(tmp_path):
    lines = [
        "Generate",
        *(f"{kind}-{n}\t-1\ta\u2028{n}\tb" for n in (11, 3, 9, 10) for kind in "SH"),
    ]
    (tmp_path / "test.out").write_text("\n".join(lines) + "\n", encoding="utf-8")
    test_sets.divide(str(tmp_path), {"first": 9, "second": 2})
    expected = [f"{kind}-{n - 9}\t-1\ta\u2028{n}\tb\n" for n in (9, 10) for kind in "SH"]
    assert (tmp_path / "second.out").read_text(encoding="utf-8") == "".join(expected)
    assert (tmp_path / "first.out").read_text().startswith("S-3\t")

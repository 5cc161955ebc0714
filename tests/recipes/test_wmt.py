"""WMT recipes: help, batch and plan, and a run that is killed in every stage, on a small mirror.

Training and translation are stand-ins here; data, scores and tables are real. Whole runs with
--smoke are tested end to end.
"""

import http.server
import json
import os
import re
import signal
import sys
import threading
from pathlib import Path

import pytest

from fairseq_posenc.tools.results.papers import load
from fairseq_posenc.tools.results.plan import plan

REPOSITORY = Path(__file__).resolve().parents[2]
SHAPE, CAPE, REL_SCALAR = RECIPES = [
    f"recipes/{name}.sh" for name in ("shape/run", "cape/run", "rel_scalar/translate")
]
each_recipe = pytest.mark.parametrize("recipe", RECIPES)

# Every program of the recipe: logs its good end, and dies half-way, with the recipe, if the file
# `kill` names it.
PROGRAM = f"""#!{sys.executable}
import os, signal, subprocess, sys, time
from pathlib import Path

home, name, words = Path(os.environ["STAND_IN"]), Path(sys.argv[0]).name, sys.argv[1:]
if name == "python":
    module, words = words[1], words[2:]
    script = module.rpartition(".")[2]
else:
    script = " ".join([name, *words[: 1 + (words[0] == "prepare")]]) if name == "posenc" else name
call = " ".join([name, *words]) if name == "posenc" else " ".join([script, *words])
stand_in = home / script
if stand_in.exists():
    real = [{sys.executable!r}, str(stand_in), *words]
elif name == "python":
    real = [{sys.executable!r}, "-m", module, *words]
else:
    real = [{str(Path(sys.executable).parent)!r} + "/" + name, *words]
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

# A model is a chain of text that says what has happened; a checkpoint comes every 20 updates.
TRAIN = """
import sys
from pathlib import Path

words = sys.argv[1:]
value = lambda name: words[words.index(name) + 1]
folder = Path(value("--save-dir"))
chain = Path(value("--restore-file")).read_text() if "--restore-file" in words else "model"
print("| num. model params: 1,000 (num. trained: 1,000)")
print("| training on 1 devices (GPUs/TPUs)")
for update in range(20 * chain.count("+") + 20, int(value("--max-update")) + 1, 20):
    chain += "+" + value("--seed")
    (folder / f"checkpoint_1_{update}.pt").write_text(chain)
    print(f"| INFO | train_inner | epoch 001: loss=1, wps=100.0, num_updates={update}, wall=1")
print("| done training in 1.5 seconds")
"""
NEWEST = """
import sys
from pathlib import Path

found = sorted(Path(sys.argv[1]).glob("checkpoint_*.pt"), key=lambda path: path.stat().st_size)
print(*found[-1:])
"""
AVERAGE = """
import sys
from pathlib import Path

value = lambda name: sys.argv[sys.argv.index(name) + 1]
found = sorted(Path(value("--inputs")).glob("checkpoint_*.pt"))[-int(value("--last")):]
Path(value("--output")).write_text(" ".join(path.read_text() for path in found))
"""
# Leaves out every n-th word of the reference, where n depends on the model.
GENERATE = """
import sys
from pathlib import Path

value = lambda name: sys.argv[sys.argv.index(name) + 1]
gap = len(Path(value("--path")).read_text()) % 5 + 3
text = Path(sys.argv[1]).parent.parent / "text/wmt18_en_cs"
languages = [value("--source-lang"), value("--target-lang")]
pairs = zip(*(open(text / f"newstest2015.tok.{language}") for language in languages))
for number, (source, target) in enumerate(pairs):
    words = [word for place, word in enumerate(target.split(), 1) if place % gap]
    for kind, line in ("S", source.strip()), ("T", target.strip()):
        print(f"{kind}-{number}\\t{line}")
    for kind in "HD":
        print(f"{kind}-{number}\\t-1.0\\t{' '.join(words)}")
"""


class Site(http.server.SimpleHTTPRequestHandler):
    """Serves the archives of --smoke at the paths of the original sites."""

    def translate_path(self, path):
        return str(REPOSITORY / "recipes/smoke/wmt" / path.strip("/").replace("/", "."))

    def log_message(self, *args):
        pass


@pytest.fixture
def url(monkeypatch):
    """The address of the site."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Recipe:
    """Runs the recipe of Chen et al.'s Table 6 for English to Czech, with one row."""

    def __init__(self, start, home, url):
        self.start, self.home, self.runs, self.url = start, home, home / "run", url
        for folder in ("bin", "log"):
            (home / folder).mkdir(parents=True)
        for name in ("python", "posenc", "fairseq-train", "fairseq-generate"):
            (home / "bin" / name).write_text(PROGRAM)
            (home / "bin" / name).chmod(0o755)
        for name, text in {
            "fairseq-train": TRAIN,
            "fairseq-generate": GENERATE,
            "newest_checkpoint": NEWEST,
            "posenc average": AVERAGE,
        }.items():
            (home / name).write_text(text)

    def __call__(self, *options):
        own_group = "import os, sys; os.setsid(); os.execvp('bash', ['bash', *sys.argv[1:]])"
        process = self.start(
            sys.executable, "-c", own_group, REL_SCALAR, "--smoke", "--stage", "2",
            "--raw-dir", "", "--url", self.url,
            "--settings", "en-cs", "--encodings", "rel_scalar", "--run-dir", self.runs,
            "--device", "cpu", "--workers", "1", *options,
            PATH=f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}",
            STAND_IN=self.home,
        )  # fmt: skip
        return process.communicate()[0], process.returncode

    def finished_calls(self):
        calls = [path.read_text() for path in sorted((self.home / "log").iterdir())]
        return [re.sub(rf"{self.home}/run\d*", "RUN", call) for call in calls]

    def table(self):
        return (self.runs / "chen2021-6.md").read_text()


STAGES = [
    "posenc prepare download", "pairs text", "pairs bpe-learn", "pairs bpe-apply",
    "pairs clean", "posenc prepare binarise", "fairseq-train", "posenc average",
    "fairseq-generate", "score_cell", "posenc table",
]  # fmt: skip


def test_killed_in_every_stage_it_ends_with_the_same_table_and_repeats_nothing(
    start, tmp_path, url
):
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
    score = "en-cs/rel_scalar/seed1/score.json"
    results = [json.loads((run.runs / score).read_text()) for run in (unbroken, broken)]
    assert results[0]["tests"]["newstest2015"]["all"]["sacrebleu"] > 5
    assert results[0]["tests"] != {} and _figures(results[0]) == _figures(results[1])
    dear = [call for call in broken.finished_calls() if any(stage in call for stage in STAGES)]
    assert len(dear) >= len(STAGES)
    assert len(dear) == len(set(dear)), [call for call in dear if dear.count(call) > 1]
    assert not list(broken.runs.rglob("score.json.part*"))


def _figures(result):
    return {name: test["all"] for name, test in result["tests"].items()}


def test_other_data_or_training_does_not_mix_into_a_run(start, tmp_path, url):
    recipe = Recipe(start, tmp_path / "home", url)
    printed, status = recipe("--stop-stage", "2")
    assert status == 0, printed
    printed, status = recipe("--stop-stage", "2", "--bpe", "300")
    assert status == 1 and "was made with other settings" in printed


def _plan(run, recipe, *options, **environment):
    return run(
        "bash", recipe, "--stage", "2", "--plan", "--device", "cuda", *options, **environment
    )


@pytest.mark.parametrize(
    "gpus, memory, division",
    [(8, 16, "7000 × --update-freq 2 × 8"), (1, 80, "56000 × --update-freq 2 × 1"),
     (4, 32, "14000 × --update-freq 2 × 4")],
)  # fmt: skip
def test_tokens_per_update_are_the_papers_on_any_number_of_gpus(run, gpus, memory, division):
    options = "--gpus", gpus, "--gpu-memory", memory, "--settings", "vanilla", "--seeds", "1"
    printed = _plan(run, SHAPE, *options, "--", "--fp16")
    assert f"an update: 112000 tokens = --max-tokens {division} GPUs" in printed


def test_the_plan_has_the_papers_cells_and_settings(run):
    commands, cells = _shape_plan(run)
    # the cells of Table 2, as `posenc table --plan` has them
    jobs = plan(load("shape-2"), [], "runs/shape").jobs
    assert cells == {f"{job.setting}/{job.row}/seed{seed}" for job in jobs for seed in job.left}
    assert len(commands) == 21
    for words in ("--nproc-per-node 8", "--lr 0.000988212", "--warmup-updates 8000",
                  "--max-update 200000", "--clip-norm 0"):  # fmt: skip
        assert all(words in line for line in commands)
    commands = _plan(run, CAPE, "--gpus", "4", "--gpu-memory", "16").splitlines()
    commands = [line for line in commands if line.startswith("torchrun")]
    assert len(commands) == 3 * 5 * 3
    assert sum("posenc_transformer_wmt_en_de_18l" in line for line in commands) == 15
    assert sum("--prepend-source-bos" in line for line in commands) == 27
    assert sum("--max-epoch 75" in line for line in commands) == 15


def _shape_plan(run, *options):
    """Return the commands of SHAPE's trainings, and their cells."""
    printed = _plan(run, SHAPE, "--gpus", "8", "--gpu-memory", "16", *options)
    commands = [line for line in printed.splitlines() if line.startswith("torchrun")]
    assert f"{len(commands)} trainings:" in printed
    return commands, {re.search(r"--save-dir runs/shape/(\S+)", line)[1] for line in commands}


@pytest.mark.parametrize(
    "options, count",
    [
        ("--sweep 10,20,30,40,100", 25),
        ("--seeds 2,7", 6 + 6 + 4 + 1),
        ("--encodings shaw", 5 + 1 + 1),
    ],
)
def test_seeds_and_rows_of_the_user_are_of_all_settings(run, options, count):
    commands, cells = _shape_plan(run, *options.split())
    assert len(commands) == len(cells) == count
    if "--seeds" in options:
        assert "interpolate/shape/seed7" in cells and "interpolate/shaw/seed7" not in cells


def test_table_1_is_made_of_the_scored_models_once(run, tmp_path):
    folder = tmp_path / "interpolate"
    for cell in ("sinusoidal/seed1", "shape/seed1", "shape/seed2", "shaw/seed1"):
        (folder / cell).mkdir(parents=True)
        (folder / cell / "average.pt").touch()
        if "shaw" not in cell:
            (folder / cell / "score.json").touch()
    recipe = (REPOSITORY / SHAPE).read_text()
    functions = recipe[recipe.index("source ") : recipe.index("\nparse_options ")]
    script = f"""{functions}
        RUN_DIR={tmp_path} DEVICE_OPTIONS=(--cpu); posenc() {{ echo "posenc $*"; }}
        analyse_models; analyse_models; mkdir {folder}/t5; cp -r {folder}/shape/seed1 {folder}/t5
        analyse_models"""
    calls = [line for line in run("bash", "-c", script).splitlines() if line.startswith("posenc")]
    models = [f"{row}={folder}/{row}/seed1/average.pt" for row in ("shape", "sinusoidal", "t5")]
    assert len(calls) == 2
    assert f"--models {' '.join(models[:2])} --pairs 10000 --beam 4" in calls[0]
    assert f"--models {' '.join(models)} --pairs" in calls[1]


def test_a_held_out_validation_set_is_cleaned_in_subwords_as_the_training_text_is(run, tmp_path):
    text = tmp_path / "text" / "wmt14_en_fr"
    text.mkdir(parents=True)
    good, long, lopsided = ["ab"] * 100, [" ".join(["ab"] * 251)], ["ab ab ab ab"]
    for split, lines in (("train", good + long), ("valid", good + long + lopsided)):
        for language in ("en", "fr"):
            shorter = ["ab" if language == "fr" and line in lopsided else line for line in lines]
            (text / f"{split}.tok.{language}").write_text("\n".join(shorter) + "\n")
    (text / "newstest2014.tok.en").write_text(long[0] + "\n")
    (text / "newstest2014.tok.fr").write_text("ab\n")
    library = "source recipes/lib/stages.sh; source recipes/lib/wmt.sh"
    run("bash", "-c", f"{library}; RUN_DIR={tmp_path} BPE=1 WORKERS=1; learn_subwords wmt14_en_fr")
    for split in ("train", "valid"):
        assert (text / f"{split}.bpe.en").read_text().splitlines() == good
    assert len((text / "newstest2014.bpe.en").read_text().split()) == 251
    assert not list(text.glob("*.cut.*"))


def test_ready_text_needs_the_test_sets_alone(run, tmp_path):
    (tmp_path / "train.bpe.en").write_text("a\n")
    options = "--ready", tmp_path, "--gpus", "8", "--gpu-memory", "16"
    printed = _plan(run, SHAPE, *options)
    assert "wmt16.translation-task.test.tgz" in printed
    assert "training-parallel" not in printed and "21 trainings:" in printed


def test_the_output_for_all_test_sets_is_cut_into_theirs(run, tmp_path):
    lines = ["Generate", *(f"{kind}-{n}\t-1\ta {n}\tb" for n in (11, 3, 9, 10) for kind in "SH")]
    (tmp_path / "out").write_text("\n".join(lines) + "\n")
    library = "source recipes/lib/stages.sh; source recipes/lib/wmt.sh"
    printed = run("bash", "-c", f"{library}; sentences 9 2 {tmp_path}/out")
    assert printed.splitlines() == [
        f"{kind}-{n - 9}\t-1\ta {n}\tb" for n in (9, 10) for kind in "SH"
    ]


@pytest.mark.parametrize("keep, wanted", [(0, " --best"), (5, "")])
def test_without_averaging_a_training_goes_on_with_the_best_checkpoint_restored(
    run, tmp_path, keep, wanted
):
    script = f"""source recipes/lib/stages.sh; source recipes/lib/wmt.sh
        open_cell() {{ setting=s label=l seed=1 folder={tmp_path} arguments=(); }}
        python() {{ echo "python $*" >&2; }}
        declare -A BATCHES=([s]="--max-tokens 1")
        KEEP={keep} DEVICE_OPTIONS=() LAUNCH=(true)
        train_cell cell"""
    printed = run("bash", "-c", script)
    assert (
        f"python -m fairseq_posenc.tools.recipe.newest_checkpoint {tmp_path}{wanted}\n" in printed
    )


def test_admin_profiles_a_batch_of_the_authors_size_whatever_fits_the_gpus(run, tmp_path):
    recipe = (REPOSITORY / CAPE).read_text()
    functions = recipe[recipe.index("source ") : recipe.index("\nparse_options ")]
    script = f"""{functions}
        RUN_DIR={tmp_path} DEVICE_OPTIONS=(); posenc() {{ echo "$*" >&2; false; }}
        declare -A BATCHES=([de6]="--max-tokens 4096" [fr6]="--max-tokens 64000")
        for setting in de6 fr6; do
            mkdir -p {tmp_path}/$setting/cape/seed1
            (train_cell "1 $setting cape") || cat {tmp_path}/$setting/cape/seed1/admin.log
        done"""
    printed = run("bash", "-c", script)
    assert re.findall(r"--max-tokens (\d+)", printed) == ["8192", "8000"]


def test_in_a_slurm_job_of_several_nodes_srun_starts_the_training(run):
    options = "--gpus", "8", "--gpu-memory", "16", "--settings", "en-de"
    printed = _plan(run, REL_SCALAR, *options, SLURM_JOB_NUM_NODES="2")
    commands = [line for line in printed.splitlines() if line.startswith("srun")]
    assert len(commands) == 4
    for words in ("--nodes 2 --ntasks-per-node 1", "--distributed-world-size 16"):
        assert all(words in line for line in commands)
    assert "× 16 GPUs" in printed

"""Every block of commands in README.md and docs/ is run, made small by further options."""

import functools
import gzip
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
BENCHMARKS = REPOSITORY / "recipes" / "smoke" / "benchmarks.tar.xz"
PAGES = sorted(
    str(path.relative_to(REPOSITORY))
    for path in [REPOSITORY / "README.md", *REPOSITORY.glob("docs/**/*.md")]
    if path.name != "CONTRIBUTING.md"  # has a test of its own
)
ONE_LAYER = "--encoder-layers 1 --decoder-layers 1"
CPU = "--cpu --num-workers 0 --log-format none"
# How a command is made small: its beginning, what then comes first, what comes last. Recipes are
# run in tests/recipes/test_smoke.py; here their options are read, and no stage is run.
SMALLER = [
    (r"bash (scripts/test|scripts/gpu|recipes/quickstart)\.sh", "--help #", ""),
    (r"bash recipes/anchors\.sh \w+", "--stage 99", ""),  # which anchor comes before the options
    (r"bash recipes/\S+", "--stage 99", ""),
    (r"(fairseq-train|posenc profile-admin) \$options", "",
     f"--max-update 3 {ONE_LAYER}"),
    (r"fairseq-train bin ", "", f"{CPU} {ONE_LAYER} --arch posenc_transformer_tiny --max-epoch 5 "
     "--max-tokens 1000"),
    (r"fairseq-train (text|bin/MNLI) ", "", f"{CPU} --arch posenc_bert_tiny --update-freq 1 "
     "--batch-size 8 --max-update 2 --warmup-updates 1"),
    (r" *fairseq-train lm-bin ", "", f"{CPU} --arch posenc_transformer_lm_tiny --max-update 2 "
     "--max-tokens 500 --required-batch-size-multiple 1"),
    (r"posenc perplexity", "", "--cpu"),
    (r"fairseq-hydra-train ", "", "common.cpu=true model._name=posenc_transformer_tiny "
     "optimization.max_update=2 dataset.num_workers=0"),
    (r"fairseq-generate ", "", "--cpu --max-len-b 10"),
    (r"posenc prepare translation", "", "--bpe 50"),
    (r"python -m recipes\.corpus", "", "--train 100 --valid 10 --test 10 --quiet"),
    (r"posenc prepare text", "", "--hold-out 3"),
    (r"posenc predict", "", "--cpu"),
    # models of 12 layers: test_command.py has them
    (r"python -m recipes\.benchmark --table \S+", "--help #", ""),
    (r"python -m recipes\.benchmark\.memory", "", "--shape tiny --length 8 --tokens 8 --updates 3"),
    (r"python -m recipes\.benchmark(?= )", "", "--shape tiny --lengths 8 --tokens 16 --rounds 5 "
     "--dropout 0 --encodings sinusoidal,rotary"),
    (r"posenc analyse shift-invariance", "", "--sentences 5"),
    (r"posenc analyse swap", "", "--pairs 3 --max-len-a 0"),
]  # fmt: skip


def blocks(page, language):
    """Return a page's blocks of commands or code."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def smaller(line):
    """Return a line of commands with the options that make it small."""
    for begins, first, last in SMALLER:
        match = re.match(begins, line)
        if match:
            command, redirection, target = line.partition(" > ")
            # an option of ours that takes one value is refused if it is given twice
            for option in re.findall(r"--[\w-]+", last):
                command = re.sub(rf" {option}(?: (?!--)\S+)?(?= |$)", "", command)
            return f"{match.group()} {first}{command[match.end() :]} {last}{redirection}{target}"
    return line


def script(page):
    """Return all commands of a page as one small script."""
    lines = "\n".join(blocks(page, "bash")).replace("\\\n", " ").splitlines()
    return "\n".join(map(smaller, lines))


@pytest.fixture
def do(tmp_path, copies):
    """A function that runs a script of bash in a folder that looks like the repository."""
    for name in ("fairseq_posenc", "recipes", "scripts", "tests"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    path = os.pathsep.join([str(copies.bin), os.path.dirname(sys.executable), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": ".", "OMP_NUM_THREADS": "1"}

    def do(lines):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", lines], cwd=tmp_path, env=environment,
            encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-4000:]
        return done.stdout

    return do


def parallel_text(do):
    """Parallel text in train, valid and test."""
    do("python -m recipes.corpus --output . --train 90 --valid 30 --test 30 --quiet")


def english_french(do, folder):
    """What README.md starts from: raw text in two languages."""
    subjects = {"The cat": "Le chat", "A man": "Un homme", "My sister": "Ma sœur", "He": "Il"}
    verbs = {"sees": "voit", "eats": "mange", "buys": "achète", "doesn't want": "ne veut pas"}
    objects = {
        "an apple.": "une pomme.",
        "the red fish.": "le poisson rouge.",
        "bread!": "du pain !",
    }
    pairs = list(itertools.product(subjects.items(), verbs.items(), objects.items()))
    for split, chosen in ("train", pairs), ("valid", pairs[::5]), ("test", pairs[::7]):
        for side, language in enumerate(("en", "fr")):
            lines = [" ".join(part[side] for part in parts) + "\n" for parts in chosen]
            (folder / f"{split}.{language}").write_text("".join(lines), encoding="utf-8")


def benchmarks(do, folder):
    """What docs/language_models.md starts from: text, documents, and MNLI's files."""
    parallel_text(do)
    for split in ("train", "valid", "test"):
        shutil.copy(folder / f"{split}.en", folder / f"{split}.txt")
    shutil.unpack_archive(BENCHMARKS, folder / "benchmarks")
    (folder / "documents").symlink_to("benchmarks/text")
    (folder / "glue").symlink_to("benchmarks/glue")


TRAINED = """
for split in train valid test; do
    posenc prepare pairs setting interpolate --neighbours $neighbours --keep-rest \\
        --input $split --output $split.joined --languages en,de
done
fairseq-preprocess --source-lang en --target-lang de --joined-dictionary --destdir bin \\
    --trainpref train.joined --validpref valid.joined --testpref test.joined
task="--user-dir fairseq_posenc --task posenc_translation --cpu"
fairseq-train bin $task --arch posenc_transformer_tiny --position-encoding $encoding \\
    --share-all-embeddings --optimizer adam --max-tokens 500 --max-update 1 --save-dir row/seed1
mv row/seed1/checkpoint_last.pt row/seed1/average.pt
fairseq-generate bin $task --path row/seed1/average.pt --max-len-b 9 \\
    --required-batch-size-multiple 1 > row/seed1/generate.out
"""


def trained(do, encoding, neighbours=1):
    """Data in bin/, and a tiny model with its translations in row/seed1/."""
    parallel_text(do)
    do(f"encoding={encoding} neighbours={neighbours}" + TRAINED)


def results_of_multi30k(do, folder):
    """What docs/analyses.md starts from."""
    for setting, neighbours in ("multi30k", 1), ("multi30k_interpolate", 3):
        trained(do, "rel_scalar", neighbours)
        do(
            "posenc score --bins 5,10 --data bin --generated row/seed1/generate.out "
            "--output row/seed1/score.json"
        )
        runs = folder / "runs" / setting
        runs.mkdir(parents=True)
        for name in ("bin", "row"):
            (folder / name).rename(runs / name)
        for name in ("sinusoidal", "shape", "cape", "shaw", "t5", "rel_scalar"):
            (runs / name).symlink_to("row")


def translation_model(do, folder, cut="--bpe 50"):
    """What pages on trained models start from: what README.md's own data become."""
    parallel_text(do)
    do(
        f"""posenc prepare translation --source-lang en --target-lang de {cut} \\
        --train train --valid valid --test test --output bin
        fairseq-train bin --user-dir fairseq_posenc --task posenc_translation --cpu \\
        --arch posenc_transformer_tiny --encoder-layers 1 --decoder-layers 1 \\
        --share-all-embeddings --position-encoding cape --optimizer adam \\
        --max-tokens 500 --max-update 1""",
    )
    (folder / "checkpoints" / "average.pt").symlink_to("checkpoint_last.pt")


def two_models(do, folder):
    """What docs/change_encoding.md starts from: README.md's model, and one with a table."""
    translation_model(do, folder)
    do(
        """fairseq-train bin --user-dir fairseq_posenc --task posenc_translation --cpu \\
        --arch posenc_transformer_tiny --share-all-embeddings --position-encoding learned \\
        --optimizer adam --max-tokens 500 --max-update 1 --save-dir learned""",
    )


def configured(do, folder):
    """What docs/bigger_machines.md starts from: its file of options, and data in bin/."""
    parallel_text(do)
    do("neighbours=1" + TRAINED.split("task=")[0])
    [options] = blocks("docs/bigger_machines.md", "yaml")
    (folder / "cape.yaml").write_text(options, encoding="utf-8")


def wikitext(do, folder):
    """What docs/recipes/chen.md starts from: its text, whatever it says."""
    (folder / "wikitext2").mkdir()
    for name in ("valid", "test"):
        with gzip.open(folder / "wikitext2" / f"{name}.txt.gz", "wt") as stream:
            stream.write(" = Title = \n A text . \n")


PREPARED = {
    "docs/language_models.md": benchmarks,
    "README.md": english_french,
    "docs/compare.md": english_french,
    "docs/own_data.md": english_french,
    "docs/analyses.md": results_of_multi30k,
    "docs/export.md": functools.partial(translation_model, cut=""),
    "docs/huggingface.md": translation_model,
    "docs/change_encoding.md": two_models,
    "docs/longer_inputs.md": functools.partial(translation_model, cut=""),
    "docs/bigger_machines.md": configured,
    "docs/recipes/chen.md": wikitext,
}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run(page, do, tmp_path):
    PREPARED.get(page, lambda do, folder: None)(do, tmp_path)
    do(script(page))
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    for command in set(re.findall(r"`(posenc(?: [a-z][\w-]*)+)", text)):
        do(f"{command} --help")
    for code in blocks(page, "python"):
        assert do(f"python -c {shlex.quote(code)}").strip()

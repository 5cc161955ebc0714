"""What the WMT recipes train and prepare is what the papers did: plans and batches, small data."""

import os
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from fairseq_posenc.tools.tables.papers import load
from fairseq_posenc.tools.translation.corpora import named
from recipes.lib import paper_numbers
from recipes.lib.config import Config, ParsedArguments, RecipeScript
from recipes.lib.recipe import Recipe
from recipes.lib.wmt_data import Corpora, CorpusSetting

SHAPE, CAPE, REL_SCALAR = (
    f"recipes/{name}.sh" for name in ("shape/run", "cape/run", "rel_scalar/translate")
)


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


@pytest.mark.parametrize(
    "table, recipe, trainings, shifts",
    [
        ("shape-2", SHAPE, 21, 1),
        ("cape-2", CAPE, 27, 1),
        ("chen2021-6", REL_SCALAR, 12, 1),
        ("cape-2", f"{CAPE} --sweep 5,10,50", 45, 3),
    ],
)
def test_the_trainings_of_a_plan_are_the_papers(run, table, recipe, trainings, shifts):
    printed = _plan(run, *recipe.split(), "--gpus", "8", "--gpu-memory", "16")
    training = r"^torchrun .* --position-encoding (.+?) --max-tokens .* --save-dir runs/\w+/(.+?)/"
    found = re.findall(training, printed, re.MULTILINE)
    assert len(found) == trainings
    for row in load(table).rows:
        settings = [row.setting] if row.setting else load(table).settings
        belong = sum(row.has(setting, options) for options, setting in found)
        # a row without figures was not trained; a sweep has three global shifts of CAPE
        times = (shifts if row.options[0].startswith("cape") else 1) * any(row.figures)
        assert belong == row.seeds * times * len(settings), row.labels


@pytest.mark.parametrize("recipe", [SHAPE, CAPE, REL_SCALAR, "recipes/iwslt14.sh"])
def test_downloads_lie_where_recipes_can_share_them(run, recipe):
    options = "--gpus", "1", "--gpu-memory", "16", "--seeds", "1", "--encodings", "none"
    assert "] download into /shared:" in _plan(run, recipe, *options, "--data-dir", "/shared")


def test_a_training_with_admin_begins_with_the_profile_that_the_command_before_it_makes(run):
    lines = _plan(run, CAPE, "--gpus", "4", "--gpu-memory", "16").splitlines()
    commands = [line for line in lines if line.startswith("torchrun")]
    profiles = [line for line in lines if line.startswith("posenc profile-admin")]
    outputs = [re.search(r"--output (\S+)", line)[1] for line in profiles]
    assert outputs == [re.search(r"--admin-profile (\S+)", line)[1] for line in commands]
    assert all(lines[lines.index(line) - 1] in profiles for line in commands)


@pytest.mark.parametrize(
    "recipe, figures, swaps",
    [(SHAPE, {"2": 1, "3.png": 3, "4": 2, "7.png": 3, "8.png": 3}, 1),
     (CAPE, {"8_valid.png": 3, "8_newstest2014.png": 3}, 0)],
)  # fmt: skip
def test_the_plan_has_the_command_of_every_figure_and_of_table_1(run, recipe, figures, swaps):
    printed = _plan(run, recipe, "--gpus", "8", "--gpu-memory", "16")
    found = re.findall(r"(?m)^posenc (?:plot|analyse) .* --output \S*/figure_(\S+)", printed)
    assert Counter(found) == figures
    # Table 1 and Figure 2 are of the same models, section 3.2
    models = r"(?m)^posenc analyse {} --models (.*/interpolate/shape/seed1/average.pt) --data"
    swapped, shifted = (re.findall(models.format(n), printed) for n in ("swap", "shift-invariance"))
    assert swapped == shifted and len(swapped) == swaps


def _shape_plan(run, *options):
    """Return the commands of SHAPE's trainings, and their cells."""
    printed = _plan(run, SHAPE, "--gpus", "8", "--gpu-memory", "16", *options)
    commands = [line for line in printed.splitlines() if line.startswith("torchrun")]
    assert f"trainings: {len(commands)}\n" in printed
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


def test_the_regime_of_vaswani_has_nothing_that_is_tensor2tensors(run):
    printed = _plan(run, REL_SCALAR, "--gpus", "8", "--gpu-memory", "16", "--regime", "vaswani")
    commands = [line for line in printed.splitlines() if line.startswith("torchrun")]
    assert len(commands) == 12 and "25000 tokens" in printed
    for line in commands:
        assert "--max-update 100000 " in line and "--adam-eps 1e-9 " in line
        assert "--warmup-updates 4000 " in line and "--lr 0.000698771 " in line
        assert "--share-all-embeddings " in line and "-normalize-before" not in line
        assert "--activation-dropout" not in line and "--attention-dropout" not in line
        assert "--adam-betas '(0.9,0.997)'" not in line
    assert sum("--position-encoding shaw --max-tokens" in line for line in commands) == 3


def corpora(tmp_path, **words):
    """The text of a recipe's run folder, with values of its options, and a setting of it."""
    values = Config([{"run-dir": str(tmp_path), "workers": "1", **words}, {}])
    recipe = Recipe(RecipeScript("wmt", SHAPE, "/", {}), ParsedArguments(values, [], [], []))
    setting = CorpusSetting("de6", values, str(tmp_path))
    return Corpora(recipe, [setting]), setting


def test_a_held_out_validation_set_is_cleaned_in_subwords_as_the_training_text_is(tmp_path):
    text = tmp_path / "text" / "wmt14_en_fr"
    text.mkdir(parents=True)
    good, long, lopsided = ["ab"] * 100, [" ".join(["ab"] * 251)], ["ab ab ab ab"]
    for split, lines in (("train", good + long), ("valid", good + long + lopsided)):
        for language in ("en", "fr"):
            shorter = ["ab" if language == "fr" and line in lopsided else line for line in lines]
            (text / f"{split}.tok.{language}").write_text("\n".join(shorter) + "\n")
    (text / "newstest2014.tok.en").write_text(long[0] + "\n")
    (text / "newstest2014.tok.fr").write_text("ab\n")
    corpora(tmp_path, corpus="wmt14_en_fr", bpe="1")[0].learn_subwords("wmt14_en_fr", str(text))
    for split in ("train", "valid"):
        assert (text / f"{split}.bpe.en").read_text().splitlines() == good
    assert len((text / "newstest2014.bpe.en").read_text().split()) == 251
    assert not list(text.glob("*.cut.*"))


@pytest.mark.parametrize(
    "name, number, share, told",
    [("pairs", 100, 0, ""), ("pairs", 103, 0.02, "pairs: 100, the paper's 103"),
     ("pairs", 103, 0.03, ""), ("α", 2.03, 0.02, ""), ("α", 1.9, 0.02, "α: 2, the paper's 1.9"),
     ("validation", 7, 0, ""), ("test", 8, 0, "test: 9, the paper's 8"),
     ("parameters", 44143616, 0, ""), ("parameters", 44143000, 0, "parameters: 44143616, the")],
)  # fmt: skip
def test_what_is_not_the_papers_is_told(monkeypatch, tmp_path, name, number, share, told):
    _, setting = corpora(tmp_path, corpus="wmt14_en_de")
    for folder in (setting.data, setting.bin):
        Path(folder).mkdir(parents=True)
    for language, line in (("en", "a\u00a0b\n"), ("de", "a b\n")):
        for file, count in (("train.bpe", 100), ("valid.bpe", 7), ("tests", 9)):
            Path(f"{setting.data}/{file}.{language}").write_text(count * line)
        Path(f"{setting.bin}/dict.{language}.txt").write_text(2 * line)
    row = ("wmt14_en_de", "vanilla", name, number, share)
    monkeypatch.setattr(paper_numbers, "NUMBERS", [row])
    said = []
    paper_numbers.compare_with_paper(said.append, setting)
    assert len(said) == bool(told) and told in "".join(said)


def test_numbers_of_papers_are_of_corpora_that_are_there():
    assert len(paper_numbers.NUMBERS) == 9
    assert all(named(row[0]) for row in paper_numbers.NUMBERS)
    # 61 million parameters are those of 32,768 subwords
    assert round((44140544 + 512 * (4 + 32768)) / 1e6) == 61


@pytest.mark.parametrize(
    "recipe, tokens, trainings",
    [
        (SHAPE, 112000, 3),
        (CAPE, 32768, 3),
        ("recipes/rel_scalar/pretrain_english.sh", 65536, 4),
        ("recipes/rel_scalar/pretrain_multilingual.sh", 262144, 4),
    ],
)
def test_the_preset_for_a_gpu_trains_on_one_or_two_billion_tokens(run, recipe, tokens, trainings):
    size = "--gpus", "1", "--gpu-memory", "80"
    printed = _plan(run, recipe, "--preset", "gpu", *size)
    commands = [line for line in printed.splitlines() if line.startswith("fairseq-train")]
    assert len(commands) == trainings and f"{tokens} tokens" in printed
    for line in commands:
        assert " --bf16 " in line and "-gpu/" in line
        assert 1 <= tokens * int(re.search(r"--max-update (\d+)", line)[1]) / 1e9 < 2.1
    # other options overrule it
    other = _plan(run, recipe, "--updates", "7", *size, "--preset", "gpu", "--", "--fp16")
    assert "--max-update 7 " in other and "--fp16" in other and "--bf16" not in other


def test_ready_text_needs_the_test_sets_alone(run, tmp_path):
    (tmp_path / "train.bpe.en").write_text("a\n")
    options = "--ready", tmp_path, "--gpus", "8", "--gpu-memory", "16"
    printed = _plan(run, SHAPE, *options)
    assert "wmt16.translation-task.test.tgz" in printed
    assert "training-parallel" not in printed and "trainings: 21" in printed


def test_admin_profiles_a_batch_of_the_authors_size_whatever_fits_the_gpus(run):
    options = "--gpus", "1", "--gpu-memory", "80", "--settings", "de6,fr6", "--seeds", "1"
    printed = _plan(run, CAPE, *options, "--encodings", "cape")
    profiles = re.findall(r"^posenc profile-admin .* --max-tokens (\d+)", printed, re.M)
    assert profiles == ["8192", "8000"]


@pytest.mark.parametrize(
    "recipe",
    [SHAPE, CAPE, REL_SCALAR, "recipes/iwslt14.sh", "recipes/rel_scalar/pretrain_english.sh",
     "recipes/rel_scalar/pretrain_multilingual.sh"],
)  # fmt: skip
def test_a_plan_needs_no_environment_and_makes_none(run, fails, tmp_path, recipe):
    (tmp_path / "python3").symlink_to(os.path.realpath(sys.executable))  # without libraries
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "POSENC_VENV": tmp_path / "none"}
    command = ["bash", recipe, "--plan", "--run-dir", tmp_path / "run"]
    assert "\nfairseq-train " in run(*command, **environment)
    command += ["--device", "cuda", "--gpu-memory", "16"]
    if "iwslt14" not in recipe:  # which is for one GPU
        assert "give --gpus and --gpu-memory" in fails(*command, **environment)
    assert "fairseq-train " in run(*command, "--gpus", "1", **environment)
    assert os.listdir(tmp_path) == ["python3"]

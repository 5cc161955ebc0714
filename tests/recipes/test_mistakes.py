"""What is wrong with the options of a recipe is told in one line, before anything is done."""

import functools
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import recipes.lib.__main__ as program
from tests.recipes.conftest import given_once

REPOSITORY = Path(__file__).resolve().parents[2]
RECIPES = sorted(
    str(path.relative_to(REPOSITORY))
    for path in REPOSITORY.glob("recipes/**/*.sh")
    if path.parent.name != "lib"
)
WMT = ["recipes/shape/run.sh", "recipes/cape/run.sh", "recipes/rel_scalar/translate.sh"]
WMT += ["recipes/iwslt14.sh"]  # of the same library
PRETRAIN = [f"recipes/rel_scalar/pretrain_{name}.sh" for name in ("english", "multilingual")]
FINETUNE = ["recipes/glue/run.sh", "recipes/xtreme/run.sh"]
SMALL = ["recipes/quickstart.sh", "recipes/multi30k.sh"]
DOCS = ["recipes/python_docs.sh", "recipes/lm.sh"]
OWN = ["recipes/own.sh"]
LONGER = ["recipes/longer_inputs.sh"]
SPLITS = "train", "valid", "test"
TEXT = "--source-lang en --target-lang fr --train train --valid valid --test test"
CLAIMS = ["recipes/claims.sh", "recipes/claims/bert.sh"]
ANCHORS = ["recipes/anchors.sh"]
# what all recipes of a kind share is asked of one
ROWS = [WMT[0], PRETRAIN[0], FINETUNE[0], SMALL[0], DOCS[1], CLAIMS[1]]
KINDS = [*ROWS, CLAIMS[0], *ANCHORS]

MISTAKES = {
    "--colour=red": ("unknown option --colour;", SMALL[:1]),
    "--plan=yes": ("--plan takes no value", ROWS[:-1] + OWN),
    "--seeds": ("needs a value", SMALL[:1]),
    "--seeds=": ("--seeds needs a value", SMALL[:1]),
    "--seeds=1,2,1": ("--seeds has 1 more than once", SMALL[:1]),
    "--seeds 1,2,1": ("--seeds has 1 more than once", KINDS),
    "--seeds 1,01": ("01 is not a whole number (--seeds", SMALL),
    "--encodings a=shaw,a=tupe": ("--encodings has a more than once", ROWS),
    "--encodings shaw,shaw": ("--encodings has shaw more than once", SMALL),
    "--encodings ..=shaw": ("needs a label of letters, digits and _.-", ROWS),
    "--encodings shaw,,t5": ("the row '' needs a label", SMALL),
    "--encodings bin=shaw": ("the run folder has something else called bin", ROWS),
    "--encodings table.md=shaw": ("has something else called table.md", SMALL),
    "--settings vanilla,vanilla": ("--settings has vanilla more than once", WMT[:1]),
    "--sweep 40,40": ("--sweep has 40 more than once", WMT[:1]),
    "--sweep 40,b": ("b is not a whole number above 0 (--sweep", WMT[:1]),
    "--regime x": ("--regime is t2t or vaswani, not x", WMT[2:3]),
    "--rows all --encodings shaw": (
        "--encodings would be without effect with --rows",
        PRETRAIN + FINETUNE,
    ),
    "--character-coverage 7": ("is a share from 0.9 to 1, not 7", PRETRAIN[1:]),
    "--parts length,everything": ("no part is called everything (--parts", CLAIMS[:1]),
    "--encodings shaw": ("unknown option --encodings; see --help", CLAIMS[:1]),
    "--rows shaw": ("--rows needs --parts", CLAIMS[:1]),
    "--parts length --rows shaw,x": ("no row is called x (--rows)", CLAIMS[:1]),
    "--parts length,deep --rows shaw": ("part deep has no choice of rows", CLAIMS[:1]),
    "--parts length,joined --rows rotary": ("part joined has none of these rows", CLAIMS[:1]),
    "--pretrain it's": ("--pretrain it's: No closing quotation", FINETUNE),
    "--tasks CoLA,CoLA": ("--tasks has CoLA more than once", FINETUNE[:1]),
    "--lrs 1e-5,1e-5": ("--lrs has 1e-5 more than once", FINETUNE),
    "--seeds 1 --seeds=2": (
        "--seeds is given twice, but it takes one value; give it once",
        SMALL[:1],
    ),
    "--seeds x": ("x is not a whole number (--seeds; see --help)", SMALL[:1]),
    "--stage two": ("two is not a whole number above 0 (--stage; see --help)", SMALL[:1]),
    "--jobs 0": ("0 is not a whole number above 0 (--jobs; see --help)", SMALL[:1]),
    "--stage 2 --device cpu --run-dir /dev/null/run": ("cannot make the folder", KINDS),
    "--stage 2 --device tpu": ("--device is cpu or cuda, not tpu", KINDS),
    "--updates 0": (
        "0 is not a whole number above 0 (--updates",
        WMT + PRETRAIN + SMALL[:1] + DOCS,
    ),
    "--epochs 1.5": ("1.5 is not a whole number above 0 (--epochs", SMALL[1:] + OWN),
    "-- --max-update 60": ("say how many with --keep", SMALL[1:] + OWN),
    "-- --max-epoch=3": ("say how many with --keep", SMALL[1:] + OWN),
    "-- --no-epoch-checkpoints": ("there are no checkpoints of epochs", SMALL[1:] + OWN),
    "-- --seed 5": ("each training has a --seed of its own: see --seeds", ROWS + OWN),
    "-- --position-encoding=t5": ("has a --position-encoding of its own: see --enc", ROWS + OWN),
    "-- --source-lang=de": ("each training has a --source-lang of its own", OWN),
    "--encodings fooo": ("there is no encoding fooo; see posenc", ROWS + OWN),
    "--encodings segments": ("there is no encoding segments; see posenc", SMALL[:1]),
    "--data-dir . --language en --url x": ("--url would be without effect with --d", DOCS[1:]),
    "--text . --languages de": ("--languages would be without effect with --text", PRETRAIN),
    "--text . --url x": ("--url would be without effect with --text", PRETRAIN[:1]),
    "--documents title": ("--documents would be without effect without --text", PRETRAIN[:1]),
    "--text . --valid . --hold-out 9": ("--hold-out would be without effect with", PRETRAIN[:1]),
    "--lengths 128,x": ("x is not a whole number above 0 (--lengths", DOCS[1:]),
    "--stage 3 --stop-stage 2": ("--stage 3 is behind --stop-stage 2", KINDS),
    "-- --fp16": ("no options for fairseq-train are taken behind --", CLAIMS[:1] + ANCHORS),
    "--stage 2 --device cpu -- --log-interval 9": (
        "--log-interval behind -- would be without effect",
        ROWS + OWN + LONGER,
    ),
    "--stage 2 --device cpu -- --max-tokens=9": ("--max-tokens behind -- would be", WMT[:1]),
    "--bins 10,x": ("--bins takes rising whole numbers such as 10,20, not 10,x", OWN),
    "--test-lengths 21-30,4-20": ("--test-lengths takes rising ranges", SMALL[:1]),
    "--test-lengths 4-20,20-30": ("--test-lengths takes rising ranges", SMALL[:1]),
    "--bins 20,10": ("--bins takes rising whole numbers", OWN),
    "--bins auto,9": ("--bins takes rising whole numbers", OWN),
    "--edges auto": ("--edges takes rising whole numbers", LONGER),
    "--longest 9": ("--longest needs --setting extrapolate", SMALL[1:]),
    "--edges x,60": ("--edges takes rising whole numbers", LONGER),
    "--data-dir .": ("--data-dir needs --language", DOCS[1:]),
    "--smoke": ("--model would be without effect with --smoke", LONGER),
    "--preset huge": ("--preset is tiny, small or base, not huge", OWN),
    "--stage 2 --model missing.pt": ("cannot read missing.pt: No such file", LONGER),
    "--from nllb": ("--model would be without effect with --from", LONGER),
    "--encodings report=shaw": ("the run folder has something else called report", OWN),
    "--lr fast": ("fast is not a number above 0 (--lr; see --help)", SMALL[1:] + LONGER + PRETRAIN),
    "--lr nan": ("nan is not a number above 0 (--lr", SMALL[1:]),
    "--lr 0": ("0 is not a number above 0 (--lr", LONGER),
    "--lrs 1e-5,x": ("x is not a number above 0 (--lrs", FINETUNE),
    "--setting x": ("--setting is vanilla, extrapolate or interpolate, not x", SMALL[1:]),
    "--settings x": ("not x", WMT),
    "--keep-checkpoints maybe": ("is yes or no, not maybe", WMT + FINETUNE),
    "--batch many": ("many is not a whole number above 0 (--batch", WMT + PRETRAIN + FINETUNE),
    "--warmup 3": ("--warmup is a share below 1, not 3", PRETRAIN),
    "--stage 2 --device cpu --optimizer sgd": ("is lamb or adam, not sgd", PRETRAIN),
    "--pretrained model.pt": ("--pretrained wants ROW=CHECKPOINT", FINETUNE),
    "--pretrained a=missing.pt": ("cannot read the checkpoint missing.pt", FINETUNE),
}


@functools.cache
def script_of(recipe):
    """The words that a recipe's page hands to the program behind all recipes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "python3")
        path.write_text("#!/bin/bash\nprintf '%s\\0' \"$@\"\n")
        path.chmod(0o755)
        environment = {"PATH": f"{folder}:/usr/bin:/bin"}
        command = ["bash", REPOSITORY / recipe]
        printed = subprocess.run(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE)
    return printed.stdout.decode().split("\0")[2:-1]


@pytest.fixture
def answer(monkeypatch, capfd):
    """A function that starts a recipe in this process: what it prints, and its status."""

    def answer(recipe, *words):
        monkeypatch.setattr(sys, "argv", ["recipes.lib", *script_of(recipe), *words])
        try:
            status = program.main()
        except SystemExit as end:  # of what was started again
            status = end.code
        return "".join(capfd.readouterr()), status

    def start_again(_, words):
        assert sys.argv[1:] == words[3:] and words[:3] == ["python", "-m", "recipes.lib"]
        sys.exit(program.main())

    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(os, "execvp", start_again)
    monkeypatch.setattr(program, "end_on_signals", lambda: None)
    return answer


@pytest.mark.parametrize(
    "recipe, options, words",
    [
        (recipe, options, words)
        for options, (words, recipes) in MISTAKES.items()
        for recipe in recipes
    ],
)
def test_a_mistake_is_answered_in_one_line(answer, tmp_path, recipe, options, words):
    given = []
    if recipe in OWN + LONGER:
        for split in SPLITS:
            for language in "en", "fr":
                (tmp_path / f"{split}.{language}").write_text("a b\n")
            given += [f"--{split}", tmp_path / split]
        given += ["--source-lang", "en", "--target-lang", "fr"]
    if recipe in LONGER:
        for name in "model.pt", "sentencepiece.model":
            (tmp_path / name).touch()
        given += ["--model", tmp_path / "model.pt", "--subwords", tmp_path]
    printed, status = answer(*given_once([recipe, *given, *options.split()]))
    assert status != 0
    assert printed.count("\n") == 1 and words in printed


@pytest.mark.parametrize(
    "recipe, advice",
    [
        (
            PRETRAIN[0],
            "20231101.en.json; fetch datasets/wikimedia/wikipedia by hand and give --raw",
        ),
        (DOCS[1], "wikitext-103.zip; give another --url, or other text by --data-dir"),
        (SMALL[1], "train.en.gz; fetch the files by hand and give --raw-dir"),
    ],
)
def test_what_cannot_be_downloaded_can_be_given(answer, tmp_path, recipe, advice):
    options = f"--stage 2 --device cpu --url file:///none --run-dir {tmp_path}"
    printed, status = answer(recipe, *options.split())
    assert status != 0 and f"/{advice}" in printed


@pytest.mark.parametrize("recipe", KINDS)
def test_an_unknown_option_is_answered_in_one_line_by_bash(start, recipe):
    process = start("bash", recipe, "--colour", "red")
    printed = process.communicate()[0]
    assert process.returncode != 0
    assert printed.count("\n") == 1 and "unknown option --colour" in printed


def test_an_option_that_the_chosen_preset_does_not_read_is_an_error(start, tmp_path):
    page = (REPOSITORY / OWN[0]).read_text()
    page = page.replace("--dropout 0.1 --lr 0.004", "--dropout {dropout} --lr 0.004")
    page = page.replace("options=(\n", 'options=(\n    "--dropout X         of tiny"\n', 1)
    page = page.replace('"$(dirname "$(realpath "$0")")/lib', f'"{REPOSITORY}/recipes/lib')
    (tmp_path / "own.sh").write_text(page)
    command = ["bash", tmp_path / "own.sh", *TEXT.split(), "--plan", "--device", "cpu"]
    printed = start(*command, "--dropout", "0.5").communicate()[0]
    assert " --dropout 0.5 --lr 0.004 " in printed
    process = start(*command, "--preset", "small", "--dropout", "0.5")
    told = process.communicate()[0]
    assert process.returncode and told.count("\n") == 1
    assert "--dropout would be without effect with --preset small: leave it out" in told


@pytest.mark.parametrize("recipe", ["quickstart.sh", "iwslt14.sh"])
def test_an_encoding_named_alone_that_the_recipe_gives_options_is_told(run, recipe):
    spec = "cape=cape --position-source-scale auto"
    command = ["bash", REPOSITORY / "recipes" / recipe, "--plan", "--device", "cpu", "--encodings"]
    note = (
        "# note: cape has its default options, as --encodings says; the recipe's own row is "
        f"'{spec}'\n"
    )
    assert note in run(*command, "sinusoidal,cape")
    assert "default options" not in run(*command, f"sinusoidal,{spec}")


def test_a_single_seed_that_may_be_a_number_of_seeds_is_told(run):
    command = ["bash", *OWN, *TEXT.split(), "--plan", "--device", "cpu", "--seeds"]
    assert "# note: --seeds 3 is seed 3 alone; several are listed: 1,2,3\n" in run(*command, "3")
    assert "alone" not in run(*command, "1")


def test_own_text_has_languages_and_all_its_sets(start):
    for missing in ("--source-lang en", "--valid valid"):
        process = start("bash", *OWN, *TEXT.replace(missing, "").split())
        assert f"{missing.split()[0]} is missing; see --help" in process.communicate()[0]


def test_a_folder_of_a_model_of_one_pair_is_refused_before_it_is_read(start, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "fsmt"}')
    process = start("bash", *LONGER, "--from", tmp_path, *TEXT.split(), "--plan")
    printed = process.communicate()[0]
    assert process.returncode != 0 and "is of type fsmt; --from takes m2m_100 and mbart" in printed


def test_every_recipe_is_of_a_kind():
    assert (
        sorted(WMT + PRETRAIN + FINETUNE + SMALL + DOCS + OWN + LONGER + CLAIMS + ANCHORS)
        == RECIPES
    )


def test_without_its_first_stage_a_recipe_needs_the_environment(start):
    process = start("bash", "recipes/quickstart.sh", "--stage", "2", PATH="/usr/bin:/bin")
    assert "start at stage 1, or first 'source scripts/env.sh'" in process.communicate()[0]
    assert process.returncode != 0


def test_a_mistake_can_be_mended_in_the_same_folder(start, tmp_path):
    command = ["bash", "recipes/quickstart.sh", "--stage", "2", "--stop-stage", "2"]
    command += ["--run-dir", tmp_path / "run", "--device", "cpu", "--train", "5", "--test", "1"]
    process = start(*command, "--test-lengths", "5")
    assert "is written like 4-20, not '5'" in process.communicate()[0]
    assert process.returncode != 0
    process = start(*command, "--test-lengths", "4-6")
    assert "stage 2: corpus: finished" in process.communicate()[0]
    process = start(*command, "--test-lengths", "4-7")
    assert "was made with other settings" in process.communicate()[0]


@pytest.mark.parametrize("recipe", RECIPES)
def test_help_begins_with_the_page_and_tells_defaults_and_its_options_are_taken(run, start, recipe):
    printed = run("bash", recipe, "--help")
    first = (REPOSITORY / recipe).read_text().splitlines()[1]
    assert printed.startswith(f"usage: bash {recipe}") and first[2:] in printed
    defaults = re.findall(r"\{[a-z][a-z-]*\}", printed)
    assert not defaults, defaults
    options = re.findall(r"^  (--[a-z-]+)", printed, re.M)
    assert len(options) == len(set(options)) >= 7
    # flags have no value, so that what follows is an option
    told = start("bash", recipe, options[0], "--colour").communicate()[0]
    assert f"{options[0]} needs a value" in told or "--colour needs a value" in told


def test_a_reader_that_ends_early_gets_no_traceback():
    command = ["bash", "-c", "bash recipes/own.sh --help | sleep 0"]
    assert not subprocess.run(command, cwd=REPOSITORY, capture_output=True).stderr


@pytest.mark.parametrize("recipe", [OWN[0], WMT[0]])  # the others go to it by the same line
def test_an_exported_cdpath_leads_to_no_other_checkout(run, tmp_path, recipe):
    (tmp_path / recipe).parent.mkdir(parents=True)
    (tmp_path / "recipes" / "lib").mkdir()
    (tmp_path / "recipes" / "lib" / "recipe.sh").write_text("echo another checkout; exit 1")
    assert run("bash", recipe, "--help", CDPATH=tmp_path).startswith("usage")


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_is_a_page_of_options_and_a_call(recipe):
    text = (REPOSITORY / recipe).read_text()
    *_, source, call = text.splitlines()
    assert re.fullmatch(
        r'source "\$\(dirname "\$\(realpath "\$0"\)"\)/(\.\./)?lib/recipe\.sh"', source
    )
    assert re.fullmatch(r'recipe [a-z_]+ "\$@"', call)
    assert not re.search(
        r"(?m)^ *(if|for|while|case|function|eval)\b|\(\) *\{|\$\((?!dirname|realpath)", text
    )


@pytest.mark.parametrize("script", sorted(REPOSITORY.glob("scripts/*.sh")), ids=lambda x: x.name)
def test_scripts_go_to_folders_without_cdpath(script):
    for line in script.read_text(encoding="utf-8").splitlines():
        assert not re.search(r"\bcd -P", line) or "CDPATH= cd -P" in line


def test_recipes_that_claims_runs_get_each_option_once(run):
    plan = run("bash", CLAIMS[0], "--plan", "--device", "cpu")
    calls = [shlex.split(line) for line in plan.splitlines() if line.startswith("bash recipes/")]
    assert len(calls) >= 10
    for words in calls:
        assert given_once(words) == words

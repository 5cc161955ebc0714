"""The command line, step by step as a recipe calls it."""

import json

import pytest

SCRIPT = ("posenc", "prepare", "pairs")


def test_files_are_printed_with_sum_name_and_size(run):
    printed = [line.split("\t") for line in run(*SCRIPT, "files", "wmt18_en_cs").splitlines()]
    assert printed[1] == [
        "http://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",
        "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
        "wmt13.training-parallel-europarl-v7.tgz",
        "657632379",
    ]
    # CzEng's is an estimate
    assert printed[0][1::2] == ["-", "-"]
    assert printed[-1][1::2] == ["67e3beca15e69fe3d36de149da0a96df", "-"]
    assert run(*SCRIPT, "operations", "wmt14_fr_en") == "40000\n"


def test_the_steps_of_a_recipe_fit_together(run, tmp_path, make_archive, make_test_set):
    raw, text = tmp_path / "raw", tmp_path / "text"
    names = {
        "training-parallel-europarl-v7": "training/europarl-v7.de-en",
        "training-parallel-commoncrawl": "commoncrawl.de-en",
        "training-parallel-nc-v10": "news-commentary-v10.de-en",
    }
    for line in run(*SCRIPT, "files", "wmt15_de_en").splitlines()[:3]:
        name = line.split("\t")[2]
        stem = names[name.split(".")[1]]
        lines = [f"{stem}: sentence {number}." for number in range(40)]
        make_archive(raw / name, {f"{stem}.en": lines, f"{stem}.de": lines})
    make_test_set(raw, "wmt13")
    path = make_test_set(raw, "wmt15")
    # German to English has files of its own in this year
    lines = [f'<seg id="{number}">Satz {number}.</seg>' for number in range(3)]
    members = ["test/newstest2015-deen-src.de.sgm", "test/newstest2015-deen-ref.en.sgm"]
    make_archive(raw / "wmt15.test.tgz", dict.fromkeys(members, lines))
    assert path == str(raw / "wmt15.test.tgz")
    members = [f"test/newstest2013-src.{language}.sgm" for language in ("de", "en")]
    make_archive(raw / "wmt13.test.tgz", dict.fromkeys(members, lines))

    printed = run(*SCRIPT, "text", "wmt15_de_en", "--raw", raw, "--output", text, "--workers", 2)
    counts = json.loads(printed[printed.index("{") :])
    assert counts["train"] == 120 and counts["tests"] == {"newstest2015": 3}
    train = [text / f"train.tok.{language}" for language in ("de", "en")]
    codes = text / "codes"
    learn = ("bpe-learn", "--operations", 20, "--output", codes)
    run(*SCRIPT, *learn, "--input", *train, "--workers", 2)
    for path in train:
        output = str(path).replace(".tok.", ".bpe.")
        run(*SCRIPT, "bpe-apply", "--codes", codes, "--input", path, "--output", output)
    bpe = ("--input", text / "train.bpe", "--output", text / "train.bpe")
    assert run(*SCRIPT, "clean", "wmt15_de_en", *bpe).endswith("120 pairs kept, 0 dropped\n")
    pairs = ("--input", text / "valid.raw", "--output", text / "long", "--languages", "de,en")
    joined = run(*SCRIPT, "setting", "interpolate", *pairs, "--keep-rest")
    assert joined.endswith("3 pairs read, 1 written\n")
    assert (text / "long.de").read_text() == "Satz 0. <sep> Satz 1. <sep> Satz 2.\n"
    short = run(*SCRIPT, "setting", "extrapolate", *bpe, "--languages", "de,en", "--longest", 5)
    assert short.endswith("120 pairs read, 0 written\n")


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["files", "wmt99"], "no corpus is called 'wmt99'; there are wmt16_en_de"),
        (["text", "wmt16_en_de", "--raw", "none", "--output", "out"], "none lacks wmt13.training"),
        (["setting", "extrapolate", "--input", "none", "--output", "out", "--languages", "en,de"],
         "cannot read none.en: No such file"),
        (["bpe-apply", "--codes", "none", "--input", "none", "--output", "out"],
         "cannot read none: No such file"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_one_line(start, arguments, told):
    process = start(*SCRIPT, *arguments)
    printed = process.communicate()[0]
    assert process.returncode == 1
    assert printed.startswith(f"fairseq_posenc: error: {told}") and printed.count("\n") == 1


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["bpe-learn", "--input", "a", "--output", "b", "--operations", "0"], "positive number"),
        (["setting", "interpolate", "--languages", "en"], "expected two languages such as en,de"),
        (["setting", "x"], "invalid choice: 'x'"),
    ],
)
def test_wrong_options_are_refused(start, arguments, told):
    process = start(*SCRIPT, *arguments)
    assert told in process.communicate()[0] and process.returncode == 2

"""The command line, step by step as a recipe calls it."""

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


def test_a_setting_is_written_with_the_options_of_the_command(run, tmp_path):
    for language in ("en", "de"):
        (tmp_path / f"a.{language}").write_text("one\ntwo\nthree four\n")
    files = "--input", tmp_path / "a", "--output", tmp_path / "b", "--languages", "en,de"
    printed = run(*SCRIPT, "setting", "interpolate", *files, "--keep-rest", "--neighbours", 2)
    assert printed.endswith("3 pairs read, 2 written\n")
    assert (tmp_path / "b.de").read_text() == "one <sep> two\nthree four\n"
    printed = run(*SCRIPT, "setting", "extrapolate", *files, "--longest", 1)
    assert printed.endswith("3 pairs read, 2 written\n")


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
def test_mistakes_are_reported_in_one_line(fails, arguments, told):
    printed = fails(*SCRIPT, *arguments)
    assert printed.startswith(f"fairseq_posenc: error: {told}") and printed.count("\n") == 1

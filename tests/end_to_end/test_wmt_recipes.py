"""WMT and IWSLT recipes from the archives of --smoke to the table, with a real training."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

CAPE = "cape=cape --position-source-scale auto --prepend-source-bos"


@pytest.mark.slow
def test_capes_recipe_goes_from_the_archives_to_the_table(run, tmp_path):
    # relative, as the folders that are the recipes' own choice
    runs = os.path.relpath(tmp_path, Path(__file__).resolve().parents[2])
    command = ["bash", "recipes/cape/run.sh", "--smoke", "--stage", "2", "--run-dir", runs]
    command += ["--settings", "de6", "--encodings", CAPE, "--updates", "20", "--device", "cpu"]
    printed = run(*command)
    assert "| CAPE, 6L-6L" in printed and "stage 10: table: finished" in printed
    cell = tmp_path / "de6/cape/seed1"
    result = json.loads((cell / "score.json").read_text(encoding="utf-8"))
    assert set(result["tests"]) == {"valid", "newstest2014"}
    assert len(result["tests"]["newstest2014"]["by_length"]["bins"]) == 3
    assert result["training"]["updates"] == 20 and result["training"]["tokens_per_second"] > 0
    assert result["training"]["position"].startswith("position:cape|global-shift:5|")
    again = run(*command)
    assert "1 cells, 1 finished before" in again and "] train" not in again
    _the_commands_of_the_plan_do_the_same(run, command, tmp_path, cell)


def _the_commands_of_the_plan_do_the_same(run, command, runs, cell):
    def scores():
        tests = json.loads((cell / "score.json").read_text(encoding="utf-8"))["tests"]
        return {name: found["all"] for name, found in tests.items()}

    printed = run(*command, "--plan").splitlines()
    commands = [line for line in printed if not line.startswith("#") and "http" not in line]
    programs = [line.split(" --")[0] for line in commands]
    assert [" ".join(words.split()[:3]) for words in programs[:3]] == [
        "posenc prepare pairs", "posenc prepare pairs", "posenc prepare binarise"
    ]  # fmt: skip
    assert [words.split()[0] for words in programs[3:]] == [
        "mkdir", "echo", "posenc", "fairseq-train", "touch", "posenc", "find", "fairseq-generate",
        "fairseq-generate", "python", "touch", "python", *["posenc"] * 3,
    ]  # fmt: skip
    expected, tables = scores(), [path.read_bytes() for path in sorted(runs.glob("cape-2.*"))]
    for path in (*cell.glob("*"), runs / "bin", *runs.glob("cape-2.*")):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for line in commands:
        run("bash", "-c", line)
    assert scores() == expected and len(tables) == 2
    assert [path.read_bytes() for path in sorted(runs.glob("cape-2.*"))] == tables


@pytest.mark.slow
def test_iwslt14s_bleu_is_the_last_line_of_fairseq_generate(run, tmp_path):
    # norms first and a higher rate: this soon others learn nothing, and 0 is 0
    command = ["bash", "recipes/iwslt14.sh", "--smoke", "--stage", "2", "--run-dir", tmp_path]
    command += "--seeds 1 --encodings rotary --updates 240 --device cpu".split()
    command += "-- --warmup-updates 30 --lr 0.01 --dropout 0 --validate-interval 15".split()
    command += ["--encoder-normalize-before", "--decoder-normalize-before"]
    run(*command)
    cell = tmp_path / "de-en/rotary/seed1"
    last = (cell / "test.out").read_text(encoding="utf-8").splitlines()[-1]
    [theirs] = re.findall(r"Generate test with beam=5: BLEU4 = (\S+), ", last)
    result = json.loads((cell / "score.json").read_text(encoding="utf-8"))["tests"]["iwslt14"][
        "all"
    ]
    assert result["sentences"] == 50 and not result["empty_hypotheses"]
    assert theirs == f"{result['tokenised_bleu']:.2f}" and float(theirs) > 5
    for metric, name in ("tokenised_bleu", "tokenised BLEU"), ("sacrebleu_lowercase", "sacreBLEU"):
        table = (tmp_path / f"{metric}.md").read_text(encoding="utf-8")
        assert table.startswith(name) and f"| rotary | {result[metric]:.2f} [" in table
    again = run(*command)
    assert "1 cells, 1 finished before" in again and "] train" not in again

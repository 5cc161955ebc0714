"""The plan of a fine-tuning recipe, run as printed with real trainings, makes its table."""

import json
import shutil

import pytest


@pytest.mark.slow
def test_the_commands_of_glues_plan_make_the_recipes_table(run, tmp_path):
    runs, text, model = (tmp_path / name for name in ("run", "text", "model"))
    raw = tmp_path / "benchmarks"
    shutil.unpack_archive("recipes/smoke/benchmarks.tar.xz", raw)
    run("posenc", "prepare", "text", "--train", raw / "text/train.txt", "--kind", "wordpiece",
        "--vocabulary-size", 300, "--hold-out", 3, "--output", text)  # fmt: skip
    run("fairseq-train", text, *"--user-dir fairseq_posenc --task posenc_masked_lm --cpu".split(),
        *"--criterion masked_lm --arch posenc_bert_tiny --position-encoding learned".split(),
        *"--tokens-per-sample 64 --batch-size 8 --max-update 2 --optimizer adam".split(),
        "--num-workers", 0, "--position-segments", "input", "--save-dir", model)  # fmt: skip
    command = ["bash", "recipes/glue/run.sh", "--stage", "3", "--run-dir", runs, "--text", text]
    command += ["--raw-dir", raw / "glue", "--pretrained", f"a={model / 'checkpoint_last.pt'}"]
    command += ["--encodings", "a=learned --position-segments input", "--arch", "posenc_bert_tiny"]
    command += "--tasks CoLA --lrs 1e-3 --seeds 1 --epochs 2 --batch 16".split()
    command += "--length 64 --tables chen2021-4 --device cpu".split()
    (tmp_path / "plan.sh").write_text(run(*command, "--plan"), encoding="utf-8")
    assert not runs.exists()
    run(*command)
    expected = _results(runs)
    shutil.rmtree(runs)
    run("bash", "-e", tmp_path / "plan.sh")
    assert _results(runs) == expected


def _results(runs):
    """The table, and the scores and predictions of the cell."""
    table = (runs / "chen2021-4.md").read_text(encoding="utf-8")
    cell = runs / "a/CoLA/lr1e-3/seed1"
    scores = json.loads((cell / "score.json").read_text(encoding="utf-8"))["scores"]
    assert "| 1e-3" in table
    return table, scores, (cell / "predictions.valid.tsv").read_text(encoding="utf-8")

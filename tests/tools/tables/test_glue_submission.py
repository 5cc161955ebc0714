"""What GLUE's leaderboard takes, of the runs of one row."""

import json
import zipfile

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert.glue_tasks import TASKS
from fairseq_posenc.tools.tables.glue_submission import FILES, write
from fairseq_posenc.tools.tables.papers import CHOICES

# lr/seed: score on the development set; the second is the best, the third equals it
SCORES = {"lr1e-5/seed1": 50.0, "lr2e-5/seed1": 60.0, "lr3e-5/seed2": 60.0}


@pytest.fixture
def runs(tmp_path):
    """Runs of all tasks, whose predictions begin with the name of split, task and run."""
    for task, split, rows in FILES.values():
        for place, score in SCORES.items():
            cell = tmp_path / "a" / task / place
            cell.mkdir(parents=True, exist_ok=True)
            subset, metric = CHOICES[task]
            scores = {subset: {metric: score}, split: {}}
            lr, seed = place[2:].split("/seed")
            about = dict(setting=task, row="a", options="learned", seed=seed, lr=lr)
            (cell / "cell.json").write_text(json.dumps(about))
            (cell / "score.json").write_text(json.dumps({"scores": scores}))
            values = ["-0.5", "5.25"] if task == "STS-B" else [f"{split} {task} {place}"]
            values += ["2.5"] * (rows - len(values))
            lines = [f"{number}\t{value}\n" for number, value in enumerate(values)]
            (cell / f"predictions.{split}.tsv").write_text("index\tprediction\n" + "".join(lines))
    return tmp_path


def test_the_zip_has_the_leaderboards_files_from_the_best_run(posenc, runs):
    printed = posenc("glue-submission", runs, "a").out.splitlines()
    with zipfile.ZipFile(runs / "a" / "submission.zip") as archive:
        files = {name: archive.read(name).decode().splitlines() for name in archive.namelist()}
    names = "CoLA SST-2 MRPC STS-B QQP MNLI-m MNLI-mm QNLI RTE WNLI AX".split()
    assert sorted(files) == sorted(f"{name}.tsv" for name in names)
    for name, (task, split, rows) in FILES.items():
        head, first, *rest = files[f"{name}.tsv"]
        assert head == "index\tprediction" and len(rest) + 1 == rows
        if task != "STS-B":
            assert first == f"0\t{split} {task} lr2e-5/seed1"
    assert files["STS-B.tsv"][1:4] == ["0\t0.0", "1\t5.0", "2\t2.5"]
    assert "MNLI-mm.tsv: a/MNLI/lr2e-5/seed1" in printed
    assert {task for task, _, _ in FILES.values()} == set(TASKS) - {"XNLI"}


def test_all_files_or_none_and_what_is_missing_in_one_line(runs):
    best = runs / "a" / "MNLI" / "lr2e-5" / "seed1"
    (best / "predictions.ax.tsv").unlink()
    for place in SCORES:
        (runs / "a" / "RTE" / place / "score.json").unlink()
    short = runs / "a" / "WNLI" / "lr2e-5" / "seed1" / "predictions.test.tsv"
    short.write_text("index\tprediction\n0\t1\n")
    with pytest.raises(UsageError) as error:
        write(str(runs), "a")
    message = str(error.value)
    assert "RTE (no model of RTE)" in message and "AX (no " in message
    assert "WNLI (1 rows in" in message and "instead of 146" in message and "CoLA" not in message
    assert not list((runs / "a").glob("submission*"))

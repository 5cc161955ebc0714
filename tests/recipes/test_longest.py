"""own.sh --longest N,none, where no pair is longer than N."""

import pytest

from tests.recipes.conftest import lay_out, texts_in
from tests.recipes.test_settings import OWN, STAND_IN


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("train: 60 pairs", 1),
        ("train: 58 of 60 pairs kept; 2 (3.3%) left out: 2 with an empty side", 1),
        (
            "train: 58 of 60 pairs kept; 2 (3.3%) left out: 2 longer than --max-length 40 subwords",
            0,
        ),
    ],
)
def test_a_limit_that_leaves_nothing_out_trains_nothing_twice(start, tmp_path, line, status):
    environment, run_dir = lay_out(tmp_path, STAND_IN), ["--run-dir", tmp_path / "run"]
    (tmp_path / "bin" / "posenc").write_text(f"{STAND_IN}print({line!r})\n")
    words = [*OWN, *texts_in(tmp_path), *run_dir, "--stage", "2", "--device", "cpu"]
    words += ["--longest", "40,none"]
    recipe = start("bash", *words, **environment)
    printed = recipe.communicate()[0]
    assert recipe.returncode == status and printed.count("would be the same") == status, printed
    assert (tmp_path / "log").read_text().count("['fairseq-train'") == (0 if status else 2)
    plan = start("bash", *words, "--plan", **environment)
    assert plan.communicate() and plan.returncode == 0

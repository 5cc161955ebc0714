"""What is left of a table: the rows of the paper, what has been begun, commands and hours."""

import csv
import io

import pytest

from fairseq_posenc.tools.results.grid import Cell
from fairseq_posenc.tools.results.papers import load
from fairseq_posenc.tools.results.plan import plan


def cell(setting, row, options, seed, state="begun", **training):
    facts = {"training": {"gpus": 4, "hardware": "H200", "updates": 1, **training}}
    state, figures = ("finished", facts) if training else (state, {})
    return Cell("", setting, row, options, str(seed), state=state, figures=figures)


def jobs(name, cells=(), folder=None):
    table = load(name)
    made = plan(table, cells, folder or table.recipe["runs"])
    return made, {(job.setting, job.row): job for job in made.jobs}


def commands(made):
    return [line.strip() for line in made.markdown().splitlines() if line.startswith("    bash")]


def test_a_plan_of_shape_has_the_rows_of_the_paper_with_its_seeds_and_hours():
    made, found = jobs("shape-2")
    assert {place: len(job.seeds["open"]) for place, job in found.items()} == {
        ("vanilla", "sinusoidal"): 5, ("vanilla", "shaw"): 5, ("vanilla", "shape"): 5,
        ("extrapolate", "sinusoidal"): 1, ("extrapolate", "shaw"): 1, ("extrapolate", "shape"): 1,
        ("extrapolate", "shape_K40"): 1,
        ("interpolate", "sinusoidal"): 1, ("interpolate", "shape"): 1,
    }  # fmt: skip
    # of its Table 6
    dgx1 = 5 * (97073 + 107089 + 96439) + 101469 + 111246 + 2 * 102535
    hours = (8 * dgx1 + 16 * (69148 + 69529)) / 3600
    assert sum(job.hours * len(job.left) for job in found.values()) == pytest.approx(hours)
    assert all(job.tokens == 22.4e9 for job in found.values())
    line = f"21 of 21 cells are left: 470.4 × 10^9 tokens, {hours:.0f} device-hours."
    assert line in made.markdown()


def test_trainings_that_a_table_prints_twice_run_once():
    made, _ = jobs("shape-7")
    assert [(job.setting, job.row) for job in made.jobs] == [("vanilla", "sinusoidal")]


def test_what_has_finished_is_not_run_again():
    cells = [
        cell("vanilla", "shape", "shape", 1, tokens_per_second=1),
        cell("vanilla", "shape", "shape", 2),
        cell("vanilla", "shape", "shape", 3, "open"),
        cell("vanilla", "shape", "shape", 9, tokens_per_second=1),
        cell("interpolate", "shape", "shape", 1, tokens_per_second=1),
    ]
    made, found = jobs("shape-2", cells)
    job = found["vanilla", "shape"]
    assert job.seeds == {"finished": ["1"], "begun": ["2"], "open": ["3", "4", "5"]}
    line = "bash recipes/shape/run.sh --settings vanilla --encodings shape --seeds 2,3,4,5"
    assert line in commands(made)
    # a finished row has no command
    assert found["interpolate", "shape"].left == []
    assert len(commands(made)) == len(found) - 1
    assert "19 of 21 cells" in made.markdown()
    lines = list(csv.DictReader(io.StringIO(made.csv())))
    by_place = {(one["setting"], one["row"]): one for one in lines}
    assert by_place.keys() == found.keys()
    assert by_place["interpolate", "shape"]["command"] == ""
    assert (by_place["vanilla", "shape"]["command"], by_place["vanilla", "shape"]["open"]) == (
        (line, "3")
    )


def test_rows_go_on_under_the_label_that_they_have():
    options = "cape --position-global-shift 50 --position-source-scale auto --prepend-source-bos"
    cells = [cell("vanilla", "mine", "shaw", 1), cell("vanilla", "SHAPE", "shape", 1)]
    made, found = jobs("shape-2", cells)
    assert found["vanilla", "mine"].seeds["begun"] == ["1"]
    assert ("vanilla", "shaw") not in found and ("extrapolate", "shaw") in found
    lines = commands(made)
    assert any("--encodings mine=shaw --seeds 1,2,3,4,5" in line for line in lines)
    assert any("--encodings SHAPE=shape " in line for line in lines)
    # shifts of CAPE are rows of their own
    _, found = jobs("cape-2", [cell("de6", "wide", options, 2)])
    assert found["de6", "wide"].seeds == {"finished": [], "begun": ["2"], "open": ["1", "3"]}
    assert ("de6", "cape_50") not in found
    assert {("de6", "cape_5"), ("de6", "cape_10"), ("fr6", "cape_50")} <= set(found)


def test_new_rows_have_the_labels_and_options_of_the_recipe():
    options = "cape --position-global-shift 10 --position-source-scale auto --prepend-source-bos"
    assert (
        f"bash recipes/cape/run.sh --settings de18 --encodings 'cape_10={options}' "
        "--run-dir elsewhere/cape --seeds 1,2,3"
    ) in commands(jobs("cape-2", folder="elsewhere/cape")[0])
    assert not any("--run-dir" in line for line in commands(jobs("cape-2")[0]))


def test_measured_speeds_replace_the_papers_hours():
    cells = [
        cell("vanilla", "shape", "shape", 1, tokens_per_second=400),
        cell("vanilla", "shape", "shape", 2, tokens_per_second=200, gpus=1),
        cell("vanilla", "t5", "t5", 1, tokens_per_second=1200),
    ]
    _, found = jobs("shape-2", cells)
    own, other = found["vanilla", "shape"], found["vanilla", "sinusoidal"]
    # tokens per second of one GPU: means of 100 and 200, and of 100, 200 and 300
    assert own.hours == pytest.approx(22.4e9 / 150 / 3600)
    assert own.basis == "ours: shape at 150 tokens/s per device, H200"
    assert other.hours == pytest.approx(22.4e9 / 200 / 3600)
    assert other.basis == "ours: shape, t5 at 200 tokens/s per device, H200"
    assert found["extrapolate", "shape"].basis == "paper"


def test_script_plans_before_there_is_anything(posenc, tmp_path):
    output = tmp_path / "plan.md"
    words = f"--paper chen2021-6 --runs {tmp_path / 'runs'} --plan --output {output}"
    printed = posenc("table", *words.split()).out
    assert output.read_text(encoding="utf-8") == printed
    assert "12 of 12 cells are left" in printed and "does not tell" in printed

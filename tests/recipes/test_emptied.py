"""Files that a full disk or a hand has emptied: a run never takes them for those of its options."""

import pytest

from tests.recipes.conftest import lay_out, texts_in
from tests.recipes.test_settings import OWN, STAND_IN, trainings


@pytest.fixture
def own(start, tmp_path):
    """A function that runs own.sh with stand-ins; returns what it prints, and its status."""
    environment, run_dir = lay_out(tmp_path, STAND_IN), ["--run-dir", tmp_path / "run"]
    words = [*OWN, *texts_in(tmp_path), *run_dir, "--stage", "2", "--device", "cpu"]

    def own(*options):
        recipe = start("bash", *words, *options, **environment)
        return recipe.communicate()[0], recipe.returncode

    return own


@pytest.mark.parametrize("name", ["settings", "shaw/settings", "shaw/seed1/settings"])
def test_emptied_settings_are_not_taken_for_those_of_now(own, tmp_path, name):
    own()
    settings_file = tmp_path / "run" / name
    before = settings_file.read_text()
    settings_file.write_text("")
    printed, status = own("--", "--lr", "0.1")
    assert status == 1 and f"{settings_file} is empty, which says with what" in printed, printed
    assert settings_file.read_text() == "" and len(trainings(tmp_path)) == 1
    settings_file.unlink()  # as the message advises
    printed, status = own()
    assert status == 0 and "1 finished before" in printed and settings_file.read_text() == before


def test_a_stage_whose_done_file_is_emptied_is_done_again(own, tmp_path):
    own()
    done_file = tmp_path / "run/data.done"
    before = done_file.read_text()
    done_file.write_text("")
    printed, status = own()
    assert status == 0 and "stage 2: data: finished in" in printed, printed
    assert done_file.read_text() == before and "1 finished before" in printed


def test_a_cell_json_that_is_emptied_is_written_again(own, tmp_path):
    own()
    cell_json = tmp_path / "run/shaw/seed1/cell.json"
    before = cell_json.read_text()
    cell_json.write_text("")
    printed, status = own()
    assert status == 0 and cell_json.read_text() == before, printed

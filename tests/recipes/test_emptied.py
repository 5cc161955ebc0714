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


@pytest.mark.parametrize("name", ["data.done", "shaw/seed1/cell.json"])
def test_other_emptied_files_are_made_again_and_no_cell_is(own, tmp_path, name):
    own()
    file = tmp_path / "run" / name
    before = file.read_text()
    file.write_text("")
    printed, status = own()
    assert status == 0 and file.read_text() == before, printed
    assert "1 finished before" in printed and len(trainings(tmp_path)) == 1
    assert ("stage 2: data: finished in" in printed) == (name == "data.done")

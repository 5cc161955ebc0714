"""What a translation recipe shows while its trainings run."""

import os
from types import SimpleNamespace

from recipes.lib import translation
from recipes.lib.cell import PlannedCell, Step


def test_a_picture_is_drawn_after_two_trainings_and_after_each_seed(tmp_path, monkeypatch):
    score = Step("score", ["true"], ("x.done",))
    cells = [
        PlannedCell("", row, [row], seed, "", f"{tmp_path}/{row}/{seed}", str(tmp_path), [score])
        for seed in "123"
        for row in "abc"
    ]  # fmt: skip
    drawn, said = [], []

    def run_cells(recipe, cells, stages, after):
        for cell in cells:
            os.makedirs(cell.folder)
            open(cell.path("x.done"), "w").close()
            after(cell)

    monkeypatch.setattr(translation, "run_cells", run_cells)
    monkeypatch.setattr(translation, "draw_scores", lambda recipe, there: drawn.append(len(there)))
    recipe = SimpleNamespace(cell=0, say=said.append, cells=lambda: cells)
    translation.Translation.run_cells(recipe, ["score"])
    assert drawn == [2, 3, 6]  # the last is the table's own stage
    assert said[0] == "2 of 9 cells are finished: one seed alone, nothing is ranked"

"""Work on the cells of a recipe: rows × seeds × settings, as many at a time as there is room
for.
"""

import os
import queue
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Callable, Iterable, List, Sequence, TypeVar

from fairseq_posenc.errors import UsageError
from recipes.lib.cell import PlannedCell
from recipes.lib.recipe import TIME_IS_UP, Recipe
from recipes.lib.running import CellRun
from recipes.lib.settings import check_fingerprint, write

Item = TypeVar("Item")


def in_order(cells: Iterable[PlannedCell]) -> List[PlannedCell]:
    """Return cells seed by seed and, within, by learning rate: a table that is cut short is
    even.
    """
    cells = list(cells)
    seeds = list(dict.fromkeys(cell.seed for cell in cells))
    lrs = list(dict.fromkeys(cell.lr for cell in cells))
    return sorted(cells, key=lambda cell: (seeds.index(cell.seed), lrs.index(cell.lr)))


def check_cells(recipe: Recipe, cells: Sequence[PlannedCell]) -> None:
    """Compare settings with those of before, and write each cell's ``cell.json``, for tables.

    Raises:
        UsageError: one has results of other settings.
    """
    these = chosen(recipe, cells)
    going_on = sum(cell.goes_on for cell in these)
    for cell in these:
        check_fingerprint(f"{cell.row_folder}/settings", cell.options)
        check_fingerprint(cell.path("settings"), cell.fingerprint)
        if not os.path.exists(cell.path("cell.json")):
            write(cell.path("cell.json"), f"{cell.about}\n")
    finished = sum(cell.is_finished for cell in these)
    recipe.say(f"{len(these)} cells, {finished} finished before")
    if going_on:
        recipe.say(f"{going_on} of them go on from fewer epochs; their scores are made again")


def chosen(recipe: Recipe, cells: Sequence[PlannedCell]) -> Sequence[PlannedCell]:
    """Return all cells; with --cell that one.

    Raises:
        UsageError: --cell is beyond the last one.
    """
    if recipe.cell > len(cells):
        raise UsageError(f"--cell is {recipe.cell}, and there are {len(cells)}")
    return cells[recipe.cell - 1 : recipe.cell] if recipe.cell else cells


def finished_cells(recipe: Recipe, cells: Sequence[PlannedCell]) -> List[PlannedCell]:
    """Return the cells that a table is made of: those that are finished; of a plan all.

    Raises:
        UsageError: none is finished, or one was made with other settings.
    """
    if recipe.is_plan:
        return list(cells)
    finished = [cell for cell in cells if cell.is_finished]
    for cell in finished:
        check_fingerprint(cell.path("settings"), cell.fingerprint)
    if not finished:
        raise UsageError("no cell is finished: run the stages before")
    if len(finished) < len(cells):
        recipe.say(f"note: {len(cells) - len(finished)} of {len(cells)} cells are not finished")
    return finished


def run_cells(
    recipe: Recipe,
    cells: Sequence[PlannedCell],
    stages: Sequence[str],
    after: Callable[[PlannedCell], object] = lambda cell: None,
    stop_diverged: bool = False,
) -> None:
    """Do what is left of some stages of all cells; with --cell of that one.

    Args:
        recipe: whose they are.
        cells: all of them.
        stages: titles, as :class:`Step` has them.
        after: is called with each cell that did not fail, one at a time, also if it waits for an
            earlier stage. If it fails, as a table may, trainings go on.
        stop_diverged: whether a training that diverges is stopped.

    Raises:
        UsageError: one has failed. SystemExit: with --cell that one has, or the time was up.
    """
    check_cells(recipe, cells)
    # a slot is a GPU, or a place on the CPU: a cell takes a free one, and gives it back
    slots: queue.Queue[int] = queue.Queue()
    for slot in range(recipe.devices.jobs):
        slots.put(slot)

    def run(number: int) -> int:
        slot = slots.get()
        try:
            if recipe.deadline and time.time() > recipe.deadline:
                return TIME_IS_UP
            ordinal = f"{number + 1} of {len(cells)}"
            environment = recipe.devices.environment(slot)
            return CellRun(
                cells[number], stages, ordinal, environment, recipe.deadline, stop_diverged
            ).run()
        finally:
            slots.put(slot)

    numbers = [recipe.cell - 1] if recipe.cell else range(len(cells))
    statuses = []
    for number, status in _run_parallel(numbers, run, recipe.devices.jobs):
        statuses.append(status)
        if status:
            continue
        try:
            after(cells[number])
        except UsageError as error:
            recipe.say(f"note: {error}; the trainings go on")
    if any(statuses):
        if set(statuses) <= {0, TIME_IS_UP}:
            sys.exit(TIME_IS_UP)
        if recipe.cell:
            sys.exit(1)
        raise UsageError("not all cells are done, see above")


def map_parallel(recipe: Recipe, items: Sequence[Item], action: Callable[[Item], object]) -> None:
    """Call a function with each item, as many at a time as there are jobs; in a plan in order.

    Raises:
        UsageError: of the first that fails; what has not begun by then never does.
    """
    jobs = 1 if recipe.is_plan else recipe.devices.jobs
    for _ in _run_parallel(items, action, jobs):
        pass


def _run_parallel(items: Iterable[Item], action: Callable, jobs: int) -> Iterable:
    """Yield items with what a function returns for them, in the order in which they end."""
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(action, item): item for item in items}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise

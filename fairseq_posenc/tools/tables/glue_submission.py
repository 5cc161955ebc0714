"""What GLUE's leaderboard takes, of the models of one row of recipes/glue/run.sh."""

import os
import zipfile
from typing import Dict, List, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import parse_number, read_lines
from fairseq_posenc.tools.bert.glue_tasks import TASKS
from fairseq_posenc.tools.tables.cells import Cell, read_cells
from fairseq_posenc.tools.tables.papers import CHOICES
from fairseq_posenc.tools.writing import replacing

# by file of the leaderboard: the task whose model makes it, of which split, and its rows
FILES = {
    "CoLA": ("CoLA", "test", 1063),
    "SST-2": ("SST-2", "test", 1821),
    "MRPC": ("MRPC", "test", 1725),
    "STS-B": ("STS-B", "test", 1379),
    "QQP": ("QQP", "test", 390965),
    "MNLI-m": ("MNLI", "test", 9796),
    "MNLI-mm": ("MNLI", "test1", 9847),
    "QNLI": ("QNLI", "test", 5463),
    "RTE": ("RTE", "test", 3000),
    "WNLI": ("WNLI", "test", 146),
    "AX": ("MNLI", "ax", 1104),
}


def best_cells(cells: Sequence[Cell]) -> Dict[str, Cell]:
    """Return by task the cell with the best score on the development set, if one has a score."""
    best: Dict[str, Cell] = {}
    for task in {task for task, _, _ in FILES.values()}:
        subset, metric = CHOICES[task]
        scored = [cell for cell in cells if cell.setting == task and cell.figures.get(subset)]
        if scored:
            best[task] = max(scored, key=lambda cell: cell.figures[subset][metric])
    return best


def write(folder: str, row: str, any_size: bool = False) -> List[str]:
    """Write the submission of a row, a zip: all eleven files, or none.

    Args:
        any_size: take test sets that are not GLUE's.
    """
    best = best_cells([cell for cell in read_cells(folder, fine_tuning=True) if cell.row == row])
    lines: Dict[str, List[str]] = {}
    wrong = []
    for name, (task, split, rows) in FILES.items():
        if task not in best:
            wrong.append(f"{name} (no model of {task})")
            continue
        path = os.path.join(folder, best[task].folder, f"predictions.{split}.tsv")
        if not os.path.exists(path):
            wrong.append(
                f"{name} (no {path}: there was no test set, or --submission was not given)"
            )
            continue
        lines[name] = read_lines(path)
        if not any_size and len(lines[name]) != rows + 1:
            wrong.append(f"{name} ({len(lines[name]) - 1} rows in {path} instead of {rows})")
    if wrong:
        raise UsageError(f"no submission of {row}: the leaderboard wants all, {', '.join(wrong)}")
    low, high = TASKS["STS-B"].scores
    head, *scores = (line.split("\t") for line in lines["STS-B"])
    bounded = ([index, str(min(max(parse_number(score), low), high))] for index, score in scores)
    lines["STS-B"] = ["\t".join(cells) for cells in (head, *bounded)]
    output = os.path.join(folder, row, "submission.zip")
    deflated = zipfile.ZIP_DEFLATED
    with replacing(output, "wb") as stream, zipfile.ZipFile(stream, "w", deflated) as archive:
        for name in FILES:
            archive.writestr(f"{name}.tsv", "".join(f"{line}\n" for line in lines[name]))
    return [f"{name}.tsv: {best[task].folder}" for name, (task, _, _) in FILES.items()]

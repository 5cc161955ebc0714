"""What GLUE's leaderboard takes, of the models of one row of recipes/glue/run.sh."""

import os
import zipfile
from typing import Dict, List, NamedTuple, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import parse_number, read_lines
from fairseq_posenc.tools.bert.glue_tasks import TASKS
from fairseq_posenc.tools.tables.cells import Cell, read_cells
from fairseq_posenc.tools.tables.papers import CHOICES
from fairseq_posenc.tools.writing import replacing, replacing_folder


class LeaderboardFile(NamedTuple):
    """A file of the leaderboard: the task whose model makes it, of which split, and its rows."""

    task: str
    split: str
    rows: int


FILES: Dict[str, LeaderboardFile] = {
    "CoLA": LeaderboardFile("CoLA", "test", 1063),
    "SST-2": LeaderboardFile("SST-2", "test", 1821),
    "MRPC": LeaderboardFile("MRPC", "test", 1725),
    "STS-B": LeaderboardFile("STS-B", "test", 1379),
    "QQP": LeaderboardFile("QQP", "test", 390965),
    "MNLI-m": LeaderboardFile("MNLI", "test", 9796),
    "MNLI-mm": LeaderboardFile("MNLI", "test1", 9847),
    "QNLI": LeaderboardFile("QNLI", "test", 5463),
    "RTE": LeaderboardFile("RTE", "test", 3000),
    "WNLI": LeaderboardFile("WNLI", "test", 146),
    "AX": LeaderboardFile("MNLI", "ax", 1104),
}


def best_cells(cells: Sequence[Cell]) -> Dict[str, Cell]:
    """Return by task the cell with the best score on the development set, if one has a score."""
    best: Dict[str, Cell] = {}
    for task in {file.task for file in FILES.values()}:
        subset, metric = CHOICES[task]
        scored = [cell for cell in cells if cell.task == task and cell.figures.get(subset)]
        if scored:
            best[task] = max(scored, key=lambda cell: cell.figures[subset][metric])
    return best


def write(folder: str, row: str, any_size: bool = False) -> List[str]:
    """Write the submission of a row, a folder and a zip: all eleven files, or none.

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
    output = os.path.join(folder, row, "submission")
    with replacing_folder(output) as partial:
        for name, content in lines.items():
            with open(os.path.join(partial, f"{name}.tsv"), "w", encoding="utf-8") as stream:
                stream.writelines(f"{line}\n" for line in content)
    with replacing(f"{output}.zip", "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
        for name in FILES:
            path = os.path.join(output, f"{name}.tsv")
            archive.write(path, f"{name}.tsv", zipfile.ZIP_DEFLATED)
    return [f"{name}.tsv: {best[file.task].folder}" for name, file in FILES.items()]

"""What has been measured, in a file that grows cell by cell."""

import json
import os
from typing import Any, Dict, Iterable, List, Optional

from fairseq_posenc.benchmark.cost.cell import Cell
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import replacing
from fairseq_posenc.json_files import Each, OrNull, read_shaped

_FIGURES = dict.fromkeys(("seconds", "megabytes", "base", "base_low", "base_high"), float)
_CELL = {"cell": dict, "batch": int, "contestants": Each(OrNull(_FIGURES))}
_SHAPE = {"cells": [_CELL]}


class Record:
    """Cells and their figures, kept in a file if there is one.

    Cells measured with other settings, or elsewhere, stay in the file.

    Args:
        path: JSON, written anew after every cell; what it holds already counts as measured.

    Raises:
        UsageError: the file holds something else.
    """

    def __init__(self, path: Optional[str] = None):
        self.path = path
        self.results: List[Dict[str, Any]] = []
        if path is None or not os.path.exists(path):
            return
        try:
            self.results = read_shaped(path, _SHAPE, "`scripts/benchmark.py cost`")["cells"]
        except UsageError as error:
            raise UsageError(f"{error}; name another --output") from None

    def find(self, cell: Cell) -> Optional[Dict[str, Any]]:
        """Return what was measured of a cell with the very same settings, or None."""
        described = cell.described()
        return next((found for found in self.results if found["cell"] == described), None)

    def all(self, cells: Iterable[Cell]) -> List[Dict[str, Any]]:
        """Return what was measured of cells, in their order."""
        found = (self.find(cell) for cell in cells)
        return [result for result in found if result is not None]

    def add(self, cell: Cell, figures: Dict[str, Any]) -> None:
        """Keep the figures of a cell, see :func:`.cell.measure`."""
        self.results.append({"cell": cell.described(), **figures})
        if self.path is not None:
            with replacing(self.path) as stream:
                json.dump({"cells": self.results}, stream, indent=1)

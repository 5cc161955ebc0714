"""What has been measured, in a file that grows column by column."""

import json
import os
import sys
import time
from typing import Any, Callable, Dict, Iterable, List, Optional, Protocol

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import replacing
from fairseq_posenc.json_files import Each, OrNull, read_shaped

_FIGURES = dict.fromkeys(("seconds", "megabytes", "base", "base_low", "base_high"), float)
_CELL = {"cell": dict, "batch": int, "contestants": Each(OrNull(_FIGURES))}
_SHAPE = {"cells": [_CELL]}
Result = Dict[str, Any]


class Measurable(Protocol):
    """A column, or a cell, of a table: all contestants in one setting."""

    @property
    def title(self) -> str:
        """For people."""

    def described(self) -> Dict[str, Any]:
        """Return whatever its figures depend on, such that JSON keeps it."""


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
        self.results: List[Result] = []
        if path is None or not os.path.exists(path):
            return
        try:
            self.results = read_shaped(path, _SHAPE, "`posenc benchmark`")["cells"]
        except UsageError as error:
            raise UsageError(f"{error}; name another --output") from None

    def find(self, cell: Measurable) -> Optional[Result]:
        """Return what was measured of a cell with the very same settings, or None."""
        described = cell.described()
        return next((found for found in self.results if found["cell"] == described), None)

    def all(self, cells: Iterable[Measurable]) -> List[Result]:
        """Return what was measured of cells, in their order."""
        found = (self.find(cell) for cell in cells)
        return [result for result in found if result is not None]

    def add(self, cell: Measurable, figures: Result) -> None:
        """Keep what was measured of a cell."""
        self.results.append({"cell": cell.described(), **figures})
        if self.path is not None:
            with replacing(self.path) as stream:
                json.dump({"cells": self.results}, stream, indent=1)

    def complete(
        self, cells: Iterable[Measurable], measure: Callable[[Any], Result]
    ) -> List[Result]:
        """Measure the cells that are missing, and return all.

        Args:
            cells: of one table or several.
            measure: returns ``batch``, the sentences in one, and ``contestants``, by name the
                figures of :func:`.timing.race` or None.

        Raises:
            UsageError: interrupted.
        """
        cells = list(cells)
        missing = [cell for cell in cells if self.find(cell) is None]
        try:
            for number, cell in enumerate(missing, 1):
                begin = time.perf_counter()
                self.add(cell, measure(cell))
                took = f"{time.perf_counter() - begin:.0f} s"
                told = f"{number} of {len(missing)}: {cell.title}: {took}"
                print(told, file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            kept = f"the same command continues from {self.path}" if self.path else "use --output"
            raise UsageError(f"interrupted; {kept}") from None
        return self.all(cells)

"""What has been measured, in a file that grows column by column."""

import json
import os
import sys
import time
from dataclasses import asdict
from typing import Any, Callable, Dict, List, Optional, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Each, read_shaped
from fairseq_posenc.tools.benchmark.settings import Setting
from fairseq_posenc.tools.writing import replacing

_RATIOS = ("base", "base_low", "base_high", "stock", "stock_low", "stock_high")
_FIGURES = dict.fromkeys(("seconds", "megabytes", *_RATIOS), float)
_RESULT = {"cell": dict, "batch": int, "contestants": Each(_FIGURES)}
Result = Dict[str, Any]


class Record:
    """Settings and their figures, kept in a file of JSON, if one is given.

    It is written anew after every setting. What it holds already counts as measured; figures of
    other settings, or of other machines, stay in it.
    """

    def __init__(self, path: Optional[str] = None):
        self.path, self.results = path, []
        if path is None or not os.path.exists(path):
            return
        try:
            self.results = read_shaped(path, {"cells": [_RESULT]}, "`posenc benchmark`")["cells"]
        except UsageError as error:
            raise UsageError(f"{error}; name another --output") from None

    def find(self, settings: Sequence[Setting]) -> List[Result]:
        """Return what was measured of the very same settings, in their order."""
        cells = [asdict(setting) for setting in settings]
        return [result for cell in cells for result in self.results if result["cell"] == cell]

    def complete(self, settings: Sequence[Setting], measure: Callable[[Setting], Result]) -> None:
        """Measure the settings that are missing, by :func:`.timing.measure`."""
        missing = [setting for setting in settings if not self.find([setting])]
        try:
            for number, setting in enumerate(missing, 1):
                begin = time.perf_counter()
                self.results.append({"cell": asdict(setting), **measure(setting)})
                if self.path is not None:
                    with replacing(self.path) as stream:
                        json.dump({"cells": self.results}, stream, indent=1)
                took = f"{time.perf_counter() - begin:.0f} s"
                done = f"{number} of {len(missing)}: {setting.title}: {took}"
                print(done, file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            kept = f"the same command continues from {self.path}" if self.path else "use --output"
            raise UsageError(f"interrupted; {kept}") from None

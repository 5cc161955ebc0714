"""Position encodings for fairseq: what ``--user-dir fairseq_posenc`` imports.

No library is imported here, so that ``fairseq_posenc.encodings`` needs torch alone and scripts
start fast; fairseq itself then imports ``tasks/`` and ``models/``, which register what they hold.
"""

import re
from importlib.metadata import PackageNotFoundError, version

from fairseq_posenc.errors import UsageError, print_errors_in_one_line

# loading a stranger's checkpoint safely is torch's own from here on: below, two holes are known
_OLDEST_TORCH = (2, 10)


def _check_torch() -> None:
    try:
        found = version("torch")
    except PackageNotFoundError:  # commands that need none run without it
        return
    if tuple(map(int, re.findall(r"\d+", found)[:2])) < _OLDEST_TORCH:
        print_errors_in_one_line()
        raise UsageError(
            f"torch {found} is too old, 2.10 or newer is needed: pip install --upgrade torch"
        )


_check_torch()

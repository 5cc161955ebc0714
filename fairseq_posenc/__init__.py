"""Position encodings for fairseq: the package that ``--user-dir fairseq_posenc`` imports.

No library is imported here, so that ``fairseq_posenc.encodings`` needs torch alone and scripts
start fast; fairseq itself then imports ``tasks/`` and ``models/``, which register what they hold.
"""

import functools
import os
import re
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version

from fairseq_posenc.errors import UsageError, print_errors_in_one_line

# loading an untrusted checkpoint safely is torch's own from here on: below, two holes are known
_OLDEST_TORCH = (2, 10)
# about how fairseq uses its libraries, most while it is imported: users can do nothing about them
_WARNINGS_OF_FAIRSEQ = (
    r"hydra\.experimental\.\w+\(\) is no longer experimental",
    r"\nThe version_base parameter is not specified",
    r"\nThe strict flag in the compose API is deprecated",
    r"\n'config' is validated against ConfigStore schema",
    "In 'config': Usage of deprecated keyword in package header",
    r"`torch\.cuda\.amp\.autocast\(args\.\.\.\)` is deprecated",
    r"`torch\.jit\.script` is deprecated",
    "'pin_memory' argument is set as true but no accelerator is found",
)


def _check_torch() -> None:
    try:
        installed = version("torch")
    except PackageNotFoundError:  # commands that need none run without it
        return
    if tuple(map(int, re.findall(r"\d+", installed)[:2])) < _OLDEST_TORCH:
        print_errors_in_one_line()
        raise UsageError(
            f"torch {installed} is too old, 2.10 or newer is needed: pip install --upgrade torch"
        )


class _Folders(list):
    """The folders of the package; whoever asks for one while fairseq is there gets all registered.

    That is ``--user-dir``: of a package that somebody has imported already, fairseq's
    ``import_user_module`` imports nothing, and only looks whether it is that of the folder.
    """

    def __contains__(self, folder: object) -> bool:
        if "fairseq.models" in sys.modules:
            register_all()
        return super().__contains__(folder)


@functools.lru_cache(None)
def register_all() -> None:
    """Register all tasks and models with fairseq, for whoever looks a name up in its registries."""
    from fairseq.models import import_models
    from fairseq.tasks import import_tasks

    import_tasks(os.path.join(__path__[0], "tasks"), f"{__name__}.tasks")
    import_models(os.path.join(__path__[0], "models"), f"{__name__}.models")


for _message in _WARNINGS_OF_FAIRSEQ:
    # behind the user's own, such as -W error
    warnings.filterwarnings("ignore", _message, append=True)
_check_torch()
__path__ = _Folders(__path__)

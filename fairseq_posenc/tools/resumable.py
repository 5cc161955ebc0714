"""Folders that are made in several steps: by one process at a time, always with the same options.

A run that was broken off goes on when it is started again: each file takes its name when it is
complete, and ``prepare.json`` says what the folder is made of.
"""

import json
import os
import shutil
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterable, Iterator, List

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import file_digest, file_error
from fairseq_posenc.json_files import load_json
from fairseq_posenc.tools.locks import locked
from fairseq_posenc.tools.writing import replacing

SETTINGS = "prepare.json"


@contextmanager
def only_process(folder: str, say: Callable[[str], object]) -> Iterator[None]:
    """Make a folder, and wait for other runs in it to end."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise file_error("write", folder, error) from None
    with locked(folder, on_wait=lambda: say(f"waiting for another run in {folder} to end")):
        yield


def begin_or_continue(
    folder: str, settings: Dict[str, Any], results: Iterable[str], command: str, made: str = ""
) -> bool:
    """Note the settings in a folder, or return whether it was begun with the same ones.

    Args:
        settings: all that decides about its content, as JSON.
        results: names of files; without any of them, the settings may still change.
        made: folder of what was made on the way, which is removed if the settings change.
    """
    path = os.path.join(folder, SETTINGS)
    try:
        before = load_json(path, {}, command)
        different = sorted(key for key in settings if before.get(key) != settings[key])
        if not different:
            return True
        problem = f"was made with other options or texts ({', '.join(different)})"
    except UsageError as error:
        problem = f"holds other data ({error})"
    if any(os.path.exists(os.path.join(folder, name)) for name in results):
        raise UsageError(f"{folder} {problem}; give another --output")
    # before the settings are noted: a run that ends meanwhile leaves nothing to be taken over
    if made and os.path.exists(made):
        try:
            shutil.rmtree(made)
        except OSError as error:
            raise file_error("write", made, error) from None
    with replacing(path) as stream:
        json.dump(settings, stream, indent=1, ensure_ascii=False, sort_keys=True)
    return False


def describe_files(files: Iterable[str]) -> List[List[Any]]:
    """Return the name of each file and the SHA-256 of its content."""
    return [[os.path.basename(file), file_digest(file)] for file in files]

"""Fingerprints: the words by which results are known, kept in a file ``settings`` beside them.

They are the options of trainings and a checksum of the text, an option with its values a line.
Where a run lies, on what device it works and how many processes it has is not among them. Started
again with something else, a recipe says what differs and stops.
"""

import fnmatch
import hashlib
import os
import re
import shutil
import time
from pathlib import Path
from typing import Dict, Iterable, List, Sequence, Tuple

from fairseq_posenc.errors import UsageError, printable
from fairseq_posenc.files import file_digest
from fairseq_posenc.tools.locks import locked
from fairseq_posenc.tools.writing import replacing

_NO_RESULTS = "*settings", "cell.json", "*lock", "*.log", "*.part", "*.part-*"
EPOCHS = "--max-epoch"
_AVERAGED = "--keep-last-epochs", "--last"  # how many checkpoints, no more than there are epochs
# what a killed recipe had started may have its locks for so long: workers that read batches ahead
LOCK_SECONDS = 10


def as_lines(words: Iterable[str]) -> List[str]:
    """Return an option with its values a line; a line feed within them is written out."""
    lines: List[str] = []
    for word in words:
        word = printable(word)
        if word.startswith("--") or not lines:
            lines.append(word)
        else:
            lines[-1] += f" {word}"
    return lines


def difference(then: Sequence[str], now: Sequence[str]) -> str:
    """Say which lines are in one list alone."""
    parts = ([line for line in a if line not in b] for a, b in ((then, now), (now, then)))
    return "then: {}; now: {}".format(*(" ".join(part) or "nothing more" for part in parts))


def record_fingerprint(path: str, words: Sequence[str], in_use: bool = False) -> None:
    """Keep in a file what has made the results in its folder, or make sure that it is the same.

    Its caller has the lock of whatever makes results there.

    Args:
        path: of the file.
        words: of the commands that make the results.
        in_use: whether results are being made there.

    Raises:
        UsageError: the folder has results that something else has made, or cannot be written.
    """
    check_fingerprint(path, words, in_use)
    now = as_lines(words)
    if read_lines(path) != now:
        write(path, "".join(f"{line}\n" for line in now))


def check_fingerprint(path: str, words: Sequence[str], in_use: bool = False) -> None:
    """Compare as :func:`record_fingerprint`, and write nothing; the folder is made."""
    folder, now = os.path.dirname(path), as_lines(words)
    make_folder(folder)
    then = read_lines(path)
    # it is written whole, so a disk that was full or a hand has emptied it
    if not then and os.path.exists(path) and has_results(folder):
        raise UsageError(
            f"{path} is empty, which says with what options the results beside it were made: "
            "remove it if with those of now, or give another --run-dir"
        )
    if then and then != now and (in_use or has_results(folder)) and not continues(then, now):
        raise UsageError(
            f"{folder} was made with other settings ({difference(then, now)}); "
            "give another --run-dir"
        )


def continues(then: Sequence[str], now: Sequence[str]) -> bool:
    """Return whether settings are those of a training of more epochs, and else the same.

    It is then the training of fewer epochs, going on, if its learning rate does not depend on when
    it ends. A model that was averaged from all of its epochs may be from more of them.
    """
    schedulers = [line for line in now if line.startswith("--lr-scheduler")]
    if len(then) != len(now) or schedulers[-1:] != ["--lr-scheduler inverse_sqrt"]:
        return False
    numbers: Dict[str, Tuple[int, int]] = {}
    for before, after in zip(then, now):
        matches = [re.fullmatch(r"(--\S+) (\d+)(.*)", line) for line in (before, after)]
        if before == after:
            continue
        if not all(matches) or len({(match[1], match[3]) for match in matches if match}) > 1:
            return False
        old, new = (int(match[2]) for match in matches if match)
        numbers[before.partition(" ")[0]] = old, new
    old_epochs, new_epochs = numbers.pop(EPOCHS, (0, 0))
    return old_epochs < new_epochs and all(
        name in _AVERAGED and old == old_epochs for name, (old, _) in numbers.items()
    )


def epochs_of(lines: Iterable[str]) -> str:
    """Return the number of epochs in settings, of several the last, as fairseq; or an empty
    text.
    """
    matches = [re.fullmatch(rf"{EPOCHS}[ =](\d+).*", line) for line in lines]
    return next((match[1] for match in reversed(matches) if match), "")


def has_results(folder: str) -> bool:
    """Return whether there are files that settings, logs and locks are not."""
    for _, _, names in os.walk(folder):
        if any(
            not any(fnmatch.fnmatch(name, pattern) for pattern in _NO_RESULTS) for name in names
        ):
            return True
    return False


def read_lines(path: str) -> List[str]:
    """Return the lines of a file; none where there is no file.

    Raises:
        UsageError: it cannot be read, or is a folder or a pipe.
    """
    try:
        _check_regular(path)
        return Path(path).read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def _check_regular(path: str) -> None:
    """Raise a UsageError for a folder or a pipe: a pipe waits for who writes, and is read once."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise UsageError(f"{path} is a folder, a pipe or a device: a file is needed there")


def write(path: str, text: str) -> None:
    """Write a file, which is whole or as it was before."""
    with replacing(path) as stream:
        stream.write(text)


def make_folder(path: str) -> None:
    """Make a folder, unless it is there."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {path}: {error.strerror}") from None


def files_of(path: str) -> List[str]:
    """Return a file, or the files of a folder, in order, without hidden ones."""
    if not os.path.isdir(path):
        return [path]
    paths = (
        os.path.join(folder, name)
        for folder, _, names in os.walk(path, followlinks=True)
        for name in names
        if not name.startswith(".")
    )
    return sorted(paths, key=os.fsencode)


def checksum(paths: Iterable[str]) -> str:
    """Return what files, and the files of folders, hold, as 16 digits, wherever they lie.

    Raises:
        UsageError: one cannot be read.
    """
    total = hashlib.sha256()
    for path in paths:
        for file in files_of(path):
            _check_regular(file)
            total.update(bytes.fromhex(file_digest(file)))
    return total.hexdigest()[:16]


def check_disk(folder: str, size: int) -> None:
    """End where the disk does not hold archives of so many bytes four times over.

    That is themselves, their text, its subwords and binary data; what the run has made already
    counts.
    """
    made = sum(os.path.getsize(file) for file in files_of(folder) if os.path.exists(file))
    free = shutil.disk_usage(folder).free
    if free + made < 4 * size:
        raise UsageError(
            f"the disk of {folder} has {free // 10**6} MB left; archives of {size // 10**6} MB "
            "need four times as much: give another --run-dir"
        )


def is_locked(path: str) -> bool:
    """Return whether a program holds a lock; if in doubt, it does."""
    try:
        with locked(path, 0):
            return False
    except UsageError:
        return True


def seconds_as_text(seconds: float) -> str:
    """Return a time that is left, in words."""
    if seconds < 90:
        return f"{max(round(seconds), 0)} seconds"
    minutes = round(seconds / 60)
    return (
        f"{minutes} minutes" if minutes < 120 else f"{minutes // 60} hours {minutes % 60} minutes"
    )


def clock() -> str:
    """Return the time of day."""
    return time.strftime("%H:%M:%S")

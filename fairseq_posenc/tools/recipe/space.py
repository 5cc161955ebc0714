"""Tell what a recipe takes before it takes it: downloads, disk, memory, GPU-hours.

    python -m fairseq_posenc.tools.recipe.space RUN_DIR RAW <what there is to do

For recipes; RAW is the folder of downloads. A second line tells what this machine has too little
of. What there is to do, a line each:

    corpus NAME [ready]                text to download (or ready text), its tokens, its BPE
    setting NAME vanilla|FORM          binary data of a corpus, and what the form makes of its text
    translation NAME LAYERS CHANNELS LEFT MODELS KEPT [AT_ONCE]
    bert ARCH VOCABULARY LEFT MODELS KEPT [AT_ONCE]
                                       trainings that are left, models that stay in the end, and the
                                       checkpoints of each training, or of those at a time
    wikipedia LANGUAGE…                dumps, their text, binary data
    load GB DISK                       other downloads, and what is made of them, in GB
    hours TABLE SETTING OPTIONS…       one of the trainings, in a paper's table

Factors are those that tests/recipes/measure_space.py and, of Wikipedia,
tests/tools/prepare/text/measure_wikipedia.py print for made text.
"""

import contextlib
import os
import re
import shutil
import sys
from typing import Dict, Iterable, List, Optional, Set

from fairseq_posenc.tools.prepare.parallel.corpora import Extent, extent, named
from fairseq_posenc.tools.prepare.parallel.sources import downloads
from fairseq_posenc.tools.recipe.batch import BERT
from fairseq_posenc.tools.results import papers
from fairseq_posenc.tools.results.plan import hours_by_the_paper

GB = 1e9
# Of measure_space.py, rounded up. Per byte of raw text: tokens, subwords, binary data; seconds of a
# core per MB. To learn BPE: bytes of memory and seconds per distinct word
TOKENS, SUBWORDS, BINARY, MEGABYTE_SECONDS = 1.05, 1.35, 0.5, 2.9
WORD, WORD_SECONDS = 3000, 0.001
STATE, MODEL = 12, 4  # bytes per weight: float32 with Adam's two moments, or alone
# Rough: bytes of Wikipedia's dumps (others: each of the other 99); per byte of them text and binary
# data. Of measure_wikipedia.py: seconds of a core per MB
ENGLISH, OTHERS = 22 * GB, 0.8 * GB
WIKI_TEXT, WIKI_BINARY, WIKI_SECONDS = 0.8, 0.6, 0.9


class Needs:
    """What a run takes in all, in bytes; ``download`` only what is not there.

    Attributes:
        download: into the folder of downloads.
        disk: of the run folder at its fullest, beside downloads.
        memory: to learn BPE; 0 where that is done.
        work: seconds of a core to prepare text that is not prepared yet.
        trainings: which have not finished.
        hours: GPU-hours of those of which a paper tells them, ``known``.
    """

    def __init__(self, lines: Iterable[str], folder: str, raw: str):
        self.folder, self.raw = folder, raw
        self.download = self.disk = self.memory = self.work = self.hours = 0.0
        self.trainings = self.known = 0
        self._missing: Dict[str, float] = {}
        self._corpora: Set[str] = set()
        self._cut = self._later = 0.0
        for line in lines:
            kind, *words = line.split()
            getattr(self, f"_{kind}")(*words)
        self.download += sum(self._missing.values())
        self.disk += max(self._cut, self._later)

    def _corpus(self, name: str, ready: str = "") -> None:
        if name in self._corpora:
            return
        self._corpora.add(name)
        text = self._extent(name)
        self.disk += text.size * (TOKENS + SUBWORDS)
        if ready:
            return
        for file in downloads(named(name)):
            if not os.path.exists(os.path.join(self.raw, file.name)):
                self._missing[file.name] = file.size
        # while they are cleaned, subwords are there twice; what comes later is not there yet
        self._cut = max(self._cut, text.size * SUBWORDS)
        if not os.path.exists(os.path.join(self.folder, "text", name, "subwords.done")):
            self.memory = max(self.memory, text.words * WORD)
            self.work += text.size / 1e6 * MEGABYTE_SECONDS + text.words * WORD_SECONDS

    def _extent(self, name: str) -> Extent:
        """Return how much text there is: less where all archives are there, and smaller ones."""
        files = [file for file in downloads(named(name)) if file.size]
        paths = [os.path.join(self.raw, file.name) for file in files]
        text, share = extent(name), 1.0
        if all(map(os.path.exists, paths)):
            share = min(1, sum(map(os.path.getsize, paths)) / sum(file.size for file in files))
        return Extent(text.size * share, text.words * share)

    def _setting(self, name: str, form: str) -> None:
        self._later += self._extent(name).size * (BINARY + SUBWORDS * (form != "vanilla"))

    def _wikipedia(self, *languages: str) -> None:
        there = os.listdir(self.raw) if os.path.isdir(self.raw) else []
        for language in languages:
            size = ENGLISH if language == "en" else OTHERS
            wiki = f"{language.replace('-', '_')}wiki-"
            if not any(name.startswith(wiki) and name.endswith(".bz2") for name in there):
                self.download += size
            self.disk += size * (WIKI_TEXT + WIKI_BINARY)
            if not os.path.exists(os.path.join(self.folder, "dumps", f"{language}.extracted")):
                self.work += size / 1e6 * WIKI_SECONDS

    def _load(self, download: str, disk: str) -> None:
        if not os.path.isdir(self.raw):
            self.download += float(download) * GB
        self.disk += float(disk) * GB

    def _translation(self, name: str, layers: str, channels: str, *models: str) -> None:
        width = int(channels)
        self._models((28 * int(layers) * width + named(name).operations) * width, *models)

    def _bert(self, arch: str, vocabulary: str, *models: str) -> None:
        layers, width, _ = BERT.get(arch.rpartition("_")[2], BERT["base"])
        self._models((12 * layers * width + int(vocabulary)) * width, *models)

    def _models(self, weights: int, left: str, models: str, kept: str, at_once: str = "") -> None:
        whole = min(int(left), int(at_once or left)) * int(kept)
        self._later += weights * (whole * STATE + int(models) * MODEL)
        self.trainings += int(left)

    def _hours(self, table: str, setting: str, *options: str) -> None:
        found = None
        if table in papers.names(translation=True):
            found = hours_by_the_paper(papers.load(table), setting, " ".join(options))
        if found is not None:
            self.hours, self.known = self.hours + found, self.known + 1

    def __str__(self) -> str:
        """Return all of it in words."""
        parts = [f"up to {in_words(self.disk)} of disk in {self.folder}"]
        if self.download:
            parts.insert(0, f"{in_words(self.download)} to download")
        if self.memory:
            parts.append(f"{in_words(self.memory)} of memory to learn BPE")
        if self.work >= 1800:
            parts.append(f"some {self.work / 3600:.0f} core-hours to prepare")
        told = f"{self.hours:,.0f} GPU-hours by the paper" if self.known else "GPU-hours not known"
        if self.known not in (0, self.trainings):
            told += f" for {self.known} of them"
        return f"{', '.join(parts)}; {self.trainings} trainings, {told}"

    def lacking(self) -> List[str]:
        """Return in words what this machine has too little of."""
        left = max(self.disk - used(self.folder, without=self.raw), 0)
        needed = [(self.folder, left), (self.raw, self.download)]
        if device(self.raw) == device(self.folder):
            needed = [(self.folder, left + self.download)]
        found = []
        for path, size in needed:
            free = shutil.disk_usage(existing(path)).free
            if size > free:
                found.append(f"{path} has {in_words(free)} left, and needs {in_words(size)}")
        memory = free_memory()
        if memory is not None and self.memory > memory:
            found.append(
                f"learning BPE needs {in_words(self.memory)} of memory, and {in_words(memory)} "
                "are free"
            )
        return found


def in_words(size: float) -> str:
    """Return a number of bytes in gigabytes, or in megabytes if it is small."""
    return f"{size / GB:.1f} GB" if size >= GB / 10 else f"{size / 1e6:.0f} MB"


def existing(path: str) -> str:
    """Return the nearest folder on a path's way that is there."""
    path = os.path.abspath(path)
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def device(path: str) -> int:
    """Return the number of the file system that a path is, or will be, on."""
    return os.stat(existing(path)).st_dev


def used(folder: str, without: str) -> int:
    """Return the bytes that the files below a folder take, those of another folder left out."""
    total, without = 0, os.path.abspath(without)
    for path, folders, names in os.walk(os.path.abspath(folder)):
        folders[:] = [name for name in folders if os.path.join(path, name) != without]
        total += sum(os.lstat(os.path.join(path, name)).st_size for name in names)
    return total


def free_memory(proc: str = "/proc", groups: str = "/sys/fs/cgroup") -> Optional[int]:
    """Return the bytes of memory that this process can get, None where the system does not tell.

    That is what is free, or less where a job or container, as a control group, has a limit.
    """
    try:
        with open(f"{proc}/meminfo", encoding="ascii") as stream:
            found = [int(re.findall(r"MemAvailable:\s+(\d+) kB", stream.read())[0]) * 1024]
        with open(f"{proc}/self/cgroup", encoding="utf-8") as stream:
            listed = [line.rstrip("\n").split(":", 2) for line in stream]
    except (OSError, IndexError):
        return None
    for _, controllers, group in listed:
        if controllers in ("", "memory"):
            name = "memory.limit_in_bytes" if controllers else "memory.max"
            while group:
                with contextlib.suppress(OSError, ValueError):  # no such file, "max"
                    path = f"{groups}/{controllers}{group.rstrip('/')}/{name}"
                    with open(path, encoding="ascii") as stream:
                        found.append(int(stream.read()))
                group = group.rpartition("/")[0]
    return min(found)


def main() -> None:
    """Print a line of what is needed and, if there is too little, one of that."""
    needs = Needs(sys.stdin, *sys.argv[1:])
    print(needs)
    lacking = "; ".join(needs.lacking())
    if lacking:
        print(lacking)


if __name__ == "__main__":
    main()

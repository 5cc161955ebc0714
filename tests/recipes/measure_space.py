"""What preparation needs per byte of text and per distinct word, measured by the recipe's commands.

    python tests/recipes/measure_space.py --megabytes 10

The text is made: words of syllables, as frequent as Zipf's law has it. Printed are the factors of
fairseq_posenc/tools/recipe/space.py, by which recipes tell disk and memory before they start.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

SMOKE = Path(__file__).resolve().parents[2] / "recipes/smoke/wmt"
EUROPARL = "wmt13.training-parallel-europarl-v7.tgz"
CORPUS, LANGUAGES, SENTENCE = "wmt16_en_de", ("en", "de"), 25
SYLLABLES = [c + v + e for c in "bcdfgklmnprstvwz" for v in "aeiouyäö" for e in "-nrstlm"]


def made_text(characters, dice, words=1_000_000):
    """Return lines of 25 words, of about so many characters in all."""
    longest = 1 + 4 * np.log1p(np.arange(words)) / np.log(words)
    pieces = dice.choice(SYLLABLES, (words, 5))
    lexicon = ["".join(row[: round(count)]) for row, count in zip(pieces, longest)]
    lexicon = [word.replace("-", "") for word in lexicon]
    weights = 1 / np.arange(2, words + 2) ** 1.05
    drawn = dice.choice(words, characters // 8, p=weights / weights.sum())
    lines = drawn[: len(drawn) // SENTENCE * SENTENCE].reshape(-1, SENTENCE)
    return [" ".join(lexicon[number] for number in line).capitalize() + "." for line in lines]


def run(*command):
    """Run a command of posenc prepare; return peak memory (bytes) of its largest process, seconds.

    Seconds are of processors, of all its processes together.
    """
    words = [sys.executable, "-m", "fairseq_posenc.tools", "prepare", *map(str, command)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, command
    return used.ru_maxrss * 1024, used.ru_utime + used.ru_stime


def write_archive(home, characters):
    """Write the training texts, and the archive of both."""
    with tarfile.open(home / "raw" / EUROPARL, "w:gz") as tar:
        for seed, language in enumerate(LANGUAGES):
            file = home / f"europarl-v7.de-en.{language}"
            lines = made_text(characters, np.random.default_rng(seed))
            file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            tar.add(file, f"training/{file.name}")


def count_types(files):
    """Return the number of distinct words."""
    return len({word for file in files for line in file.open() for word in line.split()})


def apart(function, *words):
    """Call a function in a process of its own: what it holds would count as that of commands."""
    with ProcessPoolExecutor(1) as pool:
        return pool.submit(function, *words).result()


def size(folder, pattern="*"):
    """Return the bytes of the files in a folder."""
    return sum(file.stat().st_size for file in folder.glob(pattern))


def prepare(home, options):
    """Prepare the text as recipes/shape/run.sh does, and print what it took."""
    text, words = home / "text", ["--workers", options.workers]
    into = ["--raw", home / "raw", "--output", text]
    used = {"text": run("pairs", "text", CORPUS, *into, *words)}
    tokens = sorted(text.glob("train.tok.*"))
    types = apart(count_types, tokens)
    codes = ["--operations", options.operations, "--output", text / "codes"]
    used["bpe-learn"] = run("pairs", "bpe-learn", "--input", *tokens, *codes, *words)
    for file in text.glob("*.tok.*"):
        files = ["--input", file, "--output", str(file).replace(".tok.", ".bpe.")]
        taken = run("pairs", "bpe-apply", "--codes", text / "codes", *files, *words)
        before = used.get("bpe-apply", (0, 0))
        used["bpe-apply"] = (max(taken[0], before[0]), taken[1] + before[1])
    folders = ["--trainpref", text / "train.bpe", "--validpref", text / "valid.bpe"]
    languages = ["--source-lang", "en", "--target-lang", "de", "--joined-dictionary"]
    used["binarise"] = run("binarise", *languages, *folders, "--destdir", home / "bin", *words)
    raw = size(home, "europarl*")
    sizes = {name: size(text, f"train.{name}.*") / raw for name in ("tok", "bpe")}
    sizes["bin"] = size(home / "bin", "train*") / raw
    print(f"raw text {raw / 1e6:.1f} MB, {types:,} distinct words, {options.operations} operations")
    print("disk, per byte of it:", {name: round(value, 2) for name, value in sizes.items()})
    for name, (memory, seconds) in used.items():
        print(f"{name}: {memory / 1e6:.0f} MB, {seconds * 1e6 / raw:.2f} core-seconds per MB")
    memory, seconds = used["bpe-learn"]
    print(
        f"bpe-learn: {memory / types:.0f} bytes, {seconds / types * 1e3:.2f} ms per distinct word"
    )


def main():
    """Make the archives, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--megabytes", type=float, default=10, help="of both languages together (default: 10)")
    add("--operations", type=int, default=32000, help="of BPE (default: 32000)")
    add("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "raw").mkdir()
        for archive in SMOKE.iterdir():
            if archive.name != EUROPARL:
                (home / "raw" / archive.name).symlink_to(archive)
        apart(write_archive, home, int(options.megabytes * 5e5))
        prepare(home, options)


if __name__ == "__main__":
    main()

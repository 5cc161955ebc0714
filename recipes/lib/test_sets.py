"""Cut an output of fairseq-generate for several test sets, one behind the other, into theirs.

    python -m recipes.lib.test_sets FOLDER newstest2014=data/newstest2014.bpe.en newstest2015=…

FOLDER/test.out has all; FOLDER/<test set>.out gets those of a set, which has as many sentences as
the file that is named with it has lines, numbered from 0.
"""

import re
import sys
from typing import Dict

from fairseq_posenc.tools.writing import replacing


def divide(folder: str, sizes: Dict[str, int]) -> None:
    """Write ``<test set>.out`` for each test set and its number of sentences."""
    with open(f"{folder}/test.out", encoding="utf-8", newline="\n") as stream:
        lines = [
            (label, int(number), text)
            for label, number, text in re.findall(r"^([A-Z])-(\d+)\t([^\n]*)$", stream.read(), re.M)
        ]
    first = 0
    for name, size in sizes.items():
        with replacing(f"{folder}/{name}.out") as output:
            for label, number, text in lines:
                if first <= number < first + size:
                    output.write(f"{label}-{number - first}\t{text}\n")
        first += size


def main() -> None:
    """Count the sentences of each test set, and cut."""
    folder, *sets = sys.argv[1:]
    sizes = {}
    for words in sets:
        name, _, path = words.partition("=")
        with open(path, "rb") as stream:
            sizes[name] = sum(1 for _ in stream)
    divide(folder, sizes)


if __name__ == "__main__":
    main()

"""A program that ends while fairseq reads batches ahead."""

import subprocess
import sys

ENDS_WHILE_IT_READS = """
import torch
from fairseq.data.iterators import BufferedIterator
import fairseq_posenc.models

class Batches:
    def __len__(self):
        return 10**6

    def __iter__(self):
        while True:
            yield [torch.randn(2000).sort()[0].sum() for _ in range(30)]

batches = BufferedIterator(10, Batches())
print(len([next(batches) for _ in range(5)]))
"""


def test_a_program_ends_while_batches_are_read_ahead():
    done = subprocess.run(
        [sys.executable, "-c", ENDS_WHILE_IT_READS], capture_output=True, encoding="utf-8"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "5\n", "")

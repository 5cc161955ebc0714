"""Several processes: in order, with little read ahead, and not waiting for what has died."""

import os
import time

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.workers import in_order


def slow_if_even(number):
    time.sleep(0.01 * (number % 2 == 0))
    return -number


def die(number):
    os._exit(1)


def refuse(number):
    raise UsageError(f"{number} is bad")


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_order_and_items_are_read_little_ahead(workers):
    read = [0]

    def items():
        for read[0] in range(100):
            yield read[0]

    for number, result in enumerate(in_order(slow_if_even, items(), workers)):
        assert result == -number
        assert read[0] - number <= (13 if workers == 3 else 0)
    assert number == 99


@pytest.mark.parametrize("workers", [1, 2])
def test_what_work_and_items_raise_is_raised(workers):
    with pytest.raises(UsageError, match="0 is bad"):
        list(in_order(refuse, range(50), workers))
    with pytest.raises(UsageError, match="7 is bad"):
        list(in_order(abs, (refuse(7) for _ in range(50)), workers))


def test_a_process_that_dies_is_reported():
    with pytest.raises(UsageError, match="a process died"):
        list(in_order(die, range(50), 2))


PROGRAM = """
import functools, multiprocessing, time
from fairseq_posenc.tools.workers import in_order

def items():
    yield from ("started\\n", "started\\n")
    time.sleep(60)

multiprocessing.set_start_method("METHOD")
list(in_order(functools.partial(print, end="", flush=True), items(), 2))  # one write a line
"""


# Python 3.14 starts processes by a fork server
@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_processes_end_when_their_parent_is_killed(start, method):
    process = start("python", "-c", PROGRAM.replace("METHOD", method))
    assert process.stdout.readline() == "started\n"
    process.kill()
    # the end of the output comes once no process is left that could write to it
    process.communicate(timeout=60)

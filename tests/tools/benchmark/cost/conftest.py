"""What the tests of the tables of cost share."""

import pytest

from fairseq_posenc.tools.benchmark.cost.plan import Choice


@pytest.fixture
def choose():
    """A function that makes a choice of what is measured, without a command line."""

    def choose(**others):
        settings = {"device": "cpu", "dtypes": ["float32", "bfloat16"], "warm_up": 1, "rounds": 5}
        return Choice(**{**settings, "hardware": "a machine", **others})

    return choose

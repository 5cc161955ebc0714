"""What the tests of timings share."""

import pytest

from fairseq_posenc.tools.benchmark.command import complete
from fairseq_posenc.tools.benchmark.tables import load, plan
from fairseq_posenc.tools.commands.benchmark import parse


@pytest.fixture
def settings_of():
    """A function from a table of cost, and options, to the settings that are measured of it."""

    def settings_of(name, options=""):
        args = parse(["cost", "--device", "cpu", *options.split()])
        complete(args)
        return plan(name, load(name), args)

    return settings_of

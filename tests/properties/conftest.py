"""How often properties are tried, and the ragged batches that several of them are about.

Examples are the same in every run. ``HYPOTHESIS_PROFILE=search`` tries many new ones.
"""

import os
from typing import List, NamedTuple

import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

PADDING = 1

# fixtures are functions without a state of their own, or models that are not changed
settings.register_profile(
    "suite",
    max_examples=30,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.register_profile(
    "search", settings.get_profile("suite"), max_examples=1000, derandomize=False
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


class Ragged(NamedTuple):
    """Sentences of several lengths, and how a batch of them is padded."""

    sentences: List[List[int]]
    left: bool
    extra: int  # columns that hold nothing but padding

    @property
    def tokens(self):
        width = max(map(len, self.sentences)) + self.extra
        rows = []
        for sentence in self.sentences:
            padding = [PADDING] * (width - len(sentence))
            rows.append(padding + sentence if self.left else sentence + padding)
        return torch.tensor(rows)


@pytest.fixture(scope="session")
def ragged():
    """A function from a number of sentences, and the most tokens of one, to a strategy."""

    def batches(sentences=(1, 4), longest=8):
        few, many = sentences
        sentence = st.lists(st.integers(4, 39), min_size=1, max_size=longest)
        return st.builds(
            Ragged,
            st.lists(sentence, min_size=few, max_size=many),
            st.booleans(),
            st.integers(0, 3),
        )

    return batches

"""Encodings with random parameters."""

import pytest
import torch

from fairseq_posenc.encodings import StackConfig, build


@pytest.fixture(scope="session")
def random_encoding():
    """Function that builds an encoding with random parameters, in evaluation mode."""

    def make(name, options=None, **stack):
        stack = {"channels": 8, "heads": 2, "layers": 2, "max_length": 4, **stack}
        encoding = build(name, StackConfig(**stack), **(options or {})).eval()
        generator = torch.Generator().manual_seed(2)
        for parameter in encoding.parameters():
            parameter.data.normal_(std=0.5, generator=generator)
        return encoding

    return make

"""Gradients of what many distances share are summed in float32."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fairseq_posenc.attention.attention import SelfAttention
from fairseq_posenc.encodings import Positions, StackConfig, build

LENGTH, CHANNELS, HEADS = 50, 8, 2


class Sums(TorchDispatchMode):
    """Notes the types in which scattered numbers are summed: on a GPU no wider one is used."""

    def __init__(self):
        super().__init__()
        self.types = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        if operation.overloadpacket.__name__.strip("_") in ("scatter_add", "index_add"):
            self.types.append(args[0].dtype)
        return operation(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["shaw", "t5", "tupe", "rel_scalar"])
def test_gradients_of_shared_distances_are_summed_in_float32(name, dtype):
    encoding = build(name, StackConfig(CHANNELS, heads=HEADS, max_length=LENGTH)).to(dtype)
    attention = SelfAttention(CHANNELS, HEADS).to(dtype)
    positions = Positions.of_length(LENGTH)
    with Sums() as sums:
        if name == "tupe":
            # its table has a row for every position, which no two share
            encoding.table.requires_grad_(False)
        x = torch.randn(LENGTH, 2, CHANNELS).to(dtype)
        attention(x, encoding(positions).attention[0])[0].square().sum().backward()
    assert sums.types and set(sums.types) == {torch.float32}

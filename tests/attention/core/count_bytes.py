"""Count what attention reads, writes and keeps per score, forward and backward, in bfloat16.

usage: python tests/attention/core/count_bytes.py [LENGTH …]

Every operation reads its inputs and writes its outputs once, Triton's kernels too (they are not
run). The measure is a call of torch's attention with a mask ``(B, H, T, T)`` that needs no
gradient: 12 tensors like the queries, the mask twice, one float32 per query three times. ``kept``
leaves out queries, keys, values and mask. 8 heads of 64, 4096 tokens, some padding, dropout 0.1.
"""

import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fairseq_posenc.attention import plain
from fairseq_posenc.encodings.base import AttentionTerms

try:
    from fairseq_posenc.attention.gpu import relative
except ImportError:
    sys.exit("count_bytes.py needs Triton: pip install triton")

TOKENS, HEADS, WIDTH = 4096, 8, 64
MAKES_ALONE = "zeros zeros_like new_zeros ones_like full arange randint scalar_tensor".split()
READS_NOTHING = "empty empty_like new_empty detach".split()


def size(tensor):
    """Bytes of a tensor; what is expanded is there once."""
    sizes = [n for n, stride in zip(tensor.shape, tensor.stride()) if stride]
    return torch.Size(sizes).numel() * tensor.element_size()


class Bytes(TorchDispatchMode):
    """Counts operations that are no views, and what they read and write."""

    def __init__(self):
        super().__init__()
        self.operations = self.bytes = 0

    def add(self, *tensors):
        self.operations += 1
        self.bytes += sum(size(x) for x in tensors if isinstance(x, torch.Tensor))

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        inputs = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        outputs = [x for x in tree_leaves(found) if isinstance(x, torch.Tensor)]
        name = function.overloadpacket.__name__
        if not function.is_view and name not in READS_NOTHING + ["_unsafe_view"]:
            self.add(*([] if name in MAKES_ALONE else inputs), *outputs)
        return found


def counted(attend, kind, length):
    """Return operations, and bytes read or written and kept per score."""
    batch = TOKENS // length

    def draw(*shape):
        return torch.randn(shape, dtype=torch.bfloat16).requires_grad_()

    projections = [draw(length, batch, HEADS, WIDTH) for _ in range(3)]
    if kind == "shaw":
        terms = {"relative_keys": draw(33, WIDTH), "relative_values": draw(33, WIDTH)}
    else:
        terms = {"distance_keys": draw(HEADS, 2 * length - 1, WIDTH)}
        terms.update(content_query=draw(HEADS, WIDTH), position_query=draw(HEADS, WIDTH))
    padding = torch.arange(length).expand(batch, length) == length - 1
    heads = [x.permute(1, 2, 0, 3) for x in projections]
    inputs = plain.Inputs(*heads, AttentionTerms(0.125, **terms), padding, False, 0.1)
    given = {x.untyped_storage().data_ptr() for x in (*projections, *terms.values())}
    gradient, kept = torch.ones(length, batch, HEADS, WIDTH).bfloat16().permute(1, 2, 0, 3), {}

    def keep(x):
        if x.untyped_storage().data_ptr() not in given:
            kept[x.untyped_storage().data_ptr()] = x
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x), Bytes() as count:
        relative._launch = lambda kernel, grid, settings, work, *results, **_: count.add(
            *work, *results
        )
        attend(inputs).backward(gradient)
    scores = batch * HEADS * length**2
    stored = sum(x.untyped_storage().nbytes() for x in kept.values())
    return count.operations, count.bytes / scores, stored / scores


def masked_call(length):
    """Return the same for torch's attention with a mask."""
    tensor, per_query = 2 * WIDTH / length, 4 / length
    return 2, 12 * tensor + 2 * 2 + 3 * per_query, tensor + per_query


def main(lengths):
    """Print a table."""
    ways = {"plain": lambda x: plain.attend(x)[0], "kernels": relative.attend}
    print(f"{'':24}{'length':>8}{'operations':>12}{'bytes':>8}{'÷ masked':>10}{'kept':>8}")
    for length in lengths:
        rows = {"masked attention": masked_call(length)}
        for kind in ("shaw", "transformer_xl"):
            rows.update({f"{kind}, {n}": counted(way, kind, length) for n, way in ways.items()})
        for name, (operations, moved, kept) in rows.items():
            ratio = moved / rows["masked attention"][1]
            print(f"{name:24}{length:8}{operations:12}{moved:8.1f}{ratio:10.2f}{kept:8.2f}")


if __name__ == "__main__":
    main([int(x) for x in sys.argv[1:]] or [128, 512])

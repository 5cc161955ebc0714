"""Count what self-attention asks of a GPU, without one: count_attention.py [ENCODING ...].

Prints operations and bytes, the table of docs/speed.md. No GPU is pretended here: tensors are the
CPU's, and go the way of a GPU. Rows of Triton's kernels need Triton.

Every operation reads its inputs and writes its outputs once; each is at least one kernel. Torch's
attention and Triton's kernels are counted, not run: as one forward and one backward operation, and
as what is passed to each kernel. A mask that needs a gradient gets one for every sentence, which is
then summed. Views cost nothing. Forward and backward, with padding.
"""

import sys
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple
from unittest import mock

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from fairseq_posenc.attention import core
from fairseq_posenc.attention.plain import Inputs
from fairseq_posenc.encodings import Stack, build, by_distance, names
from fairseq_posenc.tools.benchmark.attention import Prepare, our_attention
from fairseq_posenc.tools.benchmark.settings import Setting

HAVE_KERNELS = ("shaw", "transformer_xl")
MASKED, TRITON = "torch's, masked", ", Triton's kernels"
_READS_NOTHING = "zeros zeros_like new_zeros ones_like full arange randint scalar_tensor".split()
_COSTS_NOTHING = "empty empty_like new_empty detach is_same_size _unsafe_view".split()


class Cost(NamedTuple):
    """What a layer's attention costs, the encoding's own part included.

    Attributes:
        operations: number of operations.
        bytes: read and written per score, of which there are batch × heads × length².
        kept: bytes per score for the backward pass, besides the layer's inputs and parameters.
    """

    operations: float
    bytes: float
    kept: float


class Counter(TorchDispatchMode):
    """Counts operations, and what they read and write."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = self.bytes = 0

    def add(self, *tensors: Any) -> None:
        """Count one operation that reads and writes these."""
        self.operations += 1
        self.bytes += sum(_size(x) for x in tensors if isinstance(x, Tensor))

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        found = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if not function.is_view and name not in _COSTS_NOTHING:
            inputs = [] if name in _READS_NOTHING else tree_flatten((args, kwargs))[0]
            self.add(*inputs, *tree_flatten(found)[0])
        return found

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        attn_mask: Optional[Tensor] = None,
        *_: Any,
        **__: Any,
    ) -> Tensor:
        """Stand in for torch's attention."""
        if attn_mask is not None:
            attn_mask = attn_mask.expand(*q.shape[:3], k.size(2))
        return _TorchAttention.apply(self, q, k, v, attn_mask)


class _TorchAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, counter: Counter, q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor]
    ) -> Tensor:
        ctx.counter = counter
        out, lse = torch.empty_like(v), q.new_empty(q.shape[:3], dtype=torch.float32)
        counter.add(q, k, v, mask, out, lse)
        ctx.save_for_backward(q, k, v, mask, out, lse)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        *inputs, out, lse = ctx.saved_tensors
        gradients = [
            torch.empty_like(x) if needed else None
            for x, needed in zip(inputs, ctx.needs_input_grad[1:])
        ]
        ctx.counter.add(*inputs, out, lse, gradient, torch.empty_like(lse), *gradients)
        return (None, *gradients)


def _size(tensor: Tensor) -> int:
    """Return the bytes of a tensor; what is expanded is there once."""
    sizes = [n for n, stride in zip(tensor.shape, tensor.stride()) if stride]
    return torch.Size(sizes).numel() * tensor.element_size()


def cost(setting: Setting, name: str) -> Cost:
    """Count the attention of a stack, per layer.

    Args:
        setting: sizes, length, batch and dropout.
        name: of an encoding; with ``TRITON`` behind it by Triton's kernels. Or
            ``MASKED``, torch's attention with a mask ``(batch, heads, length, length)``.
    """
    sizes, counter = setting.sizes, Counter()
    shape = (setting.length, setting.batch, sizes.width)
    layers = [
        [_draw(setting, *shape).requires_grad_() for _ in range(3)] for _ in range(sizes.layers)
    ]
    if name == MASKED:
        mask = _draw(setting, setting.batch, sizes.heads, setting.length, setting.length)
        given, prepare = [mask], _masked(counter, mask)
    else:
        stack = Stack(
            sizes.width, max_length=max(1024, setting.length),
            layers=sizes.layers, heads=sizes.heads,
        )  # fmt: skip
        encoding = setting.cast(build(name.replace(TRITON, ""), stack))
        given = list(encoding.parameters())
        prepare = our_attention(setting, setting.draw_tokens(), encoding)
    known = {x.untyped_storage().data_ptr() for x in given + sum(layers, [])}
    kept: Dict[int, int] = {}

    def keep(x: Tensor) -> Tensor:
        storage = x.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = storage.nbytes()
        return x

    gradient = _draw(setting, *shape)
    with ExitStack() as active:
        for patch in _patches(counter, name):
            active.enter_context(patch)
        active.enter_context(torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x))
        active.enter_context(counter)
        attend = prepare()
        outputs = [attend(q, k, v, n) for n, (q, k, v) in enumerate(layers)]
        torch.autograd.backward(outputs, [gradient] * len(outputs))
    scores = sizes.layers * setting.batch * sizes.heads * setting.length**2
    return Cost(
        counter.operations / sizes.layers, counter.bytes / scores, sum(kept.values()) / scores
    )


def _masked(counter: Counter, mask: Tensor) -> Prepare:
    """Return what prepares torch's attention with a mask ``(batch, heads, length, length)``."""

    def attend(q: Tensor, k: Tensor, v: Tensor, layer: int) -> Tensor:
        q, k, v = (x.unflatten(2, (mask.size(1), -1)).permute(1, 2, 0, 3) for x in (q, k, v))
        return counter.attend(q, k, v, mask).permute(2, 0, 1, 3).flatten(2)

    return lambda: attend


def _draw(setting: Setting, *shape: int) -> Tensor:
    return torch.randn(shape, dtype=getattr(torch, setting.dtype))


def _patches(counter: Counter, name: str) -> List[Any]:
    """Return what makes a CPU go a GPU's way, and counts the kernels."""
    fused: Optional[SimpleNamespace] = None
    patches = [
        mock.patch.object(F, "scaled_dot_product_attention", counter.attend),
        # rows at a time that suit a CPU's cache
        mock.patch.object(by_distance, "_BLOCK", 2**30),
    ]
    if name.endswith(TRITON):
        from fairseq_posenc.attention.gpu import relative

        def launch(
            kernel: Any, grid: Any, settings: Any, work: Any, *results: Any, **_: Any
        ) -> None:
            counter.add(*work, *results)

        patches.append(mock.patch.object(relative, "_launch", launch))
        fused = SimpleNamespace(supports=lambda inputs: True, attend=relative.attend)

    def attend(*inputs: Any, dropout_p: float = 0.0) -> Tuple[Tensor, None]:
        return core.attend_on_gpu(Inputs(*inputs)._replace(dropout_p=dropout_p), fused), None

    return [*patches, mock.patch.object(core, "attend", attend)]


def setting(length: int, *contestants: str) -> Setting:
    """Return Transformer base on 4,096 tokens in bfloat16, with dropout."""
    batch = 4096 // length
    return Setting("base", list(contestants), length, batch, dropout=0.1, dtype="bfloat16")


def table(contestants: Sequence[str], lengths: Sequence[int] = (128, 512)) -> str:
    """Count every contestant, and return Markdown."""
    rows = [MASKED]
    for name in contestants:
        rows += [name, name + TRITON] if name in HAVE_KERNELS else [name]
    columns = [f"{n}: operations | bytes per score | ÷ masked | kept" for n in lengths]
    lines = [f"| | {' | '.join(columns)} |", "|---|" + "---:|" * 4 * len(lengths)]
    masked = {n: cost(setting(n), MASKED) for n in lengths}
    for name in rows:
        cells = []
        for n in lengths:
            ours = cost(setting(n), name)
            ratio = ours.bytes / masked[n].bytes
            cells.append(
                f"{ours.operations:.0f} | {ours.bytes:.1f} | {ratio:.2f} | {ours.kept:.2f}"
            )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(sys.argv[1:] or names()))

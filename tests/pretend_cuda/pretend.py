"""A pretended GPU: tensors that hold real values on the CPU and say that they are on ``cuda:0``.

Whatever asks for a tensor's device believes it, so a model goes its way of a GPU, gradients and
autocast included. Every operation passes :class:`Gpu`, which counts what costs time on a real one.

When imported, before torch, this builds and loads guard.cpp; without a C++ compiler, or where torch
does not take it, the process ends with :data:`IMPOSSIBLE`.
"""

import ctypes
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

IMPOSSIBLE = 77
_LIBRARIES = ("c10", "torch_cpu")


def load_guard():
    """Build the guard and register it; torch takes it over when it is imported."""
    torch_folder = Path(importlib.util.find_spec("torch").origin).parent
    with tempfile.TemporaryDirectory() as folder:
        guard = Path(folder) / "guard.so"
        command = [os.environ.get("CXX", "c++"), "-shared", "-fPIC", "-std=c++20", "-O0"]
        command += [Path(__file__).with_name("guard.cpp"), "-o", guard]
        command += ["-I", torch_folder / "include", "-L", torch_folder / "lib"]
        try:
            subprocess.run(
                [*command, *(f"-l{x}" for x in _LIBRARIES)], check=True, capture_output=True
            )
            for library in (*(torch_folder / "lib" / f"lib{x}.so" for x in _LIBRARIES), guard):
                ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
        except (OSError, subprocess.CalledProcessError) as error:
            print(error, getattr(error, "stderr", b"").decode()[-2000:], file=sys.stderr)
            sys.exit(IMPOSSIBLE)


load_guard()
sys.modules["triton"] = None  # it would compile for the GPU

import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

torch.cuda._lazy_init = lambda: None
torch.cuda.is_bf16_supported = lambda *_: True
torch.cuda.amp.common.amp_definitely_not_available = lambda: False
torch.autograd.set_multithreading_enabled(False)

# What the host waits for; with a mask as index, indexing too, whose result's size depends on it.
_WAITS = {
    "_local_scalar_dense", "equal", "is_nonzero", "nonzero", "masked_select", "unique_consecutive",
    "_unique2", "unique_dim",
}  # fmt: skip
_INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}
_attention = F.scaled_dot_product_attention


class OnGpu(torch.Tensor):
    """A tensor ``held`` on the CPU that says it is on the GPU."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, real):
        return torch.Tensor._make_wrapper_subclass(
            cls, real.size(), strides=real.stride(), storage_offset=real.storage_offset(),
            dtype=real.dtype, device="cuda:0",
        )  # fmt: skip

    def __init__(self, real):
        self.held = real

    def tolist(self):
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        raise RuntimeError(f"{operation} outside of the GPU's context")


class Gpu(TorchDispatchMode):
    """While it is entered, there is a GPU.

    Attributes:
        syncs: how often the host waited, by operation and line.
        copies: how often tensors of more than one value went between host and GPU, by direction
            and line.
        mixed: operations on tensors of both, by line.
        made: tensors of four dimensions that operations made, by line, shape and type.
        attention: calls of torch's attention: shapes of queries and mask, whether causal, type.
        operations: how many there were.
    """

    def __init__(self):
        super().__init__()
        self.reset()

    def reset(self):
        """Forget what was counted."""
        self.syncs, self.copies, self.mixed = Counter(), Counter(), Counter()
        self.made, self.attention, self.operations = Counter(), Counter(), 0

    def __enter__(self):
        F.scaled_dot_product_attention = self._attend
        return super().__enter__()

    def __exit__(self, *exception):
        F.scaled_dot_product_attention = _attention
        return super().__exit__(*exception)

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        tensors = leaves([args, *kwargs.values()])
        inputs = [x for x in tensors if isinstance(x, OnGpu)]
        onto = torch.device(kwargs["device"]).type if kwargs.get("device") else None
        if not inputs and onto != "cuda":
            return operation(*args, **kwargs)
        self.operations += 1
        name = operation.overloadpacket.__name__
        foreign = [x for x in tensors if not isinstance(x, OnGpu) and x.dim()]
        if name in ("_to_copy", "copy_") and (foreign or (inputs and onto == "cpu")):
            self.copies["to the host" if onto == "cpu" else "to the GPU", line()] += 1
        elif foreign:
            self.mixed[name, line()] += 1
        if (
            name in _WAITS
            or (name in _INDEXING and _has_mask(args[1]))
            or (inputs and onto == "cpu")
        ):
            self.syncs[name, line()] += 1
        if onto == "cuda":
            kwargs["device"] = "cpu"
        known = {id(x.held): x for x in inputs}
        unwrap = lambda x: x.held if isinstance(x, OnGpu) else x  # noqa: E731
        args, kwargs = of_each(unwrap, args), {k: of_each(unwrap, x) for k, x in kwargs.items()}
        # a CPU's softmax cannot read half precision and write float32, nor its gradient the reverse
        to = None
        if name in ("_softmax", "_log_softmax") and args[2]:
            args = (args[0].float(), args[1], False)
        elif name in ("_softmax_backward_data", "_log_softmax_backward_data"):
            to, args = args[3], (*args[:3], args[0].dtype)
        found = operation(*args, **kwargs)
        found = found if to is None else found.to(to)
        if inputs and onto == "cpu":
            return found
        for x in leaves(found):
            if x.dim() == 4:
                self.made[name, line(), tuple(x.shape), x.dtype] += 1

        def wrap(x):
            if not isinstance(x, torch.Tensor):
                return x
            # what the wrapper cannot say, that a tensor is conjugated lazily, is done at once
            return known[id(x)] if id(x) in known else OnGpu(x.resolve_conj().resolve_neg())

        return of_each(wrap, found)

    def _attend(self, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None):
        """Stand in for torch's attention: one kernel, whose sums are float32."""
        tensors = [q, k, v, attn_mask]
        if not isinstance(q, OnGpu):
            return _attention(*tensors, dropout_p, is_causal, scale=scale)
        if torch.is_autocast_enabled():
            half = torch.get_autocast_gpu_dtype()
            tensors = [
                x.to(half) if x is not None and x.dtype.is_floating_point else x for x in tensors
            ]
        q, k, v, mask = tensors
        assert q.dtype == k.dtype == v.dtype and not (is_causal and mask is not None)
        shape = None if mask is None else tuple(mask.shape)
        self.attention[tuple(q.shape), shape, is_causal, q.dtype] += 1
        return _Attention.apply(dropout_p, is_causal, scale, *tensors)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, dropout_p, is_causal, scale, *tensors):
        real = [None if x is None else x.held.detach() for x in tensors]
        for i, x in enumerate(real):
            if x is not None and x.is_floating_point():
                real[i] = x.float().requires_grad_(tensors[i].requires_grad)
        with torch.enable_grad():
            ctx.outputs = _attention(*real, dropout_p, is_causal, scale=scale)
        ctx.tensors, ctx.dtypes = real, [None if x is None else x.dtype for x in tensors]
        return OnGpu(ctx.outputs.detach().to(tensors[0].dtype))

    @staticmethod
    def backward(ctx, gradient):
        wanted = [i for i, needed in enumerate(ctx.needs_input_grad[3:]) if needed]
        inputs = [ctx.tensors[i] for i in wanted]
        found = torch.autograd.grad(ctx.outputs, inputs, gradient.held.float())
        gradients = [None] * 4
        for i, x in zip(wanted, found):
            gradients[i] = OnGpu(x.to(ctx.dtypes[i]))
        return (None, None, None, *gradients)


def of_each(function, x):
    """Return a function of a value, or of all in a list or tuple (torch's pytree is slow)."""
    if isinstance(x, (list, tuple)):
        return type(x)(of_each(function, one) for one in x)
    return function(x)


def leaves(x):
    """Return the tensors in a value."""
    found = []
    of_each(lambda one: found.append(one) if isinstance(one, torch.Tensor) else None, x)
    return found


def onto_gpu(module):
    """Move a module; parameters that were one stay one."""
    moved = {}
    for part in module.modules():
        for name, x in part._parameters.items():
            if x is not None and x not in moved:
                moved[x] = torch.nn.Parameter(x.data.to("cuda"), x.requires_grad)
            part._parameters[name] = moved.get(x)
        for name, x in part._buffers.items():
            part._buffers[name] = x if x is None else x.to("cuda")
    return module


def line():
    """Return the line of fairseq or the plugin that runs; in the backward pass it is elsewhere."""
    frame = sys._getframe(1)
    while frame:
        folder, _, name = frame.f_code.co_filename.partition("/fairseq")
        if name:
            return f"fairseq{name}:{frame.f_lineno}"
        frame = frame.f_back
    return "elsewhere"


def _has_mask(indices):
    return any(x is not None and x.dtype in (torch.bool, torch.uint8) for x in indices)

"""Compile Triton's kernels for GPUs that are not here, with a launch's own arguments.

usage: python compile_kernels.py shaw|transformer_xl [--all]

Prints kernel, target, bytes of shared memory and bytes that registers spill, a line each.
"""

import os
import re
import subprocess
import sys
import tempfile
from functools import partial

os.environ.pop("TRITON_INTERPRET", None)

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from fairseq_posenc.attention.gpu import relative
from fairseq_posenc.attention.plain import Inputs
from fairseq_posenc.encodings.base import AttentionTerms

SETTINGS = [(90, torch.bfloat16, 64), (80, torch.float16, 128)]
EVERY = [(target, *x) for target in (80, 90) for x in (
    (torch.bfloat16, 64), (torch.float16, 128), (torch.float32, 64), (torch.bfloat16, 20),
)]  # fmt: skip
POINTERS = {
    torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16",
    torch.uint8: "*u8", torch.int64: "*i64",
}  # fmt: skip


def compile_for(target, kernel, values, options):
    """Return the compiled kernel; ``values`` are its arguments by name, as in a launch."""
    signature, constants, attributes = {}, {}, {}
    fixed = {p.name for p in kernel.params if p.is_constexpr}
    for number, (name, value) in enumerate(values.items()):
        if value is None or name in fixed:
            signature[name], constants[name] = "constexpr", value
            continue
        is_tensor = isinstance(value, torch.Tensor)
        number_type = "fp32" if isinstance(value, float) else "i32"
        signature[name] = POINTERS[value.dtype] if is_tensor else number_type
        if is_tensor or (isinstance(value, int) and value % 16 == 0):
            attributes[(number,)] = [["tt.divisibility", 16]]
    source = ASTSource(kernel, signature, constants, attributes)
    return triton.compile(source, target=GPUTarget("cuda", target, 32), options=options)


def spilled(compiled, target):
    """Return how many bytes of registers a kernel spills, as ptxas says."""
    name = f"sm_{target}" + "a" * (target >= 90)
    tool = get_ptxas(target)
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(compiled.asm["ptx"])
        file.flush()
        command = [getattr(tool, "path", None) or tool[0], "-v", f"--gpu-name={name}", file.name]
        told = subprocess.run([*command, "-o", os.devnull], stderr=subprocess.PIPE, check=True)
    return int(re.search(rb"(\d+) bytes spill stores", told.stderr).group(1))


def instead_of_launching(target):
    """Return what a kernel's ``[grid]`` returns: a function that compiles and reports."""

    def launch(kernel, grid):
        def compile_and_tell(*arguments, **others):
            options = {n: others.pop(n) for n in ("num_warps", "num_stages")}
            values = {**dict(zip(kernel.arg_names, arguments)), **others}
            compiled = compile_for(target, kernel, values, options)
            shared = compiled.metadata.shared
            print(kernel.__name__, target, shared, spilled(compiled, target), flush=True)

        return compile_and_tell

    return launch


def main(encoding, settings):
    """Compile all kernels of a forward and a backward pass, with padding and dropout."""
    for target, dtype, width in settings:
        JITFunction.__getitem__ = instead_of_launching(target)
        draw = partial(torch.zeros, dtype=dtype, requires_grad=True)
        table = (33, width)
        if encoding == "shaw":
            terms = AttentionTerms(1.0, relative_keys=draw(table), relative_values=draw(table))
        else:
            terms = AttentionTerms(
                1.0, distance_keys=draw(4, 255, width),
                content_query=draw(4, width), position_query=draw(4, width),
            )  # fmt: skip
        heads = [draw(8, 4, 128, width) for _ in range(3)]
        padding = torch.zeros(8, 128, dtype=torch.bool)
        relative.attend(Inputs(*heads, terms, padding, False, 0.1)).sum().backward()


if __name__ == "__main__":
    main(sys.argv[1], EVERY if "--all" in sys.argv else SETTINGS)

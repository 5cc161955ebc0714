"""Which way self-attention goes on a pretended GPU, by what POSENC_ATTENTION says.

Prints JSON: by encoding and value the lines of the log, how often the kernels were called, and what
ended the run. The kernels are a stand-in, the plain way, but for the value `triton`, where there is
no Triton.
"""

import json
import logging
import os
import sys
from types import SimpleNamespace

import count

from fairseq_posenc.attention import core, plain
from fairseq_posenc.errors import UsageError

MODULE = "fairseq_posenc.attention.gpu.relative"
CASES = [("sinusoidal", ""), ("shaw", ""), ("transformer_xl", ""), ("shaw", "plain"),
         ("shaw", "triton"), ("transformer_xl", "triton"), ("shaw", "fast"),
         ("shaw", "triton, missing")]  # fmt: skip


def run(name, value):
    """Take a training step, and tell the way it went."""
    lines, calls = [], []
    os.environ["POSENC_ATTENTION"] = value.split(",")[0]
    core._fused_relative.cache_clear()
    core.logger.handlers = [logging.NullHandler()]
    core.logger.handlers[0].handle = lambda record: lines.append(record.getMessage())
    sys.modules.pop(MODULE, None)
    if "missing" not in value:
        attend = lambda inputs: calls.append(1) or plain.attend(inputs)[0]  # noqa: E731
        sys.modules[MODULE] = SimpleNamespace(supports=lambda inputs: True, attend=attend)
    try:
        count.step("translation", name, "bfloat16", "left")
        error = None
    except UsageError as failure:
        error = str(failure)
    return {"log": lines, "calls": len(calls), "error": error}


core.logger.setLevel(logging.INFO)
print(json.dumps({f"{name} {value}".strip(): run(name, value) for name, value in CASES}))

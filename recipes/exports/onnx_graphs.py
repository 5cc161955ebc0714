"""Encoders of ``fairseq_posenc.nn`` through torch's ONNX exporter, run by onnxruntime."""

import importlib
import io
import logging
import os
import tempfile
import warnings
from typing import Any, List, Sequence

import torch
from torch import Tensor, nn
from tqdm import tqdm

from fairseq_posenc.errors import UsageError, first_line
from fairseq_posenc.nn import load
from fairseq_posenc.tools.convert.huggingface.export import to_safetensors
from fairseq_posenc.tools.text_tables import markdown_table
from recipes.exports import consumer
from recipes.exports.random_models import (
    BERT,
    TRANSLATION,
    TYPES,
    Architecture,
    ExportedClass,
    write_checkpoint,
    write_data,
)

_NEEDED = ("onnx", "onnxscript", "onnxruntime")
_EXPORTED, _OTHER = (2, 9), (5, 21)  # batch size and length


class _States(nn.Module):
    """Hidden states ``(batch, length, channels)`` of tokens ``(batch, length)``."""

    def __init__(self, encoder: Any):
        super().__init__()
        self.encoder = encoder

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the states; tokens are ``(batch, length)``, padded on the right."""
        states: Tensor = self.encoder(tokens).states
        return states


def table(encodings: Sequence[str]) -> str:
    """Return the largest differences of each encoding's encoders, as Markdown.

    Raises:
        UsageError: a package is missing.
    """
    try:
        versions = {name: importlib.import_module(name).__version__ for name in _NEEDED}
    except ImportError as error:
        raise UsageError(f"this needs {', '.join(_NEEDED)} ({error})") from None
    logging.disable(logging.WARNING)  # the exporter logs each of its steps
    reasons: List[str] = []
    lines = [["encoding", "encoder of BERT", "encoder of a translation model"]]
    with tempfile.TemporaryDirectory() as top, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = os.path.join(top, "data")
        write_data(data)
        for name in tqdm(encodings, leave=False):
            cells = []
            for architecture in (BERT, TRANSLATION):
                folder = os.path.join(top, f"{name}-{architecture.arch}")
                cell = _attempt(architecture, name, folder, data)
                cells.append(consumer.shortened(cell, "", reasons))
            lines.append([name, *cells])
    tools = ", ".join(f"{name} {version}" for name, version in versions.items())
    notes = [f"{number}: {reason}." for number, reason in enumerate(reasons, 1)]
    head = (
        f"Exported at {_EXPORTED}, compared at {_OTHER} tokens; torch {torch.__version__}, {tools}."
    )
    return "\n".join([head, "", markdown_table(lines, 3), "", *notes])


def _attempt(architecture: Architecture, encoding: str, folder: str, data: str) -> str:
    """Return the cell of a model, or why its encoder is not exported."""
    path = f"{folder}.pt"
    write_checkpoint(ExportedClass(architecture, encoding), path, data)
    to_safetensors(path, folder, data)
    model = _States(load(folder).encoder).eval()
    try:
        return _difference(model)
    except Exception as error:  # the exporter may raise anything
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        return f"refused: {first_line(cause):.160}"


@torch.no_grad()
def _difference(model: nn.Module) -> str:
    import onnxruntime

    dynamic = ({dim: torch.export.Dim.DYNAMIC for dim in (0, 1)},)
    program: Any = torch.onnx.export(
        model, (_draw(*_EXPORTED),), dynamo=True, dynamic_shapes=dynamic, verbose=False
    )
    stream = io.BytesIO()
    program.save(stream)
    session = onnxruntime.InferenceSession(stream.getvalue())
    tokens = _draw(*_OTHER)
    [states] = session.run(None, {session.get_inputs()[0].name: tokens.numpy()})
    real = tokens.ne(consumer.PAD)
    return consumer.compared(torch.tensor(states)[real], model(tokens)[real], [])


def _draw(batch: int, length: int) -> Tensor:
    """Draw tokens ``(batch, length)``; the last sentence is padded from its middle."""
    tokens = torch.randint(4, TYPES, (batch, length))
    tokens[-1, length // 2 :] = consumer.PAD
    return tokens

"""Print what becomes of each exported class elsewhere, and on its way back: differences of scores.

    python -m recipes.exports.classes --python env5/bin/python --python env4/bin/python

Each interpreter is that of an environment with transformers. CTranslate2 is tried in the first.
"""

import json
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Sequence

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from fairseq_posenc.errors import UsageError, first_line
from fairseq_posenc.tools.arguments import plain_parser
from fairseq_posenc.tools.convert.checkpoint import ALL, read_checkpoint
from fairseq_posenc.tools.convert.huggingface.export import to_huggingface
from fairseq_posenc.tools.convert.huggingface.load import import_model
from fairseq_posenc.tools.text_tables import markdown_table
from recipes.exports import consumer
from recipes.exports.random_models import (
    BERT,
    CLASSES,
    TRANSLATION,
    TYPES,
    ExportedClass,
    write_checkpoint,
    write_data,
)

_LENGTHS = (12, 7, 3)  # of the sentences
_BOS, _SPECIAL = 0, 4
Results = Dict[str, Any]


def table(interpreters: Sequence[str]) -> str:
    """Return the table as Markdown, with columns for the environment of each interpreter.

    Raises:
        UsageError: transformers cannot be imported there.
    """
    with tempfile.TemporaryDirectory() as top:
        write_data(os.path.join(top, "data"))
        for name, exported in CLASSES.items():
            _export(exported, Path(top, name), os.path.join(top, "data"))
        heads, columns = [], []
        for number, interpreter in enumerate(interpreters):
            results = consume(interpreter, top, f"environment{number}")
            versions, cells = results["versions"], results["cells"]
            version = f"transformers {versions['transformers']}"
            heads += [version, "trained there, imported"]
            columns.append([cells[name]["transformers"] for name in CLASSES])
            columns.append([_back(Path(top, name), f"environment{number}") for name in CLASSES])
            if number == 0:
                heads.append(f"CTranslate2 {versions['CTranslate2']}".strip())
                columns.append([cells[name]["CTranslate2"] for name in CLASSES])
    reasons: List[str] = []
    lines = [["class", *heads]]
    for name, cells in zip(CLASSES, zip(*columns)):
        lines.append([name, *(consumer.shortened(cell, name, reasons) for cell in cells)])
    notes = [f"{number}: {reason}." for number, reason in enumerate(reasons, 1)]
    return "\n".join([markdown_table(lines, len(lines[0])), "", *notes])


def _export(exported: ExportedClass, folder: Path, data: str) -> None:
    """Export a random model, and write what it computes of random tokens."""
    folder.mkdir()
    model = write_checkpoint(exported, str(folder / "model.pt"), data)
    to_huggingface(str(folder / "model.pt"), str(folder / "hf"), data)
    tokens = _draw_tokens(exported)
    (folder / "tokens.json").write_text(json.dumps(tokens))
    save_file(_expected(model, tokens), folder / "expected.safetensors")


def _draw_tokens(exported: ExportedClass) -> Dict[str, List[List[int]]]:
    """Draw sentences as each kind of model has them; targets are without EOS."""
    sentences = [torch.randint(_SPECIAL, TYPES, (length,)).tolist() for length in _LENGTHS]
    if exported.architecture is TRANSLATION:
        targets = [torch.randint(_SPECIAL, TYPES, (length,)).tolist() for length in _LENGTHS]
        return {"source": [[*s, consumer.EOS] for s in sentences], "target": targets}
    if exported.architecture is BERT:
        return {"source": [[_BOS, *sentence, consumer.EOS] for sentence in sentences]}
    return {"source": [[consumer.EOS, *sentence] for sentence in sentences]}


def _scores(model: Any, tokens: Dict[str, List[List[int]]]) -> Tensor:
    """Return the scores ``(tokens, types)`` of all tokens that are not padding."""
    source = consumer.padded(tokens["source"])
    if "target" not in tokens:
        scores: Tensor = model(source)[0]
        return scores[source.ne(consumer.PAD)]
    target = consumer.padded([[consumer.EOS, *sentence] for sentence in tokens["target"]])
    scores = model(source, None, target)[0]
    return scores[target.ne(consumer.PAD)]


def _expected(model: Any, tokens: Dict[str, List[List[int]]]) -> Dict[str, Tensor]:
    scores = _scores(model, tokens)
    expected = {"scores": scores}
    if "target" in tokens:
        labels = torch.tensor([n for target in tokens["target"] for n in [*target, consumer.EOS]])
        expected["log_probs"] = scores.log_softmax(-1).gather(1, labels[:, None])[:, 0]
    elif hasattr(model, "encoder"):
        source = consumer.padded(tokens["source"])
        expected["states"] = model(source, features_only=True)[0][source.ne(consumer.PAD)]
    return expected


def consume(interpreter: str, top: str, name: str) -> Results:
    """Run the consumer in an environment, and return what it printed."""
    command = [interpreter, consumer.__file__, top, name]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
    try:
        run = subprocess.run(command, env=environment, encoding="utf-8", capture_output=True)
    except OSError as error:
        raise UsageError(f"--python {interpreter}: {first_line(error)}") from None
    if run.returncode:
        reason = (run.stderr.strip().splitlines() or ["it failed"])[-1]
        raise UsageError(f"--python {interpreter}: {reason}")
    if not run.stdout:
        raise UsageError(f"--python {interpreter}: it printed nothing; is it Python?")
    results: Results = json.loads(run.stdout.splitlines()[-1])
    return results


@torch.no_grad()
def _back(folder: Path, name: str) -> str:
    """Import what transformers saved after three steps of training, and compare."""
    if not (folder / name / "trained.safetensors").exists():
        return "-"
    expected = load_file(folder / name / "trained.safetensors")["scores"]
    (folder / name / "trained.safetensors").unlink()
    try:
        import_model(str(folder / name), str(folder / f"{name}_back" / "model.pt"))
    except UsageError as error:
        return f"refused: {str(error).replace(f'{folder / name}: ', '')}"
    model = read_checkpoint(str(folder / f"{name}_back" / "model.pt"), ALL).model
    tokens = json.loads((folder / "tokens.json").read_text())
    return consumer.compared(_scores(model, tokens), expected, [])


if __name__ == "__main__":
    parser = plain_parser(__doc__)
    parser.add_argument("--python", action="append", metavar="FILE", help="(default: this one)")
    chosen = parser.parse_args().python
    for quiet in ("fairseq", "fairseq_posenc"):
        logging.getLogger(quiet).setLevel(logging.WARNING)
    print(table(chosen or [sys.executable]))

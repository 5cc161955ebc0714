"""What transformers and CTranslate2 make of exported folders, for ``recipes.exports.classes``.

    PYTHON consumer.py FOLDER NAME

It needs transformers, and CTranslate2 for that column, but not this project, so that it runs in any
environment. ``FOLDER`` has a folder of each class, with ``hf``, ``tokens.json`` and
``expected.safetensors``. To each, it adds ``NAME``: the model after three steps of AdamW, its
tokenizer, and its scores, ``trained.safetensors``. What it saw is printed as JSON.
"""

import json
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

try:
    import ctranslate2
except ImportError:
    ctranslate2 = None

PAD, EOS = 1, 2
LARGEST = 1e-4  # difference of scores, relative to the largest score
_STEPS, _RATE = 3, 0.001
# as their model cards say
_FROZEN = {
    "mpnet": ["mpnet.embeddings.position_embeddings"],
    "roformer": ["roformer.encoder.embed_positions"],
}
Sentences = List[List[int]]


def padded(sentences: Sentences) -> Tensor:
    """Return ``(batch, length)``, padded on the right."""
    tokens = [torch.tensor(sentence) for sentence in sentences]
    return torch.nn.utils.rnn.pad_sequence(tokens, batch_first=True, padding_value=PAD)


def hf_scores(model: Any, tokens: Dict[str, Sentences]) -> Tensor:
    """Return the scores ``(tokens, types)`` of all tokens that are not padding."""
    source = padded(tokens["source"])
    inputs: Dict[str, Any] = {"input_ids": source, "attention_mask": source.ne(PAD).long()}
    scored = source
    if not type(model).__name__.endswith("MaskedLM"):
        inputs["use_cache"] = False
    if "target" in tokens:
        scored = padded([[EOS, *sentence] for sentence in tokens["target"]])
        inputs["decoder_input_ids"] = scored
    scores: Tensor = model(**inputs).logits
    return scores[scored.ne(PAD)]


def compared(numbers: Tensor, expected: Tensor, missing: List[str]) -> str:
    """Return the largest difference, relative to the largest number expected."""
    difference = float((numbers - expected).abs().max() / expected.abs().max())
    words = f"without {', '.join(missing)}: " if missing else ""
    if not difference <= LARGEST:  # also of not a number
        words = "**wrong**, " + words
    return words + (f"{difference:.0e}" if difference else "0")


def shortened(cell: str, name: str, reasons: List[str]) -> str:
    """Return a cell with the number of its reason, which is added to ``reasons`` if it is new."""
    word, colon, reason = cell.partition(": ")
    if word != "refused":
        return cell
    if name:
        reason = reason.replace(name, "…")
    if reason not in reasons:
        reasons.append(reason)
    return f"{word} ({1 + reasons.index(reason)})"


def with_transformers(folder: Path, name: str) -> str:
    """Load, compare, train, save."""
    class_name = json.loads((folder / "hf" / "config.json").read_text())["architectures"][0]
    tokens = json.loads((folder / "tokens.json").read_text())
    model, report = getattr(transformers, class_name).from_pretrained(
        folder / "hf", output_loading_info=True
    )
    with torch.no_grad():
        scores = hf_scores(model.eval(), tokens)
    cell = compared(
        scores, load_file(folder / "expected.safetensors")["scores"], sorted(report["missing_keys"])
    )
    for module in _FROZEN.get(model.config.model_type, []):
        model.get_submodule(module).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=_RATE)
    answers = torch.randint(len(scores[0]), (len(scores),))
    for _ in range(_STEPS):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(hf_scores(model, tokens), answers).backward()
        optimizer.step()
    model.save_pretrained(folder / name)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "hf")
    tokenizer.save_pretrained(folder / name)
    with torch.no_grad():
        save_file({"scores": hf_scores(model, tokens)}, folder / name / "trained.safetensors")
    return cell


def with_ctranslate2(folder: Path, name: str) -> str:
    """Convert by CTranslate2's own converter of transformers' folders, and compare."""
    converter = ctranslate2.converters.TransformersConverter(str(folder / "hf"))
    output = str(folder / f"{name}_ct2")
    converter.convert(output, force=True)
    tokens = json.loads((folder / "tokens.json").read_text())
    expected = load_file(folder / "expected.safetensors")
    if "target" in tokens:
        symbols = vocabulary(Path(output))
        spelt = {
            side: [[symbols[side][number] for number in sentence] for sentence in sentences]
            for side, sentences in tokens.items()
        }
        results = ctranslate2.Translator(output).score_batch(spelt["source"], spelt["target"])
        log_probs = torch.tensor([n for result in results for n in result.log_probs])
        return compared(log_probs, expected["log_probs"], [])
    real = padded(tokens["source"]).ne(PAD)
    if "states" in expected:
        encoder = ctranslate2.Encoder(output)
        states = encoder.forward_batch(tokens["source"]).last_hidden_state
        return compared(torch.tensor(numpy.array(states))[real], expected["states"], [])
    logits = ctranslate2.Generator(output).forward_batch(tokens["source"])
    return compared(torch.tensor(numpy.array(logits))[real], expected["scores"], [])


def vocabulary(folder: Path) -> Dict[str, List[str]]:
    """Return the types of a model of CTranslate2, of ``source`` and ``target``."""
    shared = folder / "shared_vocabulary.json"
    sides = ("source", "target")
    files = {side: folder / f"{side}_vocabulary.json" for side in sides}
    if shared.exists():
        files = dict.fromkeys(sides, shared)
    return {side: json.loads(file.read_text()) for side, file in files.items()}


def attempt(consume: Callable[[Path, str], str], folder: Path, name: str) -> str:
    """Return the cell of a class, or what a library said against it."""
    try:
        return consume(folder, name)
    except Exception as error:  # a library may raise anything
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return f"refused: {lines[0].partition(' (')[0]:.120}"


def main() -> None:
    """Try each folder of a class."""
    top, name = Path(sys.argv[1]), sys.argv[2]
    transformers.logging.set_verbosity_error()
    cells: Dict[str, Dict[str, str]] = {}
    for folder in sorted(path.parent for path in top.glob("*/hf")):
        torch.manual_seed(1)
        cells[folder.name] = {"transformers": attempt(with_transformers, folder, name)}
        cells[folder.name]["CTranslate2"] = (
            attempt(with_ctranslate2, folder, name) if ctranslate2 else "not installed here"
        )
    versions = {
        "transformers": transformers.__version__,
        "CTranslate2": ctranslate2.__version__ if ctranslate2 else "",
    }
    print(json.dumps({"versions": versions, "cells": cells}))


if __name__ == "__main__":
    main()

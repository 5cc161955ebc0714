"""Print what becomes of each exported class elsewhere, and on its way back: differences of scores.

    python -m recipes.exports.classes

It takes transformers, and CTranslate2 for that column.
"""

import json
import logging
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Tuple

import numpy
import torch
import transformers
from torch import Tensor

from fairseq_posenc.tools.arguments import plain_parser
from fairseq_posenc.tools.convert.checkpoint import ALL, read_checkpoint
from fairseq_posenc.tools.convert.huggingface.export import to_huggingface
from fairseq_posenc.tools.convert.huggingface.load import import_model
from fairseq_posenc.tools.text_tables import markdown_table
from recipes.exports.random_models import (
    BERT,
    CLASSES,
    TRANSLATION,
    TYPES,
    ExportedClass,
    write_checkpoint,
    write_data,
)

try:
    import ctranslate2
except ImportError:
    ctranslate2 = None

_LENGTHS = (12, 7, 3)  # of the sentences
_BOS, PAD, EOS, _SPECIAL = 0, 1, 2, 4
LARGEST = 1e-4  # difference of scores, relative to the largest score
_STEPS, _RATE = 3, 0.001
# as their model cards say
_FROZEN = {
    "mpnet": ["mpnet.embeddings.position_embeddings"],
    "roformer": ["roformer.encoder.embed_positions"],
}
Tokens = Dict[str, List[List[int]]]


def table() -> str:
    """Return the table as Markdown."""
    heads = [f"transformers {transformers.__version__}", "trained there, imported"]
    heads += [f"CTranslate2 {ctranslate2.__version__}"] if ctranslate2 else []
    lines, reasons = [["class", *heads]], []
    for name, exported in CLASSES.items():
        with tempfile.TemporaryDirectory() as folder:
            cells = _cells(exported, Path(folder))
        for number, cell in enumerate(cells):
            word, _, reason = cell.partition(": ")
            if word == "refused":
                reason = reason.replace(name, "…")
                reasons += [reason] if reason not in reasons else []
                cells[number] = f"refused ({1 + reasons.index(reason)})"
        lines.append([name, *cells])
    notes = [f"{number}: {reason}." for number, reason in enumerate(reasons, 1)]
    return "\n".join([markdown_table(lines, len(lines[0])), "", *notes])


def _cells(exported: ExportedClass, folder: Path) -> List[str]:
    """Export a random model; return the cells of its line."""
    model_file, data, hf = str(folder / "model.pt"), str(folder / "data"), folder / "hf"
    write_data(data)
    model = write_checkpoint(exported, model_file, data)
    to_huggingface(model_file, str(hf), data)
    tokens = _draw_tokens(exported)
    loaded = _attempt(_loaded, hf, tokens, _scores(model, tokens))
    refused = loaded.startswith("refused")
    cells = [loaded, "-" if refused else _attempt(_trained_and_imported, hf, tokens, folder)]
    return cells + ([_attempt(_in_ctranslate2, hf, tokens, model)] if ctranslate2 else [])


def _attempt(consume: Callable[..., str], *arguments: Any) -> str:
    """Return a cell, or what a library said against it."""
    try:
        return consume(*arguments)
    except Exception as error:  # a library may raise anything
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return f"refused: {lines[0].partition(' (')[0]:.120}"


def _draw_tokens(exported: ExportedClass) -> Tokens:
    """Draw sentences as each kind of model has them; targets are without EOS."""
    sentences = [torch.randint(_SPECIAL, TYPES, (length,)).tolist() for length in _LENGTHS]
    if exported.architecture is TRANSLATION:
        targets = [torch.randint(_SPECIAL, TYPES, (length,)).tolist() for length in _LENGTHS]
        return {"source": [[*sentence, EOS] for sentence in sentences], "target": targets}
    if exported.architecture is BERT:
        return {"source": [[_BOS, *sentence, EOS] for sentence in sentences]}
    return {"source": [[EOS, *sentence] for sentence in sentences]}


def _padded(sentences: Sequence[Sequence[int]]) -> Tensor:
    """Return ``(batch, length)``, padded on the right."""
    tokens = [torch.tensor(sentence) for sentence in sentences]
    return torch.nn.utils.rnn.pad_sequence(tokens, batch_first=True, padding_value=PAD)


def _scored(tokens: Tokens) -> Tuple[Tensor, Tensor]:
    """Return sources, and the tokens after each of which the next is scored, ``(batch, length)``
    each.
    """
    source = _padded(tokens["source"])
    if "target" not in tokens:
        return source, source
    return source, _padded([[EOS, *sentence] for sentence in tokens["target"]])


def _scores(model: Any, tokens: Tokens) -> Tensor:
    """Return fairseq's scores ``(tokens, types)`` of all tokens that are not padding."""
    source, scored = _scored(tokens)
    arguments = (source, None, scored) if "target" in tokens else (source,)
    scores: Tensor = model(*arguments)[0]
    return scores[scored.ne(PAD)]


def _hf_scores(model: Any, tokens: Tokens) -> Tensor:
    """Return those of transformers."""
    source, scored = _scored(tokens)
    inputs: Dict[str, Any] = {"input_ids": source, "attention_mask": source.ne(PAD).long()}
    if not type(model).__name__.endswith("MaskedLM"):
        inputs["use_cache"] = False
    if "target" in tokens:
        inputs["decoder_input_ids"] = scored
    scores: Tensor = model(**inputs).logits
    return scores[scored.ne(PAD)]


def compared(numbers: Tensor, expected: Tensor, missing: Sequence[str] = ()) -> str:
    """Return the largest difference, relative to the largest number expected."""
    difference = float((numbers - expected).abs().max() / expected.abs().max())
    words = f"without {', '.join(missing)}: " if missing else ""
    if not difference <= LARGEST:  # also of not a number
        words = "**wrong**, " + words
    return words + (f"{difference:.0e}" if difference else "0")


def _from_pretrained(hf: Path) -> Tuple[Any, List[str]]:
    """Return a model of transformers, and the names of weights that the folder lacks."""
    class_name = json.loads((hf / "config.json").read_text())["architectures"][0]
    model_class = getattr(transformers, class_name)
    model, report = model_class.from_pretrained(hf, output_loading_info=True)
    return model, sorted(report["missing_keys"])


@torch.no_grad()
def _loaded(hf: Path, tokens: Tokens, expected: Tensor) -> str:
    model, missing = _from_pretrained(hf)
    return compared(_hf_scores(model.eval(), tokens), expected, missing)


def _trained_and_imported(hf: Path, tokens: Tokens, folder: Path) -> str:
    """Compare after three steps of AdamW there, saved with its tokenizer, and imported."""
    model = _from_pretrained(hf)[0].eval()
    for module in _FROZEN.get(model.config.model_type, []):
        model.get_submodule(module).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=_RATE)
    answers = torch.randint(TYPES, _hf_scores(model, tokens).shape[:1])
    for _ in range(_STEPS):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(_hf_scores(model, tokens), answers).backward()
        optimizer.step()
    trained, imported = str(folder / "trained"), str(folder / "imported" / "model.pt")
    model.save_pretrained(trained)
    transformers.AutoTokenizer.from_pretrained(hf).save_pretrained(trained)
    import_model(trained, imported)
    with torch.no_grad():
        scores = _scores(read_checkpoint(imported, ALL).model, tokens)
        return compared(scores, _hf_scores(model, tokens))


def _in_ctranslate2(hf: Path, tokens: Tokens, model: Any) -> str:
    """Convert by CTranslate2's own converter of transformers' folders, and compare."""
    output = str(hf.with_name("ctranslate2"))
    ctranslate2.converters.TransformersConverter(str(hf)).convert(output)
    scores, (source, _) = _scores(model, tokens), _scored(tokens)
    if "target" in tokens:
        spelt = _spelt(tokens, Path(output))
        results = ctranslate2.Translator(output).score_batch(spelt["source"], spelt["target"])
        labels = torch.tensor([n for target in tokens["target"] for n in [*target, EOS]])
        expected = scores.log_softmax(-1).gather(1, labels[:, None])[:, 0]
        return compared(torch.tensor([n for each in results for n in each.log_probs]), expected)
    if hasattr(model, "encoder"):
        states = ctranslate2.Encoder(output).forward_batch(tokens["source"]).last_hidden_state
        expected = model(source, features_only=True)[0][source.ne(PAD)]
        return compared(torch.tensor(numpy.array(states))[source.ne(PAD)], expected)
    logits = ctranslate2.Generator(output).forward_batch(tokens["source"])
    return compared(torch.tensor(numpy.array(logits))[source.ne(PAD)], scores)


def _spelt(tokens: Tokens, folder: Path) -> Dict[str, List[List[str]]]:
    """Return tokens as the vocabulary of a model of CTranslate2 spells them."""
    spelt = {}
    for side, sentences in tokens.items():
        shared, own = folder / "shared_vocabulary.json", folder / f"{side}_vocabulary.json"
        types = json.loads((shared if shared.exists() else own).read_text())
        spelt[side] = [[types[number] for number in sentence] for sentence in sentences]
    return spelt


if __name__ == "__main__":
    plain_parser(__doc__).parse_args()
    for quiet in ("fairseq", "fairseq_posenc"):
        logging.getLogger(quiet).setLevel(logging.WARNING)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    print(table())

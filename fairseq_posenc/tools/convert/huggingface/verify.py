"""Whether transformers computes what our model computes, and cuts text as we do: measured."""

import os
from typing import Any, Dict, List, Mapping, Sequence

import torch
from fairseq.data.multilingual.multilingual_utils import get_lang_tok
from torch import Tensor

from fairseq_posenc.data.segmentation import CODES
from fairseq_posenc.data.subwords import DICTIONARY, SentencePiece, WordPiece
from fairseq_posenc.errors import UsageError, import_optional
from fairseq_posenc.files import read_lines
from fairseq_posenc.guards.loading import one_line
from fairseq_posenc.models.bert import PosencBertModel
from fairseq_posenc.models.transformer import PosencTransformerModel
from fairseq_posenc.tools.convert.checkpoint import (
    ALL,
    LANGUAGE_MODEL,
    ExportSource,
    read_checkpoint,
)
from fairseq_posenc.tools.convert.huggingface.adapters import SPECIAL_IDS, Adapter
from fairseq_posenc.tools.convert.huggingface.bert_tokenizers import ANY_TOKENIZER
from fairseq_posenc.tools.convert.huggingface.folder import ImportedModel, tokenizer_field

SENTENCES, _BATCH = 50, 10
LARGEST = 1e-3
_BOS, _EOS, _SPECIAL = 0, 2, 4
_LENGTH = 20  # of sentences that are drawn


def import_transformers() -> Any:
    """Return the package ``transformers``, which nothing but comparing needs."""
    return import_optional("transformers", "--check needs transformers ({error})")


def compare(
    source: ExportSource, adapter: Adapter, by_stack: Mapping[str, List[List[int]]], folder: str
) -> str:
    """Return the largest difference of scores on sentences of the data, in words.

    Those of a model of many languages may be random tokens: the folder of ``posenc import``, which
    has its tokenizer, has no text.
    """
    transformers = import_transformers()
    sentences: List[Any] = list(zip(*by_stack.values()))[:SENTENCES]
    compared = f"{len(sentences)} sentences"
    if not sentences and source.is_multilingual:
        sentences = _draw([*source.vocab_sizes.values()], SENTENCES)
        compared = f"{SENTENCES} sentences of random tokens"
    if not sentences:
        raise UsageError("--check needs a binarised test, valid or train set in the --data")
    model = getattr(transformers, adapter.model_class).from_pretrained(
        folder, local_files_only=True
    )
    largest = largest_difference(source, model.eval().float(), sentences)
    if not largest <= LARGEST:
        raise source.refusal(f"the scores of {adapter.model_class} differ by up to {largest:.2g}")
    return (
        f"largest difference of scores {largest:.1e} on {compared}, "
        f"transformers {transformers.__version__}"
    )


@torch.no_grad()
def largest_difference(
    source: ExportSource,
    model: Any,
    sentences: Sequence[Sequence[List[int]]],
    hf_ids: Sequence[Sequence[int]] = (),
) -> float:
    """Return the largest difference of scores between our model and that of transformers.

    Args:
        sentences: as numbers with EOS, of the source and, in translation, the target.
        hf_ids: the token ids of transformers for each of ours; without them, they are the same.
    """
    orders = [torch.tensor(ids) for ids in hf_ids or map(range, source.vocab_sizes.values())]
    longest = source.max_positions - 1
    differences = []
    for n in range(0, len(sentences), _BATCH):
        first, *target = zip(*sentences[n : n + _BATCH])
        if target:
            prefix = [_BOS] if source.source_bos else []
            sources = padded([prefix + sentence for sentence in first], longest)
            # the decoder starts with EOS
            tokens = padded([[_EOS, *sentence[:-1]] for sentence in target[0]], longest)
            fairseq_scores = source.model(sources, None, tokens)[0]
            decoder_inputs = {"decoder_input_ids": orders[1][tokens], "use_cache": False}
        else:
            prefix = [source.first_token] if source.model_name == LANGUAGE_MODEL else [_BOS]
            sources = tokens = padded([prefix + sentence for sentence in first], longest)
            fairseq_scores, decoder_inputs = source.model(sources)[0], {}
        hf_inputs = {**inputs(sources), **decoder_inputs, "input_ids": orders[0][sources]}
        # columns in the order of our dictionary; rows of tables that are longer fall away
        hf_scores = model(**hf_inputs).logits[..., orders[-1]]
        real = tokens.ne(SPECIAL_IDS["pad_token_id"])
        # (real tokens, types)
        differences.append((fairseq_scores[real] - hf_scores[real]).abs().max())
    return float(torch.stack(differences).max())  # also of not a number


def inputs(tokens: Tensor) -> Dict[str, Tensor]:
    """Return what transformers takes for ``(batch, length)`` tokens."""
    mask = tokens.ne(SPECIAL_IDS["pad_token_id"])
    return {"input_ids": tokens, "attention_mask": mask.long()}


def padded(sentences: Sequence[List[int]], longest: int) -> Tensor:
    """Return ``(batch, length)``, padded on the right, no longer than ``longest``."""
    truncated = [torch.tensor(sentence[:longest]) for sentence in sentences]
    padding = float(SPECIAL_IDS["pad_token_id"])
    return torch.nn.utils.rnn.pad_sequence(truncated, batch_first=True, padding_value=padding)


def compare_imported(imported: ImportedModel, folder: str, checkpoint: str, text: str) -> List[str]:
    """Return what was measured on the first lines of a text, in words."""
    transformers = import_transformers()
    lines = [line for line in map(str.strip, read_lines(text)) if line][:SENTENCES]
    if not lines:
        raise UsageError(f"{text} has no sentences to compare")
    drawn = _draw([*map(len, imported.hf_ids)], len(lines))
    notes = ["0 sentences tokenised by both; scores are compared on random tokens"]
    files = {*imported.files, *imported.texts} & {CODES, WordPiece.name, SentencePiece.name}
    if files:
        encoded = _cut(imported, checkpoint, lines)
        notes = _compare_pieces(imported, folder, encoded, lines, SentencePiece.name in files)
        drawn = [[sentence, *drawn_sides[1:]] for sentence, drawn_sides in zip(encoded, drawn)]
    tags = _tags(imported) or [[], []]
    sentences = [[tag + side for tag, side in zip(tags, sides)] for sides in drawn]
    transformers.logging.disable_progress_bar()
    name = "AutoModelForSeq2SeqLM" if len(imported.hf_ids) > 1 else "AutoModelForMaskedLM"
    with one_line(f"transformers does not read {folder}"):
        # what the folder may hold of Python is never run
        model = getattr(transformers, name).from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    source, hf_model = read_checkpoint(checkpoint, ALL), model.eval().float()
    largest = largest_difference(source, hf_model, sentences, imported.hf_ids)
    if not largest <= LARGEST:
        raise UsageError(f"{folder}: the scores of transformers differ by up to {largest:.2g}")
    measured = f"{len(sentences)} sentences, transformers {transformers.__version__}"
    return [*notes, f"largest difference of scores {largest:.1e} on {measured}"]


def _draw(sizes: List[int], count: int) -> List[List[List[int]]]:
    """Return sentences of random tokens, the same in every run, of vocabularies of these sizes."""
    generator = torch.Generator().manual_seed(1)
    return [
        [
            [*torch.randint(_SPECIAL, size, (_LENGTH,), generator=generator).tolist(), _EOS]
            for size in sizes
        ]
        for _ in range(count)
    ]


def _tags(imported: ImportedModel) -> List[List[int]]:
    """Return the numbers that sources and targets begin with, of a model of many languages."""
    languages, style = imported.task.get("langs", [])[:2], imported.task.get("lang_tok_style")
    return [[imported.dictionaries[DICTIONARY].index(get_lang_tok(n, style))] for n in languages]


def _cut(imported: ImportedModel, checkpoint: str, lines: List[str]) -> List[List[int]]:
    """Return sentences as our numbers with EOS, as ``from_pretrained`` makes them of text."""
    directory, name = os.path.split(checkpoint)
    hub_class = PosencTransformerModel if len(imported.hf_ids) > 1 else PosencBertModel
    languages = dict(zip(("source_lang", "target_lang"), imported.task.get("langs", [])))
    hub = hub_class.from_pretrained(directory, name, directory, **languages)
    return [[n for n in hub.encode(line).tolist() if n != _BOS] for line in lines]


def _compare_pieces(
    imported: ImportedModel, folder: str, encoded: List[List[int]], lines: List[str], tolerant: bool
) -> List[str]:
    """Compare numbers with those of the tokenizer of transformers.

    If ``tolerant``, text may be cut otherwise there, but pieces of one name have one number. Then
    both have the same SentencePiece model, of which transformers uses a copy in another format.
    """
    tokenizer = _tokenizer(folder, imported.tokenizers)
    for language in imported.task.get("langs", [])[:1]:
        tokenizer.src_lang = language
    dictionary = next(iter(imported.dictionaries.values()))
    fairseq_ids = {number: n for n, number in enumerate(imported.hf_ids[0])}
    begins = {_BOS, *(number for tag in _tags(imported) for number in tag)}
    differing = []
    for line, sentence in zip(lines, encoded):
        numbers = [fairseq_ids.get(n, -1) for n in tokenizer(line)["input_ids"]]
        hf_sentence = [n for n in numbers if n not in begins]
        if hf_sentence == sentence:
            continue
        spelt = tokenizer.convert_ids_to_tokens(tokenizer.encode(line, add_special_tokens=False))
        if not tolerant or spelt == [dictionary[n] for n in sentence[:-1]]:
            subwords = " ".join(dictionary[n] for n in sentence[:-1])
            raise UsageError(
                f"{folder}: its tokenizer in transformers makes {' '.join(spelt):.60} of "
                f"{line:.60}, and posenc {subwords:.60}"
            )
        differing.append(line)
    note = f"{len(lines) - len(differing)} of {len(lines)} sentences are cut as by transformers"
    return [note + (f"; not {differing[0]:.100}" if differing else "")]


def _tokenizer(folder: str, classes: Sequence[str]) -> Any:
    """Return the tokenizer of transformers that a folder names, if it is one of those known."""
    name = tokenizer_field(folder, "tokenizer_class", classes[0])
    if name not in (*classes, *ANY_TOKENIZER):
        raise UsageError(f"{folder}: {name:.60} cannot be compared; known are {', '.join(classes)}")
    with one_line(f"transformers does not read the tokenizer of {folder}"):
        return getattr(import_transformers(), name).from_pretrained(folder, local_files_only=True)

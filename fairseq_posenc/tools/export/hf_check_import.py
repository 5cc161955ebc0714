"""Whether transformers computes what an imported model computes, and cuts text as we do."""

import os
from types import SimpleNamespace
from typing import Any, List, Optional, Sequence

import torch
from fairseq.data.multilingual.multilingual_utils import get_lang_tok
from torch import Tensor

from fairseq_posenc.data.segmentation import CODES
from fairseq_posenc.data.subwords import DICTIONARY, SentencePiece, WordPiece
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.guards.loading import one_line
from fairseq_posenc.json_files import load_json
from fairseq_posenc.models.bert import PosencBertModel
from fairseq_posenc.models.transformer import PosencTransformerModel
from fairseq_posenc.tools.export.hf_check import (
    LARGEST,
    SENTENCES,
    import_transformers,
    largest_difference,
)
from fairseq_posenc.tools.export.hf_foreign import Found, tokenizer_field
from fairseq_posenc.tools.export.hf_foreign_bert import ANY_TOKENIZER, WORDPIECE
from fairseq_posenc.tools.export.source import ALL, read_checkpoint

_BOS, _EOS, _SPECIAL = 0, 2, 4
_LENGTH = 20  # of sentences that are drawn
# the tokenizers that may read a folder, by its kind of model; the usual one is the first
_TOKENIZERS = {
    "fsmt": ("FSMTTokenizer",),
    "bert": WORDPIECE,
    "roformer": WORDPIECE,
    "roberta": ("XLMRobertaTokenizer", *WORDPIECE),
    "xlm-roberta": ("XLMRobertaTokenizer", "XLMRobertaTokenizerFast"),
    "m2m_100": ("M2M100Tokenizer", "NllbTokenizer", "NllbTokenizerFast"),
    "mbart": ("MBart50Tokenizer", "MBart50TokenizerFast"),
}


class _InOurNumbers:
    """A model of transformers that takes our numbers of types, and gives scores in our order.

    ``orders`` are its numbers of our types: of the source and, in translation, of the target.
    """

    def __init__(self, model: Any, orders: Sequence[Sequence[int]]):
        self.model, self.orders = model, [torch.tensor(order) for order in orders]

    def __call__(
        self, input_ids: Tensor, decoder_input_ids: Optional[Tensor] = None, **more: Any
    ) -> SimpleNamespace:
        if decoder_input_ids is not None:
            more["decoder_input_ids"] = self.orders[-1][decoder_input_ids]
        scores = self.model(input_ids=self.orders[0][input_ids], **more).logits
        return SimpleNamespace(logits=scores[..., self.orders[-1]])


def compare_imported(found: Found, folder: str, checkpoint: str, text: str) -> List[str]:
    """Return what was measured on the first lines of a text, in words.

    Args:
        found: what was read in ``folder``, which has a model of transformers.
        folder: the same.
        checkpoint: where it was written, with all that belongs beside it.
        text: a file with a sentence a line.

    Raises:
        UsageError: scores or pieces are others, or transformers does not read the folder.
    """
    transformers = import_transformers()
    lines = [line for line in map(str.strip, read_lines(text)) if line][:SENTENCES]
    if not lines:
        raise UsageError(f"{text} has no sentences to compare")
    torch.manual_seed(1)
    drawn = [[_draw(order) for order in found.orders] for _ in lines]
    notes = ["0 sentences are cut both ways; scores are compared on drawn ones"]
    files = {*found.files, *found.texts} & {CODES, WordPiece.name, SentencePiece.name}
    if files:
        cut = _cut(found, checkpoint, lines)
        notes = _compare_pieces(found, folder, cut, lines, SentencePiece.name in files)
        drawn = [[sentence, *others[1:]] for sentence, others in zip(cut, drawn)]
    tags = _tags(found) or [[], []]
    sentences = [[tag + side for tag, side in zip(tags, sides)] for sides in drawn]
    transformers.logging.disable_progress_bar()
    name = "AutoModelForSeq2SeqLM" if len(found.orders) > 1 else "AutoModelForMaskedLM"
    with one_line(f"transformers does not read {folder}"):
        # what the folder may hold of Python is never run
        model = getattr(transformers, name).from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    theirs = _InOurNumbers(model.eval().float(), found.orders)
    largest = largest_difference(read_checkpoint(checkpoint, ALL), theirs, sentences)
    if not largest <= LARGEST:
        raise UsageError(f"{folder}: the scores of transformers differ by up to {largest:.2g}")
    about = f"{len(sentences)} sentences, transformers {transformers.__version__}"
    return [*notes, f"largest difference of scores {largest:.1e} on {about}"]


def _draw(order: Sequence[int]) -> List[int]:
    return [*torch.randint(_SPECIAL, len(order), (_LENGTH,)).tolist(), _EOS]


def _tags(found: Found) -> List[List[int]]:
    """Return the numbers that sources and targets begin with, of a model of many languages."""
    languages, style = found.task.get("langs", [])[:2], found.task.get("lang_tok_style")
    return [[found.dictionaries[DICTIONARY].index(get_lang_tok(n, style))] for n in languages]


def _cut(found: Found, checkpoint: str, lines: List[str]) -> List[List[int]]:
    """Return sentences as our numbers with EOS, as ``from_pretrained`` makes them of text."""
    place, name = os.path.split(checkpoint)
    kind = PosencTransformerModel if len(found.orders) > 1 else PosencBertModel
    languages = dict(zip(("source_lang", "target_lang"), found.task.get("langs", [])))
    hub = kind.from_pretrained(place, name, place, **languages)
    return [[n for n in hub.encode(line).tolist() if n != _BOS] for line in lines]


def _compare_pieces(
    found: Found, folder: str, cut: List[List[int]], lines: List[str], tolerant: bool
) -> List[str]:
    """Compare numbers with those of the tokenizer of transformers.

    If ``tolerant``, text may be cut otherwise there, but pieces of one name have one number. Then
    both have the same SentencePiece model, of which transformers uses a copy in another format.
    """
    tokenizer = _tokenizer(folder)
    for language in found.task.get("langs", [])[:1]:
        tokenizer.src_lang = language
    dictionary = next(iter(found.dictionaries.values()))
    ours = {number: n for n, number in enumerate(found.orders[0])}
    begins = {_BOS, *(number for tag in _tags(found) for number in tag)}
    others = []
    for line, sentence in zip(lines, cut):
        numbers = [ours.get(n, -1) for n in tokenizer(line)["input_ids"]]
        theirs = [n for n in numbers if n not in begins]
        if theirs == sentence:
            continue
        spelt = tokenizer.convert_ids_to_tokens(tokenizer.encode(line, add_special_tokens=False))
        if not tolerant or spelt == [dictionary[n] for n in sentence[:-1]]:
            pieces = " ".join(dictionary[n] for n in sentence[:-1])
            raise UsageError(
                f"{folder}: its tokenizer in transformers makes {' '.join(spelt):.60} of "
                f"{line:.60}, and posenc {pieces:.60}"
            )
        others.append(line)
    note = f"{len(lines) - len(others)} of {len(lines)} sentences are cut as by transformers"
    return [note + (f"; not {others[0]:.100}" if others else "")]


def _tokenizer(folder: str) -> Any:
    """Return the tokenizer of transformers that a folder names, if it is one of those known."""
    kind = load_json(os.path.join(folder, "config.json"), {"model_type": str}, "transformers")
    known = _TOKENIZERS[kind["model_type"]]
    name = tokenizer_field(folder, "tokenizer_class", known[0])
    if name not in (*known, *ANY_TOKENIZER):
        raise UsageError(f"{folder}: {name:.60} cannot be compared; known are {', '.join(known)}")
    with one_line(f"transformers does not read the tokenizer of {folder}"):
        return getattr(import_transformers(), name).from_pretrained(folder, local_files_only=True)

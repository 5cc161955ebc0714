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
from fairseq_posenc.tools.convert.checkpoint import ALL, read_checkpoint
from fairseq_posenc.tools.convert.huggingface.bert import ANY_TOKENIZER, WORDPIECE
from fairseq_posenc.tools.convert.huggingface.imported import ImportedModel, tokenizer_field
from fairseq_posenc.tools.convert.huggingface.verify import (
    LARGEST,
    SENTENCES,
    import_transformers,
    largest_difference,
)

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


class _WithOurIds:
    """A model of transformers that takes our token ids, and gives scores in their order.

    ``hf_ids`` are its token ids of our entries: of the source and, in translation, of the target.
    """

    def __init__(self, model: Any, hf_ids: Sequence[Sequence[int]]):
        self.model, self.hf_ids = model, [torch.tensor(order) for order in hf_ids]

    def __call__(
        self, input_ids: Tensor, decoder_input_ids: Optional[Tensor] = None, **more: Any
    ) -> SimpleNamespace:
        if decoder_input_ids is not None:
            more["decoder_input_ids"] = self.hf_ids[-1][decoder_input_ids]
        scores = self.model(input_ids=self.hf_ids[0][input_ids], **more).logits
        return SimpleNamespace(logits=scores[..., self.hf_ids[-1]])


def compare_imported(imported: ImportedModel, folder: str, checkpoint: str, text: str) -> List[str]:
    """Return what was measured on the first lines of a text, in words.

    Args:
        imported: what was read in ``folder``, which has a model of transformers.
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
    drawn = [[_draw(order) for order in imported.hf_ids] for _ in lines]
    notes = ["0 sentences are cut both ways; scores are compared on drawn ones"]
    files = {*imported.files, *imported.texts} & {CODES, WordPiece.name, SentencePiece.name}
    if files:
        cut = _cut(imported, checkpoint, lines)
        notes = _compare_pieces(imported, folder, cut, lines, SentencePiece.name in files)
        drawn = [[sentence, *drawn_sides[1:]] for sentence, drawn_sides in zip(cut, drawn)]
    tags = _tags(imported) or [[], []]
    sentences = [[tag + side for tag, side in zip(tags, sides)] for sides in drawn]
    transformers.logging.disable_progress_bar()
    name = "AutoModelForSeq2SeqLM" if len(imported.hf_ids) > 1 else "AutoModelForMaskedLM"
    with one_line(f"transformers does not read {folder}"):
        # what the folder may hold of Python is never run
        model = getattr(transformers, name).from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    hf_model = _WithOurIds(model.eval().float(), imported.hf_ids)
    largest = largest_difference(read_checkpoint(checkpoint, ALL), hf_model, sentences)
    if not largest <= LARGEST:
        raise UsageError(f"{folder}: the scores of transformers differ by up to {largest:.2g}")
    about = f"{len(sentences)} sentences, transformers {transformers.__version__}"
    return [*notes, f"largest difference of scores {largest:.1e} on {about}"]


def _draw(order: Sequence[int]) -> List[int]:
    return [*torch.randint(_SPECIAL, len(order), (_LENGTH,)).tolist(), _EOS]


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
    imported: ImportedModel, folder: str, cut: List[List[int]], lines: List[str], tolerant: bool
) -> List[str]:
    """Compare numbers with those of the tokenizer of transformers.

    If ``tolerant``, text may be cut otherwise there, but pieces of one name have one number. Then
    both have the same SentencePiece model, of which transformers uses a copy in another format.
    """
    tokenizer = _tokenizer(folder)
    for language in imported.task.get("langs", [])[:1]:
        tokenizer.src_lang = language
    dictionary = next(iter(imported.dictionaries.values()))
    fairseq_ids = {number: n for n, number in enumerate(imported.hf_ids[0])}
    begins = {_BOS, *(number for tag in _tags(imported) for number in tag)}
    differing = []
    for line, sentence in zip(lines, cut):
        numbers = [fairseq_ids.get(n, -1) for n in tokenizer(line)["input_ids"]]
        hf_sentence = [n for n in numbers if n not in begins]
        if hf_sentence == sentence:
            continue
        spelt = tokenizer.convert_ids_to_tokens(tokenizer.encode(line, add_special_tokens=False))
        if not tolerant or spelt == [dictionary[n] for n in sentence[:-1]]:
            pieces = " ".join(dictionary[n] for n in sentence[:-1])
            raise UsageError(
                f"{folder}: its tokenizer in transformers makes {' '.join(spelt):.60} of "
                f"{line:.60}, and posenc {pieces:.60}"
            )
        differing.append(line)
    note = f"{len(lines) - len(differing)} of {len(lines)} sentences are cut as by transformers"
    return [note + (f"; not {differing[0]:.100}" if differing else "")]


def _tokenizer(folder: str) -> Any:
    """Return the tokenizer of transformers that a folder names, if it is one of those known."""
    fields = load_json(os.path.join(folder, "config.json"), {"model_type": str}, "transformers")
    classes = _TOKENIZERS[fields["model_type"]]
    name = tokenizer_field(folder, "tokenizer_class", classes[0])
    if name not in (*classes, *ANY_TOKENIZER):
        raise UsageError(f"{folder}: {name:.60} cannot be compared; known are {', '.join(classes)}")
    with one_line(f"transformers does not read the tokenizer of {folder}"):
        return getattr(import_transformers(), name).from_pretrained(folder, local_files_only=True)

"""Subword models: WordPiece (library ``tokenizers``) and SentencePiece (library ``sentencepiece``).

Both know the literal ``<unk>``, which corpora such as WikiText hold in place of rare words: it is
one piece, the unknown token, and never ``<``, ``unk``, ``>``.
"""

import os
import re
import unicodedata
from abc import ABC, abstractmethod
from typing import Any, Dict, List, Optional, Set, Tuple

from fairseq.data import Dictionary

from fairseq_posenc.data.indexed import read_dictionary
from fairseq_posenc.data.wordpiece_file import read_wordpiece
from fairseq_posenc.errors import UsageError, first_line, import_optional

UNKNOWN, MASK = "<unk>", "<mask>"
# the piece for masked tokens is appended by the tasks, the others are in every dictionary
SPECIALS = ("<s>", "<pad>", "</s>", UNKNOWN, MASK)
DICTIONARY = "dict.txt"
_GROUPED_NUMBER = re.compile(r"\d+(?:[.,]\d+)+")
_RARE_WORD = "\u16a0" * 200

VERSION = "sentencepiece.version"  # of the library that learnt the model beside it
Span = Tuple[int, int]
_STRANGE = "\u16a0"  # a rune, which no piece has


class Subwords(ABC):
    """Base of the two subword models."""

    name = ""  # of the model's file in a folder
    continues = begins = ""  # prefixes of pieces that continue, or begin, a word

    def __init__(self, file: str):
        self.file = file

    def encode(self, text: str, after_special: bool = False) -> List[str]:
        """Return the pieces of a text; characters that the model does not have are ``<unk>``.

        ``after_special`` says that a special token precedes: SentencePiece then lets a word go on,
        if the text has no space there.
        """
        return self._encode_with_raw_offsets(text, after_special)[0]

    def encode_with_offsets(self, text: str) -> Tuple[List[str], List[Span]]:
        """Return the pieces of a text, and for each the characters (start, end) it stands for.

        Offsets count characters of the very string ``text``, whatever normalisation makes of it:
        ``text[start:end]`` is never empty, starts and ends never decrease. Spaces belong to no
        piece; combining marks that normalisation drops belong to the piece before them; a piece
        that stands for a part of a character (½ is 1, ⁄ and 2) or for the mere beginning of a word
        gets that character or that word's first one.
        """
        subwords, spans = self._encode_with_raw_offsets(text)
        return subwords, _tidy(text, spans)

    @abstractmethod
    def decode(self, subwords: List[str]) -> str:
        """Return the text of pieces; it differs from the original by normalisation only."""

    @abstractmethod
    def begins_word(self, piece: str) -> bool:
        """Return whether a piece stands at the beginning of a word (``<unk>`` does)."""

    @abstractmethod
    def vocabulary(self) -> List[str]:
        """Return the model's pieces in its own order, without special tokens."""

    def dictionary(self) -> Dictionary:
        """Return a new dictionary: fairseq's special tokens, then the pieces in their order."""
        dictionary = Dictionary()
        for piece in self.vocabulary():
            dictionary.add_symbol(piece)
        return dictionary

    @abstractmethod
    def _encode_with_raw_offsets(
        self, text: str, after_special: bool = False
    ) -> Tuple[List[str], List[Span]]:
        """Return pieces, and their spans as the library has them."""


class WordPiece(Subwords):
    """WordPiece as BERT has it; pieces that continue a word start with ``##``."""

    name, continues = "wordpiece.json", "##"

    def __init__(self, file: str):
        super().__init__(file)
        self._model = library("tokenizers").Tokenizer.from_str(read_wordpiece(file))

    def _encode_with_raw_offsets(
        self, text: str, after_special: bool = False
    ) -> Tuple[List[str], List[Span]]:
        encoding = self._model.encode(text, add_special_tokens=False)
        return encoding.tokens, encoding.offsets

    def decode(self, subwords: List[str]) -> str:  # noqa: D102
        return " ".join(subwords).replace(" ##", "")

    def begins_word(self, piece: str) -> bool:  # noqa: D102
        return not piece.startswith("##")

    def vocabulary(self) -> List[str]:  # noqa: D102
        indices = self._model.get_vocab()
        return [piece for piece in sorted(indices, key=indices.get) if piece not in SPECIALS]


class SentencePiece(Subwords):
    """SentencePiece; pieces that begin a word start with ``▁``."""

    name, begins = "sentencepiece.model", "▁"

    def __init__(self, file: str):
        super().__init__(file)
        self._model = library("sentencepiece").SentencePieceProcessor(model_file=file)
        subwords = [self._model.id_to_piece(index) for index in range(len(self._model))]
        # of the special tokens, text yields the unknown one only, whatever its name in the model
        subwords[self._model.unk_id()] = UNKNOWN
        self._names = [UNKNOWN if piece in SPECIALS else piece for piece in subwords]

    def encode(self, text: str, after_special: bool = False) -> List[str]:  # noqa: D102
        if after_special or UNKNOWN in text:
            return self._encode_with_raw_offsets(text, after_special)[0]
        return [self._names[index] for index in self._model.encode(text)]

    def _encode(self, text: str, after_special: bool) -> Tuple[List[str], List[Span]]:
        # a character before the text, so that no ▁ is put before the text itself
        prefix = _STRANGE if after_special and text[:1] != " " else ""
        text = prefix + text
        encoding = self._model.encode(text, return_type="offset_mapping")
        ids, spans = encoding["ids"], encoding["offsets"]
        first = 0
        if prefix:  # an unknown character that follows is one piece with it
            strings = [piece.lstrip("▁") for piece in self._model.encode(text, out_type=str)]
            first = next(n for n, piece in enumerate(strings) if piece.startswith(_STRANGE))
            first += strings[first] == _STRANGE
        added = len(prefix)
        # as if the character before the text were not there
        spans = [(max(start - added, 0), end - added) for start, end in spans[first:]]
        return [self._names[index] for index in ids[first:]], spans

    def _encode_with_raw_offsets(
        self, text: str, after_special: bool = False
    ) -> Tuple[List[str], List[Span]]:
        first, *following = text.split(UNKNOWN)
        subwords, spans = self._encode(first, after_special)
        end = len(first)
        for part in following:
            start, end = end + len(UNKNOWN), end + len(UNKNOWN) + len(part)
            names, offsets = self._encode(part, after_special=True)
            subwords += [UNKNOWN, *names]
            spans += [(start - len(UNKNOWN), start), *((start + a, start + b) for a, b in offsets)]
        return subwords, spans

    def decode(self, subwords: List[str]) -> str:  # noqa: D102
        marked = ("▁" + piece if piece == UNKNOWN else piece for piece in subwords)
        return " ".join("".join(marked).replace("▁", " ").split())

    def begins_word(self, piece: str) -> bool:  # noqa: D102
        return piece.startswith("▁") or piece == UNKNOWN

    def vocabulary(self) -> List[str]:  # noqa: D102
        return [piece for piece in self._names if piece != UNKNOWN]

    def scores(self) -> Dict[str, float]:
        """Return the score of each piece of :meth:`vocabulary`."""
        scores = map(self._model.get_score, range(len(self._names)))
        return {piece: s for piece, s in zip(self._names, scores) if piece != UNKNOWN}

    def settings(self) -> Tuple[Any, Any]:
        """Return how the model was learnt and how it normalises, as messages of the library."""
        message = model_proto_class().FromString(self._model.serialized_model_proto())
        return message.trainer_spec, message.normalizer_spec


SUBWORD_MODELS = {"wordpiece": WordPiece, "sentencepiece": SentencePiece}


class AnswerAlignedSubwords:
    """A subword model whose pieces are cut wherever an answer may begin or end.

    Answers are stretches of pieces, so that ``1185`` cannot be answered where SentencePiece has the
    piece ``(1185–1``, nor ``1,5`` in ``1,500``. Which pieces are cut depends on the text alone,
    never on the answers: letters, digits and other characters are parted, the latter from each
    other, too, unless they are equal (``).`` is cut, ``...`` is not), and numbers with separators
    are cut to single digits. The new pieces are pieces of the vocabulary too.
    """

    def __init__(self, subwords: Subwords):
        self._subwords = subwords
        self._vocabulary = frozenset(subwords.vocabulary())

    def encode_with_offsets(self, text: str) -> Tuple[List[str], List[Span]]:
        """Return pieces and the characters each stands for, as the model does, but more of them.

        A piece stays whole if the vocabulary has no pieces for its parts, or if normalisation
        changed its length.
        """
        subwords: List[str] = []
        spans: List[Span] = []
        cuts = _boundaries(text)
        for piece, (start, end) in zip(*self._subwords.encode_with_offsets(text)):
            inner = [at - start for at in range(start + 1, end) if at in cuts]
            parts = self._cut(piece, end - start, inner) if inner and piece != UNKNOWN else None
            for name, (first, last) in parts or [(piece, (0, end - start))]:
                subwords.append(name)
                spans.append((start + first, start + last))
        return subwords, spans

    def _cut(self, piece: str, length: int, cuts: List[int]) -> Optional[List[Tuple[str, Span]]]:
        """Cut a piece that stands for ``length`` characters at some of them; None: impossible."""
        continues, begins = self._subwords.continues, self._subwords.begins
        marked = piece.startswith(continues) and len(piece) > len(continues)
        mark = continues if marked else ""
        body = piece[len(mark) :]
        # ▁ at the beginning stands for no character
        lead = len(begins) if body.startswith(begins) else 0
        if len(body) - lead != length:
            return None
        parts: List[Tuple[str, Span]] = []
        # between two cuts: the longest piece in the vocabulary from the left, then the next, …
        edges = [0, *(at + lead for at in cuts), len(body)]
        for first, stop in zip(edges, edges[1:]):
            while first < stop:
                mark = continues if parts else mark
                ends = range(stop, first, -1)
                ends_of_pieces = (end for end in ends if mark + body[first:end] in self._vocabulary)
                last = next(ends_of_pieces, None)
                if last is None:
                    return None
                span = max(first - lead, 0), max(last - lead, 1)
                parts.append((mark + body[first:last], span))
                first = last
        return parts


def load(folder: str) -> Subwords:
    """Load the subword model of a folder: ``wordpiece.json`` or ``sentencepiece.model``.

    Raises:
        UsageError: the folder has neither or both, or the file is damaged.
    """
    files = [os.path.join(folder, subword_class.name) for subword_class in SUBWORD_MODELS.values()]
    candidates = [pair for pair in zip(SUBWORD_MODELS.values(), files) if os.path.isfile(pair[1])]
    if len(candidates) != 1:
        names = " and ".join(subword_class.name for subword_class in SUBWORD_MODELS.values())
        raise UsageError(
            f"{folder} must hold one of {names}, and holds {'both' if candidates else 'neither'}; "
            "give a folder that posenc prepare text has written"
        )
    subword_class, file = candidates[0]
    try:
        model = subword_class(file)
        # a damaged model may fail at a word that it does not know
        model.encode(_RARE_WORD)
        return model
    except UsageError:
        raise
    # the libraries raise bare Exception and RuntimeError
    except Exception as error:
        raise UsageError(f"cannot load the subword model {file}: {first_line(error)}") from None


def load_dictionary(folder: str) -> Dictionary:
    """Load ``dict.txt`` of a folder; ``<mask>`` is left to the tasks.

    Raises:
        UsageError: it is missing or damaged.
    """
    file = os.path.join(folder, DICTIONARY)
    if not os.path.exists(file):
        raise UsageError(f"there is no {file}; posenc prepare text writes it")
    return read_dictionary(file)


def model_proto_class() -> Any:
    """Return ``ModelProto``, the library's class of messages that files of SentencePiece hold."""
    problem = "this subword model needs the library protobuf ({error})"
    module = "sentencepiece.sentencepiece_model_pb2"
    return import_optional(module, problem, "protobuf").ModelProto


def library(name: str) -> Any:
    """Import a library of subwords, or say how to get it."""
    return import_optional(name, f"this subword model needs the library {name} ({{error}})")


def _boundaries(text: str) -> Set[int]:
    """Return where letters (with marks), digits and unequal others meet, and in grouped numbers."""
    categories = [{"M": "L", "L": "L", "N": "N"}.get(unicodedata.category(c)[0], c) for c in text]
    boundaries = {i for i in range(1, len(text)) if categories[i] != categories[i - 1]}
    for number in _GROUPED_NUMBER.finditer(text):
        boundaries.update(range(number.start(), number.end() + 1))
    return boundaries


def _tidy(text: str, spans: List[Span]) -> List[Span]:
    """Strip spaces off raw spans, widen empty ones, and add dropped combining marks."""

    def is_blank(character: str) -> bool:
        return character.isspace() or unicodedata.category(character) in ("Cc", "Cf")

    tidy = []
    for start, end in spans:
        first = start
        while first < len(text) and is_blank(text[first]):
            first += 1
        if first == len(text):
            first = min(start, len(text) - 1)
        last = max(end, first + 1)
        while last > first + 1 and is_blank(text[last - 1]):
            last -= 1
        tidy.append((first, last))
    following = [start for start, _ in tidy[1:]] + [len(text)]
    for number, ((start, end), stop) in enumerate(zip(tidy, following)):
        while end < stop and unicodedata.category(text[end]).startswith("M"):
            end += 1
        tidy[number] = (start, end)
    return tidy

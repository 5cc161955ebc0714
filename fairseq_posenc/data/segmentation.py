"""Tokenisation and subwords of a translation model's text, and back.

Beside binarised data, ``sentencepiece.model`` cuts raw text; or ``tokeniser.json`` has the options
of Moses' tokeniser (sacremoses), and ``codes`` the merges of byte pair encoding (subword-nmt) for
its tokens. The libraries are imported when needed.
"""

import functools
import io
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Sequence

import regex

from fairseq_posenc.data.languages import language_code
from fairseq_posenc.errors import UsageError, first_line, import_optional
from fairseq_posenc.files import read_lines
from fairseq_posenc.json_files import Maybe, load_json

CODES = "codes"
TOKENIZER = "tokeniser.json"
TRAINING = "training"  # in it: how training text was tokenised, where that differs
SEPARATOR = "<sep>"  # stands between sentences that were joined, and is never cut
# constructs by which a regular expression looks beyond the end of a line
_BEYOND_A_LINE = re.compile(r"\\[sSDWbBAZ]|(?<!\\)[\^$]")
_UNPRINTABLE = regex.compile(r"(?!\n)\p{C}")
_MOST_LACKING = 0.1  # of a dictionary's types, as pieces of its model
_LARGEST_CACHE = 300_000  # words per process, some 100 MB
_MARGIN = "\r\n "
_VERSION = re.compile(r"#version: 0\.[12]")
_BYTE = re.compile("(<0x[0-9A-F]{2}>)")  # SentencePiece's piece for it, with --byte_fallback


class Moses(NamedTuple):
    """Settings of the Moses tokeniser.

    Attributes:
        language: for example ``de``.
        normalise: punctuation, as normalize-punctuation.perl.
        printable: write a space for each character that does not print, as
            remove-non-printing-char.perl.
        aggressive: split words at hyphens, tokenizer.perl's ``-a``.
        escape: write ``&amp;`` and so on, as tokenizer.perl without ``-no-escape``.
        plain_quotes: write ’ as ', before all else.
        lowercase: the tokens.
    """

    language: str
    normalise: bool = True
    printable: bool = False
    aggressive: bool = False
    escape: bool = True
    plain_quotes: bool = False
    lowercase: bool = False


def read_moses(path: str, language: str, training: bool = False) -> Moses:
    """Return the tokeniser that ``tokeniser.json`` describes, for a language.

    Args:
        path: of the file.
        language: any code of it, such as ``de`` or ``deu_Latn``.
        training: of the training text, where that was prepared otherwise than new text is.

    Raises:
        UsageError: the file is missing or damaged.
    """
    names = [name for name in Moses._fields if name != "language"]
    # files of earlier versions do not have the last two
    schema = {**dict.fromkeys(names, bool), "lowercase": Maybe(bool)}
    settings = load_json(path, {**schema, TRAINING: Maybe(schema)}, "posenc prepare")
    settings = training and settings.get(TRAINING) or settings
    return Moses(language_code(language), **{name: bool(settings.get(name)) for name in names})


def _sacremoses() -> Any:
    return import_optional("sacremoses", f"text of {TOKENIZER} needs the library sacremoses")


@functools.cache
def _substitutions(language: str) -> list:
    rules = _sacremoses().MosesPunctNormalizer(language).substitutions
    return [(re.compile(old), new, bool(_BEYOND_A_LINE.search(old))) for old, new in rules]


@functools.cache
def _moses_tokenizer(language: str) -> Any:
    return _sacremoses().MosesTokenizer(language)


def normalise(lines: List[str], language: str) -> List[str]:
    """Return ``MosesPunctNormalizer(language).normalize(line.strip())`` of each line.

    Every rule is applied to all lines at once, joined, unless it could see where a line ends: this
    takes a third of the time of rule after rule on line after line.

    Our reading: a rule of Moses for German and French, '."' to '".', is meant to spare the end of a
    sentence. It does here; Moses' script and sacremoses' command line pass on the line feed too, so
    that it does not (one in 10,000 lines of Multi30k).
    """
    # one string of all lines: a regular expression is called once, not once a line
    text = "\n".join(line.strip() for line in lines)
    for old, new, beyond in _substitutions(language):
        if beyond:
            text = "\n".join([old.sub(new, line) for line in text.split("\n")])
        else:
            text = old.sub(new, text)
    return [line.strip() for line in text.split("\n")]


def tokenise_lines(lines: List[str], moses: Moses) -> List[str]:
    """Return each line's tokens, separated by spaces; lines come without line feeds."""
    if moses.plain_quotes:
        lines = [line.replace("’", "'") for line in lines]
    if moses.normalise:
        lines = normalise(lines, moses.language)
    if moses.printable:
        lines = _UNPRINTABLE.sub(" ", "\n".join(lines)).split("\n")
    tokenise = _moses_tokenizer(moses.language).tokenize
    lines = [
        tokenise(line, moses.aggressive, return_str=True, escape=moses.escape) for line in lines
    ]
    return [line.lower() for line in lines] if moses.lowercase else lines


def detokenise_lines(lines: Iterable[str], language: str) -> List[str]:
    """Return the text of lines of Moses' tokens, as Moses' detokeniser makes it."""
    detokenise = _sacremoses().MosesDetokenizer(lang=language_code(language)).detokenize
    return [detokenise(line.split()) for line in lines]


class SentencePieces:
    """Cuts raw text into sentencepieces, and makes the text of them again, as the library does.

    A model of ``posenc prepare translation`` gives back all of the text, see
    :mod:`fairseq_posenc.tools.translation.pieces`, but for blanks at the ends of a line.

    Raises:
        UsageError: the file is missing or no such model.
    """

    def __init__(self, path: str):
        # fairseq comes with it, which plans of recipes do without
        from fairseq_posenc.data.subwords import library

        processor = library("sentencepiece").SentencePieceProcessor
        self._path = path
        try:
            self._model = processor(model_file=path)
        except (OSError, RuntimeError) as error:
            raise UsageError(f"{path} is not a SentencePiece model: {first_line(error)}") from None

    def remarks(self, symbols: Sequence[str]) -> List[str]:
        """Return what to say of a dictionary that is probably not of this model: one line, or none.

        Two models of one language share most pieces, and a dictionary may have some symbols more.

        Args:
            symbols: of the dictionary, without the special ones.
        """
        symbols = [symbol for symbol in symbols if not symbol.startswith("madeupword")]
        lacking = sum(self._model.piece_to_id(s) == self._model.unk_id() for s in symbols)
        if lacking <= _MOST_LACKING * len(symbols):
            return []
        return [
            f"{100 * lacking / len(symbols):.0f} % of the dictionary's types are no pieces of "
            f"{self._path}, which may be of another model: what it cuts would be unknown tokens"
        ]

    def encode(self, line: str) -> str:
        """Return the pieces of a line of text, separated by spaces."""
        return " ".join(self._model.encode(line.strip(), out_type=str))

    def decode(self, line: str) -> str:
        """Return the text of pieces that spaces separate."""
        return self._model.decode(line.split()).strip()

    def vocabulary(self) -> List[str]:
        """Return the pieces in the model's order, without unknown and control ones."""
        model = self._model
        ids = [n for n in range(len(model)) if not (model.is_unknown(n) or model.is_control(n))]
        return [model.id_to_piece(n) for n in ids]

    def restore(self, line: str) -> str:
        """Return the text of a line that another program joined, by making spaces of ▁ alone."""
        return self._model.decode([part for part in _BYTE.split(line) if part])


class BytePairEncoder:
    """Cuts words into subwords; the library looks at every word anew, this remembers them.

    Raises:
        UsageError: the file of merges is missing, empty, not UTF-8, or holds something else.
    """

    def __init__(self, path: str):
        library = import_optional("subword_nmt.apply_bpe", f"{path} needs the library subword_nmt")
        lines = read_lines(path)
        first = 1 if _VERSION.fullmatch(lines[0]) else 0
        for number, line in enumerate(lines[first:], first + 1):
            if len(line.strip(_MARGIN).split(" ")) != 2 or line.startswith("#version:"):
                raise UsageError(f"{path}, line {number}: no BPE operation")
        if not lines[first:]:
            raise UsageError(f"{path} holds no BPE operations")
        codes = io.StringIO("".join(f"{line}\n" for line in lines))
        self._bpe = library.BPE(codes, glossaries=[SEPARATOR])
        self._encoded: Dict[str, str] = {}

    def encode(self, line: str) -> str:
        """Return a line with its words cut; all but the last subword of a word end in ``@@``."""
        if line != line.strip(_MARGIN):
            return self._bpe.process_line(line)
        words = (word for word in line.split(" ") if word)
        return " ".join([self._encoded.get(word) or self._encode_word(word) for word in words])

    def _encode_word(self, word: str) -> str:
        if len(self._encoded) >= _LARGEST_CACHE:
            self._encoded.clear()
            self._bpe.cache.clear()
        self._encoded[word] = " ".join(self._bpe.segment_tokens([word]))
        return self._encoded[word]

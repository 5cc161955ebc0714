"""The texts of one test set in the forms that metrics want: tokenised and detokenised."""

import re
from dataclasses import dataclass, field
from functools import partial
from typing import Callable, Dict, List, Optional, Sequence

from fairseq.data.data_utils import post_process
from sacremoses import MosesDetokenizer, MosesTokenizer

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.tools.results.generated import Generated, read_generated
from fairseq_posenc.tools.results.languages import (
    Languages,
    choose,
    language_code,
    languages_of_data,
    remarks,
)

# The marks by which subwords are known; with those that glue everything else together, no mark
# means that the wrong kind was named.
_MARKS = {
    "@@ ": "@@", "subword_nmt": "@@", "none": None,
    "sentencepiece": "\u2581", "wordpiece": "_", "letter": "|", "_EOW": "_EOW",
}  # fmt: skip
BPE_SYMBOLS = tuple(_MARKS)
_GLUING = ("sentencepiece", "wordpiece", "letter", "_EOW")


@dataclass
class Texts:
    """Hypotheses and references, one string per sentence, all lists equally long.

    ``hypothesis_tokens``, ``reference_tokens`` and ``source_tokens`` are tokenised, with spaces
    between the tokens and subwords joined; ``hypothesis`` and ``reference`` are plain text.
    ``subwords`` holds the number of subwords per sentence of ``source`` and ``reference`` where it
    is known; ``remarks`` is what the user should know about the texts; ``languages`` are those by
    whose rules they were tokenised and detokenised.
    """

    hypothesis: List[str]
    reference: List[str]
    hypothesis_tokens: List[str]
    reference_tokens: List[str]
    source_tokens: Optional[List[str]] = None
    subwords: Dict[str, List[int]] = field(default_factory=dict)
    remarks: List[str] = field(default_factory=list)
    languages: Languages = Languages()

    def __len__(self) -> int:
        return len(self.hypothesis)

    def without(self, token: str) -> "Texts":
        """Return the hypotheses and references without a token, as ``<sep>``, wherever it stands.

        It is found in plain text too where a (de)tokeniser split it or glued it to a quote.

        Raises:
            UsageError: no reference has the token.
        """
        pattern = re.compile(r"\s*" + r"\s*".join(map(re.escape, token)) + r"\s*")
        if not any(pattern.search(line) for line in self.reference):
            raise UsageError(f"no reference holds {token!r}, which was to be left out")

        def left(lines: List[str]) -> List[str]:
            return [pattern.sub(" ", line).strip() for line in lines]

        return Texts(
            hypothesis=left(self.hypothesis),
            reference=left(self.reference),
            hypothesis_tokens=left(self.hypothesis_tokens),
            reference_tokens=left(self.reference_tokens),
        )


def from_files(
    hypothesis: str,
    reference: str,
    source: Optional[str] = None,
    language: Optional[str] = None,
    source_language: Optional[str] = None,
    data: Optional[str] = None,
) -> Texts:
    """Read plain text, one sentence a line, and tokenise it as Moses does with ``-no-escape``.

    The languages, where they are not given, are those of ``data`` (see :func:`from_generated`).

    Raises:
        UsageError: files that cannot be read or have different numbers of lines; languages that
            are not known.
    """
    known = languages_of_data(data, {}, language) if data else Languages()
    languages = choose(Languages(source_language, language), known)
    references = read_lines(reference)
    hypotheses = _read_aligned(hypothesis, len(references))
    tokenise = _tokeniser(languages.target)
    return Texts(
        hypothesis=hypotheses,
        reference=references,
        hypothesis_tokens=tokenise(hypotheses),
        reference_tokens=tokenise(references),
        source_tokens=_raw_source(source, len(references), languages) if source else None,
        remarks=remarks(languages.target or ""),
        languages=languages,
    )


def from_generated(
    generated: str,
    reference: Optional[str] = None,
    source: Optional[str] = None,
    remove_bpe: str = "@@ ",
    language: Optional[str] = None,
    source_language: Optional[str] = None,
    data: Optional[str] = None,
) -> Texts:
    """Read an output of ``fairseq-generate``, whose lines are tokenised and may hold subwords.

    Tokens are the H- and T-lines with the subwords joined. Plain text is made of them with Moses'
    detokeniser; ``reference``, the raw text of the test set, replaces that of the T-lines.
    ``source``, raw as well, replaces the S-lines.

    The languages, where they are not given, are those of the binarised ``data``, or those that
    fairseq's log names, where it is in the output.

    Where fairseq was told to decode (``--bpe``, ``--tokenizer``), it prints S, T and D as plain
    text but H as tokens. Then D and T are taken as plain text, and tokenised like plain files.

    Raises:
        UsageError: see :func:`read_generated`; no references; subwords of another kind than
            ``remove_bpe``; languages that are not known.
    """
    references = read_lines(reference) if reference else None
    lines = read_generated(generated, len(references) if references else None)
    if not (lines.references or references):
        raise UsageError(f"{generated} has no T-lines: give the references with --reference")
    join = partial(_join, symbol=remove_bpe, path=generated)
    joined = join(lines.hypotheses)
    decoded = any(d not in (h, j) for d, h, j in zip(lines.decoded, lines.hypotheses, joined))
    subwords = {} if decoded else _subword_counts(lines, remove_bpe)
    known = languages_of_data(data, subwords, language) if data else Languages()
    languages = choose(Languages(source_language, language), known, lines.languages)
    if decoded:
        texts = _from_decoded(lines, references, languages)
    else:
        texts = _from_tokens(lines, joined, references, languages, join)
        texts.subwords = subwords
    texts.languages = languages
    texts.remarks += remarks(languages.target or "")
    if source:
        texts.source_tokens = _raw_source(source, len(lines.hypotheses), languages)
    unknown = sum("<<unk>>" in line for line in lines.references or ())
    if unknown:
        texts.remarks.append(
            f"{unknown} T-lines hold <<unk>>, which no hypothesis matches: figures computed from "
            "them are too low" + ("" if references else "; give the raw text with --reference")
        )
    return texts


def _from_decoded(lines: Generated, references: Optional[List[str]], languages: Languages) -> Texts:
    tokenise = _tokeniser(languages.target)
    references = references or lines.references or []
    return Texts(
        hypothesis=lines.decoded,
        reference=references,
        hypothesis_tokens=tokenise(lines.decoded),
        reference_tokens=tokenise(references),
        source_tokens=lines.sources
        and (_tokeniser(languages.source)(lines.sources) if languages.source else None),
        remarks=["fairseq detokenised this output: tokenised BLEU after tokenising it again"],
    )


def _from_tokens(
    lines: Generated,
    hypothesis_tokens: List[str],
    references: Optional[List[str]],
    languages: Languages,
    join: Callable,
) -> Texts:
    tokenise = _tokeniser(languages.target)
    tokens = join(lines.references) if lines.references else tokenise(references or [])
    detokenise = MosesDetokenizer(lang=language_code(languages.target or "")).detokenize
    return Texts(
        hypothesis=[detokenise(line.split()) for line in hypothesis_tokens],
        reference=references or [detokenise(line.split()) for line in tokens],
        hypothesis_tokens=hypothesis_tokens,
        reference_tokens=tokens,
        source_tokens=lines.sources and join(lines.sources),
    )


def _join(lines: Sequence[str], symbol: str, path: str) -> List[str]:
    """Join subwords; the kind of subwords must be the one that is there."""
    mark = _MARKS[symbol]
    if symbol in _GLUING and mark and not any(mark in line for line in lines):
        raise UsageError(f"--remove-bpe {symbol}: no {mark!r} in {path}; choose another kind")
    if mark == "@@" and all(line.startswith("\u2581") for line in lines if line):
        raise UsageError(f"{path} holds sentencepieces: pass --remove-bpe sentencepiece")
    return [post_process(line, symbol) for line in lines]


def _subword_counts(lines: Generated, symbol: str) -> Dict[str, List[int]]:
    mark = _MARKS[symbol]
    sides = {"source": lines.sources, "reference": lines.references}
    return {
        side: [len(line.split()) for line in texts]
        for side, texts in sides.items()
        if texts and mark and any(mark in line for line in texts)
    }


def _tokeniser(language: Optional[str]) -> Callable[[Sequence[str]], List[str]]:
    tokenize = MosesTokenizer(lang=language_code(language or "")).tokenize
    return lambda lines: [tokenize(line, return_str=True, escape=False) for line in lines]


def _raw_source(path: str, count: int, languages: Languages) -> List[str]:
    if not languages.source:
        raise UsageError(
            "the language of the --source is not known: give --source-language, or with --data "
            "the binarised data"
        )
    return _tokeniser(languages.source)(_read_aligned(path, count))


def _read_aligned(path: str, count: int) -> List[str]:
    lines = read_lines(path)
    if len(lines) != count:
        raise UsageError(
            f"{path} has {len(lines)} lines, but there are {count} sentences: the files must "
            "belong to the same test set, one sentence a line"
        )
    return lines

"""From files to the texts of a test set: joining subwords, tokenising, detokenising, languages."""

import functools
from typing import Callable, Dict, List, Optional, Sequence, Union

from sacremoses import MosesTokenizer
from sacremoses.corpus import NonbreakingPrefixes

from fairseq_posenc.data.languages import has_spaces, language_code, language_of_text
from fairseq_posenc.data.segmentation import SentencePieces, detokenise_lines
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.data_folder import (
    check_pieces,
    languages_of_data,
    model_of_data,
    raw_test,
    set_trained_lengths,
    subwords_of_data,
)
from fairseq_posenc.tools.scores.generate_output import GenerateOutput, read_generate_output
from fairseq_posenc.tools.scores.reference_check import (
    check_further,
    check_reference,
    raw_references,
)
from fairseq_posenc.tools.scores.references import read_aligned, read_references
from fairseq_posenc.tools.scores.round_trip import set_round_trip
from fairseq_posenc.tools.scores.tags import without_tags
from fairseq_posenc.tools.scores.text_remarks import check_joined, text_remarks
from fairseq_posenc.tools.scores.texts import SUBWORD_MARKS, Languages, TestSet, join_subwords
from fairseq_posenc.tools.scores.tokenizers import tokenizer_remarks

# with these, joining glues everything together: no mark means that the wrong kind was named
_GLUING = ("sentencepiece", "wordpiece", "letter", "_EOW")
_AGAIN = "fairseq detokenised this output: tokenised BLEU after tokenising it again"
_MOSES = {*NonbreakingPrefixes().available_langs.values(), "ja", "ko"}


def read_texts(
    *,
    generated: Optional[str] = None,
    hypothesis: Optional[str] = None,
    reference: Union[str, Sequence[str], None] = None,
    source: Optional[str] = None,
    remove_bpe: Optional[str] = None,
    language: Optional[str] = None,
    source_language: Optional[str] = None,
    data: Optional[str] = None,
) -> TestSet:
    """Read an output of fairseq-generate, or plain text of hypotheses and references.

    The arguments are options of ``posenc score``. Plain text, one sentence a line, is tokenised as
    Moses does with ``-no-escape``; of an output, it replaces the T- or S-lines. Languages that are
    not given are those of the binarised ``data``, or those that fairseq's log in the output names.
    Each sentence may have several references: in several files, or separated by tabs in one.
    A ``reference`` and the kind of subwords that are not given are those that posenc prepare
    translation left in ``data``.
    """
    if bool(generated) == bool(hypothesis) or (hypothesis and not reference):
        raise UsageError("give either --generated, or --hypothesis and --reference")
    requested = Languages(source_language, language)
    paths = [reference] if isinstance(reference, str) else list(reference or [])
    by_name = read_references(paths) if paths else {"": []}
    (named, references), *further = by_name.items()
    if generated:
        texts = _from_generated(generated, references, remove_bpe, requested, data, named)
    else:
        hypotheses = read_aligned(hypothesis or "", len(references))
        languages = _choose(requested, languages_of_data(data, requested))
        texts = _of_plain_text(hypotheses, references, languages)
        sources = read_aligned(source, len(references)) if source else None
        data_references = raw_references(raw_test(data), languages, sources)
        compared = named, references, data_references, sources, hypotheses, languages
        texts.remarks += check_reference(*compared)
    if further:
        texts.more_references = more = [lines for _, lines in further]
        texts.more_reference_tokens = [_tokenise(lines, texts.languages.target) for lines in more]
        texts.remarks.append(f"{len(by_name)} references of each sentence")
    if source:
        if not texts.languages.source:
            raise UsageError(
                "the language of the --source is not known: give --source-language, or with --data "
                "the binarised data"
            )
        _set_sources(texts, read_aligned(source, len(texts)))
    for name, lines in further:
        texts.remarks += check_further(name, lines, texts)
    check_joined(texts)
    texts.remarks += text_remarks(texts)
    if data:
        set_trained_lengths(texts, data)
        set_round_trip(texts, data)
    return texts


def _set_sources(texts: TestSet, lines: Sequence[str]) -> None:
    """Keep plain text of the sources, and its tokens, without tags."""
    untagged = without_tags(lines, is_source=True)
    if untagged.tags:
        texts.remarks.append(f"{', '.join(untagged.tags[:4])} in all sources: not counted as words")
    source = language_of_text(texts.languages.source, untagged.lines)
    texts.languages = texts.languages._replace(source=source)
    texts.source, texts.source_tokens = untagged.lines, _tokenise(untagged.lines, source)


def remarks(name: str, language: str) -> List[str]:
    """Return what the user should know of scores in a language, which files call ``name``."""
    code, lines = language_code(language), tokenizer_remarks(language)
    if name != language:
        lines.insert(0, f"the text of {name!r} has no spaces between words: scored as {language}")
    if not has_spaces(language):
        lines.append(f"{language} has no spaces between words: tokenised BLEU counts characters")
    elif code not in _MOSES:
        lines.append(
            f"Moses has no rules for {language!r}: tokenised and detokenised like English; if it "
            "has another code, give it with --language"
        )
    return lines


def _from_generated(
    path: str,
    raw: List[str],
    remove_bpe: Optional[str],
    requested: Languages,
    data: Optional[str],
    named: str,
) -> TestSet:
    """Read an output of ``fairseq-generate``, whose lines may be tokenised and hold subwords.

    Of sentencepieces, joined H- and T-lines are plain text. Of other subwords they are tokens, and
    Moses' detokeniser makes plain text of them. ``raw``, the plain text of the references in
    ``named``, replaces the T-lines' text.

    Where fairseq was told to decode (``--bpe``, ``--tokenizer``), it prints S, T and D as plain
    text but H as tokens. Then D and T are taken as plain text, and tokenised like plain files.
    """
    lines = read_generate_output(path, len(raw) or None, data)
    model = model_of_data(data)
    symbol = remove_bpe or (not data and lines.joined) or subwords_of_data(data)
    if remove_bpe and not model:
        _check_marks(lines.hypotheses, remove_bpe, path)
    check_pieces(path, data, lines.hypotheses, requested.target)
    join = functools.partial(_join, symbol=symbol, path=path, model=model)
    joined, plain = join(lines.hypotheses), _restored(lines.decoded, model)
    decoded = any(d not in (h, j) for d, h, j in zip(plain, lines.hypotheses, joined))
    subwords = {} if decoded else _subword_counts(lines, symbol)
    data_languages = languages_of_data(data, requested, lines.languages)
    languages = _choose(requested, data_languages, lines.languages)
    of_folder = raw_references(raw_test(data), languages, lines.sources)
    raw_path = f"{raw_test(data)}.{languages.target}" if of_folder and not raw else ""
    raw = raw or of_folder or []
    written = raw or lines.references
    if not written:
        raise UsageError(f"{path} has no T-lines: give the references with --reference")
    if decoded:
        texts = _of_plain_text(plain, written, languages)
        texts.remarks.insert(0, _AGAIN)
        if lines.sources and languages.source:
            _set_sources(texts, lines.sources)
    elif symbol == "sentencepiece":
        texts = _of_plain_text(joined, raw or join(lines.references or []), languages)
        texts.subwords = subwords
        if lines.sources:
            _set_sources(texts, join(lines.sources))
    else:
        texts = _of_tokens(lines, joined, raw, languages, join)
        texts.subwords = subwords
    texts.remarks += lines.remarks
    texts.precision = lines.precision
    if raw:
        form = lines.references or of_folder
        compared = raw_path or named, raw, form, lines.sources, lines.decoded, languages
        texts.remarks += check_reference(*compared)
    if raw_path:
        texts.remarks.append(f"references are the raw text of {raw_path}")
    return _with_remark_on_unknown(texts, lines, bool(raw))


def _of_tokens(
    lines: GenerateOutput,
    joined: List[str],
    raw: List[str],
    languages: Languages,
    join: Callable[[List[str]], List[str]],
) -> TestSet:
    """Return what Moses' detokeniser makes of tokens.

    Args:
        raw: plain text of the references; empty: the T-lines are detokenised.
    """
    target = language_of_text(languages.target, raw or lines.references or []) or ""
    tokens = join(lines.references) if lines.references else _tokenise(raw, target)
    words = (
        [joined, tokens] if has_spaces(target) else [_tokenise(s, target) for s in (joined, tokens)]
    )
    return TestSet(
        hypothesis=detokenise_lines(joined, target),
        reference=raw or detokenise_lines(tokens, target),
        hypothesis_tokens=words[0],
        reference_tokens=words[1],
        source_tokens=join(lines.sources) if lines.sources else None,
        languages=Languages(language_of_text(languages.source, lines.sources or []), target),
        names=languages,
        remarks=remarks(languages.target or "", target),
        tokens_back=detokenise_lines(tokens, target) if raw and lines.references else None,
    )


def _with_remark_on_unknown(texts: TestSet, lines: GenerateOutput, is_raw: bool) -> TestSet:
    unknown = sum("<<unk>>" in line for line in lines.references or ())
    if unknown and not (is_raw and texts.is_plain):  # then no T-line counts
        texts.remarks.append(
            f"{unknown} T-lines hold <<unk>>, which no hypothesis matches: figures computed from "
            "them are too low" + ("" if is_raw else "; give the raw text with --reference")
        )
    return texts


def _of_plain_text(hypotheses: List[str], references: List[str], languages: Languages) -> TestSet:
    target = language_of_text(languages.target, references)
    return TestSet(
        hypothesis=hypotheses,
        reference=references,
        hypothesis_tokens=_tokenise(hypotheses, target),
        reference_tokens=_tokenise(references, target),
        languages=languages._replace(target=target),
        names=languages,
        is_plain=True,
        remarks=remarks(languages.target or "", target or ""),
    )


def _choose(requested: Languages, *fallbacks: Languages) -> Languages:
    """Return the languages that are given, or else the first known of the others."""
    sides = zip(requested, *fallbacks)
    languages = Languages(*(next(filter(None, side), None) for side in sides))
    if not languages.target:
        raise UsageError(
            "the target language is not known, and scores depend on it: give --language, or with "
            "--data the binarised data"
        )
    return languages


def _check_marks(lines: Sequence[str], symbol: str, path: str) -> None:
    """Refuse a kind of subwords whose mark no line has: joining would take all blanks away."""
    mark, filled = SUBWORD_MARKS[symbol], [line for line in lines if line.strip()]
    if symbol in _GLUING and mark and filled and not any(mark in line for line in filled):
        raise UsageError(f"--remove-bpe {symbol}: no {mark!r} in {path}; choose another kind")


def _join(lines: Sequence[str], symbol: str, path: str, model: str) -> List[str]:
    """Join subwords; the kind of subwords must be the one that is there."""
    mark, filled = SUBWORD_MARKS[symbol], [line for line in lines if line.strip()]
    if symbol == "sentencepiece" and model:
        if any("\u2581" in line for line in lines):
            sentencepiece = SentencePieces(model)
            return [sentencepiece.decode(line) for line in lines]
        return _restored(lines, model)
    if mark == "@@" and filled and all(line.startswith("\u2581") for line in filled):
        raise UsageError(f"{path} holds sentencepieces: pass --remove-bpe sentencepiece")
    if symbol in _GLUING and mark and not any(mark in line for line in filled):
        return list(lines)  # fairseq has joined them
    return [join_subwords(line, symbol) for line in lines]


def _restored(lines: Sequence[str], model: str) -> List[str]:
    """Return lines that fairseq has joined as the model, if there is one, joins pieces.

    Blanks other than the space are pieces of another name, see ``translation/pieces.py``.
    """
    if not model:
        return list(lines)
    sentencepiece = SentencePieces(model)
    return [sentencepiece.restore(line) for line in lines]


def _subword_counts(lines: GenerateOutput, symbol: str) -> Dict[str, List[int]]:
    mark = SUBWORD_MARKS[symbol]
    sides = {"source": lines.sources, "reference": lines.references}
    return {
        side: [len(line.split()) for line in texts]
        for side, texts in sides.items()
        if texts and mark and any(mark in line for line in texts)
    }


def _tokenise(lines: Sequence[str], language: Optional[str]) -> List[str]:
    """Return Moses' tokens, or characters where no spaces part words."""
    if not has_spaces(language):
        return [" ".join("".join(line.split())) for line in lines]
    tokenise: Callable = MosesTokenizer(lang=language_code(language or "")).tokenize
    return [tokenise(line, return_str=True, escape=False) for line in lines]

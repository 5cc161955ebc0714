"""Reads question answering files in the format of SQuAD 1.1 and checks them.

XQuAD, MLQA and TyDiQA-GoldP use it too ::

    {"data": [{"paragraphs": [{"context": TEXT, "qas": [
        {"id": ID, "question": TEXT, "answers": [{"text": TEXT, "answer_start": NUMBER}, …]}, …
    ]}, …]}, …]}

``answer_start`` counts characters (Unicode code points) from 0, and the answer's text must stand
there letter by letter, white space included. Other fields are not read.
"""

from typing import Any, Iterator, List, NamedTuple, Set, Tuple, Type

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import read_json

_NO_TEXT = "an answer is empty"
_TYPES = {list: "a list", dict: "an object", str: "text", int: "a whole number"}


class Answer(NamedTuple):
    """A gold answer: its text and where it begins in its context, in characters."""

    text: str
    start: int


class Question(NamedTuple):
    """A question about a context, which is given by its number, and its gold answers."""

    id: str
    text: str
    context: int
    answers: Tuple[Answer, ...]


class Questions(NamedTuple):
    """What a file holds; ``dropped`` says what was wrong with the questions left out."""

    contexts: List[str]
    questions: List[Question]
    dropped: List[str]


class _Malformed(ValueError):
    """Something is wrong with one question."""


def read(path: str, skip_malformed: bool = False, prefix: str = "") -> Questions:
    """Read a file.

    Args:
        path: of the file.
        skip_malformed: leave malformed questions out rather than refuse the file.
        prefix: take only questions whose id begins so; TyDiQA-GoldP's training file holds all
            languages and names them there (``english-``).

    Raises:
        UsageError: the file cannot be read, is no JSON, has not this structure, or holds no
            question; unless ``skip_malformed``, also a question without id, text or answers, an
            id that occurs twice, an answer that is not where it shall be.
    """
    contexts: List[str] = []
    questions: List[Question] = []
    dropped: List[str] = []
    seen: Set[str] = set()
    for where, paragraph in _paragraphs(path, read_json(path)):
        try:
            context = _get(paragraph, "context", str)
            entries = _get(paragraph, "qas", list)
        except _Malformed as error:
            raise UsageError(f"{path}: {where}: {error}") from None
        first = len(questions)
        for number, entry in enumerate(entries):
            name = _name(entry, f"{where}.qas[{number}]")
            if prefix and isinstance(entry, dict) and not str(entry.get("id")).startswith(prefix):
                continue
            try:
                questions.append(_question(entry, len(contexts), context, seen))
            except _Malformed as error:
                dropped.append(f"{path}: {name}: {error}")
        if len(questions) > first:
            contexts.append(context)
    if dropped and not questions and all(line.endswith(f": {_NO_TEXT}") for line in dropped):
        raise UsageError(
            f"{path} holds no answers: XTREME's download takes them out of its test sets; get the "
            "file from the benchmark itself"
        )
    if dropped and not skip_malformed:
        raise UsageError(_refusal(dropped))
    if not questions:
        wanted = f" with an id that begins with {prefix}" if prefix else ""
        raise UsageError(
            f"{path} holds no question{wanted}" + " that is well formed" * bool(dropped)
        )
    return Questions(contexts, questions, dropped)


def _paragraphs(path: str, document: Any) -> Iterator[Tuple[str, Any]]:
    where = ""
    try:
        for i, article in enumerate(_get(document, "data", list)):
            where = f"data[{i}]: "
            for j, paragraph in enumerate(_get(article, "paragraphs", list)):
                yield f"data[{i}].paragraphs[{j}]", paragraph
    except _Malformed as error:
        raise UsageError(f"{path}: {where}{error}; this is not the format of SQuAD") from None


def _get(entry: Any, name: str, kind: Type[Any]) -> Any:
    if not isinstance(entry, dict) or name not in entry:
        raise _Malformed(f"'{name}' is missing")
    value = entry[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _Malformed(f"'{name}' is not {_TYPES[kind]}")
    if kind is str and any("\ud800" <= c <= "\udfff" for c in value):
        raise _Malformed(f"'{name}' holds half of a surrogate pair, which is no character")
    return value


def _name(entry: Any, where: str) -> str:
    known = isinstance(entry, dict) and isinstance(entry.get("id"), str)
    return f"question {entry['id']}" if known else where


def _question(entry: Any, number: int, context: str, seen: Set[str]) -> Question:
    key = _get(entry, "id", str)
    if key in seen:
        raise _Malformed("the id occurs twice")
    text = _get(entry, "question", str)
    if not text.strip():
        raise _Malformed("the question is empty")
    answers = _get(entry, "answers", list)
    if not answers:
        raise _Malformed("it has no answer; questions of SQuAD 2.0 without one are not supported")
    found = tuple(_answer(answer, context) for answer in answers)
    seen.add(key)
    return Question(key, text, number, found)


def _answer(entry: Any, context: str) -> Answer:
    text, start = _get(entry, "text", str), _get(entry, "answer_start", int)
    if not text.strip():
        raise _Malformed(_NO_TEXT)
    if start >= 0 and context.startswith(text, start):
        return Answer(text, start)
    there = context[max(start, 0) :][: len(text)]
    raise _Malformed(
        f"answer {_short(text)} is not at answer_start {start} of its context, where there is "
        f"{_short(there)}{_hint(text, start, context)}"
    )


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:39] + "…")


def _hint(text: str, start: int, context: str) -> str:
    if start >= 0 and context.encode().startswith(text.encode(), start):
        return "; it is there if bytes of UTF-8 are counted, but characters are wanted"
    at = context.find(text)
    return f"; it is at {at}" if at >= 0 else "; it is nowhere in the context"


def _refusal(dropped: List[str]) -> str:
    more = f" (and {len(dropped) - 1} more)" if len(dropped) > 1 else ""
    return f"{dropped[0]}{more}; mend the file, or leave such questions out with --skip-malformed"

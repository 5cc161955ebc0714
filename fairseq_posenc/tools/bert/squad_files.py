"""Reading questions: SQuAD 1.1's format, and records of single questions.

SQuAD, XQuAD, MLQA and TyDiQA-GoldP come so ::

    {"data": [{"paragraphs": [{"context": TEXT, "qas": [
        {"id": ID, "question": TEXT, "answers": [{"text": TEXT, "answer_start": NUMBER}, …]}, …
    ]}, …]}, …]}

and, as the datasets library exports them, as JSON lines or a list of ::

    {"id": ID, "context": TEXT, "question": TEXT,
     "answers": {"text": [TEXT, …], "answer_start": [NUMBER, …]}}

``answer_start`` counts characters (Unicode code points) from 0, and the answer's text must stand
there letter by letter, white space included. Of several answers those that do not are named: their
texts count in scores, and they are not trained on. Other fields are not read. A file in which no
question has an answer (none, no list of them, or empty ones as in XTREME's test files) can be
predicted.
"""

import json
from typing import Any, Dict, List, NamedTuple, Set, Tuple

from fairseq_posenc.data.questions import NOWHERE, GoldAnswer, Question
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.json_files import parse_json, read_json, schema_error

_FILE = {"data": [{"paragraphs": [{"context": str, "qas": list}]}]}
_RECORD = {"context": str}
_COLUMNS = {"text": list, "answer_start": list}
_QUESTION = {"id": str, "question": str}
_ANSWERS = {"answers": [{"text": str, "answer_start": int}]}


class SquadFile(NamedTuple):
    """What a file holds.

    ``dropped`` says what was wrong with the questions left out, and ``misplaced`` with answers that
    are not at their places.
    """

    contexts: List[str]
    questions: List[Question]
    dropped: List[str]
    misplaced: List[str]


class _Passage(NamedTuple):
    """A context, its questions as JSON has them, and their names in messages."""

    context: str
    entries: List[Any]
    names: List[str]


class _MalformedQuestion(ValueError):
    """Something is wrong with one question."""


def read(
    path: str, skip_malformed: bool = False, prefix: str = "", scored: bool = False
) -> SquadFile:
    """Read a file.

    Args:
        skip_malformed: keep questions of which no answer is at its place, and leave other
            malformed ones out, rather than refuse the file.
        scored: no question may be left out, as scores could not be compared with others'.
        prefix: take only questions whose id begins so; TyDiQA-GoldP's training file holds all
            languages and names them there (``english-``).
    """
    contexts, questions, dropped, misplaced = squad_file = SquadFile([], [], [], [])
    seen: Set[str] = set()
    passages = _passages(path)

    def is_wanted(entry: Any) -> bool:
        return not isinstance(entry, dict) or str(entry.get("id")).startswith(prefix)

    entries = [entry for passage in passages for entry in passage.entries if is_wanted(entry)]
    answered = not all(_is_unanswered(entry) for entry in entries if isinstance(entry, dict))
    for context, entries, names in passages:
        first = len(questions)
        for location, entry in zip(names, entries):
            if not is_wanted(entry):
                continue
            key = entry.get("id") if isinstance(entry, dict) else None
            name = f"question {key}" if isinstance(key, str) else location
            try:
                if not scored:  # TyDiQA-GoldP's training file repeats ids, which training ignores
                    seen.clear()
                question, wrong = _question(entry, len(contexts), context, seen, answered)
                if wrong and not (question.trained or skip_malformed):
                    raise _MalformedQuestion(wrong[0])
            except _MalformedQuestion as error:
                dropped.append(f"{path}: {name}: {error}")
                continue
            questions.append(question)
            misplaced += [f"{path}: {name}: {reason}" for reason in wrong]
        if len(questions) > first:
            contexts.append(context)
    if dropped and (scored or not skip_malformed):
        raise _refusal(dropped, scored)
    if not questions:
        with_prefix = f" with an id that begins with {prefix}" if prefix else ""
        raise UsageError(
            f"{path} holds no question{with_prefix}" + (" that is well formed" if dropped else "")
        )
    return squad_file


def _passages(path: str) -> List[_Passage]:
    try:
        content = read_json(path)
    except UsageError:
        lines = _json_lines(path)
        if not lines:
            raise
        records = [parse_json(line, f"{path}, {line_name}") for line_name, line in lines.items()]
        return _of_records(records, list(lines), path)
    if isinstance(content, dict) and "context" in content:
        content = [content]
    if isinstance(content, list) and content:
        return _of_records(content, [str(number) for number in range(len(content))], path)
    misfit = schema_error(content, _FILE)
    if misfit:
        raise UsageError(f"{path} is not from SQuAD or a set like it, or damaged: {misfit}")
    return [
        _Passage(
            paragraph["context"],
            paragraph["qas"],
            [f"data.{i}.paragraphs.{j}.qas.{n}" for n in range(len(paragraph["qas"]))],
        )
        for i, article in enumerate(content["data"])
        for j, paragraph in enumerate(article["paragraphs"])
    ]


def _json_lines(path: str) -> Dict[str, str]:
    """Return the lines of a file of JSON lines, by their places; none of another file."""
    lines = {f"line {n}": line for n, line in enumerate(read_lines(path), 1) if line.strip()}
    try:
        first = json.loads(next(iter(lines.values()), ""))
    except (ValueError, RecursionError):
        return {}
    return lines if isinstance(first, dict) else {}


def _of_records(records: List[Any], locations: List[str], path: str) -> List[_Passage]:
    """Return the passages of records of single questions; equal neighbours' are one."""
    passages: List[_Passage] = []
    for location, record in zip(locations, records):
        misfit = schema_error(record, _RECORD)
        if misfit:
            raise UsageError(
                f"{path}, {location}: {misfit}; each is to be a question with id, context, "
                "question and answers"
            )
        entry, answers = dict(record), record.get("answers")
        if not schema_error(answers, _COLUMNS):
            texts, starts = (answers[column] for column in _COLUMNS)
            if len(texts) == len(starts):
                entry["answers"] = [
                    {"text": text, "answer_start": start} for text, start in zip(texts, starts)
                ]
        if not passages or passages[-1].context != record["context"]:
            passages.append(_Passage(record["context"], [], []))
        passages[-1].entries.append(entry)
        passages[-1].names.append(location)
    return passages


def _refusal(dropped: List[str], scored: bool) -> UsageError:
    more = f" (and {len(dropped) - 1} more)" if len(dropped) > 1 else ""
    advice = "; mend the file, or leave such questions out of training with --skip-malformed"
    if scored:
        advice = "; mend the file: no question is left out of a set that is scored"
        if all(" is not at answer_start " in reason for reason in dropped):
            advice += ", but --skip-malformed keeps those without an answer at its place"
    return UsageError(f"{dropped[0]}{more}{advice}")


def _is_unanswered(entry: Dict[str, Any]) -> bool:
    answers = entry.get("answers", [])
    return isinstance(answers, list) and all(
        isinstance(answer, dict) and not str(answer.get("text")).strip() for answer in answers
    )


def _question(
    entry: Any, number: int, context: str, seen: Set[str], answered: bool
) -> Tuple[Question, List[str]]:
    """Return a question, and what is wrong with answers that are not at their places."""
    misfit = schema_error(entry, {**_QUESTION, **(_ANSWERS if answered else {})})
    if misfit:
        raise _MalformedQuestion(misfit)
    if entry["id"] in seen:
        raise _MalformedQuestion("the id occurs twice, so its prediction would be of two questions")
    if not entry["question"].strip():
        raise _MalformedQuestion("the question is empty")
    answers = entry["answers"] if answered else []
    if answered and not answers:
        raise _MalformedQuestion(
            "it has no answer; questions of SQuAD 2.0 without one are not supported"
        )
    gold, wrong = [], []
    for text, start in ((answer["text"], answer["answer_start"]) for answer in answers):
        if not text.strip():
            wrong.append("an answer is empty")
            continue
        at_place = start >= 0 and context.startswith(text, start)
        gold.append(GoldAnswer(text, start if at_place else NOWHERE))
        if not at_place:
            wrong.append(_misplaced(text, start, context))
    if answered and not gold:
        raise _MalformedQuestion(wrong[0])
    seen.add(entry["id"])
    return Question(entry["id"], entry["question"], number, tuple(gold)), wrong


def _misplaced(text: str, start: int, context: str) -> str:
    """Say what stands where an answer should."""
    beside = context[max(start, 0) :][: len(text)]
    return (
        f"answer {text!r:.40} is not at answer_start {start} of its context, counted in characters,"
        f" where there is {beside!r:.40}"
    )

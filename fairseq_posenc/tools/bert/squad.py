"""From question answering files in the format of SQuAD 1.1 to a folder of the task.

SQuAD, XQuAD, MLQA and TyDiQA-GoldP come so ::

    {"data": [{"paragraphs": [{"context": TEXT, "qas": [
        {"id": ID, "question": TEXT, "answers": [{"text": TEXT, "answer_start": NUMBER}, …]}, …
    ]}, …]}, …]}

``answer_start`` counts characters (Unicode code points) from 0, and the answer's text must stand
there letter by letter, white space included. Of several answers those that do not are named: their
texts count in scores, and they are not trained on. Other fields are not read. A file in which no
question has an answer (none, no list of them, or empty ones as in XTREME's test files) can be
predicted.
"""

import filecmp
import functools
import json
import os
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np
import torch
from fairseq.data import Dictionary, indexed_dataset
from tqdm import tqdm

from fairseq_posenc.data import subwords
from fairseq_posenc.data.indexed import read_dictionary
from fairseq_posenc.data.languages import language_code
from fairseq_posenc.data.questions import FORMAT, NOWHERE, PARTS, GoldAnswer, Question
from fairseq_posenc.data.windows import covering_tokens
from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import load_json, schema_error
from fairseq_posenc.metrics.answers import check_metric, normalise
from fairseq_posenc.tools.bert.vocabulary import copy_subwords
from fairseq_posenc.tools.workers import chunked, in_order
from fairseq_posenc.tools.writing import replacing, replacing_files

_FILE = {"data": [{"paragraphs": [{"context": str, "qas": list}]}]}
_QUESTION = {"id": str, "question": str}
_ANSWERS = {"answers": [{"text": str, "answer_start": int}]}
_CHUNK = 50  # texts that a process cuts at a time

# indices of a text's tokens, and where they are in it
Encoded = Tuple[List[int], List[Tuple[int, int]]]


class SquadFile(NamedTuple):
    """What a file holds.

    ``dropped`` says what was wrong with the questions left out, and ``misplaced`` with answers that
    are not at their places.
    """

    contexts: List[str]
    questions: List[Question]
    dropped: List[str]
    misplaced: List[str]


class _MalformedQuestion(ValueError):
    """Something is wrong with one question."""


def prepare(
    file: str,
    split: str,
    subwords_folder: str,
    destination: str,
    language: str = "en",
    metric: str = "squad",
    prefix: str = "",
    skip_malformed: bool = False,
    workers: int = 1,
) -> Tuple[Dict[str, int], SquadFile, Optional[float]]:
    """Binarise a file as one split of a folder; other splits of that folder stay as they are.

    Half a split is never taken for a whole one.

    Args:
        file: in the format of SQuAD 1.1.
        split: name of the split.
        subwords_folder: folder with a subword model and its ``dict.txt``.
        destination: folder to write into.
        language: of the answers, which are those of the contexts.
        metric: ``squad`` or ``mlqa``.
        prefix: take only questions whose id begins so.
        skip_malformed: see :func:`read`; splits whose names begin with ``train`` are not scored.
        workers: processes.

    Returns:
        How many questions, contexts, tokens of questions and of contexts there are, the file, and
        :func:`reachable`.

    Raises:
        UsageError: whatever is wrong with the file or the options, or the folder holds splits that
            were made with other subwords, or cannot be written.
    """
    # other names make no file, or fairseq's options cannot hold them
    if not re.fullmatch(r"\w[\w-]*", split):
        raise UsageError(f"--split {split}: a name has letters, digits, - and _ only")
    language = _checked_language(metric, language)
    found = read(file, skip_malformed, prefix, scored=not split.startswith("train"))
    model = subwords.load(subwords_folder)
    types = len(subwords.load_dictionary(subwords_folder))
    for name, are_same in ((model.name, _same_bytes), (subwords.DICTIONARY, _same_types)):
        ours, theirs = os.path.join(destination, name), os.path.join(subwords_folder, name)
        if os.path.exists(ours) and not are_same(ours, theirs):
            raise UsageError(
                f"{destination} was prepared with other subwords: {ours} and {theirs} differ; "
                "choose another --output, or remove that folder"
            )
    copy_subwords(model, destination)
    texts = [question.text for question in found.questions] + found.contexts
    encoded = _encode_all(texts, subwords_folder, workers, split)
    with replacing_files(destination, last=f"{split}.json") as partial:
        tokens, offsets = _write_parts(partial, split, encoded, len(found.questions), types)
        with replacing(os.path.join(partial, f"{split}.json")) as stream:
            about = {"format": FORMAT, "language": language, "metric": metric}
            entries = {"contexts": found.contexts, "questions": found.questions}
            json.dump({**about, **entries}, stream)
    counts = {"questions": len(found.questions), "contexts": len(found.contexts)}
    counts.update({f"{part} tokens": count for part, count in tokens.items()})
    return counts, found, reachable(found, offsets, metric, language)


def _checked_language(metric: str, language: str) -> str:
    """Return the language whose rules a metric has: MLQA's are of zh for zh_CN."""
    language = language_code(language) if metric == "mlqa" else language
    check_metric(metric, language)
    return language


def reachable(
    found: SquadFile, offsets: Sequence[np.ndarray], metric: str, language: str
) -> Optional[float]:
    """Return the exact match that stretches of pieces can reach, in percent; None without answers.

    Args:
        found: questions and contexts.
        offsets: of the pieces of each context, ``(pieces, 2)``.
        metric: by which answers are compared.
        language: of the answers.
    """

    def is_reached(question: Question, answer: GoldAnswer) -> bool:
        places, text = offsets[question.context], found.contexts[question.context]
        start = text.find(answer.text) if answer.start == NOWHERE else answer.start
        span = covering_tokens(places, start, start + len(answer.text)) if start >= 0 else None
        # a piece at an end may hold more than the answer does
        firsts, lasts = ((span[0], span[0] + 1), (span[1], span[1] - 1)) if span else ((), ())
        stretches = (
            text[places[first, 0] : places[last, 1]]
            for first in firsts
            for last in lasts
            if first <= last
        )
        gold = normalise(answer.text, metric, language)
        return any(normalise(stretch, metric, language) == gold for stretch in stretches)

    if not any(question.answers for question in found.questions):
        return None
    reached = [any(is_reached(q, answer) for answer in q.answers) for q in found.questions]
    return float(100 * np.mean(reached))


def read(
    path: str, skip_malformed: bool = False, prefix: str = "", scored: bool = False
) -> SquadFile:
    """Read a file.

    Args:
        path: of the file.
        skip_malformed: keep questions of which no answer is at its place, and leave other
            malformed ones out, rather than refuse the file.
        scored: no question may be left out, as scores could not be compared with others'.
        prefix: take only questions whose id begins so; TyDiQA-GoldP's training file holds all
            languages and names them there (``english-``).

    Raises:
        UsageError: the file cannot be read, is not JSON, has another structure, or holds no
            question; unless they are skipped, also a question without id, text or answers where
            others have some or at its place, and in a scored set an id that occurs twice.
    """
    contexts, questions, dropped, misplaced = found = SquadFile([], [], [], [])
    seen: Set[str] = set()
    document = load_json(path, _FILE, "SQuAD or a set like it")
    paragraphs = [
        (f"data.{i}.paragraphs.{j}", paragraph)
        for i, article in enumerate(document["data"])
        for j, paragraph in enumerate(article["paragraphs"])
    ]

    def is_wanted(entry: Any) -> bool:
        return not isinstance(entry, dict) or str(entry.get("id")).startswith(prefix)

    entries = [entry for _, one in paragraphs for entry in one["qas"] if is_wanted(entry)]
    answered = not all(_is_unanswered(entry) for entry in entries if isinstance(entry, dict))
    for where, paragraph in paragraphs:
        context, first = paragraph["context"], len(questions)
        for number, entry in enumerate(paragraph["qas"]):
            if not is_wanted(entry):
                continue
            key = entry.get("id") if isinstance(entry, dict) else None
            name = f"question {key}" if isinstance(key, str) else f"{where}.qas.{number}"
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
        raise _refusal(dropped, skip_malformed)
    if not questions:
        wanted = f" with an id that begins with {prefix}" if prefix else ""
        raise UsageError(
            f"{path} holds no question{wanted}" + " that is well formed" * bool(dropped)
        )
    return found


def _refusal(dropped: List[str], skip_malformed: bool) -> UsageError:
    more = f" (and {len(dropped) - 1} more)" if len(dropped) > 1 else ""
    way = "; mend the file, or leave such questions out of training with --skip-malformed"
    if skip_malformed:
        way = "; mend the file: --skip-malformed leaves none out of a set that is scored"
    return UsageError(f"{dropped[0]}{more}{way}")


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
    found, wrong = [], []
    for text, start in ((one["text"], one["answer_start"]) for one in answers):
        if not text.strip():
            wrong.append("an answer is empty")
            continue
        at_place = start >= 0 and context.startswith(text, start)
        found.append(GoldAnswer(text, start if at_place else NOWHERE))
        if not at_place:
            wrong.append(_misplaced(text, start, context))
    if answered and not found:
        raise _MalformedQuestion(wrong[0])
    seen.add(entry["id"])
    return Question(entry["id"], entry["question"], number, tuple(found)), wrong


def _misplaced(text: str, start: int, context: str) -> str:
    """Say what stands where an answer should."""

    def short(text: str) -> str:
        return repr(text if len(text) <= 40 else text[:39] + "…")

    at = context.find(text)
    hint = f"it is at {at}" if at >= 0 else "it is nowhere in the context"
    if start >= 0 and context.encode().startswith(text.encode(), start):
        hint = "it is there if bytes of UTF-8 are counted, but characters are wanted"
    return (
        f"answer {short(text)} is not at answer_start {start} of its context, where there is "
        f"{short(context[max(start, 0) :][: len(text)])}; {hint}"
    )


def _same_bytes(file: str, other: str) -> bool:
    return filecmp.cmp(file, other, shallow=False)


def _same_types(file: str, other: str) -> bool:
    """Return whether two dictionaries have the same types, whatever their counts."""
    return read_dictionary(file).symbols == read_dictionary(other).symbols


def _encode_all(texts: List[str], folder: str, workers: int, title: str) -> Iterator[Encoded]:
    # the folder may hold others than at the last call
    _model_and_dictionary.cache_clear()
    encode = functools.partial(_encode, folder=folder)
    with tqdm(total=len(texts), desc=title, unit=" texts", leave=False) as progress:
        for some in in_order(encode, chunked(texts, _CHUNK), workers):
            yield from some
            progress.update(len(some))


@functools.lru_cache(maxsize=1)
def _model_and_dictionary(folder: str) -> Tuple[subwords.AnswerAlignedSubwords, Dictionary]:
    model = subwords.AnswerAlignedSubwords(subwords.load(folder))
    return model, subwords.load_dictionary(folder)


def _encode(texts: List[str], folder: str) -> List[Encoded]:
    model, dictionary = _model_and_dictionary(folder)
    cut = (model.pieces_with_offsets(text) for text in texts)
    return [([dictionary.index(piece) for piece in pieces], spans) for pieces, spans in cut]


def _write_parts(
    folder: str, split: str, encoded: Iterator[Encoded], questions: int, types: int
) -> Tuple[Dict[str, int], List[np.ndarray]]:
    """Write the tokens of questions, then of contexts; return their numbers, and all offsets."""
    builders = {}
    for part in PARTS:
        small = part != "offsets" and types < np.iinfo(np.uint16).max
        path = os.path.join(folder, f"{split}.{part}.bin")
        builders[part] = indexed_dataset.MMapIndexedDatasetBuilder(
            path, dtype=np.uint16 if small else np.int32
        )
    counts = {"question": 0, "context": 0}
    found = []
    for number, (tokens, offsets) in enumerate(encoded):
        part = "question" if number < questions else "context"
        builders[part].add_item(torch.tensor(tokens, dtype=torch.long))
        counts[part] += len(tokens)
        if part == "context":
            found.append(np.array(offsets, dtype=np.int32).reshape(-1, 2))
            builders["offsets"].add_item(torch.from_numpy(found[-1]).flatten())
    for part, builder in builders.items():
        builder.finalize(os.path.join(folder, f"{split}.{part}.idx"))
    return counts, found

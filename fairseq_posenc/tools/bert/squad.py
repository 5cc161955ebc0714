"""From files of questions to a folder of ``posenc_question_answering``."""

import filecmp
import functools
import json
import os
import re
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

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
from fairseq_posenc.metrics.answers import check_metric, normalise
from fairseq_posenc.tools.bert.squad_files import SquadFile, read
from fairseq_posenc.tools.bert.vocabulary import copy_subwords
from fairseq_posenc.tools.unknown_tokens import unknown_lines
from fairseq_posenc.tools.workers import map_lists
from fairseq_posenc.tools.writing import replacing, replacing_files

_CHUNK = 50  # texts that a process cuts at a time

# indices of a text's tokens, and where they are in it
Encoded = Tuple[List[int], List[Tuple[int, int]]]


def prepare(
    file: str,
    split: str,
    subwords_folder: str,
    destination: str,
    language: Optional[str] = None,
    metric: str = "squad",
    prefix: str = "",
    skip_malformed: bool = False,
    workers: int = 1,
) -> Tuple[Dict[str, int], SquadFile, Optional[float]]:
    """Binarise a file as one split of a folder; other splits of that folder stay as they are.

    Half a split is never taken for a whole one.

    Args:
        language: of the answers, which are those of the contexts; the metric ``mlqa`` needs it.
        skip_malformed: see :func:`read`; splits whose names begin with ``train`` are not scored.

    Returns:
        How many questions, contexts, tokens of questions and of contexts there are, the file, and
        :func:`reachable`.
    """
    # other names make no file, or fairseq's options cannot hold them
    if not re.fullmatch(r"\w[\w-]*", split):
        raise UsageError(f"--split {split}: a name has letters, digits, - and _ only")
    language = _checked_language(metric, language)
    squad_file = read(file, skip_malformed, prefix, scored=not split.startswith("train"))
    model = subwords.load(subwords_folder)
    entries = len(subwords.load_dictionary(subwords_folder))
    for name, are_same in ((model.name, _same_bytes), (subwords.DICTIONARY, _same_types)):
        copied, original = os.path.join(destination, name), os.path.join(subwords_folder, name)
        if os.path.exists(copied) and not are_same(copied, original):
            raise UsageError(
                f"{destination} was prepared with other subwords: {copied} and {original} differ; "
                "choose another --output, or remove that folder"
            )
    copy_subwords(model, destination)
    texts = [question.text for question in squad_file.questions] + squad_file.contexts
    encoded = _encode_all(texts, subwords_folder, workers, split)
    with replacing_files(destination, last=f"{split}.json") as partial:
        tokens, offsets = _write_parts(partial, split, encoded, len(squad_file.questions), entries)
        with replacing(os.path.join(partial, f"{split}.json")) as stream:
            header = {"format": FORMAT, "language": language, "metric": metric}
            texts_of = {"contexts": squad_file.contexts, "questions": squad_file.questions}
            json.dump({**header, **texts_of}, stream)
    counts = {"questions": len(squad_file.questions), "contexts": len(squad_file.contexts)}
    counts.update({f"{part} tokens": count for part, count in tokens.items()})
    return counts, squad_file, reachable(squad_file, offsets, metric, language)


def unknown_summary(folder: str, split: str) -> Iterator[str]:
    """Return what :func:`unknown_lines` says of the questions and contexts of a split."""
    paths = {part: f"{folder}/{split}.{part}" for part in ("question", "context")}
    return unknown_lines(split, paths, "cannot tell them apart")


def _checked_language(metric: str, language: Optional[str]) -> str:
    """Return the language whose rules a metric has: MLQA's are of zh for zh_CN."""
    if metric != "mlqa":
        language = language or "en"
    elif language is None:
        raise UsageError("--metric mlqa has rules by language: give the --language of the contexts")
    else:
        language = language_code(language)
    check_metric(metric, language)
    return language


def reachable(
    squad_file: SquadFile, offsets: Sequence[np.ndarray], metric: str, language: str
) -> Optional[float]:
    """Return the exact match that stretches of pieces can reach, in percent; None without answers.

    Args:
        offsets: of the pieces of each context, ``(pieces, 2)``.
        language: of the answers.
    """

    def is_reached(question: Question, answer: GoldAnswer) -> bool:
        places, text = offsets[question.context], squad_file.contexts[question.context]
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

    if not any(question.answers for question in squad_file.questions):
        return None
    reached = [any(is_reached(q, answer) for answer in q.answers) for q in squad_file.questions]
    return float(100 * np.mean(reached))


def _same_bytes(first: str, second: str) -> bool:
    return filecmp.cmp(first, second, shallow=False)


def _same_types(first: str, second: str) -> bool:
    """Return whether two dictionaries have the same types, whatever their counts."""
    return read_dictionary(first).symbols == read_dictionary(second).symbols


def _encode_all(texts: List[str], folder: str, workers: int, title: str) -> Iterator[Encoded]:
    # the folder may hold others than at the last call
    _model_and_dictionary.cache_clear()
    encode = functools.partial(_encode, folder=folder)
    progress = tqdm(texts, desc=title, unit=" texts", leave=False)
    return map_lists(encode, progress, workers, _CHUNK)


@functools.lru_cache(maxsize=1)
def _model_and_dictionary(folder: str) -> Tuple[subwords.AnswerAlignedSubwords, Dictionary]:
    model = subwords.AnswerAlignedSubwords(subwords.load(folder))
    return model, subwords.load_dictionary(folder)


def _encode(texts: List[str], folder: str) -> List[Encoded]:
    model, dictionary = _model_and_dictionary(folder)
    encoded = (model.encode_with_offsets(text) for text in texts)
    return [([dictionary.index(piece) for piece in subwords], spans) for subwords, spans in encoded]


def _write_parts(
    folder: str, split: str, encoded: Iterator[Encoded], questions: int, entries: int
) -> Tuple[Dict[str, int], List[np.ndarray]]:
    """Write the tokens of questions, then of contexts; return their numbers, and all offsets."""
    builders = {}
    for part in PARTS:
        small = part != "offsets" and entries < np.iinfo(np.uint16).max
        path = os.path.join(folder, f"{split}.{part}.bin")
        builders[part] = indexed_dataset.MMapIndexedDatasetBuilder(
            path, dtype=np.uint16 if small else np.int32
        )
    counts = {"question": 0, "context": 0}
    context_offsets = []
    for number, (tokens, offsets) in enumerate(encoded):
        part = "question" if number < questions else "context"
        builders[part].add_item(torch.tensor(tokens, dtype=torch.long))
        counts[part] += len(tokens)
        if part == "context":
            context_offsets.append(np.array(offsets, dtype=np.int32).reshape(-1, 2))
            builders["offsets"].add_item(torch.from_numpy(context_offsets[-1]).flatten())
    for part, builder in builders.items():
        builder.finalize(os.path.join(folder, f"{split}.{part}.idx"))
    return counts, context_offsets

"""From question answering files to a folder that the task ``posenc_question_answering`` reads."""

import filecmp
import functools
import os
from typing import Dict, Iterator, List, Tuple

from fairseq.data import Dictionary
from tqdm import tqdm

from fairseq_posenc.data import questions, squad, subwords
from fairseq_posenc.data.finer import Finer
from fairseq_posenc.data.indexed import same_types
from fairseq_posenc.data.workers import chunked, in_order
from fairseq_posenc.errors import UsageError
from fairseq_posenc.metrics.answers import check_metric

_CHUNK = 50

# indices of a text's tokens, and where they are in it
Encoded = Tuple[List[int], List[Tuple[int, int]]]


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
) -> Tuple[Dict[str, int], List[str]]:
    """Binarise a file as one split of a folder; other splits of that folder stay as they are.

    Args:
        file: in the format of SQuAD 1.1.
        split: name of the split.
        subwords_folder: folder with a subword model and its ``dict.txt``.
        destination: folder to write into.
        language: of the answers, which are those of the contexts.
        metric: ``squad`` or ``mlqa``.
        prefix: take only questions whose id begins so.
        skip_malformed: leave malformed questions out.
        workers: processes.

    Returns:
        How many questions, contexts, tokens of questions and of contexts there are, and what was
        wrong with the questions left out.

    Raises:
        UsageError: whatever is wrong with the file or the options, or the folder holds splits that
            were made with other subwords.
    """
    questions.check_name(split)
    check_metric(metric, language)
    found = squad.read(file, skip_malformed, prefix)
    model = subwords.load(subwords_folder)
    dictionary = subwords.load_dictionary(subwords_folder)
    _check_same_subwords(model, destination)
    model.copy_to(destination)
    texts = [question.text for question in found.questions] + found.contexts
    encoded = _encoded(texts, subwords_folder, workers, split)
    about = {"language": language, "metric": metric}
    tokens = questions.write(destination, split, found, encoded, len(dictionary), **about)
    counts = {"questions": len(found.questions), "contexts": len(found.contexts)}
    counts.update({f"{part} tokens": count for part, count in tokens.items()})
    return counts, found.dropped


def _check_same_subwords(model: subwords.Subwords, folder: str) -> None:
    source = os.path.dirname(model.file)
    for name in (model.name, subwords.DICTIONARY):
        ours, theirs = os.path.join(folder, name), os.path.join(source, name)
        are_same = same_types if name == subwords.DICTIONARY else _same_bytes
        if os.path.exists(ours) and not are_same(ours, theirs):
            raise UsageError(
                f"{folder} was prepared with other subwords: {ours} and {theirs} differ; choose "
                "another --output, or remove that folder"
            )


def _same_bytes(file: str, other: str) -> bool:
    return filecmp.cmp(file, other, shallow=False)


def _encoded(texts: List[str], folder: str, workers: int, title: str) -> Iterator[Encoded]:
    # the folder may hold others than at the last call
    _tools.cache_clear()
    encode = functools.partial(_encode, folder=folder)
    with tqdm(total=len(texts), desc=title, unit=" texts", leave=False) as progress:
        for some in in_order(encode, chunked(texts, _CHUNK), workers):
            yield from some
            progress.update(len(some))


@functools.lru_cache(maxsize=1)
def _tools(folder: str) -> Tuple[Finer, Dictionary]:
    return Finer(subwords.load(folder)), subwords.load_dictionary(folder)


def _encode(texts: List[str], folder: str) -> List[Encoded]:
    model, dictionary = _tools(folder)
    cut = (model.pieces_with_offsets(text) for text in texts)
    return [([dictionary.index(piece) for piece in pieces], spans) for pieces, spans in cut]

"""From the archives of a corpus to tokenised training, validation and test text."""

import json
import os
import tempfile
from contextlib import ExitStack
from typing import Dict, List, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import replacing
from fairseq_posenc.tools.prepare.parallel.corpora import Corpus
from fairseq_posenc.tools.prepare.parallel.pairs import from_archive, from_files, writing
from fairseq_posenc.tools.prepare.parallel.sacre import read_test_set
from fairseq_posenc.tools.prepare.parallel.segmentation import moses_of_tests
from fairseq_posenc.tools.prepare.parallel.sources import check_folder, saved_name, test_sets
from fairseq_posenc.tools.prepare.parallel.training import Part, tokenise_pairs


def prepare_text(
    corpus: Corpus, raw: str, output: str, added: Sequence[str] = (), workers: int = 1
) -> Dict:
    """Write the tokenised text of a corpus into a folder, and raw test sets for scoring.

    ``train.tok.<language>``: training pairs, normalised, tokenised and cleaned as the corpus says.
    ``valid.tok``: every ``hold_out``-th training pair, counted from 1 over all parts before
    cleaning, and not cleaned; or, like all ``<test>.tok``, sacreBLEU's set. Such sets are tokenised
    alone, and written as they are to ``<test>.raw.<language>``. ``tests`` has the names of the test
    sets; ``counts.json`` comes last.

    Args:
        corpus: what to read and what to do.
        raw: folder of the downloads, named as ``sources.py`` says.
        output: folder to write to; made if missing.
        added: further training text behind the archives', ``PREFIX`` for ``PREFIX.<language>``,
            plain or ``.gz``.
        workers: processes; the result does not depend on it.

    Returns:
        What is in ``counts.json``: pairs of every set; of every part of the training text those
        read, kept, held out, and dropped by reason.

    Raises:
        UsageError: a file is missing, damaged, empty or no UTF-8, two sides differ in length, no
            pair is left, or the folder cannot be written.
    """
    check_folder(corpus, raw)
    parts = _parts(corpus, raw, added)
    tests = {
        name: _write_test_set(corpus, name, identifier, raw, output)
        for name, identifier in test_sets(corpus).items()
    }
    _write_training_text(corpus, parts, output, workers)
    counts = {
        "train": sum(part.kept for part in parts),
        "valid": tests.pop("valid", None) or sum(part.held_out for part in parts),
        "tests": tests,
        "parts": [part.counts() for part in parts],
    }
    with replacing(os.path.join(output, "tests")) as stream:
        stream.writelines(f"{name}\n" for name in tests)
    with replacing(os.path.join(output, "counts.json")) as stream:
        stream.write(json.dumps(counts, indent=2) + "\n")
    return counts


def _parts(corpus: Corpus, raw: str, added: Sequence[str]) -> List[Part]:
    languages = (corpus.source, corpus.target)
    parts = []
    for part in corpus.train:
        source, target = (f"{part.stem}.{language}{part.suffix}" for language in languages)
        archive = os.path.join(raw, saved_name(part.url))
        parts.append(Part(part.stem, from_archive(archive, (source, target))))
    for prefix in added:
        # now, rather than after hours of other parts
        next(from_files(prefix, languages))
        parts.append(Part(prefix, from_files(prefix, languages)))
    return parts


def _write_test_set(corpus: Corpus, name: str, identifier: str, raw: str, output: str) -> int:
    languages = (corpus.source, corpus.target)
    prefix = os.path.join(output, name)
    with writing(f"{prefix}.raw", languages) as write_raw:
        with tempfile.TemporaryDirectory(prefix=".sacrebleu", dir=output) as cache:
            pairs = read_test_set(identifier, languages, raw, cache)
        write_raw(pairs)
    with writing(f"{prefix}.tok", languages) as write:
        write(tokenise_pairs(corpus, pairs, moses_of_tests(corpus)))
    return len(pairs)


def _write_training_text(corpus: Corpus, parts: List[Part], output: str, workers: int) -> None:
    languages = (corpus.source, corpus.target)
    with ExitStack() as opened:
        write = opened.enter_context(writing(os.path.join(output, "train.tok"), languages))
        if corpus.hold_out:
            valid = writing(os.path.join(output, "valid.tok"), languages)
            write_valid = opened.enter_context(valid)
        first = 1
        for part in parts:
            for some in part.prepared(corpus, first, workers):
                write(some.kept)
                if corpus.hold_out:
                    write_valid(some.held_out)
            first += part.read
        if not any(part.kept for part in parts):
            raise UsageError("no training pair is left after cleaning")
        if corpus.hold_out and not any(part.held_out for part in parts):
            raise UsageError(
                f"of {first - 1} training pairs, every {corpus.hold_out}th are none to validate on"
            )

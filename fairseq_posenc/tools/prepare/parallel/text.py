"""From the archives of a corpus to tokenised training, validation and test text."""

import functools
import json
import os
from collections import Counter
from contextlib import ExitStack
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from tqdm import tqdm

from fairseq_posenc.data.segmentation import Moses
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.prepare.parallel import perl
from fairseq_posenc.tools.prepare.parallel.cleaning import clean_pairs
from fairseq_posenc.tools.prepare.parallel.corpora import Corpus
from fairseq_posenc.tools.prepare.parallel.pairs import (
    Pair,
    pairs_of_archive,
    pairs_of_files,
    write_pairs,
    writing,
)
from fairseq_posenc.tools.prepare.parallel.segmentation import moses_of_tests, moses_of_training
from fairseq_posenc.tools.prepare.parallel.sources import (
    check_folder,
    read_test_set,
    saved_name,
    test_sets,
)
from fairseq_posenc.tools.workers import chunked, in_order
from fairseq_posenc.tools.writing import replacing


def prepare_text(
    corpus: Corpus,
    raw: str,
    output: str,
    added: Sequence[str] = (),
    workers: int = 1,
    checkout: Optional[str] = None,
) -> Dict:
    """Write the tokenised text of a corpus into a folder, and raw test sets for scoring.

    ``train.tok.<language>``: training pairs, normalised, tokenised and cleaned as the corpus says.
    ``valid.tok``: every ``hold_out``-th training pair, counted from 1 over all parts before
    cleaning, and not cleaned; or, like all ``<test>.tok``, sacreBLEU's set. Such sets are tokenised
    alone (``valid`` normalised, too, where the corpus says so), and written as they are to
    ``<test>.raw.<language>``. ``tests`` has the names of the test
    sets; ``counts.json`` comes last.

    Args:
        corpus: what to read and what to do.
        raw: folder of the downloads, named as ``sources.py`` says.
        output: folder to write to; made if missing.
        added: further training text behind the archives', ``PREFIX`` for ``PREFIX.<language>``,
            plain or ``.gz``.
        workers: processes; the result does not depend on it.
        checkout: of mosesdecoder, whose Perl scripts then tokenise; None: sacremoses does.

    Returns:
        What is in ``counts.json``: pairs of every set; of every part of the training text those
        read, kept, held out, and dropped by reason.

    Raises:
        UsageError: a file is missing, damaged, empty or no UTF-8, two sides differ in length, no
            pair is left, the folder cannot be written, or the checkout is none.
    """
    perl.check_moses(checkout)
    check_folder(corpus, raw)
    parts = _open_parts(corpus, raw, added)
    languages = (corpus.source, corpus.target)
    tests = {}
    for name, identifier in test_sets(corpus).items():
        pairs = read_test_set(identifier, languages, raw)
        prefix = os.path.join(output, name)
        tests[name] = write_pairs(f"{prefix}.raw", languages, pairs)
        as_train = name == "valid" and corpus.valid_as_train
        moses = moses_of_training(corpus) if as_train else moses_of_tests(corpus)
        tokenised = tokenise_pairs(corpus, pairs, moses, checkout)
        write_pairs(f"{prefix}.tok", languages, tokenised)
    counts = _write_training_text(corpus, parts, output, workers, checkout)
    result = {
        "train": sum(part["kept"] for part in counts),
        "valid": tests.pop("valid", None) or sum(part["held_out"] for part in counts),
        "tests": tests,
        "parts": counts,
    }
    with replacing(os.path.join(output, "tests")) as stream:
        stream.writelines(f"{name}\n" for name in tests)
    with replacing(os.path.join(output, "counts.json")) as stream:
        stream.write(json.dumps(result, indent=2) + "\n")
    return result


def _open_parts(corpus: Corpus, raw: str, added: Sequence[str]) -> List[Tuple[str, Iterator[Pair]]]:
    """Return the pairs of every part of the training text, behind its name."""
    languages = (corpus.source, corpus.target)
    parts = []
    for part in corpus.train:
        source, target = (f"{part.stem}.{language}{part.suffix}" for language in languages)
        archive = os.path.join(raw, saved_name(part.url))
        parts.append((part.stem, pairs_of_archive(archive, (source, target))))
    for prefix in added:
        # now, rather than after hours of other parts
        next(pairs_of_files(prefix, languages))
        parts.append((prefix, pairs_of_files(prefix, languages)))
    return parts


def tokenise_pairs(
    corpus: Corpus, pairs: List[Pair], moses: Moses, checkout: Optional[str] = None
) -> List[Pair]:
    """Tokenise both sides of at least one pair, each in its language of the corpus."""
    sides = [
        perl.tokenise(list(lines), moses._replace(language=language), checkout)
        for language, lines in zip((corpus.source, corpus.target), zip(*pairs))
    ]
    return list(zip(*sides))


class Prepared(NamedTuple):
    """What became of some training pairs; ``dropped`` has the numbers of pairs by reason."""

    kept: List[Pair]
    held_out: List[Pair]
    dropped: Counter


def prepare_pairs(
    numbered: List[Tuple[int, Pair]], corpus: Corpus, checkout: Optional[str] = None
) -> Prepared:
    """Tokenise and clean pairs that come with their numbers in the whole training text, from 1.

    Every ``hold_out``-th is held out, and not cleaned.
    """
    moses = moses_of_training(corpus)
    tokenised = tokenise_pairs(corpus, [pair for _, pair in numbered], moses, checkout)
    kept: List[Pair] = []
    held_out: List[Pair] = []
    for (number, _), pair in zip(numbered, tokenised):
        is_held_out = corpus.hold_out and number % corpus.hold_out == 0
        (held_out if is_held_out else kept).append(pair)
    dropped: Counter = Counter()
    if corpus.before_bpe:
        kept = list(clean_pairs(kept, corpus.before_bpe, dropped))
    return Prepared(kept, held_out, dropped)


def _write_training_text(
    corpus: Corpus,
    parts: List[Tuple[str, Iterator[Pair]]],
    output: str,
    workers: int,
    checkout: Optional[str],
) -> List[Dict[str, Any]]:
    """Write ``train.tok`` and, if pairs are held out, ``valid.tok``; return the parts' counts."""
    languages = (corpus.source, corpus.target)
    work = functools.partial(prepare_pairs, corpus=corpus, checkout=checkout)
    counts = []
    with ExitStack() as opened:
        write = opened.enter_context(writing(os.path.join(output, "train.tok"), languages))
        if corpus.hold_out:
            valid = writing(os.path.join(output, "valid.tok"), languages)
            write_valid = opened.enter_context(valid)
        total = 0
        for name, pairs in parts:
            first, kept, held_out = total, 0, 0
            dropped: Counter = Counter()
            with tqdm(desc=name, unit=" pairs", disable=None) as progress:
                for some in in_order(work, chunked(enumerate(pairs, first + 1)), workers):
                    kept += write(some.kept)
                    if corpus.hold_out:
                        held_out += write_valid(some.held_out)
                    dropped.update(some.dropped)
                    read = len(some.kept) + len(some.held_out) + sum(some.dropped.values())
                    total += read
                    progress.update(read)
            part = {"name": name, "read": total - first, "kept": kept, "held_out": held_out}
            counts.append({**part, "dropped": dict(dropped)})
        if not any(part["kept"] for part in counts):
            raise UsageError("no training pair is left after cleaning")
        if corpus.hold_out and not any(part["held_out"] for part in counts):
            raise UsageError(
                f"of {total} training pairs, every {corpus.hold_out}th are none to validate on"
            )
    return counts

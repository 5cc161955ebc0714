"""From the archives of a corpus to tokenised training, validation and test text."""

import functools
import json
import os
from collections import Counter
from contextlib import ExitStack
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from tqdm import tqdm

from fairseq_posenc.data.segmentation import Moses
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.translation import perl
from fairseq_posenc.tools.translation.cleaning import clean_pairs
from fairseq_posenc.tools.translation.corpora import Corpus
from fairseq_posenc.tools.translation.pairs import Pair, pairs_of_files, write_pairs, writing
from fairseq_posenc.tools.translation.segmentation import moses_of_tests, moses_of_training
from fairseq_posenc.tools.translation.sources import (
    check_folder,
    pairs_of_part,
    read_test_set,
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
    ``valid.tok``: every ``hold_out``-th of these pairs, counted from 1 over all parts, which the
    training text then lacks; or, like all ``<test>.tok``, a test set. Such sets are tokenised
    alone (``valid`` normalised, too, where the corpus says so), and written as they are to
    ``<test>.raw.<language>``. ``tests`` has the names of the test
    sets; ``counts.json`` comes last.

    Args:
        raw: folder of the downloads, named as ``sources.py`` says.
        added: further training text behind the archives', ``PREFIX`` for ``PREFIX.<language>``,
            plain or compressed.
        checkout: of mosesdecoder, whose Perl scripts then tokenise; None: sacremoses does.

    Returns:
        What is in ``counts.json``: pairs of every set; of every part of the training text those
        read, kept, held out, and dropped by reason.
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
    counts = _write_training_text(corpus, parts, output, workers, checkout) if parts else []
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
        parts.append((part.stem, pairs_of_part(part, languages, raw)))
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


def prepare_pairs(
    pairs: List[Pair], corpus: Corpus, checkout: Optional[str] = None
) -> Tuple[List[Pair], Counter]:
    """Tokenise and clean training pairs; return those kept, and how many were dropped by reason."""
    tokenised = tokenise_pairs(corpus, pairs, moses_of_training(corpus), checkout)
    dropped: Counter = Counter()
    if corpus.before_bpe:
        tokenised = list(clean_pairs(tokenised, corpus.before_bpe, dropped))
    return tokenised, dropped


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
            prefix = os.path.join(output, "valid.tok")
            write_valid = opened.enter_context(writing(prefix, languages))
        total = 0
        for name, pairs in parts:
            written, held_out = 0, 0
            dropped: Counter = Counter()
            with tqdm(desc=name, unit=" pairs", disable=None) as progress:
                for clean, reasons in in_order(work, chunked(pairs), workers):
                    train, valid = _hold_out(clean, corpus.hold_out, total)
                    written += write(train)
                    if corpus.hold_out:
                        held_out += write_valid(valid)
                    dropped.update(reasons)
                    total += len(clean)
                    progress.update(len(clean) + sum(reasons.values()))
            read = written + held_out + sum(dropped.values())
            part = {"name": name, "read": read, "kept": written, "held_out": held_out}
            counts.append({**part, "dropped": dict(dropped)})
        if not any(part["kept"] for part in counts):
            raise UsageError("no training pair is left after cleaning")
        if corpus.hold_out and not any(part["held_out"] for part in counts):
            raise UsageError(
                f"{total} training pairs are too few to validate on every {corpus.hold_out}th"
            )
    return counts


def _hold_out(
    pairs: List[Pair], every: Optional[int], before: int
) -> Tuple[List[Pair], List[Pair]]:
    """Return the pairs without every n-th, and those; ``before`` pairs were counted already."""
    train: List[Pair] = []
    valid: List[Pair] = []
    for number, pair in enumerate(pairs, before + 1):
        (valid if every and number % every == 0 else train).append(pair)
    return train, valid

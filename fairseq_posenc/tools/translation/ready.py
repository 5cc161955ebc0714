"""Text of a corpus that is tokenised, or cut into subwords, already, in place of its archives."""

import json
import os
import shutil
from typing import Dict, Optional

from fairseq_posenc.data.segmentation import CODES, BytePairEncoder
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.translation.corpora import Corpus
from fairseq_posenc.tools.translation.pairs import find_files, pairs_of_files, write_pairs
from fairseq_posenc.tools.translation.sources import check_folder, read_test_set, test_sets
from fairseq_posenc.tools.translation.text import prepare_text
from fairseq_posenc.tools.writing import replacing

# ours, and those of Google's wmt16_en_de, which Ott et al. 2018 trained on
_ENDINGS = {
    "bpe": ("bpe", "tok.clean.bpe.32000", "tok.bpe.32000"),
    "tok": ("tok", "tok.clean"),
}
_CODES = (CODES, "bpe.32000")


def take_ready(corpus: Corpus, ready: str, raw: str, output: str, workers: int = 1) -> Dict:
    """Write the text of a corpus into a folder, as :func:`text.prepare_text` does, from ready text.

    ``ready`` may have raw training text, ``train.raw.<language>`` (plain or ``.gz``), which then
    goes the archives' way. Otherwise:

    ``ready`` has ``train`` and every test set as ``<name>.bpe.<language>``, or all of them as
    ``<name>.tok.<language>`` (plain or ``.gz``; also under the names of Google's archive,
    ``train.tok.clean.bpe.32000.en``), and with BPE the merges as ``codes`` or ``bpe.32000``. The
    validation set is ``valid``, or else the test set that it is too. Nothing is cleaned. What is
    scored comes from the test sets' archives in ``raw``, whose lines must be as many.

    Returns:
        What is in ``counts.json``: the ``kind`` (``bpe`` or ``tok``) and the pairs of every set.
    """
    tests_only = corpus._replace(train=[])
    check_folder(tests_only, raw)
    languages = (corpus.source, corpus.target)
    if all(map(os.path.exists, find_files(f"{ready}/train.raw", languages))):
        return prepare_text(tests_only, raw, output, [f"{ready}/train.raw"], workers)
    form = next((form for form in _ENDINGS if _find(corpus, ready, "train", form)), "bpe")
    train = _required_prefix(corpus, ready, ["train"], form)
    counts = {}
    for name, identifier in test_sets(corpus).items():
        same = [test for test, text in corpus.tests.items() if text == identifier]
        prefix = _required_prefix(corpus, ready, [name, *same], form)
        pairs = read_test_set(identifier, languages, raw)
        counts[name] = write_pairs(
            f"{output}/{name}.{form}", languages, pairs_of_files(prefix, languages)
        )
        if counts[name] != len(pairs):
            raise UsageError(
                f"{prefix}.{corpus.source} has {counts[name]} lines, the archives' {name} "
                f"{len(pairs)}"
            )
        write_pairs(f"{output}/{name}.raw", languages, pairs)
    if corpus.hold_out:  # of the archives' text; here it is a set that nothing is scored on
        prefix = _required_prefix(corpus, ready, ["valid"], form)
        pairs_of_valid = pairs_of_files(prefix, languages)
        counts["valid"] = write_pairs(f"{output}/valid.{form}", languages, pairs_of_valid)
    codes = [path for path in (f"{ready}/{name}" for name in _CODES) if os.path.exists(path)]
    if form == "bpe":
        if not codes:
            raise UsageError(f"{ready} has no {' or '.join(_CODES)}, the merges of its BPE")
        BytePairEncoder(codes[0])
        with open(codes[0], "rb") as stream, replacing(f"{output}/{CODES}", "wb") as copy:
            shutil.copyfileobj(stream, copy)
    total = write_pairs(f"{output}/train.{form}", languages, pairs_of_files(train, languages))
    result = {"kind": form, "train": total, "valid": counts.pop("valid", 0), "tests": counts}
    with replacing(f"{output}/tests") as stream:
        stream.writelines(f"{name}\n" for name in counts)
    with replacing(f"{output}/counts.json") as stream:
        stream.write(json.dumps(result, indent=2) + "\n")
    return result


def _find(corpus: Corpus, ready: str, name: str, form: str) -> Optional[str]:
    """Return the prefix of a set's two files, None if they are not there."""
    for ending in _ENDINGS[form]:
        prefix = f"{ready}/{name}.{ending}"
        if all(map(os.path.exists, find_files(prefix, (corpus.source, corpus.target)))):
            return prefix
    return None


def _required_prefix(corpus: Corpus, ready: str, names: list, form: str) -> str:
    prefixes = [prefix for prefix in (_find(corpus, ready, name, form) for name in names) if prefix]
    if not prefixes:
        example = f"{names[0]}.{form}.{corpus.source} and {names[0]}.{form}.{corpus.target}"
        raise UsageError(f"{ready} lacks {example}, or the same under the names of wmt16_en_de")
    return prefixes[0]

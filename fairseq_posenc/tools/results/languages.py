"""The languages of a test set, and how long the sentences are that a model was trained on."""

import glob
import os
import re
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

import numpy as np
from fairseq.data import data_utils
from sacremoses.corpus import NonbreakingPrefixes

from fairseq_posenc.data.indexed import check_split
from fairseq_posenc.data.token_ratio import training_sizes
from fairseq_posenc.errors import UsageError

_WITHOUT_SPACES = ("zh", "yue", "ja", "th")
_MOSES = {*NonbreakingPrefixes().available_langs.values(), "ja", "ko"}


class Languages(NamedTuple):
    """Source and target language; None where it is not known."""

    source: Optional[str] = None
    target: Optional[str] = None


def language_code(language: str) -> str:
    """Return the part of ``fr_XX`` or ``pt-BR`` by which Moses and sacreBLEU know a language."""
    return re.split("[-_]", language)[0].lower()


def remarks(language: str) -> List[str]:
    """Return what the user should know of scores in this target language."""
    code, found = language_code(language), []
    if code not in _MOSES:
        found.append(
            f"Moses has no rules for {language!r}: tokenised and detokenised like English; if it "
            "has another code, give it with --language"
        )
    if code in _WITHOUT_SPACES:
        found.append(
            f"tokenised BLEU and lengths in words count what spaces part, which {language} does "
            "not write: take --length-unit subwords"
        )
    return found


def choose(given: Languages, *others: Languages) -> Languages:
    """Return the languages that are given, or else the first known of the others.

    Raises:
        UsageError: nobody knows the target language.
    """
    candidates = (given, *others)
    found = Languages(*(next(filter(None, side), None) for side in zip(*candidates)))
    if not found.target:
        raise UsageError(
            "the target language is not known, and scores depend on it: give --language, or with "
            "--data the binarised data"
        )
    return found


def languages_of_data(
    data: str, subwords: Mapping[str, Sequence[int]], target: Optional[str] = None
) -> Languages:
    """Return the languages of a folder of fairseq-preprocess, in the direction of the model.

    Models of both directions may have been trained on one folder: the direction is that in which
    a set of the folder has sentences as long as those of the output; where none has, the one that
    ends in ``target``, or that of the names of the files.

    Args:
        data: the folder; of several, joined by colons, the first.
        subwords: numbers per sentence of ``source`` and ``reference`` in an output, if known.
        target: the target language, if given.

    Raises:
        UsageError: there are no such data, or they are damaged.
    """
    folder = data.split(":")[0]
    found = data_utils.infer_language_pair(folder) if os.path.isdir(folder) else (None, None)
    if None in found:
        raise UsageError(f"no binarised parallel data in {folder}; run fairseq-preprocess first")
    pair = [str(language) for language in found]
    name = "-".join(pair)
    directions = [Languages(*pair), Languages(*reversed(pair))]
    for path in glob.glob(os.path.join(glob.escape(folder), f"*.{name}.{pair[0]}.idx")):
        split = os.path.basename(path).split(".")[0]
        if split.startswith("train") or len(subwords) < 2:
            continue
        check_split(folder, split)
        for direction in directions:
            sides = zip(direction, (subwords["source"], subwords["reference"]))
            if all(_as_long(f"{folder}/{split}.{name}.{side}", counts) for side, counts in sides):
                return direction
    return directions[target == pair[0] != pair[1]]


def longest_trained(data: str, languages: Languages) -> Optional[Dict[str, int]]:
    """Return the subwords of the longest ``source`` and ``reference`` of the training set.

    None without a training set. Pairs that fairseq-train left out as longer than the model's
    positions count too.

    Raises:
        UsageError: the data are damaged.
    """
    sizes = list(training_sizes(data, "train", languages.source or "", languages.target or ""))
    if not sizes:
        return None
    longest = (max(int(part.max(initial=0)) for part in side) for side in zip(*sizes))
    return dict(zip(("source", "reference"), longest))


def _as_long(path: str, counts: Sequence[int]) -> bool:
    side = data_utils.load_indexed_dataset(path, None)
    return side is not None and np.array_equal(np.array(side.sizes) - 1, counts)

"""What a folder of binarised data says of a test set: languages, lengths, subwords, raw text."""

import glob
import os
import re
from collections import Counter
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from fairseq import utils
from fairseq.data import Dictionary, data_utils

from fairseq_posenc.data.indexed import check_indexed, read_dictionary
from fairseq_posenc.data.subwords import SentencePiece
from fairseq_posenc.data.token_ratio import training_sizes
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.result import TrainedLengths
from fairseq_posenc.tools.scores.texts import CONTINUES, UNKNOWN, Languages, TestSet

_MOST_LACKING = 0.05  # of tokens: --replace-unk brings some in
_COMPARED = 20  # sentences, by which a split of the folder is known
RAW_TEST = "test.raw"
"""Before ``.<language>``: the raw text of the test set, which posenc prepare translation keeps."""


def first_folder(data: Optional[str]) -> str:
    """Return the folder of binarised data; of several, joined by colons, the first."""
    return utils.split_paths(data)[0] if data else ""


def languages_of_data(
    data: Optional[str], requested: Languages = UNKNOWN, output: Languages = UNKNOWN
) -> Languages:
    """Return the languages of a folder of fairseq-preprocess, in the direction of the model.

    Models of both directions, and of several pairs, may have been trained on one folder: the
    direction is that of the ``output``, as far as it tells, or the one ``requested``, or that of
    the names of the files. Without a folder none is known.
    """
    if not data:
        return Languages()
    folder = first_folder(data)
    pairs = pairs_of_data(folder)
    if not pairs:
        raise UsageError(f"no binarised parallel data in {folder}; run fairseq-preprocess first")
    suited = [direction for pair in pairs for direction in (pair, Languages(*pair[::-1]))]
    for known in (output, requested):
        for side in ("target", "source"):
            name = getattr(known, side)
            # a language may be called otherwise than in the names of the files
            suited = [pair for pair in suited if name in (None, getattr(pair, side))] or suited
    if len({frozenset(direction) for direction in suited}) > 1:
        raise UsageError(f"{several(folder, pairs)}: give --language and --source-language")
    return suited[0]


def several(folder: str, pairs: Sequence[Languages]) -> str:
    """Return that a folder has several pairs of languages, in words."""
    names = ", ".join(f"{pair.source}-{pair.target}" for pair in pairs)
    return f"{folder} has several pairs of languages, {names}"


def pairs_of_data(folder: str) -> List[Languages]:
    """Return the pairs of languages in the names of a folder's files, as ``test.en-de.en``."""
    names = [name.split(".") for name in os.listdir(folder)] if os.path.isdir(folder) else []
    pairs = {parts[1] for parts in names if len(parts) >= 3 and parts[2] in parts[1].split("-")}
    return [Languages(*pair.split("-")) for pair in sorted(pairs) if pair.count("-") == 1]


def set_trained_lengths(texts: TestSet, data: str) -> None:
    """Set the longest source and reference of the training set, and which sentences are within.

    Both are None where they are not known. Pairs that fairseq-train left out as longer than the
    model's positions count too.
    """
    languages = languages_of_data(data, texts.names, texts.names)
    sizes = list(training_sizes(data, "train", languages.source or "", languages.target or ""))
    if not sizes:
        texts.remarks.append(f"{data} has no training set: how long its sentences are is not known")
        return
    source, reference = (max(int(part.max(initial=0)) for part in side) for side in zip(*sizes))
    texts.longest_trained = TrainedLengths(source, reference)
    if len(texts.subwords) < 2:
        texts.remarks.append(
            "how many sentences are within the trained length is not known: it is counted in "
            "subwords, in the output of fairseq-generate made without --remove-bpe and --bpe"
        )
        return
    pairs = zip(texts.subwords["source"], texts.subwords["reference"])
    texts.within = [s <= source and r <= reference for s, r in pairs]


def translated_split(
    data: Optional[str], texts: Mapping[str, Mapping[int, str]], count: int
) -> Tuple[int, Languages]:
    """Return how many sentences the split has that an output translates, and the languages.

    It is the split whose sentences have the text of the output's; their subwords may be joined.

    Args:
        texts: of S- and of T-lines, by sentence, some of which may be missing.
        count: of the output's sentences: a split of as many is taken where several have the text.

    Returns:
        0 where no split of at least ``count`` sentences has the text.
    """
    folder, lines = first_folder(data), texts["S"] or texts["T"]
    sampled = sorted(number for number, line in lines.items() if line.strip())
    sampled = sampled[:: max(1, len(sampled) // _COMPARED)][:_COMPARED]
    splits: Dict[int, List[Languages]] = {}
    dictionaries: Dict[str, Dictionary] = {}
    for index in sorted(glob.glob(os.path.join(glob.escape(folder), "*.*-*.*.idx"))):
        pair, language = index.split(".")[-3:-1]
        file = os.path.join(folder, f"dict.{language}.txt")
        if not (folder and sampled and os.path.exists(file)):
            continue
        check_indexed(index.removesuffix(".idx"))
        if language not in dictionaries:
            dictionaries[language] = read_dictionary(file)
        dictionary = dictionaries[language]
        split = data_utils.load_indexed_dataset(index.removesuffix(".idx"), dictionary)
        if split is None or len(split) < count:
            continue
        # tags of languages may stand before or behind
        if all(_letters(dictionary.string(split[n])) in _letters(lines[n]) for n in sampled):
            first, _, second = pair.partition("-")
            is_straight = (language == first) == bool(texts["S"])
            direction = (first, second) if is_straight else (second, first)
            splits.setdefault(len(split), []).append(Languages(*direction))
    if not splits:
        return 0, UNKNOWN
    size = min(splits)
    # of a text in several pairs one side alone is known
    sides = (set(side) for side in zip(*splits[size]))
    return size, Languages(*(side.pop() if len(side) == 1 else None for side in sides))


def _letters(line: str) -> str:
    """Return a line without the blanks and marks of its subwords."""
    return re.sub(r"@@( |$)|(^| )##|[\s\u2581]", "", line.replace("<<unk>>", "<unk>"))


def check_pieces(
    path: str, data: Optional[str], hypotheses: Sequence[str], target: Optional[str]
) -> None:
    """Refuse an output whose subwords the folder's dictionary lacks.

    Without marks of subwords nothing is known: fairseq may have joined them.
    """
    tokens = Counter(token for line in hypotheses for token in line.split())
    if not data or not any(token.endswith("@@") or "\u2581" in token for token in tokens):
        return
    folder, symbols = first_folder(data), set()
    names = sorted(glob.glob(os.path.join(glob.escape(folder), "dict.*.txt")))
    own = [name for name in names if target and name.endswith(f"dict.{target}.txt")]
    for name in own or names:
        symbols.update(read_dictionary(name).symbols)
    lacking = Counter({t: n for t, n in tokens.items() if t not in symbols})
    count, total = sum(lacking.values()), sum(tokens.values())
    if symbols and count > _MOST_LACKING * total:
        examples = ", ".join(token for token, _ in lacking.most_common(3))
        raise UsageError(
            f"{path} holds {count} of {total} subwords that {folder} lacks, such as {examples}: "
            "the model was trained on other data; give its folder with --data"
        )


def subwords_of_data(data: Optional[str]) -> str:
    """Return fairseq's name of the kind of subwords of a folder, from its model or dictionaries."""
    if model_of_data(data):
        return "sentencepiece"
    folder, symbols = first_folder(data), []
    for path in glob.glob(os.path.join(glob.escape(folder), "dict.*.txt")) if data else ():
        symbols += read_dictionary(path).symbols
    return subwords_of_symbols(symbols)


def subwords_of_symbols(symbols: Iterable[str]) -> str:
    """Return fairseq's name of the kind of subwords of a dictionary: of the mark that most have."""
    counts = Counter({"@@ ": 0})
    for symbol in symbols:
        counts["@@ "] += symbol.endswith("@@")
        counts["sentencepiece"] += symbol.startswith("\u2581")
        counts[CONTINUES] += symbol.startswith(CONTINUES) and symbol != CONTINUES
    return counts.most_common(1)[0][0]


def model_of_data(data: Optional[str]) -> str:
    """Return the path of the SentencePiece model in a binarised folder, empty if it has none."""
    path = os.path.join(first_folder(data), SentencePiece.name)
    return path if data and os.path.exists(path) else ""


def raw_test(data: Optional[str]) -> str:
    """Return where a folder has the raw text of its test set, without the language."""
    return os.path.join(first_folder(data), RAW_TEST) if data else ""

"""From files of raw parallel text to a folder that fairseq-train reads, with what cuts new text."""

import functools
import os
import re
import shutil
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from tqdm import tqdm

from fairseq_posenc.data import subwords
from fairseq_posenc.data.indexed import read_dictionary
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import replacing_files, stream_lines
from fairseq_posenc.tools.prepare.parallel import bpe
from fairseq_posenc.tools.prepare.parallel.cleaning import Cleaning, clean_pairs
from fairseq_posenc.tools.prepare.parallel.pairs import Pair, pairs_of_files, writing
from fairseq_posenc.tools.prepare.parallel.segmentation import (
    CODES,
    TOKENISER,
    keep,
    moses,
    read_tokeniser,
)
from fairseq_posenc.tools.prepare.parallel.tokens import tokenise_lines
from fairseq_posenc.tools.prepare.resumable import begin_or_continue, describe_files, only_process
from fairseq_posenc.tools.prepare.text import sampling, vocabulary
from fairseq_posenc.tools.workers import chunked, in_order

BPE_OPERATIONS = 10_000
LONGEST, RATIO = 250, 3.0  # subwords of either side; longer by shorter side
_SENTENCEPIECE_LINES = 4_000_000  # which the library holds in memory
SPLITS = ("train", "valid", "test")
_SMALLEST_BATCH = 8  # sentences; fairseq-train leaves out what is less, and stops without any
_COMMAND = "posenc prepare translation"

Say = Callable[[str], object]


@dataclass(frozen=True)
class Options:
    """What posenc prepare translation asks for, see there; None stands for a default."""

    source_lang: str
    target_lang: str
    output: str
    train: Optional[str] = None
    valid: Optional[str] = None
    test: Optional[str] = None
    valid_lines: Optional[int] = None
    bpe: Optional[int] = None
    sentencepiece: Optional[int] = None
    subwords: Optional[str] = None
    max_length: int = LONGEST
    ratio: float = RATIO
    workers: int = 1

    @property
    def languages(self) -> Tuple[str, str]:
        """Source and target language."""
        return self.source_lang, self.target_lang

    def splits(self) -> Dict[str, str]:
        """Return the prefixes of the files given, by split."""
        given = {"train": self.train, "valid": self.valid, "test": self.test}
        return {split: prefix for split, prefix in given.items() if prefix}


def prepare(options: Options, say: Say = print) -> None:
    """Make a folder of binarised parallel text, or complete one begun with the same options.

    Text is normalised and tokenised as by ``posenc prepare tokenise``, then cut by byte pair
    encoding learnt from both sides of the training text; or cut by SentencePiece without being
    tokenised. Training pairs that are empty, too long or too different in length are dropped. The
    folder gets what fairseq-preprocess writes with a joined dictionary, and ``codes`` and
    ``tokeniser.json``, or ``sentencepiece.model``, for ``from_pretrained``. What is made on the way
    lies in its folder ``text``, which is removed in the end.

    Raises:
        UsageError: options that exclude each other, text that is missing, empty, no UTF-8 or of
            different length on the two sides, no pair left, or a folder that cannot be written or
            was made with other options.
    """
    _check(options)
    last = f"dict.{options.target_lang}.txt"
    text = os.path.join(options.output, "text")
    settings = _settings(options)
    with only_process(options.output, say):
        begun = begin_or_continue(options.output, settings, [last], _COMMAND)
        if os.path.exists(os.path.join(options.output, last)):
            say(f"{options.output} is complete")
        else:
            if not begun:
                shutil.rmtree(text, ignore_errors=True)
            os.makedirs(text, exist_ok=True)
            model = options.subwords or text
            for split, prefix in options.splits().items():
                _tokenise(options, split, prefix, model, text, say)
            if not options.subwords:
                _learn(options, text, say)
            for split in SPLITS:
                _cut(options, split, model, text, say)
            _binarise(options, model, text, last, say)
        shutil.rmtree(text, ignore_errors=True)


def _check(options: Options) -> None:
    for language in options.languages:
        if not re.fullmatch(r"[\w-]+", language):
            raise UsageError(f"{language!r} is no name of a language, such as en")
    if options.source_lang == options.target_lang:
        raise UsageError("--source-lang and --target-lang are the same")
    kinds = (options.bpe, options.sentencepiece, options.subwords)
    if sum(kind is not None for kind in kinds) > 1:
        raise UsageError("give only one of --bpe, --sentencepiece and --subwords")
    if not options.splits() or not (options.train or options.subwords):
        raise UsageError("give --train, or --subwords and the text that is to be cut")
    if bool(options.train) != bool(options.valid or options.valid_lines) and not options.subwords:
        raise UsageError("give --valid or --valid-lines, for text to validate on")
    if options.valid_lines is not None and (options.valid or not options.train):
        raise UsageError("--valid-lines takes pairs from --train; leave out --valid")
    # fairseq-train leaves out batches of fewer than 8 sentences
    least = {
        "valid_lines": 8,
        "bpe": 1,
        "sentencepiece": 1,
        "max_length": 1,
        "ratio": 1,
        "workers": 1,
    }
    for name, bound in least.items():
        value = getattr(options, name)
        if value is not None and value < bound:
            raise UsageError(f"--{name.replace('_', '-')} must be at least {bound}, not {value}")
    for language in options.languages if options.subwords else ():
        path = f"{options.subwords}/dict.{language}.txt"
        if not os.path.exists(path):
            raise UsageError(f"there is no {path}; --subwords takes a folder of {_COMMAND}")


def _settings(options: Options) -> Dict[str, Any]:
    settings = asdict(options)
    del settings["output"], settings["workers"]
    for split, prefix in options.splits().items():
        names = [f"{prefix}.{language}" for language in options.languages]
        settings[split] = describe_files(
            name if os.path.exists(name) or not os.path.exists(f"{name}.gz") else f"{name}.gz"
            for name in names
        )
    if options.subwords:
        settings["subwords"] = os.path.abspath(options.subwords)
    return settings


def _there(prefix: str, languages: Tuple[str, str]) -> bool:
    return all(os.path.exists(f"{prefix}.{language}") for language in languages)


def _tokenise(options: Options, split: str, prefix: str, model: str, text: str, say: Say) -> None:
    """Write ``<split>.tok``; with --valid-lines, evenly spread pairs of train to ``valid.tok``."""
    output, valid = os.path.join(text, f"{split}.tok"), os.path.join(text, "valid.tok")
    holds_out = split == "train" and options.valid_lines is not None
    if _there(output, options.languages) and (not holds_out or _there(valid, options.languages)):
        return
    # read to the end, so that bad input is found before the long work begins
    total = sum(1 for _ in pairs_of_files(prefix, options.languages))
    wanted = options.valid_lines if holds_out else 0
    if wanted and wanted >= total:
        raise UsageError(f"--valid-lines {wanted} leaves nothing of {total} pairs to train on")
    say(f"{split}: {total:,} pairs" + (f", {wanted:,} of them to validate on" if wanted else ""))
    pairs = tqdm(
        pairs_of_files(prefix, options.languages), desc=f"{split}: tokenise", total=total,
        unit=" pairs", disable=None,
    )  # fmt: skip
    tokenisers = None
    if not _uses_sentencepiece(options, model):
        path = os.path.join(options.subwords or "", TOKENISER)
        if options.subwords and os.path.exists(path):
            tokenisers = [read_tokeniser(path, language) for language in options.languages]
        else:
            tokenisers = [moses(language) for language in options.languages]
    work = functools.partial(_tokenise_pairs, tokenisers=tokenisers)
    with ExitStack() as opened:
        write = opened.enter_context(writing(output, options.languages))
        if wanted:
            write_valid = opened.enter_context(writing(valid, options.languages))
        number = 0
        for some in in_order(work, chunked(pairs), options.workers):
            for pair in some:
                held_out = wanted and number * wanted // total < (number + 1) * wanted // total
                (write_valid if held_out else write)([pair])
                number += 1


def _uses_sentencepiece(options: Options, model: str) -> bool:
    name = os.path.join(model, subwords.SentencePiece.name)
    return options.sentencepiece is not None or bool(options.subwords and os.path.exists(name))


def _tokenise_pairs(pairs: List[Pair], tokenisers: Optional[list]) -> List[Pair]:
    """Tokenise both sides; without tokenisers, only make one space of all that is blank."""
    sides = [list(side) for side in zip(*pairs)]
    if tokenisers is None:
        return list(zip(*([" ".join(line.split()) for line in side] for side in sides)))
    return list(zip(*map(tokenise_lines, sides, tokenisers)))


def _learn(options: Options, text: str, say: Say) -> None:
    files = [os.path.join(text, f"train.tok.{language}") for language in options.languages]
    if options.sentencepiece is None:
        if not os.path.exists(os.path.join(text, CODES)):
            operations = options.bpe or BPE_OPERATIONS
            say(f"learn {operations:,} operations of byte pair encoding")
            bpe.learn(files, os.path.join(text, CODES), operations, options.workers)
            keep(os.path.join(text, CODES), text)
    elif not os.path.exists(os.path.join(text, subwords.SentencePiece.name)):
        say(f"learn {options.sentencepiece:,} sentencepieces")

        def lines() -> Iterator[str]:
            both = (line for path in files for line in stream_lines(path))
            total = sum(1 for path in files for _ in stream_lines(path))
            return sampling.spread(both, total, _SENTENCEPIECE_LINES)

        vocabulary.learn_sentencepiece(lines, text, options.sentencepiece)


@functools.lru_cache(maxsize=1)
def _cutter(folder: str) -> Callable[[str], str]:
    """Return what cuts a line into subwords, by the model in a folder."""
    if os.path.exists(os.path.join(folder, CODES)):
        return bpe.BytePairEncoder(os.path.join(folder, CODES)).cut
    model = subwords.load(folder)
    return lambda line: " ".join(model.pieces(line))


def _cut_pairs(pairs: List[Pair], model: str) -> List[Pair]:
    cut = _cutter(model)
    return [(cut(source), cut(target)) for source, target in pairs]


def _cut(options: Options, split: str, model: str, text: str, say: Say) -> None:
    """Write ``<split>.cut``, without the pairs that cleaning drops if they are of ``--train``."""
    source, output = os.path.join(text, f"{split}.tok"), os.path.join(text, f"{split}.cut")
    if not _there(source, options.languages) or _there(output, options.languages):
        return
    _cutter.cache_clear()
    work = functools.partial(_cut_pairs, model=model)
    pairs = tqdm(
        pairs_of_files(source, options.languages), desc=f"{split}: cut", unit=" pairs", disable=None
    )
    found = in_order(work, chunked(pairs), options.workers)
    cut: Iterator[Pair] = (pair for some in found for pair in some)
    dropped: Counter = Counter()
    if split == "train" or options.valid_lines and split == "valid":
        cut = clean_pairs(cut, Cleaning(1, options.max_length, options.ratio), dropped)
    with writing(output, options.languages) as write:
        kept = write(cut)
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(dropped.items()))
        if kept < _SMALLEST_BATCH and split != "test":
            raise UsageError(
                f"{kept} {split} pairs are left (dropped: {reasons or 'none'}); fairseq-train takes "
                f"{_SMALLEST_BATCH} at least"
            )
    if dropped:
        say(f"{split}: {kept:,} pairs kept, {sum(dropped.values()):,} dropped: {reasons}")


def _binarise(options: Options, model: str, text: str, last: str, say: Say) -> None:
    from fairseq_posenc.tools.prepare.preprocess import preprocess

    arguments = ["--source-lang", options.source_lang, "--target-lang", options.target_lang]
    arguments += ["--workers", str(options.workers)]
    if options.subwords:
        for side, language in zip(("--srcdict", "--tgtdict"), options.languages):
            arguments += [side, os.path.join(options.subwords, f"dict.{language}.txt")]
    else:
        arguments += ["--joined-dictionary"]
    splits = [
        split for split in SPLITS if _there(os.path.join(text, f"{split}.cut"), options.languages)
    ]
    for split in splits:
        arguments += [f"--{split}pref", os.path.join(text, f"{split}.cut")]
    with replacing_files(options.output, last) as partial:
        preprocess([*arguments, "--destdir", partial], quiet=True)
        for name in (CODES, TOKENISER, subwords.SentencePiece.name):
            if os.path.exists(os.path.join(model, name)):
                shutil.copyfile(os.path.join(model, name), os.path.join(partial, name))
    types = len(read_dictionary(os.path.join(options.output, last)))
    say(f"{options.output}: {', '.join(splits)}; dictionary of {types:,} types")

"""From raw documents to a text folder: vocabulary, dictionary and binary data for masked LMs."""

import fcntl
import functools
import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

from tqdm import tqdm

from fairseq_posenc.data import subwords
from fairseq_posenc.data.indexed import token_counts
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import replacing
from fairseq_posenc.json_files import read_shaped
from fairseq_posenc.tools.prepare.text import documents, sampling, vocabulary
from fairseq_posenc.tools.prepare.text.binarise import Totals, binarise

SETTINGS = "prepare.json"
VOCABULARY_LINES = 2_000_000
CHARACTER_COVERAGE = 0.9995
_LEARNING_OPTIONS = (
    "kind", "vocabulary_size", "vocabulary_lines", "cased", "character_coverage",
)  # fmt: skip


@dataclass(frozen=True)
class Options:
    """What posenc prepare text asks for, see there; None stands for a default."""

    output: str
    train: Sequence[str]
    valid: Sequence[str] = ()
    hold_out: Optional[int] = None
    documents: str = "blank"
    language_folders: bool = False
    split_sentences: bool = False
    subwords: Optional[str] = None
    kind: Optional[str] = None
    vocabulary_size: Optional[int] = None
    vocabulary_lines: Optional[int] = None
    cased: bool = False
    character_coverage: Optional[float] = None
    sampling_exponent: float = sampling.EXPONENT
    seed: int = 1
    workers: int = 1


class _Text(NamedTuple):
    """One language's documents of one split: how to read them, how many lines, how often."""

    language: str
    read: Callable[[], documents.Stream]
    lines: int = 0
    times: float = 1.0

    def stream(self, seed: int) -> documents.Stream:
        return sampling.repeat(self.read, self.times, f"{seed} {self.language}")


def prepare(options: Options, say: Callable[[str], object] = print) -> Dict[str, Totals]:
    """Make a text folder, or complete one that was begun with the same options.

    The folder gets the subword model, ``dict.txt``, ``valid`` and ``train`` as ``.bin`` and
    ``.idx``, each under its name only when it is complete, and ``prepare.json`` with the options.
    The counts in ``dict.txt`` are those of ``train``, or those of the folder that the subwords come
    from.

    Returns:
        What the splits hold that were made in this run.

    Raises:
        UsageError: options that exclude each other, texts that are missing, empty or no UTF-8, a
            vocabulary that is too small for its characters, a folder that cannot be written or
            was made with other options.
    """
    _check(options)
    files = _files(options)
    with _alone(options.output, say):
        _open_folder(options, files)
        return _complete(options, files, say)


def _complete(
    options: Options, files: Dict[str, List[documents.Corpus]], say: Callable[[str], object]
) -> Dict[str, Totals]:
    splits = ("valid", "train")
    missing = [split for split in splits if not _has(options.output, split)]
    has_vocabulary = os.path.isfile(os.path.join(options.output, subwords.DICTIONARY))
    if has_vocabulary and not missing:
        _count_types(options.output)
        say(f"{options.output} is complete")
        return {}
    texts = {split: _counted(_texts(options, files, split), split) for split in splits}
    texts["train"] = _sampled(texts["train"], options.sampling_exponent, say)
    if not has_vocabulary:
        _make_vocabulary(options, texts["train"], say)
    totals = {split: _binarise(options, split, texts[split], say) for split in missing}
    _count_types(options.output)
    return totals


def _count_types(folder: str) -> None:
    """Write into ``dict.txt`` how often the training text has each type, if no counts are there."""
    dictionary = subwords.load_dictionary(folder)
    if len(set(dictionary.count[dictionary.nspecial :])) > 1:
        return
    counts = token_counts(os.path.join(folder, "train"), len(dictionary))
    dictionary.count = counts.tolist()
    with replacing(os.path.join(folder, subwords.DICTIONARY)) as stream:
        dictionary.save(stream)


@contextmanager
def _alone(folder: str, say: Callable[[str], object]) -> Iterator[None]:
    """Wait for other runs in the folder to end; processes of a killed one need a second."""
    try:
        os.makedirs(folder, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another run in {folder} to end")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _check(options: Options) -> None:
    learning = {name: getattr(options, name) for name in _LEARNING_OPTIONS}
    given = [name for name, value in learning.items() if value is not None and value is not False]
    if options.subwords is not None and given:
        raise UsageError(f"{_flag(given[0])} and --subwords exclude each other")
    other = "character_coverage" if _kind(options) == "wordpiece" else "cased"
    if other in given:
        raise UsageError(f"{_kind(options)} does not read {_flag(other)}")
    if bool(options.valid) == (options.hold_out is not None):
        raise UsageError("give either --valid or --hold-out, for text to validate on")
    least = {"hold_out": 2, "workers": 1, "vocabulary_lines": 0}
    for name, bound in least.items():
        value = getattr(options, name)
        if value is not None and value < bound:
            raise UsageError(f"{_flag(name)} must be at least {bound}, not {value}")
    coverage = options.character_coverage
    if coverage is not None and not 0.9 <= coverage <= 1:
        raise UsageError(f"the character coverage must be within 0.9…1, not {coverage}")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _kind(options: Options) -> str:
    return options.kind or "wordpiece"


def _files(options: Options) -> Dict[str, List[documents.Corpus]]:
    arguments = {"train": options.train, "valid": options.valid}
    return {
        split: documents.find_corpora(paths, options.language_folders)
        for split, paths in arguments.items()
        if paths
    }


def _open_folder(options: Options, files: Dict[str, List[documents.Corpus]]) -> None:
    """Begin the folder, or make sure that it was begun with the same options and texts."""
    settings = asdict(options)
    for name in ("output", "workers", "train", "valid"):
        del settings[name]
    if options.subwords is not None:
        settings["subwords"] = subwords.load(options.subwords).file
    settings["texts"] = {
        split: {
            corpus.language: [[os.path.basename(file), _size(file)] for file in corpus.files]
            for corpus in corpora
        }
        for split, corpora in files.items()
    }
    path = os.path.join(options.output, SETTINGS)
    names = (subwords.DICTIONARY, "train.idx", "valid.idx")
    if not any(os.path.exists(os.path.join(options.output, name)) for name in names):
        with replacing(path) as stream:
            json.dump(settings, stream, indent=1, ensure_ascii=False, sort_keys=True)
        return
    try:
        before = read_shaped(path, {}, "posenc prepare text")
    except UsageError as error:
        raise UsageError(
            f"{options.output} holds other data ({error}); give another --output"
        ) from None
    different = sorted(key for key in settings if before.get(key) != settings[key])
    if different:
        raise UsageError(
            f"{options.output} was made with other options or texts ({', '.join(different)}); give "
            "another --output"
        )


def _size(file: str) -> int:
    try:
        return os.path.getsize(file)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from None


def _has(folder: str, split: str) -> bool:
    return all(os.path.isfile(os.path.join(folder, f"{split}.{kind}")) for kind in ("bin", "idx"))


def _texts(
    options: Options, files: Dict[str, List[documents.Corpus]], split: str
) -> Iterator[_Text]:
    for language, paths in files.get(split) or files["train"]:
        read = functools.partial(documents.read_documents, paths, options.documents)
        if options.hold_out:
            read = functools.partial(_part, read, split, options.hold_out)
        yield _Text(language, read)


def _part(read: Callable[[], documents.Stream], split: str, hold_out: int) -> documents.Stream:
    """Give every hold_out-th document to validation, the others to training."""
    return sampling.choose(
        read(), lambda number: ((number + 1) % hold_out == 0) == (split == "valid")
    )


def _counted(texts: Iterator[_Text], split: str) -> List[_Text]:
    """Read everything once, so that bad input is found before the long work begins."""
    counted = []
    with tqdm(desc=f"{split}: counting", unit=" lines", disable=None) as bar:
        for text in texts:
            lines = 0
            for line in text.read():
                lines += line is not None
                if lines % 10000 == 0 and line is not None:
                    bar.update(10000)
            if not lines:
                language = f" of {text.language}" if text.language else ""
                raise UsageError(
                    f"there is no text{language} for '{split}': only empty lines or headings, or "
                    "fewer documents than --hold-out"
                )
            counted.append(text._replace(lines=lines))
    return counted


def _sampled(texts: List[_Text], exponent: float, say: Callable[[str], object]) -> List[_Text]:
    times = sampling.repetitions({text.language: text.lines for text in texts}, exponent)
    if len(texts) > 1:
        for text in texts:
            say(f"{text.language}: {text.lines:,} lines, read {times[text.language]:.2f} times")
    return [text._replace(times=times[text.language]) for text in texts]


def _stream(texts: List[_Text], seed: int) -> documents.Stream:
    for text in texts:
        yield from text.stream(seed)


def _total(texts: List[_Text]) -> int:
    return round(sum(text.lines * text.times for text in texts))


def _make_vocabulary(options: Options, texts: List[_Text], say: Callable[[str], object]) -> None:
    folder = options.output
    if options.subwords is not None:
        subwords.load(options.subwords).copy_to(folder)
        return
    size = options.vocabulary_size
    if size is None:
        size = vocabulary.SIZES[_kind(options)]
    limit = options.vocabulary_lines
    if limit is None:
        limit = VOCABULARY_LINES

    def lines() -> Iterator[str]:
        chosen = sampling.spread(_stream(texts, options.seed), _total(texts), limit)
        return tqdm(chosen, desc="vocabulary", unit=" lines", disable=None)

    if _kind(options) == "wordpiece":
        vocabulary.learn_wordpiece(lines, folder, size, options.cased)
    else:
        coverage = options.character_coverage or CHARACTER_COVERAGE
        vocabulary.learn_sentencepiece(lines, folder, size, coverage)
    model = subwords.load(folder)
    model.copy_to(folder)
    learnt = len(model.vocabulary()) + len(subwords.SPECIALS)
    few = "" if learnt == size else f", not {size:,}: the text has no more"
    say(f"vocabulary: {learnt:,} entries with special tokens{few}")


def _binarise(
    options: Options, split: str, texts: List[_Text], say: Callable[[str], object]
) -> Totals:
    with tqdm(total=_total(texts), desc=split, unit=" lines", disable=None) as bar:
        totals = binarise(
            _stream(texts, options.seed),
            options.output,
            split,
            workers=options.workers,
            splits=options.split_sentences,
            progress=bar.update,
        )
    say(f"{split}: {totals}")
    return totals

"""From raw documents to a text folder: vocabulary, dictionary and binary data for masked LMs."""

import functools
import os
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Union

import numpy as np
from tqdm import tqdm

from fairseq_posenc.data import subwords
from fairseq_posenc.data.indexed import check_indexed
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert import documents, sampling, vocabulary
from fairseq_posenc.tools.bert.binarise import Language, Totals, binarise
from fairseq_posenc.tools.bert.vocabulary import copy_subwords
from fairseq_posenc.tools.resumable import begin_or_continue, describe_files, only_process
from fairseq_posenc.tools.writing import replacing

VOCABULARY_LINES = 2_000_000
# with SentencePiece's own, among many languages, 1.9 % of the pieces of Chinese are unknown
CHARACTER_COVERAGE, COVERAGE_OF_MANY = 0.9995, 0.99995
SPLITS = ("valid", "train")
_COUNTED_TOGETHER = 1 << 22  # tokens
_FEW_DOCUMENTS = 10  # by so few, models can hardly be compared
_VOCABULARY_OPTIONS = (
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

    @property
    def subword_kind(self) -> str:
        """The kind of subword model to learn."""
        return self.kind or "wordpiece"


class _Text(NamedTuple):
    """One language's documents of one split: how to read them, how many lines, how often."""

    language: str
    read: Callable[[], documents.Stream]
    lines: int = 0
    times: float = 1.0


def prepare(options: Options, say: Callable[[str], object] = print) -> Dict[str, Totals]:
    """Make a text folder, or complete one that was begun with the same options.

    The folder gets the subword model, ``dict.txt``, ``valid`` and ``train`` as ``.bin`` and
    ``.idx``, each under its name only when it is complete, and ``prepare.json`` with the options.
    The counts in ``dict.txt`` are those of ``train``, or those of the folder that the subwords come
    from.

    Returns:
        What the splits hold that were made in this run.
    """
    _check(options)
    folder, steps = options.output, _TextFolder(options, say)
    with only_process(folder, say):
        results = (subwords.DICTIONARY, "train.idx", "valid.idx")
        begin_or_continue(folder, steps.settings(), results, "posenc prepare text")
        missing = [
            split for split in SPLITS
            if not all(os.path.isfile(f"{folder}/{split}.{ending}") for ending in ("bin", "idx"))
        ]  # fmt: skip
        has_vocabulary = os.path.isfile(os.path.join(folder, subwords.DICTIONARY))
        totals = {}
        if has_vocabulary and not missing:
            say(f"{folder} is complete")
        else:
            texts = {split: steps.open_texts(split) for split in SPLITS}
            texts["train"] = steps.with_repetitions(texts["train"])
            if not has_vocabulary:
                steps.make_vocabulary(texts["train"])
            totals = {split: steps.binarise(split, texts[split]) for split in missing}
        _count_types(folder)
        return totals


def _check(options: Options) -> None:
    values = vars(options)
    learning = [name for name in _VOCABULARY_OPTIONS if values[name] != getattr(Options, name)]
    if options.subwords is not None and learning:
        raise UsageError(f"{_flag(learning[0])} and --subwords exclude each other")
    unread = "character_coverage" if options.subword_kind == "wordpiece" else "cased"
    if unread in learning:
        raise UsageError(f"{options.subword_kind} has no {_flag(unread)}")
    if bool(options.valid) == (options.hold_out is not None):
        raise UsageError("give either --valid or --hold-out, for text to validate on")
    for name, bound in {"hold_out": 2, "workers": 1, "vocabulary_lines": 0}.items():
        if values[name] is not None and values[name] < bound:
            raise UsageError(f"{_flag(name)} must be at least {bound}, not {values[name]}")
    coverage = options.character_coverage
    if coverage is not None and not 0.9 <= coverage <= 1:
        raise UsageError(f"the character coverage must be within 0.9…1, not {coverage}")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


class _TextFolder:
    """A text folder and the steps that make it; :func:`prepare` takes them in order.

    Attributes:
        corpora: files by language, of ``train`` and, without ``--hold-out``, of ``valid``.
    """

    def __init__(self, options: Options, say: Callable[[str], object]):
        self.options, self.say = options, say
        self.corpora = {
            split: documents.find_corpora(paths, options.language_folders)
            for split, paths in (("train", options.train), ("valid", options.valid))
            if paths
        }

    def settings(self) -> Dict[str, Any]:
        """Return the options (None: a default) and the texts that make the folder's content."""
        settings = asdict(self.options)
        for name in ("output", "workers", "train", "valid"):
            del settings[name]
        folder = self.options.subwords
        if folder is not None:
            files = [subwords.load(folder).file, os.path.join(folder, subwords.DICTIONARY)]
            settings["subwords"] = describe_files(filter(os.path.isfile, files))
        settings["texts"] = {
            split: {corpus.language: describe_files(corpus.files) for corpus in corpora}
            for split, corpora in self.corpora.items()
        }
        return settings

    def open_texts(self, split: str) -> List[_Text]:
        """Read a split once to its end, so that bad input is found before the long work begins."""
        hold_out, texts = self.options.hold_out, []
        with tqdm(desc=f"{split}: counting", unit=" lines", disable=None) as bar:
            for language, paths in self.corpora.get(split) or self.corpora["train"]:
                read = functools.partial(_read, paths, self.options.documents, split, hold_out)
                lines = ends = 0
                for line in read():
                    if line is None:
                        ends += 1
                    else:
                        lines += 1
                        bar.update()
                of_language = f" of {language}" if language else ""
                if not lines:
                    raise UsageError(
                        f"there is no text{of_language} for '{split}': only empty lines or "
                        "headings, or fewer documents than --hold-out"
                    )
                if split == "valid" and hold_out and ends < _FEW_DOCUMENTS:
                    self.say(
                        f"note: --hold-out {hold_out} leaves {ends} documents{of_language} to "
                        "validate on; a smaller number leaves more"
                    )
                texts.append(_Text(language, read, lines))
        return texts

    def with_repetitions(self, texts: List[_Text]) -> List[_Text]:
        """Return the training texts with how often each is read."""
        lines = {text.language: text.lines for text in texts}
        times = sampling.repetitions(lines, self.options.sampling_exponent)
        if len(texts) > 1:
            for text in texts:
                self.say(
                    f"{text.language}: {text.lines:,} lines, read {times[text.language]:.2f} times"
                )
        return [text._replace(times=times[text.language]) for text in texts]

    def make_vocabulary(self, texts: List[_Text]) -> None:
        """Learn the subword model and its dictionary from training texts, or copy them."""
        options, folder = self.options, self.options.output
        if options.subwords is not None:
            copy_subwords(subwords.load(options.subwords), folder)
            return
        size, limit = options.vocabulary_size, options.vocabulary_lines
        size = vocabulary.SIZES[options.subword_kind] if size is None else size
        limit = VOCABULARY_LINES if limit is None else limit

        def lines() -> Iterator[str]:
            chosen = sampling.spread(_stream(texts, options.seed), _total(texts), limit)
            return tqdm(chosen, desc="vocabulary", unit=" lines", disable=None)

        if options.subword_kind == "wordpiece":
            vocabulary.learn_wordpiece(lines, folder, size, options.cased)
        else:
            usual = COVERAGE_OF_MANY if len(texts) > 1 else CHARACTER_COVERAGE
            coverage = options.character_coverage or usual
            vocabulary.learn_sentencepiece(lines, folder, size, coverage)
        model = subwords.load(folder)
        copy_subwords(model, folder)
        entries = len(model.vocabulary()) + len(subwords.SPECIALS)
        few = "" if entries == size else f", not {size:,}: the text has no more"
        self.say(f"vocabulary: {entries:,} entries with special tokens{few}")

    def binarise(self, split: str, texts: List[_Text]) -> Totals:
        """Write a split's ``.bin`` and ``.idx``, and say what it holds."""
        options = self.options
        with tqdm(total=_total(texts), desc=split, unit=" lines", disable=None) as bar:
            totals = binarise(
                _with_languages(texts, options.seed),
                options.output,
                split,
                workers=options.workers,
                split_lines=options.split_sentences,
                progress=bar.update,
            )
        for line in (str(totals), *totals.unknown_by_language()):
            self.say(f"{split}: {line}")
        return totals


def _read(
    paths: Sequence[str], boundary: str, split: str, hold_out: Optional[int]
) -> documents.Stream:
    """Read documents; every ``hold_out``-th belongs to validation, the others to training."""
    stream = documents.read_documents(paths, boundary)
    if not hold_out:
        return stream
    return sampling.choose(
        stream, lambda number: ((number + 1) % hold_out == 0) == (split == "valid")
    )


def _stream(texts: List[_Text], seed: int) -> documents.Stream:
    for text in texts:
        yield from sampling.repeat(text.read, text.times, f"{seed} {text.language}")


def _with_languages(texts: List[_Text], seed: int) -> Iterator[Union[str, Language, None]]:
    for text in texts:
        yield Language(text.language)
        yield from _stream([text], seed)


def _total(texts: List[_Text]) -> int:
    return round(sum(text.lines * text.times for text in texts))


def _count_types(folder: str) -> None:
    """Write into ``dict.txt`` how often the training text has each type, if no counts are there."""
    dictionary = subwords.load_dictionary(folder)
    if len(set(dictionary.count[dictionary.nspecial :])) > 1:
        return
    path, entries = os.path.join(folder, "train"), len(dictionary)
    index = check_indexed(path, entries)
    counts = np.zeros(entries, np.int64)
    if index and len(index.ends) and index.ends[-1]:
        tokens = np.memmap(f"{path}.bin", index.dtype, "r")
        for start in range(0, len(tokens), _COUNTED_TOGETHER):
            counts += np.bincount(tokens[start : start + _COUNTED_TOGETHER], minlength=entries)
    dictionary.count = counts.tolist()
    with replacing(os.path.join(folder, subwords.DICTIONARY)) as stream:
        dictionary.save(stream)

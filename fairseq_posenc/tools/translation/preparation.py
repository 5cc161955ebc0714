"""From files of raw parallel text to a folder that fairseq-train reads, with what cuts new text."""

import functools
import os
import shutil
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any, Callable, Dict, Iterator, List, Optional

from tqdm import tqdm

from fairseq_posenc.data import subwords
from fairseq_posenc.data.indexed import read_dictionary
from fairseq_posenc.data.segmentation import (
    CODES,
    TOKENIZER,
    BytePairEncoder,
    Moses,
    SentencePieces,
    read_moses,
)
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import file_digest, read_lines
from fairseq_posenc.json_files import load_json
from fairseq_posenc.tools.preprocess import preprocess
from fairseq_posenc.tools.resumable import SETTINGS, begin_or_continue, describe_files, only_process
from fairseq_posenc.tools.scores.data_folder import RAW_TEST
from fairseq_posenc.tools.scores.round_trip import ceiling_lines, read_round_trip, round_trip_score
from fairseq_posenc.tools.scores.scorer import Scorer
from fairseq_posenc.tools.translation import bpe, perl, pieces
from fairseq_posenc.tools.translation.cleaning import Cleaning, clean_pairs
from fairseq_posenc.tools.translation.options import (
    COMMAND,
    SMALLEST_BATCH,
    TranslationOptions,
    check_options,
    dictionary_path,
)
from fairseq_posenc.tools.translation.pairs import (
    Pair,
    find_files,
    pairs_of_files,
    write_pairs,
    writing,
)
from fairseq_posenc.tools.translation.segmentation import keep, moses
from fairseq_posenc.tools.translation.summary import cleaning_summary, unknown_summary
from fairseq_posenc.tools.workers import map_lists
from fairseq_posenc.tools.writing import replacing_files

SPLITS = ("train", "valid", "test")
_MODELS = (CODES, TOKENIZER, subwords.SentencePiece.name)


def prepare(options: TranslationOptions, say: Callable[[str], object] = print) -> None:
    """Make a folder of binarised parallel text, or complete one begun with the same options.

    Raw text is cut by SentencePiece, learnt from both sides of the training text, which gives back
    every character; or tokenised as by ``posenc prepare tokenise``, then cut by byte pair encoding.
    Training pairs that are empty, too long or too different in length are dropped. The folder gets
    what fairseq-preprocess writes with a joined dictionary, and ``sentencepiece.model``, or
    ``codes`` and ``tokeniser.json``, for ``from_pretrained``. What is made on the way lies in its
    folder ``text``, which is removed in the end.
    """
    check_options(options)
    job = _Preparation(options, say)
    for name in ("moses", "normalise_punctuation"):
        if getattr(options, name) and job.has_sentencepieces:
            option = name.replace("_", "-")
            raise UsageError(f"SentencePiece cuts raw text: leave out --{option}, or give --bpe")
    if options.normalise_punctuation and options.subwords:
        raise UsageError(
            "how text is tokenised is that of --subwords; leave out --normalise-punctuation"
        )
    last = f"dict.{options.target_lang}.txt"
    settings = job.settings()
    _refuse_folder_of_others(options.output, settings)
    _check_other_pair(options)
    with only_process(options.output, say):
        was_begun = os.path.exists(job.text)
        goes_on = begin_or_continue(options.output, settings, [last], COMMAND, job.text)
        if os.path.exists(os.path.join(options.output, last)):
            say(f"{options.output} is complete")
        else:
            if was_begun and not goes_on:
                say(f"{options.output} was begun with other options or texts: it is made anew")
            for split, prefix in options.splits().items():
                job.tokenise(split, prefix)
            if not options.subwords:
                job.learn()
            for split in SPLITS:
                job.encode(split)
            job.binarise(last)
        shutil.rmtree(job.text, ignore_errors=True)


def _refuse_folder_of_others(folder: str, settings: Dict[str, Any]) -> None:
    """Refuse a folder that this command has not begun: what lies in it would be overwritten."""
    if not os.path.isdir(folder):
        return
    names = [name for name in os.listdir(folder) if not name.startswith(f"{SETTINGS}.part")]
    path = os.path.join(folder, SETTINGS)
    if names and (SETTINGS not in names or set(load_json(path, {}, COMMAND)) != set(settings)):
        raise UsageError(f"{folder} holds other files; give --output a folder of its own")


def _check_other_pair(options: TranslationOptions) -> None:
    """Check that what a folder has of another pair of languages is not replaced by other content.

    Raises:
        UsageError: a dictionary, the subwords or the text of a test set would be.
    """
    own = os.path.join(options.output, SETTINGS)
    before = load_json(own, {}, COMMAND) if os.path.exists(own) else {}
    sides = before.get("source_lang"), before.get("target_lang")
    if not before or sides == options.languages:
        return
    sources = {name: f"{options.subwords}/{name}" for name in _MODELS}
    for language in options.languages:
        sources[f"dict.{language}.txt"] = dictionary_path(options, language)
    if options.test:
        files = find_files(options.test, options.languages)
        sources.update(zip((f"{RAW_TEST}.{code}" for code in options.languages), files))
    for name, source in sources.items():
        path = os.path.join(options.output, name)
        if not os.path.exists(path):
            continue
        content: Callable = read_lines if name.startswith(RAW_TEST) else file_digest
        if not os.path.exists(source) or content(path) != content(source):
            raise UsageError(
                f"{options.output} has {name} of {sides[0]}-{sides[1]}, and this would be another "
                "one: give --output a folder of its own; pairs of languages can share a folder if "
                "they share --subwords and, of a language, the text of --test"
            )


class _Preparation:
    """The steps, each of which is skipped where its files are there.

    Attributes:
        text: folder of what is made on the way: ``<split>.tok.<language>``, then ``.cut``.
        model: folder with the codes and ``tokeniser.json``, or ``sentencepiece.model``.
    """

    def __init__(self, options: TranslationOptions, say: Callable[[str], object]):
        self.options, self.say, self.languages = options, say, options.languages
        self.text = os.path.join(options.output, "text")
        self.model = options.subwords or self.text
        model = os.path.join(options.subwords or "", subwords.SentencePiece.name)
        self.has_sentencepieces = os.path.exists(model) if options.subwords else options.bpe is None

    def settings(self) -> Dict[str, Any]:
        """Return what decides about the result."""
        settings = asdict(self.options)
        del settings["output"], settings["workers"], settings["moses"]
        if self.options.moses:
            settings["moses"] = describe_files(perl.check_moses(self.options.moses).values())
        for split, prefix in self.options.splits().items():
            settings[split] = describe_files(find_files(prefix, self.languages))
        if self.options.subwords:
            files = [os.path.join(self.model, name) for name in _MODELS]
            files += [dictionary_path(self.options, language) for language in self.languages]
            settings["subwords"] = describe_files(filter(os.path.exists, files))
        return settings

    def prefix(self, split: str, ending: str) -> str:
        """Return the prefix of files that are made on the way."""
        return os.path.join(self.text, f"{split}.{ending}")

    def has(self, split: str, ending: str) -> bool:
        """Return whether these files have been made, or found, for both languages."""
        prefix = self.prefix(split, ending)
        return all(os.path.exists(f"{prefix}.{language}") for language in self.languages)

    def map_pairs(
        self, work: Callable[[List[Pair]], List[Pair]], prefix: str, title: str
    ) -> Iterator[Pair]:
        """Yield the pairs of two files as ``work`` makes them, in several processes."""
        pairs = pairs_of_files(prefix, self.languages)
        progress = tqdm(pairs, desc=title, unit=" pairs", disable=None)
        return map_lists(work, progress, self.options.workers)

    def tokenise(self, split: str, prefix: str) -> None:
        """Write ``<split>.tok``; --valid-lines gives evenly spread pairs of train to ``valid``."""
        num_valid = self.options.valid_lines or 0 if split == "train" else 0
        if self.has(split, "tok") and (not num_valid or self.has("valid", "tok")):
            return
        # read to the end, so that bad input is found before the long work begins
        marks: Counter = Counter()
        total = 0
        for pair in pairs_of_files(prefix, self.languages):
            marks.update(mark for mark in ("@@ ", "\u2581") if mark in pair[0] and mark in pair[1])
            total += 1
        if num_valid and num_valid >= total:
            raise UsageError(
                f"--valid-lines {num_valid} leaves nothing of {total} pairs to train on"
            )
        self.say(
            f"{split}: {total:,} pairs"
            + (f", {num_valid:,} of them to validate on" if num_valid else "")
        )
        for mark, count in marks.items():
            if 2 * count > total:
                self.say(
                    f"{split}: {count:,} pairs are of subwords, marked {mark!r}: give raw text"
                )
        tokenizers = None
        if not self.has_sentencepieces:
            path = os.path.join(self.options.subwords or "", TOKENIZER)
            has_settings = self.options.subwords and os.path.exists(path)
            tokenizers = [
                read_moses(path, language)
                if has_settings
                else moses(language, self.options.normalise_punctuation)
                for language in self.languages
            ]
        work = functools.partial(
            _tokenise_pairs, tokenizers=tokenizers, checkout=self.options.moses
        )
        with ExitStack() as opened:
            write = opened.enter_context(writing(self.prefix(split, "tok"), self.languages))
            if num_valid:
                valid = writing(self.prefix("valid", "tok"), self.languages)
                write_valid = opened.enter_context(valid)
            for number, pair in enumerate(self.map_pairs(work, prefix, f"{split}: tokenise")):
                held_out = (
                    num_valid and number * num_valid // total < (number + 1) * num_valid // total
                )
                (write_valid if held_out else write)([pair])

    def learn(self) -> None:
        """Learn subwords from both sides of the training text."""
        files = [f"{self.prefix('train', 'tok')}.{language}" for language in self.languages]
        codes = os.path.join(self.text, CODES)
        if self.has_sentencepieces:
            if not os.path.exists(os.path.join(self.text, subwords.SentencePiece.name)):
                count = pieces.learn(files, self.text, self.options.sentencepiece)
                self.say(f"{count:,} sentencepieces learnt")
        elif self.options.bpe and not os.path.exists(codes):
            self.say(f"learn {self.options.bpe:,} operations of byte pair encoding")
            bpe.learn(files, codes, self.options.bpe, self.options.workers)

    def encode(self, split: str) -> None:
        """Write ``<split>.cut``, without the pairs that cleaning drops if they are of --train."""
        if not self.has(split, "tok") or self.has(split, "cut"):
            return
        _encoder_of.cache_clear()
        work = functools.partial(_encode_pairs, model=self.model)
        pairs = self.map_pairs(work, self.prefix(split, "tok"), f"{split}: cut")
        dropped: Counter = Counter()
        cleaned = {"train": True, "valid": self.options.valid_lines or self.options.clean_valid}
        if cleaned.get(split):
            cleaning = Cleaning(1, self.options.max_length, self.options.ratio)
            pairs = clean_pairs(pairs, cleaning, dropped)
        with writing(self.prefix(split, "cut"), self.languages) as write:
            count = write(pairs)
            if count < SMALLEST_BATCH and split != "test":
                raise UsageError(
                    f"{cleaning_summary(split, count, dropped, self.options)}; fairseq-train takes "
                    f"{SMALLEST_BATCH} pairs at least"
                )
        if dropped:
            self.say(cleaning_summary(split, count, dropped, self.options))

    def binarise(self, last: str) -> None:
        """Write the binarised folder, the file ``last`` behind all others."""
        source, target = self.languages
        arguments = ["--source-lang", source, "--target-lang", target]
        arguments += ["--workers", str(self.options.workers)]
        if self.options.subwords:
            arguments += ["--srcdict", dictionary_path(self.options, source)]
            arguments += ["--tgtdict", dictionary_path(self.options, target)]
        else:
            arguments += ["--joined-dictionary"]
        if self.has_sentencepieces and not self.options.subwords:
            encoded = [f"{self.prefix('train', 'cut')}.{language}" for language in self.languages]
            arguments += ["--srcdict", pieces.write_dictionary(encoded, self.text)]
        splits = [split for split in SPLITS if self.has(split, "cut")]
        for split in splits:
            arguments += [f"--{split}pref", self.prefix(split, "cut")]
        with replacing_files(self.options.output, last) as partial:
            preprocess([*arguments, "--destdir", partial], quiet=True)
            os.remove(
                os.path.join(partial, "preprocess.log")
            )  # has paths and times of this machine
            if self.options.test:
                # as it was read: what posenc score compares with
                raw = pairs_of_files(self.options.test, self.languages)
                write_pairs(os.path.join(partial, RAW_TEST), self.languages, raw)
            if self.has_sentencepieces:
                for name in (subwords.SentencePiece.name, subwords.VERSION):
                    if os.path.exists(os.path.join(self.model, name)):
                        shutil.copy(os.path.join(self.model, name), partial)
            else:
                normalised = self.options.normalise_punctuation
                keep(os.path.join(self.model, CODES), partial, None, normalised)
                if os.path.exists(os.path.join(self.model, TOKENIZER)):
                    shutil.copy(os.path.join(self.model, TOKENIZER), partial)
        entries = len(read_dictionary(os.path.join(self.options.output, last)))
        self.say(f"{self.options.output}: {', '.join(splits)}; dictionary of {entries:,} types")
        for line in unknown_summary(self.options.output, splits, self.languages):
            self.say(line)
        if self.options.test:
            references = read_lines(f"{self.options.output}/{RAW_TEST}.{target}")
            round_trip = read_round_trip(self.options.output, references, target)
            score = round_trip and round_trip_score(round_trip, Scorer(target))
            for line in ceiling_lines(score):
                self.say(f"test: {line}")


def _tokenise_pairs(
    pairs: List[Pair], tokenizers: Optional[List[Moses]], checkout: Optional[str]
) -> List[Pair]:
    """Tokenise both sides; without tokenisers, only leave out blanks at the ends of lines."""
    sides = [list(side) for side in zip(*pairs)]
    if tokenizers is None:
        return list(zip(*([line.strip() for line in side] for side in sides)))
    return list(zip(*(perl.tokenise(*side, checkout) for side in zip(sides, tokenizers))))


@functools.lru_cache(maxsize=1)
def _encoder_of(folder: str) -> Callable[[str], str]:
    """Return what cuts a line into subwords, by the model in a folder."""
    if os.path.exists(os.path.join(folder, CODES)):
        return BytePairEncoder(os.path.join(folder, CODES)).encode
    return SentencePieces(os.path.join(folder, subwords.SentencePiece.name)).encode


def _encode_pairs(pairs: List[Pair], model: str) -> List[Pair]:
    encode = _encoder_of(model)
    return [(encode(source), encode(target)) for source, target in pairs]

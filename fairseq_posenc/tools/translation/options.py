"""Options of posenc prepare translation."""

import glob
import os
from dataclasses import dataclass
from typing import Dict, Optional, Tuple

from fairseq_posenc.data import subwords
from fairseq_posenc.data.languages import check_language
from fairseq_posenc.errors import UsageError

COMMAND = "posenc prepare translation"
SMALLEST_BATCH = 8  # sentences; fairseq-train leaves out what is less, and stops without any


@dataclass(frozen=True)
class TranslationOptions:
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
    max_length: int = 250
    ratio: float = 3.0
    workers: int = 1
    moses: Optional[str] = None
    normalise_punctuation: bool = False
    clean_valid: bool = False

    @property
    def languages(self) -> Tuple[str, str]:
        """Source and target language."""
        return self.source_lang, self.target_lang

    def splits(self) -> Dict[str, str]:
        """Return the prefixes of the files given, by split."""
        prefixes = {"train": self.train, "valid": self.valid, "test": self.test}
        return {split: prefix for split, prefix in prefixes.items() if prefix}


def check_options(options: TranslationOptions) -> None:
    """Check options, before any text is read."""
    for option, language in zip(("--source-lang", "--target-lang"), options.languages):
        check_language(language, option)
    if options.source_lang == options.target_lang:
        raise UsageError("--source-lang and --target-lang are the same")
    models = (options.bpe, options.sentencepiece, options.subwords)
    if sum(model is not None for model in models) > 1:
        raise UsageError("give only one of --bpe, --sentencepiece and --subwords")
    if not options.splits() or not (options.train or options.subwords):
        raise UsageError("give --train, or --subwords and the text that is to be cut")
    if bool(options.train) != bool(options.valid or options.valid_lines) and not options.subwords:
        raise UsageError("give --valid or --valid-lines, for text to validate on")
    if options.valid_lines is not None and (options.valid or not options.train):
        raise UsageError("--valid-lines takes pairs from --train; leave out --valid")
    if options.clean_valid and not (options.valid or options.valid_lines):
        raise UsageError("--clean-valid cleans --valid: give it, or leave out --clean-valid")
    if not (options.train or options.clean_valid):
        for name in "max_length", "ratio":
            if getattr(options, name) != getattr(TranslationOptions, name):
                raise UsageError(
                    f"--{name.replace('_', '-')} is for training pairs, and here are none: leave "
                    "it out, or clean --valid with --clean-valid"
                )
    for name in ("valid_lines", "bpe", "sentencepiece", "max_length", "ratio", "workers"):
        value, bound = getattr(options, name), SMALLEST_BATCH if name == "valid_lines" else 1
        if value is not None and value < bound:
            raise UsageError(f"--{name.replace('_', '-')} must be at least {bound}, not {value}")
    for language in options.languages if options.subwords else ():
        path = dictionary_path(options, language)
        if not os.path.exists(path):
            dictionaries = sorted(glob.glob(f"{glob.escape(options.subwords or '')}/dict.*.txt"))
            advice = f"--subwords takes a folder of {COMMAND}"
            if dictionaries:
                shared = os.path.join(options.subwords or "", subwords.DICTIONARY)
                advice = f"if its subwords are of that language, too: cp {dictionaries[0]} {shared}"
            raise UsageError(f"there is no {path}; {advice}")


def dictionary_path(options: TranslationOptions, language: str) -> str:
    """Return the dictionary of ``--subwords``; an imported model may have one of all languages."""
    names = f"dict.{language}.txt", subwords.DICTIONARY
    own, shared = (f"{options.subwords}/{name}" for name in names)
    return shared if os.path.exists(shared) and not os.path.exists(own) else own

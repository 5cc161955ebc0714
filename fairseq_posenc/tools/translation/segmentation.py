"""How new sentences become the subwords that a model was trained on, kept beside binarised data.

``codes`` has the merges of byte pair encoding, ``tokeniser.json`` the options of Moses' tokeniser;
:mod:`fairseq_posenc.data.segmentation` reads both.
"""

import json
import os
from typing import Optional

from fairseq_posenc.data.languages import language_code
from fairseq_posenc.data.segmentation import CODES, TOKENIZER, TRAINING, BytePairEncoder, Moses
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.tools.translation.corpora import Corpus
from fairseq_posenc.tools.writing import replacing


def moses(language: str, normalise_punctuation: bool = False) -> Moses:
    """Return how ``posenc prepare tokenise`` tokenises text."""
    return Moses(language_code(language), normalise_punctuation, escape=False)


def moses_of_training(corpus: Corpus) -> Moses:
    """Return how the training text of a corpus is tokenised, in its source language."""
    return Moses(
        corpus.source,
        corpus.normalise,
        corpus.normalise,
        corpus.aggressive,
        lowercase=corpus.lowercase,
    )


def moses_of_tests(corpus: Corpus) -> Moses:
    """Return how the test sets of a corpus are tokenised, in its source language."""
    return Moses(
        corpus.source,
        normalise=False,
        aggressive=corpus.aggressive,
        plain_quotes=corpus.plain_quotes,
        lowercase=corpus.lowercase,
    )


def keep(
    codes: str, folder: str, corpus: Optional[Corpus] = None, normalise_punctuation: bool = False
) -> None:
    """Write ``codes`` and ``tokeniser.json`` into a folder of binarised data.

    Args:
        corpus: tells how text was tokenised; None: by ``posenc prepare tokenise``.
    """
    BytePairEncoder(codes)
    if not os.path.isdir(folder):
        raise UsageError(f"there is no folder {folder}; run fairseq-preprocess first")
    settings = (moses_of_tests(corpus) if corpus else moses("", normalise_punctuation))._asdict()
    if corpus and (trained := moses_of_training(corpus)) != moses_of_tests(corpus):
        settings[TRAINING] = trained._asdict()
    for part in (settings, settings.get(TRAINING, settings)):
        part.pop("language", None)
    lines = read_lines(codes)
    with replacing(os.path.join(folder, CODES)) as stream:
        stream.writelines(f"{line}\n" for line in lines)
    with replacing(os.path.join(folder, TOKENIZER)) as stream:
        stream.write(json.dumps(settings, indent=2) + "\n")

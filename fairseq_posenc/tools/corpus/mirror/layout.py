"""Which archives there are, and what is in them: the table of corpora, read as a list of files."""

import os
import re
import urllib.parse
from typing import Dict, Iterable, Iterator, List, NamedTuple, Tuple

from sacrebleu.dataset import DATASETS

from fairseq_posenc.tools.prepare.parallel.corpora import CORPORA, Corpus, named
from fairseq_posenc.tools.prepare.parallel.sources import test_sets


class Passage(NamedTuple):
    """What a member of an archive holds.

    Attributes:
        kind: ``train`` (plain lines), ``src`` or ``ref`` (the two sides of a test set).
        text: name of the text; passages of one text in several languages translate each other.
        language: ``en``, ``de``, ``fr`` or ``cs``.
    """

    kind: str
    text: str
    language: str


Members = Dict[str, Passage]


def archives(names: Iterable[str]) -> Dict[str, Members]:
    """Return the archives that corpora need: path of the URL -> name of a member -> its content.

    An archive also has the members that the other corpora of the table need.

    Raises:
        UsageError: there is no corpus of such a name.
    """
    corpora = [named(name) for name in names]
    whole: Dict[str, Members] = {}
    for corpus in CORPORA.values():
        for path, member, passage in _files(corpus):
            whole.setdefault(path, {})[member] = passage
    needed = {path for corpus in corpora for path, *_ in _files(corpus)}
    return {path: members for path, members in whole.items() if path in needed}


def all_test_sets() -> List[str]:
    """Return sacreBLEU's names of the table's test and validation sets, without repetition."""
    return list(
        dict.fromkeys(name for each in CORPORA.values() for name in test_sets(each).values())
    )


def _files(corpus: Corpus) -> Iterator[Tuple[str, str, Passage]]:
    for part in corpus.train:
        text = re.split(r"-v\d|\.", os.path.basename(part.stem))[0]
        for language in (corpus.source, corpus.target):
            member = f"{part.stem}.{language}{part.suffix}"
            yield _path(part.url), member, Passage("train", text, language)
    languages = {language for each in CORPORA.values() for language in (each.source, each.target)}
    for name in test_sets(corpus).values():
        for pair, members in DATASETS[name].langpairs.items():
            if languages.issuperset(pair.split("-")):
                for language, member in zip(pair.split("-"), members):
                    kind = "src" if "-src." in member else "ref"
                    yield _path(DATASETS[name].data[0]), member, Passage(kind, name, language)


def _path(url: str) -> str:
    return urllib.parse.urlsplit(url).path.lstrip("/")

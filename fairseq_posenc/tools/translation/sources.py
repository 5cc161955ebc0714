"""The files that a corpus is made of: what to download, and sacreBLEU's test sets in archives."""

import copy
import os
import tempfile
import urllib.parse
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from sacrebleu.dataset import DATASETS

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import decode_lines
from fairseq_posenc.tools.downloads.archives import unpack
from fairseq_posenc.tools.translation.corpora import IWSLT14, Corpus, Part, TestText
from fairseq_posenc.tools.translation.pairs import Pair, aligned, pairs_of_archive, pairs_of_tables

# Size in bytes and SHA-256 of the training archives, by the end of the address: as TensorFlow
# Datasets has recorded them, and verifies them (url_checksums/wmt1*_translate.txt); without CzEng.
_RECORDED: Dict[str, Tuple[int, str]] = {
    "wmt10/training-giga-fren.tar": (
        2595102720, "3ff8319f6919393520559bfbc7ad6a747ec81b3abc7be9993b338d4b017b4d9a"),
    "wmt13/training-parallel-commoncrawl.tgz": (
        918311367, "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5"),
    "wmt13/training-parallel-europarl-v7.tgz": (
        657632379, "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7"),
    "wmt13/training-parallel-un.tgz": (
        2365634246, "29141b5c1eba149a94f7a59d3b1a834b2e47fe0f8758d68dcd77a3d3f497ee47"),
    "wmt14/training-parallel-nc-v9.tgz": (
        80418416, "cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485"),
    "wmt15/training-parallel-nc-v10.tgz": (
        125136590, "11e053e7ea29e87e69a1ad05e61cb559820947ecec144ea8c1d6cf05017c9602"),
    "wmt16/translation-task/training-parallel-nc-v11.tgz": (
        75178032, "cfe8ab047e05043476e498ee765c98e939c7b7d6d294e856344c84476b619d6a"),
    "wmt17/translation-task/training-parallel-nc-v12.tgz": (
        168591139, "2b45f30ef1d550d302fd17dd3a5cbe19134ccc4c2cf50c2dae534aee600101a2"),
    "wmt18/translation-task/training-parallel-nc-v13.tgz": (
        113157482, "17992b7e919cfb754c60f4e754148bc23b80706ad0ed7b34150831a554b40c91"),
}  # fmt: skip
# the name that fairseq's example gives it; the MD5 that one who loaded it has published
_IWSLT14 = ("de-en.tgz", 19982877, "10936dfdf616504ddbd844e91b94ef4a")


class Download(NamedTuple):
    """A file to download.

    Attributes:
        url: where it is.
        checksum: MD5 or SHA-256; None where none is published.
        name: to save it under; unlike the last part of the address, no two have the same.
        size: in bytes; 0 where it is not known, as of test sets.
    """

    url: str
    checksum: Optional[str]
    name: str
    size: int = 0


def saved_name(url: str) -> str:
    """Return the path of an address with dots, ``wmt13.test.tgz``, or the name it is known by."""
    if url == IWSLT14:
        return _IWSLT14[0]
    return urllib.parse.urlsplit(url).path.strip("/").replace("/", ".")


def test_sets(corpus: Corpus) -> Dict[str, TestText]:
    """Return the test sets and, if it is one of sacreBLEU's, the validation set, as ``valid``."""
    return {**({"valid": corpus.valid} if corpus.valid else {}), **corpus.tests}


def of_test_set(text: TestText) -> List[Download]:
    """Return the files of a test set, by its name in sacreBLEU or its parts."""
    if not isinstance(text, str):
        return _of_parts(text)
    dataset = DATASETS[text]
    urls = dataset.data or []
    sums: Sequence[Optional[str]] = dataset.md5 or [None] * len(urls)
    return [Download(url, md5, saved_name(url)) for url, md5 in zip(urls, sums)]


def downloads(corpus: Corpus) -> List[Download]:
    """Return what must be downloaded for a corpus, each file once."""
    files = _of_parts(corpus.train)
    for text in test_sets(corpus).values():
        files += of_test_set(text)
    return list(dict.fromkeys(files))


def _of_parts(parts: Sequence[Part]) -> List[Download]:
    files = []
    for part in parts:
        end = urllib.parse.urlsplit(part.url).path.strip("/")
        recorded = _IWSLT14[1:] if part.url == IWSLT14 else _RECORDED.get(end)
        size, checksum = recorded or (0, None)
        files.append(Download(part.url, checksum, saved_name(part.url), size))
    return files


def pairs_of_part(part: Part, languages: Tuple[str, str], raw: str) -> Iterator[Pair]:
    """Yield the sentence pairs of a part of a corpus, from its archive among the downloads."""
    archive = os.path.join(raw, saved_name(part.url))
    if part.columns:
        return pairs_of_tables(archive, part.stem, [part.columns[code] for code in languages])
    source, target = (f"{part.stem}.{language}{part.suffix}" for language in languages)
    return pairs_of_archive(archive, (source, target), part.sentences)


def check_folder(corpus: Corpus, raw: str) -> None:
    """Check that all files are in the folder of downloads."""
    missing = [file for file in downloads(corpus) if not os.path.exists(f"{raw}/{file.name}")]
    if missing:
        more = f", and {len(missing) - 1} more files" if missing[1:] else ""
        raise UsageError(f"{raw} lacks {missing[0].name}, which is {missing[0].url}{more}")


def read_test_set(text: TestText, languages: Tuple[str, str], raw: str) -> List[Pair]:
    """Return sources and references of a test set.

    A set of sacreBLEU's is exactly as ``sacrebleu --echo`` prints it: sacreBLEU itself reads
    the archives in the folder of downloads; nothing is loaded. Entities such
    as ``&amp;`` stay as they are in the SGM files: so the papers' scripts leave them to the
    tokeniser, and sacreBLEU decodes them when it scores.

    Args:
        text: sacreBLEU's name of the set, or its parts.
    """
    if not isinstance(text, str):
        return [pair for part in text for pair in _all_of(part, languages, raw)]
    dataset, pair = copy.copy(DATASETS[text]), "-".join(languages)
    archives = [os.path.join(raw, download.name) for download in of_test_set(text)]
    first, second = (f"{archives[0]}: {member}" for member in dataset.langpairs[pair])
    with tempfile.TemporaryDirectory(prefix="sacrebleu") as cache:
        # once it is imported, sacreBLEU has no other way to another folder than ~/.sacrebleu
        dataset._outdir, dataset._rawdir = cache, os.path.join(cache, "raw")
        dataset.maybe_download = lambda: None  # type: ignore[method-assign]
        for archive in archives:
            unpack(archive, dataset._rawdir)
        for member, title in zip(dataset.langpairs[pair], (first, second)):
            path = os.path.join(dataset._rawdir, member)
            if not os.path.exists(path):
                raise UsageError(f"{archives[0]} holds no {member}")
            with open(path, "rb") as stream:
                for _ in decode_lines(stream, title):
                    pass
        sides = dataset.source(pair), (line.rstrip("\n") for line, *_ in dataset.references(pair))
        pairs = list(aligned(*sides, (first, second)))
    if not pairs:
        raise UsageError(f"{first} holds no segments")
    return pairs


def _all_of(part: Part, languages: Tuple[str, str], raw: str) -> List[Pair]:
    pairs = list(pairs_of_part(part, languages, raw))
    if not pairs:
        raise UsageError(f"{part.stem} in {saved_name(part.url)} holds no segments")
    return pairs

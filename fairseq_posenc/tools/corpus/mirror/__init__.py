"""A small copy of WMT's download sites, generated, so that recipes run without a network.

``layout`` reads the table of corpora as a list of archives and their members; ``text`` has the
sentences, ``blemishes`` what cleaning should remove of them, ``sgm`` the format of test sets,
``packing`` archives that are the same every time. ``server`` serves a folder to this machine, with
``faults`` if asked.
"""

import os
from typing import Callable, Iterable, Iterator, List, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines, replacing
from fairseq_posenc.tools.corpus.mirror.layout import Members, Passage, all_test_sets, archives
from fairseq_posenc.tools.corpus.mirror.packing import pack
from fairseq_posenc.tools.corpus.mirror.sgm import sgm
from fairseq_posenc.tools.corpus.mirror.text import DEFAULT, Sizes, Texts
from fairseq_posenc.tools.prepare.parallel.corpora import CORPORA

__all__ = ["DEFAULT", "Sizes", "write_mirror"]


def write_mirror(
    folder: str,
    corpora: Iterable[str] = tuple(CORPORA),
    sizes: Sizes = DEFAULT,
    progress: Callable[[List[str]], Iterable[str]] = iter,
) -> None:
    """Write every archive that corpora need, at ``folder`` / path of its URL.

    ``http://www.statmt.org/wmt13/test.tgz`` becomes ``folder/wmt13/test.tgz``. Archives that are
    there are left alone. The same sizes give the same bytes, whatever the other corpora.

    Args:
        folder: made if missing; its file ``settings`` remembers the sizes.
        corpora: names in the table of corpora, or of their reverses.
        sizes: lines of the files, and the seed.
        progress: wraps the list of archives to write.

    Raises:
        UsageError: no such corpus, no lines, the folder holds a mirror of other sizes, or it
            cannot be written.
    """
    sizes.check()
    wanted = archives(corpora)
    _same_settings(os.path.join(folder, "settings"), str(sizes))
    places = {path: os.path.join(folder, *path.split("/")) for path in wanted}
    missing = [path for path, place in places.items() if not os.path.isfile(place)]
    if missing:
        texts = Texts(sizes, all_test_sets())
        for path in progress(missing):
            with replacing(places[path], "wb") as stream:
                pack(stream, path.endswith(".tgz"), _contents(wanted[path], texts))


def _contents(members: Members, texts: Texts) -> Iterator[Tuple[str, bytes]]:
    for name, passage in members.items():
        yield name, "".join(f"{line}\n" for line in _lines(name, passage, texts)).encode("utf-8")


def _lines(name: str, passage: Passage, texts: Texts) -> Iterable[str]:
    if passage.kind == "train":
        return (line[passage.language] for line in texts.train(passage.text))
    return sgm(name, passage, texts.test(passage.text))


def _same_settings(path: str, settings: str) -> None:
    if not os.path.exists(path):
        with replacing(path) as stream:
            stream.write(f"{settings}\n")
    elif read_lines(path) != [settings]:
        raise UsageError(
            f"{os.path.dirname(path)} holds a mirror made with {' '.join(read_lines(path))}, not "
            f"with {settings}; give another folder, or delete that one"
        )

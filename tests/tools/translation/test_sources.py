"""Which files a corpus needs, and test sets as sacreBLEU itself reads them."""

import os
import shutil
import subprocess
import sys
import tarfile
from collections import Counter

import pytest
from sacrebleu.dataset import DATASETS

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.downloads.download import Checksum
from fairseq_posenc.tools.translation.corpora import CORPORA, named
from fairseq_posenc.tools.translation.sources import (
    check_folder,
    downloads,
    read_test_set,
    saved_name,
    test_sets,
)

test_sets.__test__ = False
WMT = [name for name in CORPORA if name.startswith("wmt")]
REVERSED = ["_".join([name[:5], name[9:], name[6:8]]) for name in WMT]


@pytest.mark.parametrize("name", [*WMT, *REVERSED])
def test_every_corpus_names_each_file_once_with_its_sum(name):
    corpus = named(name)
    files = downloads(corpus)
    assert max(Counter(file.name for file in files).values()) == 1
    train = [file for file in files if file.url in {part.url for part in corpus.train}]
    # CzEng alone has none
    assert [file.url[-26:] for file in train if not file.checksum] == (
        ["/data-plaintext-format.tar"] if "cs" in name else []
    )
    assert all(Checksum.parse(file.checksum) and file.size for file in train if file.checksum)
    sums = {file.checksum for file in files if file not in train}
    assert sums == {DATASETS[each].md5[0] for each in test_sets(corpus).values()}
    pair = f"{corpus.source}-{corpus.target}"
    assert all(pair in DATASETS[each].langpairs for each in test_sets(corpus).values())


def test_a_reversed_corpus_has_the_same_text():
    corpus, other = named("wmt15_en_de"), named("wmt15_de_en")
    assert (other.source, other.target) == ("de", "en") and downloads(other) == downloads(corpus)


def test_iwslt14_is_one_archive_under_the_name_of_fairseqs_example():
    [file] = downloads(named("iwslt14_de_en"))
    assert file.name == "de-en.tgz" == saved_name(file.url) and len(file.checksum) == 32


def test_files_whose_addresses_end_alike_are_saved_apart():
    urls = [file.url for file in downloads(named("wmt16_en_de"))]
    assert sum(url.endswith("/test.tgz") for url in urls) > 5
    assert saved_name("https://statmt.org/wmt13/test.tgz") == "wmt13.test.tgz"


@pytest.mark.parametrize("name", ["", "wmt16", "wmt16_de_fr", "wmt16_en_de_x", "a_b"])
def test_an_unknown_corpus_is_reported_with_the_known_ones(name):
    with pytest.raises(UsageError, match=f"{name!r}; there are wmt16_en_de, .*wmt18_en_cs"):
        named(name)


def test_missing_downloads_are_reported_with_their_address(raw, corpus):
    check_folder(corpus, str(raw))
    (raw / "wmt12.test.tgz").unlink()
    with pytest.raises(UsageError, match=r"lacks wmt12.test.tgz, .* https?://.*wmt12/test.tgz$"):
        check_folder(corpus, str(raw))
    (raw / "wmt01.train.tgz").unlink()
    with pytest.raises(UsageError, match="lacks wmt01.train.tgz, .* and 1 more files$"):
        check_folder(corpus, str(raw))


def echoed(name, archive, side, cache):
    """What ``sacrebleu --echo`` prints, with the archive in its cache instead of a download."""
    raw = cache / name / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    shutil.copy(archive, raw / f"{name.replace('/', '_')}.{os.path.basename(archive)[6:]}")
    with tarfile.open(archive) as opened:
        opened.extractall(raw)
    command = [sys.executable, "-m", "sacrebleu", "-t", name, "-l", "en-de", "--echo", side]
    environment = {**os.environ, "SACREBLEU": str(cache), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, env=environment, stdout=-1, check=True)
    return done.stdout.decode().split("\n")[:-1]


@pytest.mark.parametrize("name", ["wmt13", "wmt14/full"])
def test_sentences_are_those_that_sacrebleu_echoes(tmp_path, monkeypatch, make_test_set, name):
    sources = [
        "AT&amp;T&#39;s &quot;x&quot; &lt;b&gt;",
        " “a”\u00a0 b\t\x85c ",
        "d\u2028e",
        "<i>f</i>",
    ]
    path = make_test_set(tmp_path, name, sources, sources[::-1])
    monkeypatch.chdir(tmp_path)
    read = read_test_set(name, ("en", "de"), ".")
    assert list(zip(*read)) == [
        tuple(echoed(name, path, side, tmp_path)) for side in ("src", "ref")
    ]
    assert read[0][0] == sources[0] and read[1][0] == "“a” b c" and len(read) == 4


def test_each_direction_has_test_sets_of_its_own(tmp_path, make_archive):
    members = "test/newstest2015-deen-src.de.sgm", "test/newstest2015-deen-ref.en.sgm"
    lines = [["<seg id='1'>Ein Satz.</seg>"], ["<seg id='1'>A sentence.</seg>"]]
    make_archive(tmp_path / "wmt15.test.tgz", dict(zip(members, lines)))
    assert read_test_set("wmt15", ("de", "en"), str(tmp_path)) == [("Ein Satz.", "A sentence.")]


@pytest.mark.parametrize(
    "sources, targets, told",
    [
        (["a", "b"], ["a"], r"wmt13.test.tgz: .*src.de.sgm has 1 lines, and .*src.en.sgm has more"),
        ([], [], "wmt13.test.tgz: .* holds no segments"),
    ],
)
def test_bad_test_sets_are_reported(tmp_path, make_test_set, sources, targets, told):
    make_test_set(tmp_path, "wmt13", sources, targets)
    with pytest.raises(UsageError, match=told):
        read_test_set("wmt13", ("en", "de"), str(tmp_path))

"""Dumps of Wikipedia: which pages, in which order, and none from half a dump."""

import bz2
import gzip
import hashlib
import tracemalloc
from xml.sax.saxutils import escape

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.prepare.downloads.download import RetryPolicy
from fairseq_posenc.tools.prepare.downloads.dumps import fetch_dump, find_dumps
from fairseq_posenc.tools.prepare.text import wikipedia

HEADER = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="de">
  <siteinfo><namespaces>
    <namespace key="0" case="first-letter" />
    <namespace key="6" case="first-letter">Datei</namespace>
    <namespace key="10" case="first-letter">Vorlage</namespace>
    <namespace key="14" case="first-letter">Kategorie</namespace>
  </namespaces></siteinfo>
"""


def page(title, text, ns=0, redirect="", model="wikitext"):
    return f"""  <page>
    <title>{escape(title)}</title><ns>{ns}</ns><id>1</id>{redirect}
    <revision><id>2</id><contributor><username>U</username></contributor>
      <model>{model}</model><text bytes="9" xml:space="preserve">{escape(text)}</text></revision>
  </page>
"""


PAGES = [
    page("A", "'''A''' &amp; <b>co</b>.\n\n[[Datei:x|mini|y]]Zwei{{x}}.\n[[Kategorie:K]]"),
    page("B", "#REDIRECT [[A]]\n\nText.", redirect='<redirect title="A" />'),
    page("Vorlage:C", "Text.", ns=10),
    page("D", "* Liste"),
    page("E", "Text.", model="css"),
    page("F", "Über </page> &lt;page> mit Sonderzeichen: 𝄞."),
    page("G", "Vorlagen: [[Vorlage:C|c]]."),
]
TEXT = "A & co.\nZwei.\n\nÜber <page> mit Sonderzeichen: 𝄞.\n\nVorlagen: c.\n\n"


def dump(pages=PAGES):
    return (HEADER + "".join(pages) + "</mediawiki>\n").encode()


@pytest.fixture
def extract(tmp_path):
    """A function that extracts a dump given as bytes and returns the text."""

    def extract(content, name="x.xml.bz2", workers=1):
        (tmp_path / name).write_bytes(content)
        wikipedia.extract(str(tmp_path / name), str(tmp_path / "x.txt"), workers, quiet=True)
        return (tmp_path / "x.txt").read_text(encoding="utf-8")

    return extract


@pytest.mark.parametrize(
    "name, pack", [("x.xml.bz2", bz2.compress), ("x.xml.gz", gzip.compress), ("x.xml", bytes)]
)
def test_articles_become_documents(extract, name, pack):
    assert extract(pack(dump()), name) == TEXT


def test_a_dump_of_several_bzip2_streams_is_read_to_its_end(extract):
    pieces = [HEADER, *PAGES, "</mediawiki>"]
    assert extract(b"".join(bz2.compress(piece.encode()) for piece in pieces)) == TEXT


@pytest.mark.parametrize("block", [1, 7, 100])
def test_pages_may_lie_across_blocks(extract, monkeypatch, block):
    monkeypatch.setattr(wikipedia, "BLOCK", block)
    assert extract(dump(), "x.xml") == TEXT


def test_the_number_of_processes_changes_nothing(extract, monkeypatch):
    monkeypatch.setattr(wikipedia, "PAGES_A_TASK", 3)
    content = dump([page(f"P{number}", f"Seite {number}.") for number in range(200)])
    expected = "".join(f"Seite {number}.\n\n" for number in range(200))
    assert extract(content, "x.xml", 1) == extract(content, "x.xml", 2) == expected


MULTISTREAM = "x-multistream.xml.bz2"


@pytest.mark.parametrize("block", [7, 100, 1 << 20])
@pytest.mark.parametrize("workers", [1, 2])
def test_streams_of_whole_pages_are_unpacked_by_all_processes(extract, monkeypatch, workers, block):
    monkeypatch.setattr(wikipedia, "BLOCK", block)
    monkeypatch.setattr(wikipedia, "_split", None)
    pieces = [HEADER, "".join(PAGES[:4]), *PAGES[4:], "</mediawiki>"]
    content = b"".join(bz2.compress(piece.encode()) for piece in pieces)
    assert extract(content, MULTISTREAM, workers) == TEXT
    assert extract(bz2.compress(dump()), MULTISTREAM, workers) == TEXT


def test_empty_streams_hold_nothing_and_a_damaged_one_is_told(extract, monkeypatch):
    pieces = [piece.encode() for piece in (HEADER, *PAGES, "</mediawiki>")]
    monkeypatch.setattr(wikipedia, "LARGEST_STREAM", max(map(len, pieces)))
    streams = [bz2.compress(piece) for piece in pieces]
    assert extract(bz2.compress(b"").join(streams), MULTISTREAM) == TEXT
    streams[1] = streams[1].replace(b"1AY&SY", b"1AY&S?")
    with pytest.raises(UsageError, match="cannot read .*: Invalid data stream"):
        extract(b"".join(streams), MULTISTREAM)


def test_pages_that_lie_across_streams_are_told(extract):
    middle = len(HEADER) + 200
    for number in (middle, middle + 500):
        pieces = dump()[:number], dump()[number:]
        with pytest.raises(UsageError, match="a page lies across two streams; rename it"):
            extract(b"".join(map(bz2.compress, pieces)), MULTISTREAM)


def test_one_great_stream_is_not_held_in_memory(extract, monkeypatch):
    monkeypatch.setattr(wikipedia, "LARGEST_PAGE", 100)
    with pytest.raises(UsageError, match="x-multistream.xml.bz2 has no streams; rename it"):
        extract(bz2.compress(dump()), MULTISTREAM)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_stream_that_unpacks_to_much_more_than_pages_is_refused(extract, monkeypatch, place):
    pieces = [HEADER.encode(), PAGES[0].encode(), b"</mediawiki>"]
    monkeypatch.setattr(wikipedia, "LARGEST_STREAM", max(map(len, pieces)))
    pieces[place] += b" " * 10**8
    tracemalloc.start()
    with pytest.raises(UsageError, match=r"has a stream of more than \d+ bytes; rename it"):
        extract(b"".join(map(bz2.compress, pieces)), MULTISTREAM)
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()


@pytest.mark.parametrize(
    "content, name, words",
    [
        (
            bz2.compress(dump())[:-30],
            "x.xml.bz2",
            "cannot read .*; if it is cut off, load it again",
        ),
        (bz2.compress(dump())[:-30], MULTISTREAM, "cannot read .*; if it is cut off"),
        (bz2.compress(HEADER.encode()), MULTISTREAM, "is cut off: it does not end with </media"),
        (b"some text", MULTISTREAM, "cannot read .*stream.xml.bz2: Invalid data stream"),
        (b"", MULTISTREAM, "is cut off"),
        (bz2.compress(b"<html></mediawiki>"), MULTISTREAM, "is no XML dump of a wiki"),
        (dump()[:-30], "x.xml", "is cut off: it does not end with </mediawiki>"),
        (b"<html></html>", "x.xml", "is no XML dump of a wiki"),
        (b"", "x.xml", "is no XML dump of a wiki"),
        (b"some text", "x.xml.bz2", "cannot read .*x.xml.bz2: Invalid data stream"),
        (dump([page("A", "a").replace("<title>", "<ti<tle>")]), "x.xml", "no valid XML"),
        (dump(PAGES[1:5]), "x.xml", "holds no article with text"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_broken_dump_leaves_no_text(extract, tmp_path, content, name, words, workers):
    with pytest.raises(UsageError, match=words) as caught:
        extract(content, name, workers)
    assert "\n" not in str(caught.value)
    assert [found.name for found in tmp_path.iterdir()] == [name]


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
DOCTYPE = f'<!DOCTYPE a [<!ENTITY l0 "ha">{LAUGHS}<!ENTITY f SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize("entity", ["l9", "f"])
@pytest.mark.parametrize("place", ["<mediawiki", "<page>", "<title>"])
def test_entities_of_a_dump_are_never_resolved(extract, entity, place):
    content = dump([page("A", "before ENTITY behind")]).decode().replace("ENTITY", f"&{entity};")
    with pytest.raises(UsageError, match="no valid XML"):
        extract(content.replace(place, DOCTYPE + place).encode(), "x.xml")


def test_pages_with_their_history_are_refused(extract, monkeypatch):
    monkeypatch.setattr(wikipedia, "BLOCK", 100)
    monkeypatch.setattr(wikipedia, "LARGEST_PAGE", 5000)
    with pytest.raises(UsageError, match="holds pages with their history"):
        extract(dump([page("A", "a " * 5000)]), "x.xml")


def test_the_script_extracts_parts_and_skips_what_is_there(run, tmp_path):
    parts = [tmp_path / f"dewiki-1-pages-articles{n}.xml-p{n}p9.bz2" for n in (1, 2)]
    for part in parts:
        part.write_bytes(bz2.compress(dump()))
    command = ["posenc", "prepare", "wikipedia-text", *parts, "--output", tmp_path / "text"]
    assert run(*command).count(": 3 articles") == 2
    text = tmp_path / "text" / "dewiki-1-pages-articles2-p2p9.txt"
    assert text.read_text(encoding="utf-8") == TEXT
    assert run(*command).count("there already") == 2


NAME = "zh_yuewiki-20250101-pages-articles.xml.bz2"
DATED = "/zh_yuewiki/20250101/"


@pytest.fixture
def mirror(server):
    """The address of a mirror of Wikimedia's."""
    content = bz2.compress(dump())
    sums = f"{'0' * 40}  other\n{hashlib.sha1(content).hexdigest()}  {NAME}\n".encode()
    server.files[f"{DATED}zh_yuewiki-20250101-sha1sums.txt"] = sums
    server.files["/zh_yuewiki/latest/zh_yuewiki-latest-sha1sums.txt"] = sums
    server.files[DATED + NAME] = content
    return server.url


@pytest.mark.parametrize("date", ["latest", "20250101"])
def test_a_dump_is_fetched_by_its_date_and_verified(mirror, server, tmp_path, date):
    raw = str(tmp_path / "raw")
    path = fetch_dump("zh-yue", raw, [f"{mirror}/gone", mirror], date, quiet=True)
    assert path.endswith(NAME) and find_dumps(raw, "zh-yue") == [path]
    del server.files[DATED + NAME]
    assert fetch_dump("zh-yue", raw, [mirror], date, quiet=True) == path


def test_of_two_kinds_of_a_dump_that_with_streams_is_fetched_or_the_one_begun(
    mirror, server, tmp_path
):
    name = NAME.replace(".xml", "-multistream.xml")
    server.files[DATED + name] = content = bz2.compress(b"streams")
    for listing in [path for path in server.files if path.endswith("sums.txt")]:
        line = f"{hashlib.sha1(content).hexdigest()}  {name}\n"
        server.files[listing] += line.encode() + line.replace("cles", "cles-index").encode()
    assert fetch_dump("zh-yue", str(tmp_path), [mirror], quiet=True).endswith(f"/{name}")
    (tmp_path / f"{NAME}.part").touch()
    (tmp_path / name).unlink()
    assert fetch_dump("zh-yue", str(tmp_path), [mirror], quiet=True).endswith(f"/{NAME}")


def test_a_dump_with_a_wrong_checksum_is_refused(mirror, server, tmp_path):
    server.files[DATED + NAME] = bz2.compress(b"other")
    with pytest.raises(UsageError, match="damaged: its sha1"):
        fetch_dump("zh_yue", str(tmp_path), [mirror], quiet=True, retries=RetryPolicy(1, 0.01))


def test_a_dump_that_is_still_being_made_is_said(mirror, server, tmp_path):
    name = f"{DATED}zh_yuewiki-20250101-sha1sums.txt"
    complete = server.files[name]
    server.files[name] = b"0" * 40 + b"  other\n"
    with pytest.raises(UsageError, match="20250101 of zh_yuewiki is not complete yet"):
        fetch_dump("zh_yue", str(tmp_path), [mirror], "20250101", quiet=True)
    server.files[name] = complete
    assert fetch_dump("zh_yue", str(tmp_path), [mirror], "20250101", quiet=True)


def test_local_dumps_are_the_newest_and_those_that_all_processes_unpack(tmp_path):
    names = [
        "enwiki-20240101-pages-articles.xml.bz2",
        "enwiki-20250101-pages-articles1.xml-p1p9.bz2",
        "enwiki-20250101-pages-articles2.xml-p10p99.bz2",
        "enwiki-20250101-pages-articles2.xml-p10p99.bz2.part",
        "enwiki-20250101-pages-articles-multistream.xml.bz2",
        "enwiki-20250101-pages-articles-multistream-index.txt.bz2",
        "simplewiki-20250101-pages-articles-multistream.xml.bz2",
        "enwiki-20250101-sha1sums.txt",
    ]
    for name in names:
        (tmp_path / name).touch()
    assert find_dumps(str(tmp_path), "en") == [str(tmp_path / names[4])]
    (tmp_path / names[4]).unlink()
    assert find_dumps(str(tmp_path), "en") == [str(tmp_path / name) for name in names[1:3]]
    assert find_dumps(str(tmp_path), "simple") == [str(tmp_path / names[6])]
    with pytest.raises(UsageError, match="holds no dump of de "):
        find_dumps(str(tmp_path), "de")
    with pytest.raises(UsageError, match="cannot read .*none: No such file"):
        find_dumps(str(tmp_path / "none"), "de")

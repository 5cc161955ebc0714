"""Pairs from files and archives, and to files that are whole or not there."""

import gzip

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.translation.pairs import pairs_of_archive, pairs_of_files, pairs_of_tables

ENGLISH = [f"line {number}" for number in range(3000)]
GERMAN = [f"Zeile {number}" for number in range(3000)]
MEMBERS = ("training/news.de-en.en", "training/news.de-en.de")


@pytest.mark.parametrize(
    "row, words",
    [
        ("{}\tLabel", "is a table.*cut -f 1 .*train.en"),
        ('{{"en": "{}"}}', "has lines of JSON.* jq -r"),
    ],
)
def test_a_table_or_json_is_no_side_of_pairs(tmp_path, row, words):
    for language, lines in (("en", [row.format(line) for line in ENGLISH]), ("de", GERMAN)):
        (tmp_path / f"train.{language}").write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(UsageError, match=f"train.en {words}.* > FILE"):
        pairs_of_files(str(tmp_path / "train"), ("de", "en"))


@pytest.mark.parametrize("name", ["a.tgz", "a.tar.gz", "a.tar"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("folder", ["training/", "./training/", "elsewhere/", ""])
def test_members_are_read_side_by_side(tmp_path, make_archive, name, suffix, folder):
    names = [f"{folder}news.de-en.{language}{suffix}" for language in ("de", "en")]
    content = {"training/news.de-en.english": ["no"], names[0]: GERMAN, names[1]: ENGLISH}
    path = make_archive(tmp_path / name, content)
    wanted = tuple(f"{member}{suffix}" for member in MEMBERS)
    assert list(pairs_of_archive(path, wanted)) == list(zip(ENGLISH, GERMAN))


def test_only_line_feeds_end_lines_of_members(tmp_path, make_archive):
    lines = "a\x85b\u2028c\rd\r\n \n".encode()
    path = make_archive(tmp_path / "a.tgz", dict.fromkeys(MEMBERS, lines))
    assert list(pairs_of_archive(path, MEMBERS)) == [("a\x85b\u2028c\rd",) * 2, (" ", " ")]


@pytest.mark.parametrize(
    "english, german, told",
    [
        (ENGLISH, GERMAN[:-1], r"a.tgz: .*\.de has 2999 lines, and .*a.tgz: .*\.en has more"),
        (ENGLISH[:7], GERMAN, r"a.tgz: .*\.en has 7 lines, and .*a.tgz: .*\.de has more"),
        (b"good\nbad \xff\n", ["1", "2"], r"a.tgz: .*news.de-en.en, line 2: invalid UTF-8"),
        (["1", "2"], b"\xffbad\n", r"a.tgz: .*news.de-en.de, line 1: invalid UTF-8"),
        (b"", b"", r"news.de-en.en is empty"),
        (None, ["1"], r"a.tgz holds no training/news.de-en.en"),
    ],
)
def test_bad_members_are_reported_in_one_line(tmp_path, make_archive, english, german, told):
    content = {name: text for name, text in zip(MEMBERS, (english, german)) if text is not None}
    path = make_archive(tmp_path / "a.tgz", content)
    with pytest.raises(UsageError, match=told):
        list(pairs_of_archive(path, MEMBERS))


def test_columns_of_all_tables_of_an_archive_are_pairs(tmp_path, make_archive):
    tables = {
        "data/1train.gz": ["id\t0.9\tjedna\tone\textra", "no table", ""],
        "data/1dtest.gz": ["id\t0.9\tnic\tnothing"],
        "data/2train.gz": ["id\t0.8\tdva\ttwo"],
    }
    path = make_archive(tmp_path / "a.tar", tables)
    assert list(pairs_of_tables(path, "*train.gz", (3, 2))) == [("one", "jedna"), ("two", "dva")]
    with pytest.raises(UsageError, match=r"a.tar: \*dtest.gz, line 1 has 4 columns only"):
        list(pairs_of_tables(path, "*dtest.gz", (4, 2)))
    with pytest.raises(UsageError, match=r"a.tar holds no \*.tsv"):
        list(pairs_of_tables(path, "*.tsv", (3, 2)))


def test_something_else_than_an_archive_is_reported(tmp_path):
    (tmp_path / "a.tgz").write_text("<html>Not found</html>")
    with pytest.raises(UsageError, match=r"cannot read .*a\.tgz"):
        list(pairs_of_archive(str(tmp_path / "a.tgz"), MEMBERS))
    with pytest.raises(UsageError, match=r"cannot read .*b\.tgz: No such file"):
        list(pairs_of_archive(str(tmp_path / "b.tgz"), MEMBERS))


def test_one_file_of_both_languages_is_not_called_missing(tmp_path):
    prefix = str(tmp_path / "en-fr.tmx")
    with open(prefix, "w") as stream:
        stream.write("Hello.\tBonjour.\n")
    with pytest.raises(UsageError, match="en-fr.tmx is one file: give two .*tmx.en, .*; cut -f 1 "):
        next(pairs_of_files(prefix, ("en", "fr")))
    with open(prefix, "w") as stream:
        stream.write('{"translation": {"en": "Hello.", "fr": "Bonjour."}}\n')
    with pytest.raises(
        UsageError, match=r"""pandas.read_json\(".*tmx", lines=True\).translation"""
    ):
        next(pairs_of_files(prefix, ("en", "fr")))
    with open(prefix, "w") as stream:
        stream.write('<?xml version="1.0"?>\n<tmx version="1.4">\n')
    with pytest.raises(UsageError, match="en-fr.tmx is TMX: tmxt.py --codelist en,fr .*en-fr.tmx"):
        next(pairs_of_files(prefix, ("en", "fr")))


def test_a_file_is_read_plain_or_else_compressed(tmp_path):
    (tmp_path / "a.en").write_text("one\ntwo\n")
    (tmp_path / "a.de.gz").write_bytes(gzip.compress(b"eins\nzwei\n"))
    prefix = str(tmp_path / "a")
    assert list(pairs_of_files(prefix, ("en", "de"))) == [("one", "eins"), ("two", "zwei")]
    with pytest.raises(UsageError, match=r"cannot read .*a\.fr: No such file"):
        list(pairs_of_files(prefix, ("en", "fr")))

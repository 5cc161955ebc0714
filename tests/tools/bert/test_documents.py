"""Raw text as a stream of documents, and its sentences."""

import bz2
import gzip
import io
import json

import pyarrow
import pytest
from pyarrow import parquet

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert.documents import find_corpora, read_documents
from fairseq_posenc.tools.bert.sentences import split_sentences

BLANK = "\n\n first \nsecond\r\n\n \n third\n"
TITLES = """
 = Robert <unk> =

 He was an actor .

 = = Career = =

 He acted .
 = 1 <unk> / s and k =
 1 more .

 = = = 2000 = = =

 = Constant k filter =

 A filter .
"""


def documents(tmp_path, text, boundary, name="text"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    found = [[]]
    for line in read_documents([str(path), str(path)], boundary):
        found[-1].append(line) if line is not None else found.append([])
    assert found.pop() == []
    half = len(found) // 2
    assert found[:half] == found[half:]
    return found[:half]


def test_a_table_is_no_text(tmp_path):
    """As those of XTREME: words with a label, and pairs of sentences."""
    rows = "R.H.\tB-ORG\nSaunders\tI-ORG\n\n" * 3
    with pytest.raises(UsageError, match="table, as all of its first lines have a tab.*cut -f 1"):
        documents(tmp_path, rows, "blank")
    assert documents(tmp_path, f"A sentence.\n\n{rows}", "blank")[0] == ["A sentence."]


def test_blank_lines_divide_documents(tmp_path):
    assert documents(tmp_path, BLANK, "blank") == [["first", "second"], ["third"]]


@pytest.mark.parametrize("boundary", ["title", "blank"])
def test_title_lines_divide_documents_and_headings_are_left_out(tmp_path, boundary):
    """Also where ``blank`` is asked for, the default: such a file is WikiText."""
    assert documents(tmp_path, TITLES, boundary) == [
        ["He was an actor .", "He acted .", "= 1 <unk> / s and k =", "1 more ."],
        ["A filter ."],
    ]


def test_only_line_feeds_end_lines(tmp_path):
    text = "a\u2028b\x85c\x0bd\re\n"
    assert documents(tmp_path, text, "blank") == [[text[:-1]]]


def json_lines(texts):
    return "".join(json.dumps({"id": "1", "text": text}) + "\n" for text in texts).encode()


def snapshot(texts, column="text"):
    """A file with the columns of wikimedia/wikipedia 20231101."""
    columns = {name: [f"{name} {i}" for i in range(len(texts))] for name in ("id", "url", "title")}
    stream = io.BytesIO()
    parquet.write_table(pyarrow.table({**columns, column: texts}), stream, row_group_size=2)
    return stream.getvalue()


ARTICLES = ["Berlin  is a city.\n\nHistory\n It is old. \n", " \n", "", "\u00c4 = b =\u2028c"]
ARTICLES += ["= A title ="] * 1500


@pytest.mark.parametrize("boundary", ["blank", "title"])
@pytest.mark.parametrize(
    "name, content",
    [
        ("train-00000-of-00001.parquet", snapshot([*ARTICLES, None])),
        ("wiki_00", json_lines(ARTICLES)),
        ("wiki_123.bz2", bz2.compress(json_lines(ARTICLES))),
        ("a.json", json_lines(ARTICLES)),
        ("a.jsonl", json_lines(ARTICLES)),
        ("a.jsonl.gz", gzip.compress(json_lines(ARTICLES))),
    ],
)
def test_a_row_or_a_line_of_json_is_a_document(tmp_path, name, content, boundary):
    first = ["Berlin  is a city.", "History", "It is old."]
    expected = [first, ["\u00c4 = b =\u2028c"], *[["= A title ="]] * 1500]
    assert documents(tmp_path, content, boundary, name) == expected


def test_blank_lines_among_json_are_no_documents(tmp_path):
    content = b'\n{"text": "a"}\n\n \n{"text": "b"}\n\n'
    assert documents(tmp_path, content, "blank", "a.jsonl") == [["a"], ["b"]]


@pytest.mark.parametrize("boundary", ["blank", "title"])
@pytest.mark.parametrize("name", ["wiki_00", "wiki.txt", "wiki.json"])
def test_extracted_wikipedia_is_known_by_its_first_line(tmp_path, name, boundary):
    for title in "A & {0}", "A &amp; {0}":  # 3.0.6 writes the latter
        article = f'<doc id="{{0}}" url="" title="A &amp; {{0}}">\n{title}\n\n{{1}}\n</doc>\n'
        text = article.format(1, "Berlin is a city.\n\nIt is old.\n") + article.format(2, "B.")
        expected = [["Berlin is a city.", "It is old."], ["B."]]
        assert documents(tmp_path, text, boundary, name) == expected


ENTITIES = "R&amp;D: &lt; 5, &gt; 3, &amp;nbsp;", "R&D: < 5, > 3, &nbsp;"


@pytest.mark.parametrize("name", ["wiki_00", "all.jsonl"])
@pytest.mark.parametrize("as_json", [True, False])
def test_entities_of_wikiextractor_become_characters(tmp_path, name, as_json):
    written, text = ENTITIES
    article = f'<doc id="1" url="" title="T">\nT\n\n{written}\n</doc>\n'
    if as_json:
        keys = {"id": "1", "revid": "2", "url": "", "title": "T", "text": written}
        article = json.dumps(keys) + "\n"
    assert documents(tmp_path, article, "blank", name) == [[text]]


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl"])
def test_wikitext_of_hugging_face_has_a_line_in_each_row(tmp_path, name):
    rows = ["", " = A = \n", "", " One .\n", " = x + y = \n", "", " = = Head = = \n", " = A = B\n"]
    rows += ["", " = C = \n", "", " Three .\n"]
    jsonl = "".join(json.dumps({"text": row}) + "\n" for row in rows)
    content = snapshot(rows) if name == "a.parquet" else jsonl.encode()
    assert documents(tmp_path, content, "blank", name) == [
        ["One .", "= x + y =", "= A = B"],
        ["Three ."],
    ]


@pytest.mark.parametrize("name", ["wiki_00", "wiki_12.bz2"])
def test_bare_text_of_wikiextractor_is_read(tmp_path, name):
    content = f"{ENTITIES[0]}\nHistory.\n\n\nB.\n\n\n".encode()
    content = bz2.compress(content) if name.endswith("bz2") else content
    assert documents(tmp_path, content, "blank", name) == [[ENTITIES[1], "History."], ["B."]]


def test_entities_of_other_json_stay(tmp_path):
    written = ENTITIES[0]
    content = json.dumps({"url": "", "title": "T", "text": written}) + "\n"
    assert documents(tmp_path, content, "blank", "a.jsonl") == [[written]]


@pytest.mark.parametrize(
    "name, content, told",
    [
        ("a.parquet", b"", "cannot read .*a.parquet"),
        ("a.parquet", b"<html></html>", "cannot read .*a.parquet"),
        ("a.parquet", snapshot(["a"])[:-9], "cannot read .*a.parquet"),
        ("a.parquet", snapshot(["a"], column="body"), "cannot read .*a.parquet.*text"),
        ("a.parquet", snapshot([1, 2]), "a.parquet: the column text is int64, not text"),
        ("a.jsonl", b'{"text": "a"}\nb\n', "a.jsonl, line 2 is not JSON"),
        ("a.jsonl", b'{"title": "a"}\n', "a.jsonl, line 1 is not an object with a text"),
        ("a.json", b'[{"text": "a"}]\n', r"a.json is an array .*: jq -c '.\[\]' .*a.jsonl"),
        ("wiki_00", b'{"text": "a\n', "wiki_00, line 1 is not JSON"),
    ],
)
def test_what_is_no_such_file_is_reported(tmp_path, name, content, told):
    with pytest.raises(UsageError, match=told):
        documents(tmp_path, content, "blank", name)


def make(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text\n")


def test_folders_are_searched_in_order_without_hidden_and_unfinished_files(tmp_path):
    unfinished = ("g.part", "g.part.note", "h.part123")
    make(tmp_path, "b/2", "b/1", "a", "c/d/e.gz", ".hidden", ".git/f", *unfinished)
    (corpus,) = find_corpora([str(tmp_path)])
    assert corpus.language == ""
    found = [file[len(str(tmp_path)) + 1 :] for file in corpus.files]
    assert found == ["a", "b/1", "b/2", "c/d/e.gz"]


def test_languages_are_named_or_are_folders(tmp_path):
    make(tmp_path, "de/1", "de/2", "en/1", "x=y", ".cache/1")
    de, en = tmp_path / "de", tmp_path / "en"
    expected = [("de", (f"{de}/1", f"{de}/2")), ("en", (f"{en}/1",))]
    assert find_corpora([f"de={de}, en={en}"]) == expected
    assert find_corpora([f"de={de}/1", f"en={en}", f"de={de}/2"]) == expected
    assert find_corpora([str(tmp_path)], language_folders=True) == expected
    assert find_corpora([f"{tmp_path}/x=y"]) == [("", (f"{tmp_path}/x=y",))]


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["nope"], "there is no file or folder nope"),
        (["de=nope"], "there is no file or folder nope"),
        (["de="], "expected LANGUAGE=PATH"),
        (["de=a,b"], "expected LANGUAGE=PATH"),
        (["de=a", "a"], "a has no language"),
        (["empty"], "holds no text files"),
    ],
)
def test_bad_paths_are_reported_in_one_line(tmp_path, monkeypatch, arguments, told):
    monkeypatch.chdir(tmp_path)
    make(tmp_path, "a")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=told):
        find_corpora(arguments)
    with pytest.raises(UsageError, match="holds no folders"):
        find_corpora(["empty"], language_folders=True)


@pytest.mark.parametrize(
    "sentences",
    [
        ["Hello there.", "How are you?", '"Fine," she said.', "(Yes!)", "In 1999.", "He went."],
        ["J. R. Smith of the U.S. Army met Dr. Who at 3.5 p.m. on Monday... and left."],
        ["He said .", "Then , e.g. Bar , he left ."],
        ["Am 3. Oktober kam Hr. Maier bzw. Huber.", "Ende."],
        ["¿Qué?", "¡Sí!", "No."],
        ["هل هو هنا؟", "نعم.", "ذهب۔", "وہ"],
        ["यह है।", "वह था।"],
        ["Τι κάνεις;", "Καλά."],
        ["one; Two"],
        ["ที่นี่ ดีมาก"],
    ],
)
def test_sentences_end_at_punctuation(sentences):
    assert split_sentences(" " + "  ".join(sentences)) == sentences


def test_chinese_sentences_end_without_a_space():
    sentences = ["他来了。", "她说：“你好！”", "然后走了。", "真的？！"]
    assert split_sentences("".join(sentences)) == sentences

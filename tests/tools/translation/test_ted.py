"""IWSLT14's text, against the steps of fairseq's example written as loops."""

from sacremoses import MosesTokenizer

from fairseq_posenc.files import read_lines
from fairseq_posenc.tools.translation.corpora import CORPORA
from fairseq_posenc.tools.translation.text import prepare_text

LANGUAGES = ("de", "en")
TESTS = ["TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"]
TAGS = ["<title>", "</title>", "<description>", "</description>"]
# lines of train.tags, German and English
NASTY = [
    ("<url>http://a</url>", "<url>http://b</url>"),
    ("<keywords>a</keywords>", "<keywords>b, c</keywords>"),
    ("  <talkid>1</talkid>", "x <talkid>1</talkid> y"),
    ("<title>Ein Titel, groß</title>", "<title>A Title, Big</title>"),
    ("<description>Was</description> <title>x", "<description>What</title> <title>x"),
    ("<URL>bleibt</URL>", "<URL>stays</URL>"),
    ("<reviewer>A</reviewer>", "<reviewer>A</reviewer>"),
    ('<seg id="1"> Kein Test </seg>', '<seg id="1"> no test </seg>'),
    ("Es ist’s &amp; „SO“ ÄÖÜ", "It’s &amp; “so” | [1] <b>"),
    ("", "one side"),
    ("<title></title>", "<title></title>"),
    (" \t ", "blank"),
    ("a b", "a b c"),  # 1.5
    ("a b c", "a b c d e"),
    ("a b c d e", "a b c"),
    ("a " * 175, "b " * 175),
    ("a " * 176, "b " * 175),
    ("a " * 175, "b " * 117),
    ("a " * 175, "b " * 116),
]
SEGMENTS = [
    '<seg id="1"> Ja, SO ist’s . </seg>',
    '<seg id="2">ohne Rand</seg>',
    '  <seg id="31">  Rand  \t </seg>  ',
    '<seg id="4"></seg>',
    '<seg id="x"> keine Zahl </seg>',
    '<seg id="5"> &amp; "z.B." <seg id="6"> noch eins </seg> Ende',
    "<title>kein Segment’s</title>",
]


def test_text_is_that_of_the_slow_pipeline(tmp_path, make_archive, hard_lines):
    hard = [*zip(hard_lines, hard_lines[1:]), *((line, line) for line in hard_lines)]
    lines = [pair for one in hard for pair in (one, *NASTY[:9])] + NASTY
    members = {
        f"de-en/train.tags.de-en.{language}": side for language, side in zip(LANGUAGES, zip(*lines))
    }
    for number, name in enumerate(TESTS):
        for language in LANGUAGES:
            xml = ["<doc>", *SEGMENTS, f'<seg id="9">{language} {number}</seg>', "</doc>"]
            members[f"de-en/IWSLT14.{name}.de-en.{language}.xml"] = xml
    make_archive(tmp_path / "de-en.tgz", dict(reversed(list(members.items()))))
    prepare_text(CORPORA["iwslt14_de_en"], str(tmp_path), str(tmp_path), workers=2)

    train, valid = slow_training(members)
    assert len(valid) > 20 and read(tmp_path, "valid.tok") == valid
    assert read(tmp_path, "train.tok") == train
    for language, found in zip(LANGUAGES, zip(*read(tmp_path, "iwslt14.tok"))):
        tokenise = MosesTokenizer(language).tokenize
        raw = [
            slow_segment(line)
            for name in TESTS
            for line in members[f"de-en/IWSLT14.{name}.de-en.{language}.xml"]
            if "<seg id" in line
        ]
        assert list(found) == [tokenise(line, return_str=True).lower() for line in raw]
        assert read_lines(f"{tmp_path}/iwslt14.raw.{language}") == raw


def read(folder, name):
    return list(zip(*(read_lines(f"{folder}/{name}.{language}") for language in LANGUAGES)))


def slow_training(members):
    sides = []
    for language in LANGUAGES:
        tokenise, side = MosesTokenizer(language).tokenize, []
        for line in members[f"de-en/train.tags.de-en.{language}"]:
            if "<url>" in line or "<talkid>" in line or "<keywords>" in line:
                continue
            for tag in TAGS:
                line = line.replace(tag, "")
            side.append(tokenise(line, return_str=True))
        sides.append(side)
    kept, valid = [], []
    for pair in zip(*sides):
        german, english = (len(line.split()) for line in pair)
        longer, shorter = max(german, english), min(german, english)
        if shorter >= 1 and longer <= 175 and longer <= 1.5 * shorter:
            kept.append(tuple(line.lower() for line in pair))
    for number in range(len(kept), 0, -1):
        if number % 23 == 0:
            valid.insert(0, kept.pop(number - 1))
    return kept, valid


def slow_segment(line):
    for number in ("1", "2", "31", "4", "5", "6", "9"):
        before, mark, after = line.partition(f'<seg id="{number}">')
        line = before + (after.lstrip() if mark else "")
    before, mark, after = line.partition("</seg>")
    line = before.rstrip() + after.lstrip() if mark else before
    return line.replace("’", "'")

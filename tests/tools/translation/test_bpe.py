"""Byte pair encoding: byte for byte what subword-nmt's command lines write."""

import subprocess
import sys

import pytest

from fairseq_posenc.data import segmentation
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.tools.translation import bpe

TEXT = {
    "en": [
        "the lower the newest widest",
        "a  double  bl\u00a0ank",
        "",
        " around ",
        "low lower lowest",
    ],
    "de": ["die niedrigste <sep> der", "x", "der die das den dem des", "niedriger", "neu neuer"],
}


@pytest.fixture
def texts(tmp_path):
    paths = []
    for language, lines in TEXT.items():
        paths.append(tmp_path / f"text.{language}")
        # yy is more frequent than zz, but not where they are counted together
        lines = [f"{line} yy" if line.strip() == line else line for line in lines] * 700
        paths[-1].write_text("".join(f"{line}\n" for line in [*lines, *["zz zz zz zz zz"] * 900]))
    return [str(path) for path in paths]


def library(*arguments, text):
    command = [sys.executable, "-c", "from subword_nmt.subword_nmt import main; main()"]
    done = subprocess.run([*command, *arguments], input=text, stdout=-1, stderr=-1, check=True)
    return done.stdout


def content(*paths):
    found = []
    for path in paths:
        with open(path, "rb") as stream:
            found.append(stream.read())
    return b"".join(found)


@pytest.mark.parametrize("workers", [1, 2])
def test_codes_are_the_librarys(tmp_path, texts, monkeypatch, workers):
    monkeypatch.setattr(bpe, "_COUNTED_TOGETHER", 900)
    bpe.learn(texts, str(tmp_path / "codes"), 30, workers)
    expected = library("learn-bpe", "--symbols", "30", text=content(*texts))
    assert content(tmp_path / "codes") == expected
    assert expected.count(b"\n") == 31


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("cache", [300_000, 5])
def test_subwords_are_the_librarys(tmp_path, texts, monkeypatch, workers, cache):
    monkeypatch.setattr(segmentation, "_LARGEST_CACHE", cache)
    codes, output = str(tmp_path / "codes"), str(tmp_path / "out")
    bpe.learn(texts, codes, 20)
    for path in texts:
        bpe.apply(codes, path, output, workers)
        options = ("--codes", codes, "--glossaries", "<sep>")
        assert content(output) == library("apply-bpe", *options, text=content(path))
    assert "@@ " in read_lines(output)[0] and " <sep> d" in read_lines(output)[0]


def test_codes_that_have_changed_are_read_anew(tmp_path, texts):
    codes, output = str(tmp_path / "codes"), str(tmp_path / "out")
    bpe.learn(texts, codes, 1)
    bpe.apply(codes, texts[0], output)
    few = content(output)
    bpe.learn(texts, codes, 30)
    bpe.apply(codes, texts[0], output)
    assert content(output).count(b"@@") < few.count(b"@@")


@pytest.mark.parametrize(
    "text, operations, told",
    [
        ("a b\n", 5, "no two letters of the text are neighbours twice"),
        ("", 5, "text is empty"),
        ("words words\n", 0, "cannot learn 0 BPE operations"),
        (None, 5, "cannot read .*text: No such file"),
    ],
)
def test_nothing_to_learn_is_reported_and_writes_nothing(tmp_path, text, operations, told):
    if text is not None:
        (tmp_path / "text").write_text(text)
    with pytest.raises(UsageError, match=told):
        bpe.learn([str(tmp_path / "text")], str(tmp_path / "codes"), operations)
    assert [path.name for path in tmp_path.iterdir()] in (["text"], [])


@pytest.mark.parametrize(
    "codes, told",
    [
        ("#version: 0.2\na b\nabc\n", "codes, line 3: no BPE operation"),
        ("", "codes is empty"),
        ("a\n", "codes, line 1"),
    ],
)
def test_bad_codes_are_reported_and_write_nothing(tmp_path, texts, codes, told):
    (tmp_path / "codes").write_text(codes)
    with pytest.raises(UsageError, match=told):
        bpe.apply(str(tmp_path / "codes"), texts[0], str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()

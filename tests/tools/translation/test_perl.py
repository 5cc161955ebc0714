"""Moses' Perl scripts, for which small ones stand in that write down what they were asked."""

import pytest

from fairseq_posenc.data.segmentation import Moses, tokenise_lines
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.translation.perl import tokenise
from fairseq_posenc.tools.translation.preparation import TranslationOptions, prepare
from fairseq_posenc.tools.translation.tokens import tokenise_file

# appends its name and options to each line
STAND_IN = """use FindBin qw($RealScript);
binmode(STDIN, ":utf8"); binmode(STDOUT, ":utf8");
while (<STDIN>) { chomp; print "$_ ", join(",", $RealScript =~ s/-.*|\\.perl//r, @ARGV), "\\n"; }
"""


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "mosesdecoder" / "scripts" / "tokenizer"
    folder.mkdir(parents=True)
    for name in ("normalize-punctuation", "remove-non-printing-char", "tokenizer"):
        (folder / f"{name}.perl").write_text(STAND_IN)
    return tmp_path / "mosesdecoder"


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (Moses("de"), "it’s\u2028 normalize,de tokenizer,-q,-l,de"),
        (
            Moses("fr", printable=True, aggressive=True, escape=False, plain_quotes=True),
            "it's\u2028 normalize,fr remove tokenizer,-q,-l,fr,-a,-no-escape",
        ),
        (Moses("en", normalise=False), "it’s\u2028 tokenizer,-q,-l,en"),
        (
            Moses("en", normalise=False, aggressive=True, lowercase=True),
            "it’s\u2028 tokenizer,-q,-l,en,-a",
        ),
    ],
)
def test_the_scripts_run_in_the_authors_order_with_their_options(checkout, how, expected):
    second = expected.partition(" ")[2]
    assert tokenise(["It’s\u2028" if how.lowercase else "it’s\u2028", ""], how, str(checkout)) == [
        expected,
        f" {second}",
    ]
    assert tokenise(["it’s"], how) == tokenise_lines(["it’s"], how)
    assert tokenise([], how, str(checkout)) == []


def test_what_goes_wrong_is_reported_in_one_line(checkout, tmp_path, monkeypatch):
    script = checkout / "scripts" / "tokenizer" / "tokenizer.perl"
    for text, message in {
        'warn "a warning\\n"; die "no prefixes\\n\\n";': "tokenizer.perl failed: no prefixes$",
        "<STDIN>; print <STDIN>;": "made 1 lines of 2",
        'print "\\xff\\n" x 2;': "wrote something that is not UTF-8",
    }.items():
        script.write_text(text)
        with pytest.raises(UsageError, match=message):
            tokenise(["a", "b"], Moses("en"), str(checkout))
    (tmp_path / "in").write_text("a\n")
    script.unlink()
    with pytest.raises(UsageError, match="no .*tokenizer.perl; --moses takes a checkout"):
        tokenise_file(str(tmp_path / "in"), str(tmp_path / "out"), Moses("en"), 1, str(checkout))
    script.write_text("")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="needs perl"):
        tokenise_file(str(tmp_path / "in"), str(tmp_path / "out"), Moses("en"), 1, str(checkout))
    assert not (tmp_path / "out").exists()


def test_a_folder_is_prepared_with_them(checkout, tmp_path):
    for language in ("en", "de"):
        (tmp_path / f"text.{language}").write_text("a small text\n" * 20)
    given = {"source_lang": "en", "target_lang": "de", "train": str(tmp_path / "text")}
    given.update(valid_lines=8, bpe=20, output=str(tmp_path / "bin"), moses=str(checkout))
    prepare(TranslationOptions(**given), say=lambda _: None)
    # of the stand-in's words
    assert "," in (tmp_path / "bin" / "dict.en.txt").read_text()
    with pytest.raises(UsageError, match="leave out --moses"):
        prepare(TranslationOptions(**{**given, "bpe": None, "sentencepiece": 9}))

"""Text that is tokenised or cut into subwords already, in place of a corpus's archives."""

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.tools.translation.ready import take_ready

GOOGLE = {
    "train": "train.tok.clean.bpe.32000",
    "valid": "newstest2013.tok.bpe.32000",
    "newstest2012": "newstest2012.tok.bpe.32000",
}
LINES = {"train": 5, "valid": 4, "newstest2012": 8}
CODES = "#version: 0.2\na b</w>\n"


@pytest.fixture
def make(tmp_path):
    """A function that writes ready text under the names given for each set."""

    def make(names, codes="bpe.32000", lines=LINES):
        folder = tmp_path / "ready"
        folder.mkdir()
        for name, stem in names.items():
            for language in ("en", "de"):
                text = [f"{name} {language} a@@ b {number}" for number in range(lines[name])]
                (folder / f"{stem}.{language}").write_text("\n".join(text) + "\n")
        if codes:
            (folder / codes).write_text(CODES)
        return str(folder)

    return make


@pytest.fixture
def take(raw, corpus, tmp_path):
    """A function that takes ready text; only the test sets' archives are there."""
    for path in raw.glob("*.train.*"):
        path.unlink()
    # as in wmt16_en_de, the validation set is one of the test sets
    corpus = corpus._replace(tests={**corpus.tests, "newstest2013": "wmt13"})
    return lambda ready: take_ready(corpus, ready, str(raw), str(tmp_path / "text"))


def test_raw_text_goes_the_archives_way(take, tmp_path):
    (tmp_path / "ready").mkdir()
    for language, end in (("en", "  Yes,  it's so."), ("de", "")):
        (tmp_path / f"ready/train.raw.{language}").write_text(f"one two{end}\n\nthree\n")
    counts = take(str(tmp_path / "ready"))
    assert counts["train"] == 2 and counts["parts"][0]["read"] == 3
    assert read_lines(str(tmp_path / "text/train.tok.en"))[0] == "one two Yes , it &apos;s so ."
    assert read_lines(str(tmp_path / "text/newstest2012.raw.en"))


OURS = {name: f"{name}.bpe" for name in LINES}


@pytest.mark.parametrize("names, codes", [(GOOGLE, "bpe.32000"), (OURS, "codes")])
def test_text_with_bpe_is_taken_as_it_is(take, make, tmp_path, names, codes):
    if names is OURS:
        names = {**names, "newstest2013": "newstest2013.bpe"}
    counts = take(make(names, codes, {**LINES, "newstest2013": 4}))
    tests = {"newstest2012": 8, "newstest2013": 4}
    assert counts == {"kind": "bpe", "train": 5, "valid": 4, "tests": tests}
    text = tmp_path / "text"
    assert read_lines(str(text / "train.bpe.de"))[4] == "train de a@@ b 4"
    assert read_lines(str(text / "valid.bpe.en"))[0] == "valid en a@@ b 0"
    # what is scored is sacreBLEU's
    assert read_lines(str(text / "newstest2012.raw.en"))[1] == "a &lt; b"
    assert (text / "tests").read_text() == "newstest2012\nnewstest2013\n"
    assert (text / "codes").read_text() == CODES


def test_pairs_that_are_held_out_from_the_archives_are_a_set_of_their_own(
    make, corpus, raw, tmp_path
):
    """As of IWSLT: no test set is the validation set, too."""
    corpus, output = corpus._replace(valid=None, hold_out=3), tmp_path / "text"
    counts = take_ready(corpus, make(OURS, "codes"), str(raw), str(output))
    assert counts == {"kind": "bpe", "train": 5, "valid": 4, "tests": {"newstest2012": 8}}
    assert read_lines(str(output / "valid.bpe.en"))[0] == "valid en a@@ b 0"


def test_tokenised_text_is_left_for_bpe(take, make, tmp_path):
    counts = take(
        make({name: stem.replace(".bpe.32000", "") for name, stem in GOOGLE.items()}, None)
    )
    assert counts["kind"] == "tok" and not list((tmp_path / "text").glob("*.bpe.*"))
    assert len(read_lines(str(tmp_path / "text" / "train.tok.en"))) == 5


@pytest.mark.parametrize(
    "change, told",
    [
        ({"train": "trane"}, "lacks train.bpe.en and train.bpe.de"),
        ({"newstest2012": "newstest2012.tok"}, "lacks newstest2012.bpe.en"),
        ({"codes": None}, "has no codes or bpe.32000"),
        ({"lines": {**LINES, "newstest2012": 7}}, "has 7 lines, the archives' newstest2012 8"),
    ],
)
def test_what_is_missing_or_other_text_is_reported_in_one_line(take, make, change, told):
    options = {key: change.pop(key) for key in ("codes", "lines") if key in change}
    with pytest.raises(UsageError, match=told):
        take(make({**GOOGLE, **change}, **options))

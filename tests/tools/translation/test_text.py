"""From archives to tokenised text, against the papers' pipeline written as a loop."""

import json

import pytest

from fairseq_posenc.data.segmentation import Moses
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.tools.translation.corpora import CORPORA, Cleaning, Part
from fairseq_posenc.tools.translation.text import prepare_text
from tests.tools.translation.conftest import tokenise_slowly

LANGUAGES = ("en", "de")


def read(folder, name):
    sides = [read_lines(str(folder / f"{name}.{language}")) for language in LANGUAGES]
    assert len(sides[0]) == len(sides[1])
    return list(zip(*sides))


def slowly(pairs, corpus):
    """Training and held-out text of all parts, one line at a time."""
    sides, kept = [], []
    for language, side in zip(LANGUAGES, zip(*pairs)):
        normalise = corpus.normalise
        moses = Moses(language, normalise, printable=normalise, aggressive=corpus.aggressive)
        sides.append(tokenise_slowly(side, moses))
    for tokens in zip(*sides):
        lengths = [len(line.split()) for line in tokens]
        if not corpus.before_bpe or (
            min(lengths) > 0 and max(lengths) <= 80 and max(lengths) <= 9 * min(lengths)
        ):
            kept.append(tokens)
    every = corpus.hold_out or len(kept) + 1
    held_out = kept[every - 1 :: every]
    del kept[every - 1 :: every]
    return kept, held_out


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("changes", [{}, {"normalise": False, "aggressive": False}])
def test_training_text_is_that_of_the_slow_pipeline(
    raw, tmp_path, corpus, training_text, changes, workers
):
    corpus = corpus._replace(**changes)
    counts = prepare_text(corpus, str(raw), str(tmp_path / "out"), workers=workers)
    expected, _ = slowly(sum(training_text, []), corpus)
    assert read(tmp_path / "out", "train.tok") == expected
    assert counts["train"] == len(expected)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("cleaning", [None, Cleaning(1, 80, 9)])
def test_every_nth_pair_is_held_out_of_those_kept(
    raw, tmp_path, corpus, training_text, workers, cleaning
):
    # the first of the second part, an empty one, if nothing is dropped
    first = len(training_text[0]) + 1
    corpus = corpus._replace(valid=None, hold_out=first, before_bpe=cleaning)
    counts = prepare_text(corpus, str(raw), str(tmp_path / "out"), workers=workers)
    train, held_out = slowly(sum(training_text, []), corpus)
    assert (held_out[0][0] == "") == (not cleaning) and len(held_out) == 3
    assert read(tmp_path / "out", "train.tok") == train
    assert read(tmp_path / "out", "valid.tok") == held_out
    assert [part["held_out"] for part in counts["parts"]] == [0, 3] and counts["valid"] == 3
    assert not (tmp_path / "out" / "valid.raw.en").exists()


def test_pairs_are_counted_by_part_and_reason(raw, tmp_path, corpus, training_text):
    counts = prepare_text(corpus, str(raw), str(tmp_path / "out"))
    assert counts == json.loads((tmp_path / "out" / "counts.json").read_text())
    assert (tmp_path / "out" / "tests").read_text() == "newstest2012\n"
    assert counts["valid"] == 4 and counts["tests"] == {"newstest2012": 8}
    first, second = counts["parts"]
    assert second == {
        "name": "giga.fixed",
        "read": 1105,
        "kept": 1101,
        "held_out": 0,
        "dropped": {"empty": 2, "too long": 1, "ratio": 1},
    }
    assert first["read"] == len(training_text[0]) == first["kept"] + sum(first["dropped"].values())


def test_test_sets_are_raw_for_scoring_and_tokenised_alone(raw, tmp_path, corpus):
    prepare_text(corpus, str(raw), str(tmp_path / "out"))
    for name, copies in (("valid", 1), ("newstest2012", 2)):
        assert read(tmp_path / "out", f"{name}.raw")[:3] == [
            ("Tom &amp; Jerry’s &quot;show&quot;", "Tom &amp; Jerrys „Show“"),
            ("a &lt; b", "a &lt; b"),
            ("it&#39;s 5%", "er ist’s"),
        ]
        tokens = read(tmp_path / "out", f"{name}.tok")
        assert len(tokens) == 4 * copies
        # ’ is plain, „“ are not normalised, and entities are escaped as any other text
        assert tokens[0][0].startswith("Tom &amp; amp ; Jerry &apos;s &amp; quot ; show")
        assert tokens[0][1] == "Tom &amp; amp ; Jerrys „ Show “"
        assert tokens[2][1] == "er ist &apos; s"
    prepare_text(corpus._replace(plain_quotes=False), str(raw), str(tmp_path / "out"))
    assert read(tmp_path / "out", "valid.tok")[2][1] == "er ist ’ s"


def test_the_validation_set_is_prepared_as_training_text_where_the_corpus_says_so(
    raw, tmp_path, corpus
):
    for as_train, output in ((False, tmp_path / "raw_like"), (True, tmp_path / "train_like")):
        prepare_text(corpus._replace(valid_as_train=as_train), str(raw), str(output))
    train, _ = slowly(read(tmp_path / "train_like", "valid.raw"), corpus._replace(before_bpe=None))
    assert read(tmp_path / "train_like", "valid.tok") == train
    assert train[0][1].endswith("Jerrys &quot; Show &quot;")
    # the test set, and what is scored, stay
    for name in ("newstest2012.tok", "valid.raw"):
        assert read(tmp_path / "train_like", name) == read(tmp_path / "raw_like", name)
    assert CORPORA["wmt14_en_de"].valid_as_train and CORPORA["wmt14_en_de"].normalise


def test_further_text_follows_that_of_the_archives(raw, tmp_path, corpus):
    for language in LANGUAGES:
        (tmp_path / f"more.{language}").write_text(f"More {language}.\n\n")
    added = [str(tmp_path / "more")] * 2
    counts = prepare_text(corpus, str(raw), str(tmp_path / "out"), added=added)
    expected = [("More en .", "More de .")] * 2
    assert read(tmp_path / "out", "train.tok")[-2:] == expected
    assert [part["name"] for part in counts["parts"][2:]] == added
    with pytest.raises(UsageError, match=r"cannot read .*none\.en"):
        prepare_text(corpus, str(raw), str(tmp_path / "other"), added=[str(tmp_path / "none")])
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "changes, told",
    [
        ({"before_bpe": Cleaning(90, 99, 9)}, "no training pair is left after cleaning"),
        ({"hold_out": 3000}, "too few to validate on every 3000th"),
        ({"train": [Part("http://two.org/wmt02/train.tar", "x")]}, "wmt02.train.tar holds no x.en"),
    ],
)
def test_nothing_of_the_training_text_is_written_in_vain(
    raw, tmp_path, corpus, workers, changes, told
):
    with pytest.raises(UsageError, match=told):
        prepare_text(corpus._replace(**changes), str(raw), str(tmp_path / "out"), workers=workers)
    written = {path.name.partition(".")[0] for path in (tmp_path / "out").iterdir()}
    assert written == {"valid", "newstest2012"}


def test_damage_in_the_last_archive_leaves_no_training_text(raw, tmp_path, corpus):
    content = (raw / "wmt02.train.tar").read_bytes()
    (raw / "wmt02.train.tar").write_bytes(content[: len(content) // 2])
    with pytest.raises(UsageError, match=r"wmt02\.train\.tar"):
        prepare_text(corpus, str(raw), str(tmp_path / "out"))
    assert not list((tmp_path / "out").glob("*train*"))

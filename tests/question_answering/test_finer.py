import pytest

from fairseq_posenc.data import subwords
from fairseq_posenc.data.finer import Finer

TEXTS = [
    "the city of Dresden (1185–1226), 9,000.5 1990s é́clair <unk> <unk>12abc 🙂km",
    "كيلومترًا، 9,104 مليون",
    "กรุงเทพมหานคร 104 กิโลเมตร",
    "人口约2,1104万。（世界第三）",
    "   ",
    "",
]


@pytest.fixture(scope="module")
def models(subwords_folder):
    plain = subwords.load(subwords_folder)
    return plain, Finer(plain)


@pytest.mark.parametrize("text", TEXTS)
def test_finer_pieces_are_of_the_vocabulary_and_cover_the_same_text(models, text):
    plain, finer = models
    known = {*plain.vocabulary(), subwords.UNKNOWN}
    (pieces, spans), (coarse, wide) = (
        finer.pieces_with_offsets(text),
        plain.pieces_with_offsets(text),
    )
    assert set(pieces) <= known and len(pieces) == len(spans)

    def characters(pairs):
        return {i for start, end in pairs for i in range(start, end)}

    assert characters(spans) == characters(wide)
    assert plain.text(pieces) == plain.text(coarse)
    assert pieces.count(subwords.UNKNOWN) == coarse.count(subwords.UNKNOWN)
    assert all(start < end for start, end in spans) and spans == sorted(spans)


def test_letters_digits_and_punctuation_are_parted_and_grouped_numbers_cut_to_digits(models):
    text = "Dresden (1185–1226) had 5100,000 people in 19010s"
    spans = models[1].pieces_with_offsets(text)[1]
    inside = {cut for start, end in spans for cut in range(start + 1, end)}
    for part, offset in [("(1185", 1), ("1185–", 4), ("–1226", 1), ("1226)", 4), ("19010s", 5)]:
        assert text.index(part) + offset not in inside
    number = text.index("5100,000")
    assert inside.isdisjoint(range(number, number + 9))


def test_pieces_within_a_word_stay_as_they_are(models):
    text = "the people of Dresden in year 1185"
    plain, finer = models
    assert finer.pieces_with_offsets(text) == plain.pieces_with_offsets(text)


class Fixed:
    """What `Finer` asks of a model: one that cuts in one way, with a vocabulary to choose."""

    def __init__(self, pieces, spans, vocabulary):
        self.pieces_with_offsets = lambda text: (pieces, spans)
        self.vocabulary = lambda: vocabulary


def test_a_piece_stays_whole_without_pieces_for_its_parts():
    whole = (["▁(1185–1"], [(0, 7)])
    assert Finer(Fixed(*whole, ["▁(", "1185", "–"])).pieces_with_offsets("(1185–1") == whole
    finer = Finer(Fixed(*whole, ["▁", "(", "11", "8", "5", "118", "–", "1"]))
    assert finer.pieces_with_offsets("(1185–1") == (
        ["▁", "(", "118", "5", "–", "1"],
        [(0, 1), (0, 1), (1, 4), (4, 5), (5, 6), (6, 7)],
    )


def test_a_piece_whose_length_was_normalised_away_stays_whole():
    whole = (["▁1⁄2"], [(0, 2)])
    assert Finer(Fixed(*whole, ["▁1", "⁄", "2"])).pieces_with_offsets("a½") == whole


def test_the_unknown_token_stays_whole():
    whole = (["<unk>"], [(0, 5)])
    assert Finer(Fixed(*whole, list("<unk>▁"))).pieces_with_offsets("12abc") == whole

"""Where subwords stand in a text, for any text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_posenc.data import subwords
from fairseq_posenc.data.finer import Finer
from fairseq_posenc.tools.prepare.text.vocabulary import learn_sentencepiece, learn_wordpiece

LINES = [
    "In year 1185 the city of Dresden (1185–1226) had 5100,000 people; naïve café",
    "北京是中华人民共和国的首都，人口约2,100万。",
    "في عام كانت القاهرة عاصمة مصر",
    "ในปี 12 กรุงเทพมหานคร เป็น",
] * 3
# what normalisation shortens, lengthens, drops or takes for a space
ODD = "½⁄ﬁİßǅ\u0301\u200b\x00\ufffd\u00a0 \t▁"
characters = st.one_of(st.sampled_from("".join(LINES) + ODD), st.characters(codec="utf-8"))
texts = st.text(characters, max_size=12)


@pytest.fixture(scope="module", params=["wordpiece", "cased wordpiece", "sentencepiece"])
def model(request, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("subwords"))
    if request.param == "sentencepiece":
        learn_sentencepiece(lambda: iter(LINES), folder, 300, 1.0)
    else:
        learn_wordpiece(lambda: iter(LINES), folder, 300, cased=request.param.startswith("cased"))
    return subwords.load(folder)


def is_nothing(character):
    """Whether a character may belong to no piece."""
    return unicodedata.category(character)[0] in "CZ" or character in "\t\ufffd▁"


@pytest.mark.parametrize("finer", [False, True], ids=["pieces", "finer"])
@given(text=texts)
def test_pieces_stand_in_order_and_leave_out_spaces_alone(model, finer, text):
    pieces, spans = (Finer(model) if finer else model).pieces_with_offsets(text)
    assert len(pieces) == len(spans)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    for one, other in zip(spans, spans[1:]):
        assert one[0] <= other[0] and one[1] <= other[1]
    covered = {place for start, end in spans for place in range(start, end)}
    left = [c for i, c in enumerate(text) if i not in covered]
    assert all(is_nothing(c) or (not spans and unicodedata.combining(c)) for c in left)


@given(text=texts)
def test_offsets_are_those_of_the_pieces_and_all_are_of_the_vocabulary(model, text):
    pieces, spans = model.pieces_with_offsets(text)
    assert pieces == model.pieces(text)
    finer, parts = Finer(model).pieces_with_offsets(text)
    assert set(pieces + finer) <= {*model.vocabulary(), subwords.UNKNOWN}
    for which in (0, 1):
        assert {span[which] for span in spans} <= {part[which] for part in parts}

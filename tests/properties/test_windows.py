"""Windows of any context and question: every token is seen, and answers are exact strings."""

import numpy as np
import pytest
from fairseq.data import Dictionary
from hypothesis import given
from hypothesis import strategies as st

from fairseq_posenc.data import questions
from fairseq_posenc.data.squad import Answer, Question, Questions
from fairseq_posenc.data.windows import (
    Layout,
    WindowDataset,
    covering,
    widest_context,
)

VOCABULARY = 30

layouts = st.builds(
    lambda query, room, stride: Layout(query + room + 3, stride, query),
    st.integers(1, 4), st.integers(1, 8), st.integers(1, 9),
)  # fmt: skip
# a token's text, and the space behind it
tokens = st.tuples(st.text("aé中–1", min_size=1, max_size=3), st.sampled_from(["", " ", "  "]))
indices = st.integers(4, VOCABULARY - 1)


@st.composite
def contexts(draw):
    """A text, its tokens' offsets and indices, and questions as (tokens, first, last, answer)."""
    count = draw(st.integers(1, 20))
    parts = draw(st.lists(tokens, min_size=count, max_size=count))
    text, offsets = "", []
    for word, space in parts:
        offsets.append((len(text), len(text) + len(word)))
        text += word + space
    asked = []
    for _ in range(draw(st.integers(1, 2))):
        first = draw(st.integers(0, len(parts) - 1))
        last = draw(st.integers(first, len(parts) - 1))
        query = draw(st.lists(indices, min_size=1, max_size=6))
        asked.append((query, first, last, text[offsets[first][0] : offsets[last][1]]))
    return text, offsets, [draw(indices) for _ in parts], asked


def written(folder, found, dictionary):
    """Write contexts as a split of a folder and read it; return it and the questions' contexts."""
    dictionary.save(str(folder / "dict.txt"))
    asked = [(context, *question) for context in found for question in context[3]]
    entries = [
        Question(f"q{n}", "?", found.index(context), (Answer(answer, context[1][first][0]),))
        for n, (context, _, first, _, answer) in enumerate(asked)
    ]
    encoded = [(query, []) for _, query, *_ in asked] + [(c[2], c[1]) for c in found]
    texts = Questions([context[0] for context in found], entries, [])
    about = {"language": "en", "metric": "squad"}
    questions.write(str(folder), "train", texts, iter(encoded), VOCABULARY, **about)
    return questions.Split(str(folder), "train"), asked


@pytest.fixture(scope="module")
def dictionary():
    dictionary = Dictionary()
    for index in range(VOCABULARY - len(dictionary)):
        dictionary.add_symbol(f"w{index}")
    return dictionary


def has_most_around_it(windows, token):
    """The number of the window with the best score of a token, of equals the first one."""
    scores = []
    for first, length in windows:
        inside = first <= token < first + length
        margin = min(token - first, first + length - 1 - token)
        scores.append(100 * margin + length if inside else -1)
    return scores.index(max(scores))


@given(layout=layouts, question=st.integers(0, 9), context=st.integers(0, 30))
def test_every_token_begins_answers_in_one_window_the_one_with_most_around_it(
    layout, question, context
):
    windows = layout.cut(question, context)
    owners = {token: [] for token in range(context)}
    for number, (first, length) in enumerate(windows):
        assert min(question, layout.max_query_length) + length + 3 <= layout.max_positions
        for offset, mine in enumerate(widest_context(windows, number)):
            if mine:
                owners[first + offset].append(number)
    for token, numbers in owners.items():
        assert numbers == [has_most_around_it(windows, token)]


@given(
    parts=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), min_size=1, max_size=8),
    start=st.integers(0, 30),
    length=st.integers(1, 9),
)
def test_tokens_of_a_span_are_those_that_share_a_character_with_it(parts, start, length):
    offsets, end = [], 0
    for space, size in parts:
        offsets.append((end + space, end + space + size))
        end += space + size
    span = set(range(start, start + length))
    sharing = [i for i, edges in enumerate(offsets) if span & set(range(*edges))]
    expected = (sharing[0], sharing[-1]) if sharing else None
    assert covering(np.array(offsets), start, start + length) == expected


@given(found=st.lists(contexts(), min_size=1, max_size=2), layout=layouts)
def test_windows_hold_question_and_context_and_say_whether_they_hold_the_answer(
    tmp_path, dictionary, found, layout
):
    split, asked = written(tmp_path, found, dictionary)
    data = WindowDataset(split, "train", dictionary, layout)
    assert len(data) == sum(
        len(layout.cut(len(query), len(context[2]))) for context, query, *_ in asked
    )
    holders = [0] * len(asked)
    begun = [[] for _ in asked]
    for index in range(len(data)):
        window, item = data.window(index), data[index]
        (_, offsets, context, _), query, first, last, answer = asked[window.question]
        part = context[window.first : window.first + window.length]
        query = query[: layout.max_query_length]
        expected = [0, *query, 2, *part, 2]
        assert item["tokens"].tolist() == expected
        assert data.size(index) == len(expected) <= layout.max_positions
        assert item["segments"].tolist() == [0] * (len(query) + 2) + [1] * (len(part) + 1)
        own = range(len(query) + 2, len(query) + 2 + len(part))
        assert item["answerable"].nonzero().flatten().tolist() == list(own)
        begun[window.question] += [
            p - own.start + window.first for p in item["beginnings"].nonzero().flatten().tolist()
        ]
        inside = window.first <= first and last < window.first + window.length
        start, end = item["answer"].tolist()
        if not inside:
            assert (start, end) == (0, 0)
            continue
        holders[window.question] += 1
        assert expected[start : end + 1] == context[first : last + 1]
        tokens = [p - own.start + window.first for p in (start, end)]
        assert split.span_text(window.question, *tokens) == answer
        assert offsets[tokens[0]][0] == split.questions[window.question].answers[0].start
    for (context, query, first, last, _), held, each in zip(asked, holders, begun):
        room = layout.max_positions - 3 - min(len(query), layout.max_query_length)
        overlap = room - min(layout.stride, room)
        assert held or last - first + 1 > overlap + 1
        assert sorted(each) == list(range(len(context[2])))

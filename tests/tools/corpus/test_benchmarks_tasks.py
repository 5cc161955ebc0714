"""Labels of the benchmarks: that they follow from the sentences, and that they can be learned."""

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.corpus.benchmarks import sentences
from fairseq_posenc.tools.corpus.benchmarks.tables import TASKS
from fairseq_posenc.tools.corpus.benchmarks.tongues import tokens
from fairseq_posenc.tools.corpus.benchmarks.unseen import Example, Unseen, shuffled
from fairseq_posenc.tools.corpus.benchmarks.wording import BAD, GOOD
from fairseq_posenc.tools.corpus.dice import Dice
from fairseq_posenc.tools.corpus.lexicon import ADJECTIVES, DETERMINERS, NOUNS

TASK = {task.name: task for task in TASKS}


def examples(name, number=100, unseen=None, seed="1"):
    task = TASK[name]
    return (unseen or Unseen()).split(task.maker, task.labels, number, seed)


def words(text):
    return {word.lower() for word in tokens(text)} - {"."}


def test_unacceptable_sentences_have_an_article_where_none_can_be():
    determiners = {form for row, _ in DETERMINERS for form in row[:2]}
    described = {form for noun in NOUNS for form in noun[:2]} | {
        word.english for word in ADJECTIVES
    }
    for (text,), label, _ in examples("CoLA", 200):
        said = [word.lower() for word in tokens(text)]
        late = any(
            word in ("the", "a", "an") and before in described
            for before, word in zip(said, said[1:])
        )
        assert text[0].isupper() and text.endswith(".")
        assert (late or said[0] not in {*determiners, "an"}) == (label == "0"), text


def test_sentiment_is_that_of_the_adjectives():
    good, bad = ({word.english for word in table} for table in (GOOD, BAD))
    for (text,), label, _ in examples("SST-2"):
        assert text == text.lower()
        said = set(text.split())
        assert bool(said & good) == (label == "1") and bool(said & bad) == (label == "0")


@pytest.mark.parametrize("name", ["MRPC", "QQP"])
def test_the_same_said_twice_differs_in_words(name):
    shared = {"0": [], "1": []}
    for (first, second), label, _ in examples(name):
        assert first != second
        one, two = words(first), words(second)
        shared[label].append(len(one & two) / len(one | two))
    assert sum(shared["1"]) > 1.5 * sum(shared["0"])


def test_similarity_grows_with_the_words_in_common():
    pairs = examples("STS-B", 200)
    for (first, second), score, _ in pairs:
        assert 0 <= float(score) <= 5
        if float(score) == 5:
            assert len(tokens(first)) - len(tokens(second)) in (-1, 0, 1)
    by_score = sorted(pairs, key=lambda pair: float(pair.label))
    overlap = [len(words(one) & words(two)) / len(words(one)) for (one, two), _, _ in by_score]
    assert sum(overlap[-60:]) > 1.5 * sum(overlap[:60])
    assert len({score for _, score, _ in pairs}) > 15


@pytest.mark.parametrize("name", ["MNLI", "RTE"])
def test_what_follows_says_less_and_what_is_neutral_more(name):
    kept = {"a", "an", "very"}
    for (premise, hypothesis), label, _ in examples(name, 200):
        one, two = words(premise) - kept, words(hypothesis) - kept
        if label == sentences.ENTAILMENT:
            assert two < one
        elif label == sentences.NEUTRAL:
            assert one < two
        elif label == sentences.CONTRADICTION:
            assert "never" in two or len(two - one) == 1
        else:
            assert two - one


def test_a_question_is_answered_only_by_a_sentence_that_answers_it():
    kept = {"a", "an", "does", "do", "want", "wants", "to"}
    answered = 0
    for (question, sentence), label, _ in examples("QNLI", 200):
        asked = question.split()[0].lower()
        missing = words(question) - words(sentence) - kept - {asked, "?"}
        place = {"in", "behind", "next"} & words(sentence)
        if label == sentences.ENTAILMENT:
            # "does … see" is answered by "sees"
            assert len(missing) <= 1 and (asked != "where" or place)
            answered += 1
        else:
            assert missing or not place
    assert answered == 100


def test_a_pronoun_means_the_person_of_its_gender():
    genders = {noun.singular: noun.gender for noun in NOUNS}
    for (sentence, claim), label, _ in examples("WNLI", 60):
        pronoun = tokens(sentence.split(" because ")[1])[0]
        claimed = next(word for word in tokens(claim) if word in genders)
        assert (genders[claimed] == {"he": "m", "she": "f"}[pronoun]) == (label == "1")
        named = {genders[word] for word in tokens(sentence) if word in genders}
        assert named == {"m", "f"}


@pytest.mark.parametrize(
    "name, least",
    [("CoLA", 0.7), ("SST-2", 0.95), ("MRPC", 0.65), ("MNLI", 0.6), ("QNLI", 0.6), ("RTE", 0.7)],
)
def test_a_model_of_words_and_bigrams_learns_the_task(name, least):
    text = pytest.importorskip("sklearn.feature_extraction.text")
    linear_model = pytest.importorskip("sklearn.linear_model")

    def marked(split):
        sides = ([f"{at}{word}" for word in ["^", *text.split()]] for at, text in split)
        return " ".join(word for side in sides for word in side)

    unseen = Unseen()
    # 400, for on 100 a share of 0.7 comes out below 0.6 now and then
    dev, train = examples(name, 400, unseen, "dev"), examples(name, 300, unseen, "train")
    counts = text.CountVectorizer(ngram_range=(1, 2), token_pattern=r"\S+")
    features = counts.fit_transform(marked(enumerate(example.texts)) for example in train)
    model = linear_model.LogisticRegression(max_iter=300)
    model.fit(features, [example.label for example in train])
    features = counts.transform(marked(enumerate(example.texts)) for example in dev)
    assert model.score(features, [example.label for example in dev]) > least


def test_splits_share_no_text_and_do_not_depend_on_their_size():
    unseen = Unseen()
    first, second = examples("WNLI", 40, unseen), examples("WNLI", 40, unseen)
    assert not {t for one in first for t in one.texts} & {t for one in second for t in one.texts}
    again = examples("WNLI", 60)
    assert [one[:2] for one in again[:40]] == [one[:2] for one in first]


def test_too_many_examples_are_an_error_not_an_endless_loop():
    unseen = Unseen()

    def one_of_three(scenes, label):
        return Example([scenes.dice.pick("abc")], label)

    unseen.split(one_of_three, "01", 50, "1")
    with pytest.raises(UsageError, match="ask for fewer"):
        unseen.split(one_of_three, "01", 1, "2")


def test_what_is_shuffled_is_all_there():
    orders = {tuple(shuffled("abc", Dice(str(seed)))) for seed in range(100)}
    assert len(orders) == 6 and all(sorted(order) == ["a", "b", "c"] for order in orders)

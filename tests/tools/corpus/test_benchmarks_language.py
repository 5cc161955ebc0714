"""What the benchmarks are made of: scenes, their edits, questions and languages."""

from dataclasses import replace

import pytest

from fairseq_posenc.tools.corpus import english
from fairseq_posenc.tools.corpus.benchmarks import questions, reading, texts, wording
from fairseq_posenc.tools.corpus.benchmarks.scenes import (
    OPTIONAL,
    Scenes,
    content,
    optional_parts,
    without,
)
from fairseq_posenc.tools.corpus.benchmarks.tongues import ENGLISH, TONGUES, tokens
from fairseq_posenc.tools.corpus.dice import Dice
from fairseq_posenc.tools.corpus.lexicon import (
    ADJECTIVES,
    DETERMINERS,
    IN,
    MANNERS,
    MODALS,
    NOUNS,
    TODAY,
    VERBS,
)
from fairseq_posenc.tools.corpus.tree import PERFECT, Adjunct, Clause, Group, Phrase, VerbPhrase

GERMAN = TONGUES["de"]
MODAL = {modal.singular: modal for modal in MODALS}


def phrase(noun, plural=False, adjective=None):
    return Phrase(
        DETERMINERS[0][0],
        next(word for word in NOUNS if word.singular == noun),
        plural,
        next((word for word in ADJECTIVES if word.english == adjective), None),
    )


def scene(subject, verb, thing=None, plural=False, **more):
    verb = next(word for word in VERBS if word.base == verb)
    verb_phrase = VerbPhrase(verb, object=thing and Group([phrase(thing)]), **more)
    return Clause(Group([phrase(subject, plural)]), [verb_phrase])


def in_the(place):
    return [Adjunct(IN, Group([phrase(place)]))]


@pytest.fixture
def scenes():
    return Scenes(Dice("1"))


@pytest.mark.parametrize(
    "tree, role, asked, german",
    [
        (scene("king", "see", "cat"), "subject", "Who sees the cat?", "Wer sieht die Katze?"),
        (
            scene("king", "see", "cat", time=TODAY),
            "object",
            "Whom does the king see?",
            "Wen sieht der König?",
        ),
        (
            scene("king", "call", "doctor", plural=True, tense=MODAL["wants"]),
            "object",
            "Whom do the kings want to call up?",
            "Wen wollen die Könige anrufen?",
        ),
        (
            scene("dog", "help", "girl", tense=PERFECT),
            "object",
            "Whom has the dog helped?",
            "Wem hat der Hund geholfen?",
        ),
        (
            scene("girl", "buy", "hat", tense=MODAL["must"]),
            "object",
            "What must the girl buy?",
            "Was muss das Mädchen kaufen?",
        ),
        (
            scene("man", "wash", "pig", places=in_the("garden"), manner=MANNERS[0]),
            "place",
            "Where does the man wash the pig?",
            "Wo wäscht der Mann das Schwein?",
        ),
        (
            scene("owl", "wake", "mouse", plural=True),
            "subject",
            "Who wakes up the mouse?",
            "Wer weckt die Maus auf?",
        ),
    ],
)
def test_questions_are_put_as_each_language_puts_them(tree, role, asked, german):
    assert ENGLISH.spell(questions.ask(ENGLISH, tree, role)).text == asked
    assert GERMAN.spell(questions.ask(GERMAN, tree, role)).text == german


def test_only_what_is_said_can_be_asked():
    assert questions.roles(scene("king", "sleep")) == ["subject"]
    assert questions.roles(scene("king", "sleep", places=in_the("garden"))) == ["subject", "place"]
    told = scene("king", "see", "cat", places=in_the("garden"))
    assert questions.roles(told) == ["subject", "object", "place"]


def test_nothing_is_asked_that_two_scenes_would_answer():
    told = [
        scene("king", "see", "cat", time=TODAY),
        scene("queen", "see", "cat", places=in_the("garden")),
        scene("king", "sleep"),
    ]
    asked = reading.answerable(told, Dice("1"))
    assert sorted(asked) == [(0, "object"), (1, "object"), (1, "place"), (2, "subject")]


def test_parts_are_found_in_the_sentence_in_every_language(scenes):
    for _ in range(200):
        tree = scenes.draw()
        for tongue in TONGUES.values():
            sentence = [token.lower() for token in tongue.sentence(tree)]
            for role in questions.roles(tree):
                part = [token.lower() for token in tongue.part(tree, role)]
                starts = [
                    at for at in range(len(sentence)) if sentence[at : at + len(part)] == part
                ]
                assert len(starts) == 1


def test_scenes_are_plain_and_edits_leave_them_alone(scenes):
    kinds = set()
    for _ in range(300):
        tree = scenes.draw()
        before = ENGLISH.text(tree)
        parts = optional_parts(tree)
        kinds.update(parts)
        assert len(tree.phrases) == 1 and all(not group.pronominal for group in tree.groups())
        assert optional_parts(without(tree, *parts)) == []
        for edited in (
            *(without(tree, part) for part in parts),
            *(scenes.recast(tree, role) for role in questions.roles(tree)),
            wording.denied(tree),
            wording.judged(tree, wording.GOOD, scenes.dice),
        ):
            assert content(edited) != content(tree)
        wording.reworded(wording.fronted(tree), scenes.dice)
        assert ENGLISH.text(tree) == before
    assert kinds == set(OPTIONAL)


def test_recasting_changes_one_noun_and_nothing_else(scenes):
    tree = scene("king", "see", "cat", places=in_the("garden"))
    words = ENGLISH.text(tree).split()
    for role, place in (("subject", 1), ("object", 4), ("place", 7)):
        other = ENGLISH.text(scenes.recast(tree, role)).split()
        assert [at for at in range(8) if other[at] != words[at]] == [place]


def test_other_words_mean_the_same(scenes):
    tree = scene("child", "find", "box", manner=MANNERS[1], places=in_the("forest"))
    tree = replace(tree, subject=Group([phrase("child", adjective="sad")]))
    said = {ENGLISH.text(wording.reworded(tree, scenes.dice)) for _ in range(100)}
    assert "The unhappy kid discovers the crate silently in the wood." in said
    assert all(" quietly " not in text for text in said)
    for _ in range(100):
        tree = scenes.draw()
        other = wording.reworded(tree, scenes.dice)
        assert content(other) == content(tree) and GERMAN.text(other) == GERMAN.text(tree)


def test_synonyms_are_of_words_of_the_lexicon_and_new_to_it():
    lexicon = {word for noun in NOUNS for word in noun[:2]}
    lexicon |= {word.english for word in ADJECTIVES} | {word.english for word in MANNERS}
    lexicon |= {word for verb in VERBS for word in verb[:3]}
    for table, size in ((wording.NOUNS, 2), (wording.ADJECTIVES, 1), (wording.VERBS, 3)):
        for word, forms in table.items():
            assert word in lexicon and len(forms) == size
            assert not lexicon & set(forms)
    assert set(wording.ADVERBS) == {word.english for word in MANNERS}


def test_synonyms_of_verbs_leave_no_particle_behind(scenes):
    tree = scene("king", "call", "cat", tense=PERFECT)
    said = {ENGLISH.text(wording.reworded(tree, scenes.dice)).split(" ", 2)[2] for _ in range(50)}
    assert said == {"has called up the cat.", "has phoned the cat."}


def test_time_or_place_can_open_a_sentence_and_never_denies_it():
    tree = scene("king", "see", "cat", places=in_the("garden"))
    assert ENGLISH.text(wording.fronted(tree)) == "In the garden the king sees the cat."
    assert GERMAN.text(wording.fronted(tree)) == "Im Garten sieht der König die Katze."
    timed = scene("king", "see", "cat", time=TODAY)
    assert ENGLISH.text(wording.fronted(timed)) == "Today the king sees the cat."
    assert ENGLISH.text(wording.denied(timed)) == "The king never sees the cat."
    assert GERMAN.text(wording.denied(timed)) == "Der König sieht nie die Katze."


def test_judgements_agree_in_german(scenes):
    words = tuple(word for word in wording.BAD if word.english == "ugly")
    tree = scene("king", "sleep")
    said = {GERMAN.text(wording.judged(tree, words, scenes.dice)) for _ in range(50)}
    assert said == {"Der hässliche König schläft.", "Der sehr hässliche König schläft."}


@pytest.mark.parametrize(
    "code, text",
    [
        ("en", "The owl sees a cat."),
        ("de", "Die Eule sieht die Katze."),
        ("ar", "تهِ وشل سِاِس ا صات."),
        ("th", "ตหีอุฮลสีอีสอาคาต"),
        ("zh", "値亇侬佄倆亚丛乒倜。"),
    ],
)
def test_every_language_spells_its_words_where_it_says(code, text):
    tongue = TONGUES[code]
    words = ["Die", "Eule", "sieht", "die", "Katze", "."]
    if code != "de":
        words = ["the", "owl", "sees", "a", "cat", "."]
    spelled = tongue.spell(words)
    assert spelled.text == text
    for token, (start, end) in list(zip(words, spelled.spans))[1:]:
        assert spelled.text[start:end] == tongue.word(token)


@pytest.mark.parametrize("code", ["ar", "th", "zh"])
def test_invented_words_are_as_many_as_english_ones(code, scenes):
    words = {"a", "an", "i", "ii", "aa", "kings", "king"}
    for _ in range(500):
        words |= {word.lower() for word in english.clause(scenes.draw())}
    assert len({TONGUES[code].word(word) for word in words}) == len(words)


def test_answers_are_the_whole_part_then_less_of_it():
    told = scene("king", "see", "cat", places=in_the("garden"))
    found = {
        code: [
            [tongue.text(told)[low:high] for low, high in reading.answer_spans(tongue, told, role)]
            for role in questions.roles(told)
        ]
        for code, tongue in TONGUES.items()
    }
    assert found["de"][1] == ["die Katze", "Katze", "Katze"]
    assert found["en"] == [
        ["The king", "king", "king"],
        ["the cat", "cat", "cat"],
        ["in the garden", "in the garden", "garden"],
    ]
    for code in ("ar", "th", "zh"):
        blank = TONGUES[code].blank
        for spoken, said in zip(found[code], found["en"]):
            words = [TONGUES[code].word(word) for word in said[0].split()]
            assert spoken[0] == blank.join(words) and spoken[2] == words[-1]


def test_passages_leave_alone_what_another_set_tells():
    library = reading.Library(1)
    told = [
        {
            ENGLISH.text(tree)
            for passage in library.passages(reading.Collection("one", "1.1"), 40)
            for tree in passage.scenes
        }
        for _ in range(2)
    ]
    assert not told[0] & told[1]


def test_raw_text_leaves_alone_what_another_split_holds():
    def english_texts(held):
        written = texts.documents("1", 12, held)
        return {texts.english_text(line) for document in written for line in document}

    first = english_texts(set())
    assert len(first) > 90
    assert not first & english_texts(first)


def test_tokens_are_words_and_marks():
    assert tokens("Er sieht, dass du schläfst.") == [
        "Er",
        "sieht",
        ",",
        "dass",
        "du",
        "schläfst",
        ".",
    ]

"""Other words for scenes: English synonyms, praise and blame, denial."""

from dataclasses import replace
from typing import Dict, List, Tuple

from fairseq_posenc.tools.corpus.benchmarks.scenes import with_phrases, with_verb_phrase
from fairseq_posenc.tools.corpus.dice import Dice
from fairseq_posenc.tools.corpus.lexicon import Adjective, Word
from fairseq_posenc.tools.corpus.tree import Clause, Phrase, VerbPhrase

NEVER = Word("never", "nie")

# word of the lexicon, then the forms of its synonym
_NOUNS = """
child kid kids, doctor physician physicians, woman lady ladies, man gentleman gentlemen,
king monarch monarchs, girl lass lasses, teacher tutor tutors, mother mum mums, pig hog hogs,
dog hound hounds, horse pony ponies, book volume volumes, ball sphere spheres,
letter message messages, picture painting paintings, box crate crates, lamp lantern lanterns,
hat cap caps, cup mug mugs, knife blade blades, forest wood woods, city town towns,
house home homes, castle palace palaces, garden park parks, village hamlet hamlets
"""
_ADJECTIVES = """
old aged, small little, big large, beautiful pretty, young youthful, tired weary, sad unhappy,
hungry starving, friendly kind, clever smart, angry furious, famous renowned, new modern,
heavy weighty, cheap inexpensive, quiet silent
"""
_VERBS = """
sleep rest rests rested, laugh giggle giggles giggled, stand rise rises risen,
come return returns returned, see notice notices noticed, find discover discovers discovered,
draw sketch sketches sketched, love adore adores adored, buy purchase purchases purchased,
clean scrub scrubs scrubbed, carry transport transports transported,
hide conceal conceals concealed, throw discard discards discarded,
bring return returns returned, call phone phones phoned,
pick collect collects collected, wake rouse rouses roused, greet welcome welcomes welcomed,
wash rinse rinses rinsed, catch capture captures captured, help assist assists assisted
"""
_ADVERBS = """
slowly leisurely, quietly silently, happily cheerfully, carefully cautiously, quickly fast
"""
_GOOD = """
wonderful wunderbar charming charmant delightful entzückend brilliant brillant graceful anmutig
superb vorzüglich splendid prächtig magnificent großartig
"""
_BAD = """
terrible schrecklich dreadful furchtbar boring langweilig awful grässlich ugly hässlich
clumsy ungeschickt nasty gemein horrible entsetzlich
"""


def _synonyms(table: str) -> Dict[str, List[str]]:
    rows = [row.split() for row in table.split(",")]
    return {row[0]: row[1:] for row in rows}


def _judgements(table: str) -> Tuple[Adjective, ...]:
    words = table.split()
    pairs = zip(words[::2], words[1::2])
    return tuple(Adjective(english, german, german, "patl", True) for english, german in pairs)


NOUNS, ADJECTIVES, VERBS, ADVERBS = map(_synonyms, (_NOUNS, _ADJECTIVES, _VERBS, _ADVERBS))
GOOD, BAD = _judgements(_GOOD), _judgements(_BAD)


def reworded(scene: Clause, dice: Dice) -> Clause:
    """Return the scene in other English words; most words that have a synonym give way to it.

    The German of the scene stays the same.
    """

    def phrase(tree: Phrase) -> Phrase:
        noun, adjective = tree.noun, tree.adjective
        if noun.singular in NOUNS and dice.chance(0.8):
            singular, plural = NOUNS[noun.singular]
            noun = noun._replace(singular=singular, plural=plural)
        if adjective and adjective.english in ADJECTIVES and dice.chance(0.8):
            adjective = adjective._replace(english=ADJECTIVES[adjective.english][0])
        return replace(tree, noun=noun, adjective=adjective)

    verb_phrase: VerbPhrase = scene.phrases[0]
    verb, manner = verb_phrase.verb, verb_phrase.manner
    if verb.base in VERBS and dice.chance(0.8):
        base, third, participle = VERBS[verb.base]
        verb = verb._replace(base=base, third=third, participle=participle, particle="")
    if manner and manner.english in ADVERBS:
        manner = manner._replace(english=ADVERBS[manner.english][0])
    return with_phrases(with_verb_phrase(scene, verb=verb, manner=manner), phrase)


def fronted(scene: Clause) -> Clause:
    """Return the scene with its time or its place, if it has one, at the start."""
    verb_phrase = scene.phrases[0]
    if verb_phrase.time:
        return with_verb_phrase(replace(scene, front=verb_phrase.time), time=None)
    if verb_phrase.places:
        front, *rest = verb_phrase.places
        return with_verb_phrase(replace(scene, front=front), places=rest)
    return scene


def judged(scene: Clause, words: Tuple[Adjective, ...], dice: Dice) -> Clause:
    """Return the scene with one of these adjectives before the subject's noun, perhaps others."""

    def change(tree: Phrase) -> Phrase:
        if tree is not subject and dice.chance(0.6):
            return tree
        return replace(tree, adjective=dice.pick(words), very=dice.chance(0.2))

    subject = scene.subject.members[0]
    return with_phrases(scene, change)


def denied(scene: Clause) -> Clause:
    """Return the scene as one that never happens."""
    return with_verb_phrase(scene, frequency=NEVER, time=None)

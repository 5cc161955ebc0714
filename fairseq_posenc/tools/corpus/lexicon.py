"""The words of both languages, with what the grammar must know about each.

Every English word has one German counterpart. Nouns of the German n-declension are left out, and
so are English nouns whose plural looks like the singular: nothing may be lost on the way to German.
Classes of nouns: ``p`` person, ``a`` animal, ``t`` thing, ``l`` place.
"""

from typing import List, NamedTuple, Tuple

NOMINATIVE, ACCUSATIVE, DATIVE = "nominative", "accusative", "dative"


class Noun(NamedTuple):
    """A noun; ``gender`` is m, f or n."""

    singular: str
    plural: str
    german: str
    german_plural: str
    gender: str
    kind: str


class Adjective(NamedTuple):
    """An adjective; ``stem`` takes the endings, ``kinds`` are the classes of nouns it suits."""

    english: str
    german: str
    stem: str
    kinds: str
    gradable: bool


class Verb(NamedTuple):
    """A verb with its frame.

    ``particle`` follows the English verb ("calls up"), ``preposition`` opens its object ("listens
    to"), ``prefix`` is the separable one of the German verb. ``frame`` is intransitive, motion
    (a direction follows), transitive, ditransitive, clausal (a that-clause follows) or copula.
    ``adjuncts`` are those it may take: m manner, c companion, p place.
    """

    base: str
    third: str
    participle: str
    particle: str
    preposition: str
    prefix: str
    german_third: str
    infinitive: str
    german_participle: str
    auxiliary: str
    case: str
    subjects: str
    objects: str
    frame: str
    adjuncts: str


class Pronoun(NamedTuple):
    """A personal pronoun; ``gender`` is that of the persons it needs, "" for none."""

    subject: str
    object: str
    nominative: str
    accusative: str
    dative: str
    plural: bool
    gender: str


class Determiner(NamedTuple):
    """An article or its like; ``pattern`` names the endings it takes (see german.py)."""

    singular: str
    plural: str
    stem: str
    pattern: str


class Modal(NamedTuple):
    """A modal verb, third person singular and plural on both sides."""

    singular: str
    plural: str
    german_singular: str
    german_plural: str


class Word(NamedTuple):
    """A word that is never inflected."""

    english: str
    german: str


class Preposition(NamedTuple):
    """A preposition and the case it governs; the English one may be several words."""

    english: Tuple[str, ...]
    german: str
    case: str


_NOUNS = """
baker bakers Bäcker Bäcker m p         doctor doctors Arzt Ärzte m p
king kings König Könige m p            teacher teachers Lehrer Lehrer m p
man men Mann Männer m p                brother brothers Bruder Brüder m p
gardener gardeners Gärtner Gärtner m p woman women Frau Frauen f p
queen queens Königin Königinnen f p    mother mothers Mutter Mütter f p
sister sisters Schwester Schwestern f p aunt aunts Tante Tanten f p
girl girls Mädchen Mädchen n p         child children Kind Kinder n p
cat cats Katze Katzen f a              dog dogs Hund Hunde m a
horse horses Pferd Pferde n a          bird birds Vogel Vögel m a
mouse mice Maus Mäuse f a              goose geese Gans Gänse f a
wolf wolves Wolf Wölfe m a             pig pigs Schwein Schweine n a
owl owls Eule Eulen f a                ball balls Ball Bälle m t
book books Buch Bücher n t             letter letters Brief Briefe m t
key keys Schlüssel Schlüssel m t       cup cups Tasse Tassen f t
lamp lamps Lampe Lampen f t            knife knives Messer Messer n t
apple apples Apfel Äpfel m t           hat hats Hut Hüte m t
picture pictures Bild Bilder n t       box boxes Kiste Kisten f t
egg eggs Ei Eier n t                   garden gardens Garten Gärten m l
kitchen kitchens Küche Küchen f l      castle castles Schloss Schlösser n l
house houses Haus Häuser n l           school schools Schule Schulen f l
forest forests Wald Wälder m l         church churches Kirche Kirchen f l
village villages Dorf Dörfer n l       tower towers Turm Türme m l
city cities Stadt Städte f l           museum museums Museum Museen n l
"""

_ADJECTIVES = """
old alt alt patl yes         small klein klein patl yes    big groß groß patl yes
beautiful schön schön patl yes  young jung jung pa yes     tired müde müd pa yes
sad traurig traurig pa yes   hungry hungrig hungrig pa yes friendly freundlich freundlich pa yes
clever klug klug pa yes      angry wütend wütend pa yes    famous berühmt berühmt pl yes
new neu neu tl yes           red rot rot t no              blue blau blau t no
heavy schwer schwer t yes    cheap billig billig t yes     empty leer leer tl no
quiet ruhig ruhig l yes
"""

# base third participle particle preposition | prefix third infinitive participle auxiliary case |
# subjects objects frame adjuncts; "-" for none
_VERBS = """
sleep sleeps slept - - | - schläft schlafen geschlafen haben - | pa - intransitive mcp
sing sings sung - - | - singt singen gesungen haben - | pa - intransitive mcp
dance dances danced - - | - tanzt tanzen getanzt haben - | pa - intransitive mcp
laugh laughs laughed - - | - lacht lachen gelacht haben - | p - intransitive mcp
wait waits waited - - | - wartet warten gewartet haben - | pa - intransitive mp
work works worked - - | - arbeitet arbeiten gearbeitet haben - | p - intransitive mcp
play plays played - - | - spielt spielen gespielt haben - | pa - intransitive mcp
stand stands stood up - | auf steht stehen gestanden sein - | pa - intransitive m
fall falls fallen asleep - | ein schläft schlafen geschlafen sein - | pa - intransitive mp
come comes come back - | zurück kommt kommen gekommen sein - | pa - intransitive mc
go goes gone - - | - geht gehen gegangen sein - | pa - motion mc
jump jumps jumped - - | - springt springen gesprungen sein - | pa - motion mc
see sees seen - - | - sieht sehen gesehen haben accusative | pa patl transitive p
find finds found - - | - findet finden gefunden haben accusative | pa patl transitive cp
draw draws drawn - - | - zeichnet zeichnen gezeichnet haben accusative | p patl transitive mcp
forget forgets forgotten - - | - vergisst vergessen vergessen haben accusative | p patl transitive -
love loves loved - - | - liebt lieben geliebt haben accusative | pa patl transitive -
look looks looked - at | an sieht sehen gesehen haben accusative | pa patl transitive mcp
visit visits visited - - | - besucht besuchen besucht haben accusative | p pl transitive c
clean cleans cleaned - - | - putzt putzen geputzt haben accusative | p tl transitive mcp
buy buys bought - - | - kauft kaufen gekauft haben accusative | p t transitive cp
sell sells sold - - | - verkauft verkaufen verkauft haben accusative | p t transitive cp
carry carries carried - - | - trägt tragen getragen haben accusative | p at transitive mcp
hide hides hidden - - | - versteckt verstecken versteckt haben accusative | pa t transitive mcp
throw throws thrown away - | weg wirft werfen geworfen haben accusative | p t transitive mc
bring brings brought back - | zurück bringt bringen gebracht haben accusative | pa t transitive mc
call calls called up - | an ruft rufen gerufen haben accusative | p p transitive cp
pick picks picked up - | ab holt holen geholt haben accusative | p p transitive mcp
invite invites invited - - | ein lädt laden geladen haben accusative | p p transitive c
wake wakes woken up - | auf weckt wecken geweckt haben accusative | pa pa transitive mcp
greet greets greeted - - | - grüßt grüßen gegrüßt haben accusative | p p transitive mp
wash washes washed - - | - wäscht waschen gewaschen haben accusative | p at transitive mcp
feed feeds fed - - | - füttert füttern gefüttert haben accusative | p a transitive mcp
catch catches caught - - | - fängt fangen gefangen haben accusative | pa a transitive mcp
follow follows followed - - | - folgt folgen gefolgt sein dative | pa pa transitive mc
help helps helped - - | - hilft helfen geholfen haben dative | p pa transitive mp
thank thanks thanked - - | - dankt danken gedankt haben dative | p p transitive mp
trust trusts trusted - - | - vertraut vertrauen vertraut haben dative | pa pa transitive -
listen listens listened - to | zu hört hören gehört haben dative | pa pa transitive mcp
belong belongs - - to | - gehört gehören - haben dative | t p transitive -
give gives given - - | - gibt geben gegeben haben both | p t ditransitive mp
show shows shown - - | - zeigt zeigen gezeigt haben both | p tl ditransitive mp
send sends sent - - | - schickt schicken geschickt haben both | p t ditransitive -
say says said - - | - sagt sagen gesagt haben - | p - clausal -
believe believes believed - - | - glaubt glauben geglaubt haben - | p - clausal -
hope hopes hoped - - | - hofft hoffen gehofft haben - | p - clausal -
know knows known - - | - weiß wissen gewusst haben - | p - clausal -
be is - - - | - ist sein - - - | patl - copula -
"""

PRONOUNS = (
    Pronoun("he", "him", "er", "ihn", "ihm", False, "m"),
    Pronoun("she", "her", "sie", "sie", "ihr", False, "f"),
    Pronoun("they", "them", "sie", "sie", "ihnen", True, ""),
    Pronoun("we", "us", "wir", "uns", "uns", True, ""),
)

DETERMINERS = (
    (Determiner("the", "the", "d", "the"), 60.0),
    (Determiner("a", "", "ein", "ein"), 18.0),
    (Determiner("this", "these", "dies", "dies"), 6.0),
    (Determiner("every", "", "jed", "dies"), 3.0),
    (Determiner("our", "our", "unser", "ein"), 3.0),
    (Determiner("his", "his", "sein", "ein"), 3.0),
    (Determiner("her", "her", "ihr", "ein"), 3.0),
    (Determiner("", "two", "zwei", "numeral"), 4.0),
    (Determiner("", "three", "drei", "numeral"), 4.0),
    (Determiner("", "many", "viel", "many"), 4.0),
)

MODALS = (
    Modal("can", "can", "kann", "können"),
    Modal("must", "must", "muss", "müssen"),
    Modal("should", "should", "sollte", "sollten"),
    Modal("will", "will", "wird", "werden"),
    Modal("wants", "want", "will", "wollen"),
)

FREQUENCIES = (Word("often", "oft"), Word("always", "immer"), Word("sometimes", "manchmal"))
TODAY, NOW = Word("today", "heute"), Word("now", "jetzt")
LATER = (Word("tomorrow", "morgen"), Word("soon", "bald"))
MANNERS = (
    Word("slowly", "langsam"),
    Word("quietly", "leise"),
    Word("happily", "fröhlich"),
    Word("carefully", "vorsichtig"),
    Word("quickly", "schnell"),
)
AND, BUT, THAT, VERY = Word("and", "und"), Word("but", "aber"), Word("that", "dass"), "sehr"
REASONS = (Word("because", "weil"), Word("although", "obwohl"))
OCCASIONS = (Word("when", "wenn"), Word("while", "während"), Word("before", "bevor"))

COMPANIONS = (
    Preposition(("with",), "mit", DATIVE),
    Preposition(("for",), "für", ACCUSATIVE),
    Preposition(("without",), "ohne", ACCUSATIVE),
)
IN, INTO = Preposition(("in",), "in", DATIVE), Preposition(("into",), "in", ACCUSATIVE)
SURROUNDINGS = (
    Preposition(("behind",), "hinter", DATIVE),
    Preposition(("next", "to"), "neben", DATIVE),
    Preposition(("in", "front", "of"), "vor", DATIVE),
)


def _rows(table: str, width: int) -> List[List[str]]:
    fields = ["" if field == "-" else field for field in table.replace("|", " ").split()]
    return [fields[start : start + width] for start in range(0, len(fields), width)]


NOUNS = tuple(Noun(*row) for row in _rows(_NOUNS, 6))
ADJECTIVES = tuple(
    Adjective(english, german, stem, kinds, gradable == "yes")
    for english, german, stem, kinds, gradable in _rows(_ADJECTIVES, 5)
)


def _verb(row: List[str]) -> Verb:
    english, german, frame = row[:5], row[5:11], row[11:]
    return Verb(*english, *german, *frame)


VERBS = tuple(_verb(row) for row in _rows(_VERBS, 15))

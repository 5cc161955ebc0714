"""The words of both languages, with what the grammar must know about each.

Every English word has one German counterpart. Nouns of the German n-declension are left out, and
so are English nouns whose plural looks like the singular: nothing may be lost on the way to German.
"""

from collections import namedtuple
from typing import List

NOMINATIVE, ACCUSATIVE, DATIVE = "nominative", "accusative", "dative"

# gender: m, f, n; kind: p person, a animal, t thing, l place
Noun = namedtuple("Noun", "singular plural german german_plural gender kind")
# stem: what takes the endings; kinds of nouns that it suits; gradable: "very" may go before it
Adjective = namedtuple("Adjective", "english german stem kinds gradable")
# particle: "calls up"; preposition of the object: "listens to"; prefix: the separable one of the
# German verb; kinds of nouns that are its subjects and objects; frame: intransitive, motion (a
# direction follows), transitive, ditransitive, clausal (a that-clause follows) or copula; adjuncts
# that it may take: m manner, c companion, p place
Verb = namedtuple(
    "Verb",
    "base third participle particle preposition prefix german_third infinitive german_participle "
    "auxiliary case subjects objects frame adjuncts",
)
# gender: that of the persons it needs in the document, "" for none
Pronoun = namedtuple("Pronoun", "subject object nominative accusative dative plural gender")
# pattern: the name of the endings it takes (see german.py)
Determiner = namedtuple("Determiner", "singular plural stem pattern")
Modal = namedtuple("Modal", "singular plural german_singular german_plural")
# a word that is never inflected
Word = namedtuple("Word", "english german")
# the English one may be several words; case: that of the German one
Preposition = namedtuple("Preposition", "english german case")


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
old alt alt patl very                   small klein klein patl very
big groß groß patl very                 beautiful schön schön patl very
young jung jung pa very                 tired müde müd pa very
sad traurig traurig pa very             hungry hungrig hungrig pa very
friendly freundlich freundlich pa very  clever klug klug pa very
angry wütend wütend pa very             famous berühmt berühmt pl very
new neu neu tl very                     red rot rot t -
blue blau blau t -                      heavy schwer schwer t very
cheap billig billig t very              empty leer leer tl -
quiet ruhig ruhig l very
"""

# the fields of Verb; "-" for none
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
    Preposition("with", "mit", DATIVE),
    Preposition("for", "für", ACCUSATIVE),
    Preposition("without", "ohne", ACCUSATIVE),
)
IN, INTO = Preposition("in", "in", DATIVE), Preposition("into", "in", ACCUSATIVE)
SURROUNDINGS = (
    Preposition("behind", "hinter", DATIVE),
    Preposition("next to", "neben", DATIVE),
    Preposition("in front of", "vor", DATIVE),
)


def rows(table: str, width: int) -> List[List[str]]:
    """Return the rows of a table, all of this many fields; "-" is an empty field, "|" nothing."""
    fields = ["" if field == "-" else field for field in table.replace("|", " ").split()]
    return [fields[start : start + width] for start in range(0, len(fields), width)]


NOUNS = [Noun(*row) for row in rows(_NOUNS, 6)]
ADJECTIVES = [Adjective(*row) for row in rows(_ADJECTIVES, 5)]
VERBS = [Verb(*row) for row in rows(_VERBS, 15)]

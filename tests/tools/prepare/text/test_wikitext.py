"""MediaWiki's markup: what stays as text and what goes."""

import time

import pytest

from fairseq_posenc.tools.prepare.text.wikitext import HIDDEN, paragraphs

CASES = {
    "bold and links": ("'''A''' is ''the'' [[b]] [[Bar (place)|Bar]]s.", ["A is the b Bars."]),
    "templates": ("A {{x|y={{z|{{{p|}}}}}\n|q}}b.", ["A b."]),
    "template with table": ("{{x|\n{|\n| a\n|}}}\nText.", ["Text."]),
    "kept templates": (
        "{{lang|fr|mot}}, {{lang-de|Wort}}, {{convert|5|km|mi}}, {{nowrap|a b}}.",
        ["mot, Wort, 5 km, a b."],
    ),
    "chemistry": (
        "H{{sub|2}}O, H<sub>2</sub>O, {{chem|H|2|O}}, {{chem2|H2O}} and <chem>H2O</chem>.",
        ["H2O, H2O, H2O, H2O and H2O."],
    ),
    "mathematics": (
        "{{math|''x''<sup>2</sup>}} + {{mvar|y}}{{sup|3}} is {{math|1=z = 5}}.",
        ["x2 + y3 is z = 5."],
    ),
    "numbers": (
        "{{frac|2}}, {{frac|2|3}}, {{sfrac|1|2|3}}; {{val|5.2|0.1|u=km}}; {{convert|5|to|9|km|mi}};"
        " {{gaps|1|234}}; {{US$|5}}.",
        ["1/2, 2/3, 1 2/3; 5.2 km; 5 to 9 km; 1234; US$5."],
    ),
    "years": ("{{circa|1500}}, {{c.|1|2}}, {{As of|2010}}.", ["c. 1500, c. 1–2, As of 2010."]),
    "quotations": (
        "He said:{{quote|It ''was'' [[Bar (place)|a bar]].|author=[[B]]|source=c}}Then"
        "{{Blockquote|text=one}} {{Zitat|zwei|Autor}}.",
        ["He said:", "It was a bar.", "Then", "one", "zwei"],
    ),
    "quotations by a name": ("{{quote|author=[[B]]|quote=one}} {{val|5|ul=km}}", ["one", "5 km"]),
    "names and empty parts": ("A{{not_a_typo|b|}} {{circa||1500|}}.", ["Ab c. 1500."]),
    "stray ends in templates": ("{{nowrap|a]] b|c}}", ["a b"]),
    "languages": ("{{langx|de|Wort}}, {{transl|ar|ALA|kitab}}, a{{lang|fr}}.", ["Wort, kitab, a."]),
    "signs": ("A{{snd}}b{{'}}s{{nbsp}}c{{ndash}}{{ill|D|de|E}}.", ["A – b's c–D."]),
    "templates in one another": (
        "{{quote|{{nowrap|{{convert|5|km}} {{cn|date={{x}}}}}} b}} {{x|{{lang|fr|mot}}}}",
        ["5 km b"],
    ),
    "unclosed template": ("One {{x | y\nTwo.", ["One Two."]),
    "stray ends": ("A }} b ]] c.", ["A b c."]),
    "unclosed link": ("A [[b c.", ["A b c."]),
    "infobox end": ("{{x\n|a=1\n|b=\n|}}\nText.", ["Text."]),
    "tables": ('A.\n{| class="x"\n! h\n|-\n| c || {| \n| d\n|}\n|}\nB.', ["A.", "B."]),
    "references": ('A<ref name="a">b [[c]]</ref><ref name=b />, d<ref name="a" />.', ["A, d."]),
    "unclosed reference": ("A<ref>b. C<ref>d</ref> e.", ["Ab. C e."]),
    "nested elements": ("A<ref>b <math>c</math> d</ref> e<gallery>\nx|y</gallery>f.", ["A ef."]),
    "formulas": ("If <math>x < y</math> then.", ["If then."]),
    "comments": ("A<!-- b\n\n<ref> --> c<!-- d", ["A c"]),
    "headings": ("A.\n== B ==\nC.\n=== D === \nE.", ["A.", "C.", "E."]),
    "lists": ("A:\n* b\n# c\n; d\n: e\nF.", ["A:", "F."]),
    "paragraphs": ("A\nb.\n\nC.", ["A b.", "C."]),
    "line breaks": ("A<br />b<br>c.", ["A b c."]),
    "tags": ('A<sup id="x">2</sup> <span style="y">b</span>.', ["A2 b."]),
    "files": ("[[File:a b.jpg|thumb|A [[cat]]s [[File:c.png]] x]]B.", ["B."]),
    "files by their ending": ("[[Bild:a.JPG|mini|x]]B.", ["B."]),
    "categories": ("A.\n[[Category:B]]\n[[de:C]]\n[[zh-yue:D]]", ["A."]),
    "links to categories": ("See [[:Category:B|those]].", ["See those."]),
    "web links": ("A [https://a.b/c?d label] and [http://e.f] b.", ["A label and b."]),
    "entities": ("3&nbsp;km &amp; &lt;b&gt; &#8211; x", ["3 km & <b> – x"]),
    "nowiki": ("A <nowiki>[[b]] {{c}} ''d''</nowiki>.", ["A [[b]] {{c}} ''d''."]),
    "switches": ("__NOTOC__A.", ["A."]),
    "empty brackets": ("A ({{IPA|x}}; {{lang|el|Α}}) b ( , ;) c（{{x}}）.", ["A (Α) b c."]),
    "chinese variants": ("A -{zh-hans:简; zh-hant:繁}- -{B}- -{H|zh:C}-d.", ["A 简 B d."]),
    "apostrophes": ("It's John's.", ["It's John's."]),
    "arabic": ("'''برلين''' هي [[عاصمة|عاصمة]] [[ألمانيا]].", ["برلين هي عاصمة ألمانيا."]),
    "no words": ("{{a}} .\n----\n1 2 3\n", []),
    "nothing": ("", []),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_markup(name):
    text, expected = CASES[name]
    assert paragraphs(text) == expected


def test_namespaces_of_the_wiki_hide_links():
    text = "[[Kategorie:X]]A [[Wikipedia:B|b]]."
    assert paragraphs(text, HIDDEN | {"kategorie"}) == ["A b."]
    assert paragraphs(text) == ["Kategorie:XA b."]


BROKEN = "{{ [[ ]] }} <ref> </ref> {| |} <nowiki> <br {{lang| [http:// -{ (, '' = <!-{ &".split()
BROKEN += [
    "{{quote|",
    "{{math|a|b}}",
    "{{chem|[[|",
    "|",
    "{{math|{{x}} ",
    " ",
    "\n",
    "{",
    "{{convert|",
    "{{lang|a|b ",
    "(",
    "<",
    "''",
]


@pytest.mark.parametrize("piece", BROKEN)
def test_broken_markup_takes_no_more_time_than_its_length(piece):
    started = time.process_time()
    paragraphs(piece * (100_000 // len(piece)))
    assert time.process_time() - started < 5

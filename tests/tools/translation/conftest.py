"""Small archives in the layout of WMT's, and text that is hard to tokenise."""

import random

import pytest
import regex
from sacrebleu.dataset import DATASETS
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from fairseq_posenc.tools.translation.corpora import Cleaning, Corpus, Part

SOURCES = ["Tom &amp; Jerry’s &quot;show&quot;", "a &lt; b", "it&#39;s 5%", "Plain   words ."]
TARGETS = ["Tom &amp; Jerrys „Show“", "a &lt; b", "er ist’s", "Einfache\tWörter ."]
PIECES = [
    *"abcdefXYZäßÉžč0123456789", *" " * 12, *"\"'`.,;:!?()[]{}<>|&%$#@-_/\\+=*~^", *"«»„“”‘’‚´–—…º",
    *"\u00a0\u00a0\u2028\x85\r\t\x0b\x1c\u200b\u00ad\ufeff\x07\ue000", *"中文かな한국",
    "...", "....", " :", " ;", "('", '."', '.,"', "''", "z.B.", "Dr. ", "No. 5 ", "U.S.", " a.",
    "e-mail", "d'un ", "n't ", "5,300", "1 000", "1\u00a0000", "« ", "\u00a0»", "nº\u00a0",
    ",\u00a0",
]  # fmt: skip


@pytest.fixture(scope="session")
def hard_lines():
    """Lines of odd characters next to each other, no two alike."""
    dice = random.Random(1)
    lines = ["".join(dice.choices(PIECES, k=dice.randint(0, 40))) for _ in range(400)]
    # a rule for several lines at once must not see the next line's beginning
    return lines + ['He said "yes."', "< no >", '"Ja."', " (", ") .", ",", "5", " %", "'", "''", ""]


def tokenise_slowly(lines, moses):
    """What sacremoses makes of each line by itself."""
    normaliser, tokenizer = MosesPunctNormalizer(moses.language), MosesTokenizer(moses.language)
    for line in lines:
        if moses.normalise:
            line = normaliser.normalize(line.strip())
        if moses.printable:
            line = regex.sub(r"\p{C}", " ", line)
        yield tokenizer.tokenize(line, moses.aggressive, return_str=True, escape=moses.escape)


def sgm(sentences):
    lines = ['<srcset setid="newstest" srclang="any">', '<doc docid="1" genre="news">', "<p>"]
    for number, sentence in enumerate(sentences, 1):
        lines.append(f'<seg id="{number}"> {sentence}  </seg>')
    return [*lines, "</p>", "</doc>", "</srcset>"]


@pytest.fixture
def make_test_set(make_archive):
    """A function that writes the archive of one of sacreBLEU's sets, for English to German."""

    def make(raw, name, sources=SOURCES, targets=TARGETS):
        members = DATASETS[name].langpairs["en-de"]
        year = name.partition("/")[0]
        path = raw / f"{year}.{DATASETS[name].data[0].rpartition('/')[2]}"
        return make_archive(path, dict(zip(members, [sgm(sources), sgm(targets)])))

    return make


@pytest.fixture
def corpus():
    """A corpus of two archives, and of two test sets whose archives' names end alike."""
    return Corpus(
        source="en",
        target="de",
        train=[
            Part("http://one.org/wmt01/train.tgz", "training/news.de-en"),
            Part("http://two.org/wmt02/train.tar", "giga.fixed", ".gz"),
        ],
        valid="wmt13",
        tests={"newstest2012": "wmt12"},
        operations=50,
        normalise=True,
        aggressive=True,
        before_bpe=Cleaning(1, 80, 9),
        plain_quotes=True,
    )


@pytest.fixture
def training_text(hard_lines):
    """Sentence pairs in two parts: hard ones, and ones for cleaning to drop."""
    odd = [("", "b"), ("a", " "), ("a " * 81, "b " * 81), ("a " * 80, "b " * 80), ("a", "b " * 10)]
    return [
        [*zip(hard_lines, reversed(hard_lines))],
        [*odd, *((f"word {number}.", f"Wort {number}.") for number in range(1100))],
    ]


@pytest.fixture
def raw(tmp_path, make_archive, make_test_set, training_text):
    """The folder of downloads of the corpus."""
    folder = tmp_path / "raw"
    sides = [list(zip(*pairs)) for pairs in training_text]
    members = dict(zip(["./training/news.de-en.en", "./training/news.de-en.de"], sides[0]))
    other = {"training/news.cs-en.en": ["other"], "training/news.de-en.ennui": ["other"]}
    make_archive(folder / "wmt01.train.tgz", {**other, **members})
    members = dict(zip(["giga.fixed.en.gz", "giga.fixed.de.gz"], sides[1]))
    make_archive(folder / "wmt02.train.tar", dict(reversed(list(members.items()))))
    make_test_set(folder, "wmt13")
    make_test_set(folder, "wmt12", SOURCES * 2, TARGETS * 2)
    return folder

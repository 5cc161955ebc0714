"""The parallel corpora of the papers: where their files are, and how the papers prepare them.

WMT's test and validation sets are sacreBLEU's own, with its addresses and checksums.
"""

import re
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple, Union

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.translation.cleaning import Cleaning

_STATMT = "http://www.statmt.org"
_DATA = "http://data.statmt.org"
EUROPARL = f"{_STATMT}/wmt13/training-parallel-europarl-v7.tgz"
COMMON_CRAWL = f"{_STATMT}/wmt13/training-parallel-commoncrawl.tgz"
# wit3.fbk.eu, where it came from, no longer has it
IWSLT14 = "http://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz"
# The TED talks as IWSLT gives them, line by line as in fairseq's
# examples/translation/prepare-iwslt14.sh: nothing is parsed as XML, so that entities stay
_TED = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
_LINES_TO_DROP = ("<url>", "<talkid>", "<keywords>")
_TAGS = re.compile("</?(?:title|description)>")
_SEGMENT = re.compile(r'<seg id="[0-9]*">\s*|\s*</seg>\s*')


def _ted_training(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of ``train.tags.<pair>.<language>`` but for addresses, numbers and keywords.

    Titles and descriptions are sentences like any other, without their tags.
    """
    for line in lines:
        if not any(tag in line for tag in _LINES_TO_DROP):
            yield _TAGS.sub("", line)


def _ted_segments(lines: Iterable[str]) -> Iterator[str]:
    """Yield the segments of ``IWSLT14.TED….xml``, a line each, with ’ made '."""
    for line in lines:
        if "<seg id" in line:
            yield _SEGMENT.sub("", line).replace("’", "'")


class Part(NamedTuple):
    """Two files of an archive: ``stem`` and a language, ``training/europarl-v7.de-en`` + ``.de``.

    ``suffix`` follows the language, as ``.gz`` does where files are compressed inside the archive.
    ``sentences`` are those among the lines of a file, all by default.
    With ``columns``, by language and from 0, ``stem`` is a pattern of compressed tables.
    """

    url: str
    stem: str
    suffix: str = ""
    sentences: Callable[[Iterable[str]], Iterator[str]] = iter
    columns: Optional[Dict[str, int]] = None


# sacreBLEU's name of a test set, or the parts that it is made of, one after the other
TestText = Union[str, Tuple[Part, ...]]


class Corpus(NamedTuple):
    """A corpus and its preparation.

    Attributes:
        source, target: languages.
        train: parts, in this order; none of a test set alone.
        valid: sacreBLEU's name of the validation set, or None: every ``hold_out``-th training pair
            of those that ``before_bpe`` keeps.
        tests: test sets, name -> sacreBLEU's name of the set, or its parts.
        operations: of the joint BPE.
        normalise: normalise punctuation and remove characters that do not print, in training text.
        valid_as_train: prepare the validation set as training text, rather than as the test sets.
        aggressive: split words at hyphens (``@-@``), the tokeniser's option ``-a``.
        before_bpe, after_bpe: cleaning of the training pairs, in words or in subwords.
        plain_quotes: write ’ as ' in the tokens of test sets, as the papers' scripts do.
        lowercase: all tokens.
    """

    source: str
    target: str
    train: List[Part]
    valid: Optional[str]
    tests: Dict[str, TestText]
    operations: int
    normalise: bool = False
    aggressive: bool = False
    before_bpe: Optional[Cleaning] = None
    after_bpe: Optional[Cleaning] = None
    hold_out: Optional[int] = None
    plain_quotes: bool = False
    valid_as_train: bool = False
    lowercase: bool = False


def _news(*years: int) -> Dict[str, TestText]:
    names = {year: f"wmt{year % 100}" + ("/full" if year == 2014 else "") for year in years}
    return {f"newstest{year}": name for year, name in names.items()}


def _usual(pair: str, commentary: Tuple[str, str]) -> List[Part]:
    return [
        Part(EUROPARL, f"training/europarl-v7.{pair}"),
        Part(COMMON_CRAWL, f"commoncrawl.{pair}"),
        Part(*commentary),
    ]


_NC9 = f"{_STATMT}/wmt14/training-parallel-nc-v9.tgz"
_NC10 = f"{_STATMT}/wmt15/training-parallel-nc-v10.tgz"
_NC11 = f"{_DATA}/wmt16/translation-task/training-parallel-nc-v11.tgz"
_NC12 = f"{_DATA}/wmt17/translation-task/training-parallel-nc-v12.tgz"
_NC13 = f"{_DATA}/wmt18/translation-task/training-parallel-nc-v13.tgz"
_CZENG = Part(  # 1.0, where Tensor2Tensor's translate_encs_wmt32k has it from
    "https://lindat.mff.cuni.cz/repository/xmlui/bitstream/handle/11234/1-1458/data-plaintext-format.tar",
    "*train.gz",
    columns={"cs": 2, "en": 3},
)
_MOSES = Cleaning(1, 80, 9)

CORPORA: Dict[str, Corpus] = {
    # SHAPE, appendix A, after Ott et al. 2018, whose text Google's wmt16_en_de prepared
    "wmt16_en_de": Corpus(
        "en",
        "de",
        _usual("de-en", (_NC11, "training-parallel-nc-v11/news-commentary-v11.de-en")),
        valid="wmt13",
        tests=_news(2010, 2011, 2012, 2013, 2014, 2015, 2016),
        operations=32000,
        before_bpe=_MOSES,
    ),
    # the same test set alone, for recipes/anchors.sh
    "newstest2014_en_de": Corpus("en", "de", [], None, _news(2014), operations=32000),
    # CAPE, appendix D; ADMIN's recipe
    "wmt14_en_de": Corpus(
        "en",
        "de",
        _usual("de-en", (_NC12, "training/news-commentary-v12.de-en")),
        valid="wmt13",
        tests=_news(2014),
        operations=32764,
        normalise=True,
        aggressive=True,
        before_bpe=_MOSES,
        plain_quotes=True,
        valid_as_train=True,
    ),
    "wmt14_en_fr": Corpus(
        "en",
        "fr",
        [
            Part(EUROPARL, "training/europarl-v7.fr-en"),
            Part(COMMON_CRAWL, "commoncrawl.fr-en"),
            Part(f"{_STATMT}/wmt13/training-parallel-un.tgz", "un/undoc.2000.fr-en"),
            Part(_NC9, "training/news-commentary-v9.fr-en"),
            Part(f"{_STATMT}/wmt10/training-giga-fren.tar", "giga-fren.release2.fixed", ".gz"),
        ],
        valid=None,
        tests=_news(2014),
        operations=40000,
        normalise=True,
        aggressive=True,
        after_bpe=Cleaning(1, 250, 1.5),
        hold_out=1333,
        plain_quotes=True,
    ),
    # Chen et al., section 4.3: the corpora of the shared tasks of these years. The paper does not
    # tell how it prepares them; Tensor2Tensor, which it uses, normalises no text and validates on
    # newstest2013, as Vaswani et al. do
    "wmt15_en_de": Corpus(
        "en",
        "de",
        _usual("de-en", (_NC10, "news-commentary-v10.de-en")),
        valid="wmt13",
        tests=_news(2015),
        operations=32000,
        before_bpe=_MOSES,
    ),
    "wmt18_en_cs": Corpus(
        "en",
        "cs",
        [_CZENG, *_usual("cs-en", (_NC13, "training-parallel-nc-v13/news-commentary-v13.cs-en"))],
        valid="wmt13",
        tests=_news(2015),
        operations=32000,
        before_bpe=_MOSES,
    ),
    # fairseq's examples/translation/prepare-iwslt14.sh
    "iwslt14_de_en": Corpus(
        "de",
        "en",
        [Part(IWSLT14, "de-en/train.tags.de-en", "", _ted_training)],
        valid=None,
        tests={
            "iwslt14": tuple(
                Part(IWSLT14, f"de-en/IWSLT14.{name}.de-en", ".xml", _ted_segments) for name in _TED
            )
        },
        operations=10000,
        before_bpe=Cleaning(1, 175, 1.5),
        hold_out=23,
        plain_quotes=True,
        lowercase=True,
    ),
}


def named(name: str) -> Corpus:
    """Return a corpus by its name, which may have its languages in either order."""
    if name in CORPORA:
        return CORPORA[name]
    year, source, target = name.split("_") if name.count("_") == 2 else (name, "", "")
    reverse = f"{year}_{target}_{source}"
    if reverse not in CORPORA:
        raise UsageError(
            f"no corpus is called {name!r}; there are {', '.join(CORPORA)}, and their reverses"
        )
    return CORPORA[reverse]._replace(source=source, target=target)

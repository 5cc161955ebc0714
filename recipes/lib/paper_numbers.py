"""Numbers that papers tell of their data and models, and whether ours are the same.

That is a checksum of the whole way from the archives, as far as the number has digits.
"""

from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from recipes.lib.wmt_data import CorpusSetting

# corpus, form, what is counted, the paper's number, and how far from it ours may be, as a share of
# it
NUMBERS = [
    ("wmt16_en_de", "vanilla", "pairs", 4500000, 0.02),
    ("wmt16_en_de", "vanilla", "parameters", 61000000, 0.01),
    ("wmt16_en_de", "extrapolate", "pairs", 3900000, 0.02),
    ("wmt16_en_de", "interpolate", "pairs", 450000, 0.02),
    ("wmt14_en_de", "vanilla", "α", 1.0337, 0.001),
    ("wmt14_en_fr", "vanilla", "α", 1.1632, 0.001),
    ("iwslt14_de_en", "vanilla", "pairs", 160239, 0),
    ("iwslt14_de_en", "vanilla", "validation", 7283, 0),
    ("iwslt14_de_en", "vanilla", "test", 6750, 0),
]


def compare_with_paper(say: Callable[[str], object], setting: "CorpusSetting") -> None:
    """Tell each number that is not the paper's."""
    for corpus, form, name, number, share in NUMBERS:
        if (corpus, form) == (setting.corpus, setting.form):
            counted = count(setting, name)
            if abs(counted / number - 1) > share:
                say(
                    f"note: [{setting.name}] {name}: {_shown(counted)}, "
                    f"the paper's {_shown(number)}: it is not the same text"
                )


def _shown(number: float) -> str:
    return f"{number:.6g}" if number % 1 else f"{number:.0f}"


def count(setting: "CorpusSetting", name: str) -> float:
    """Return a number of our data or models.

    pairs, validation and test are pairs of text; α is target by source subwords; parameters are
    those of Transformer base with this vocabulary for both languages.
    """
    data, source, target = setting.data, setting.source, setting.target
    if name == "α":
        words = [
            _count(f"{data}/train.bpe.{language}", bytes.split) for language in (source, target)
        ]
        return words[1] / words[0]
    if name == "parameters":
        # 44,140,544 without embeddings; fairseq adds <s>, <pad>, </s> and <unk>
        return 44140544 + 512 * (4 + _count(f"{setting.bin}/dict.{source}.txt"))
    files = {"pairs": "train.bpe", "validation": "valid.bpe", "test": "tests"}
    return _count(f"{data}/{files[name]}.{source}")


def _count(path: str, parts: Callable[[bytes], list] = lambda line: [line]) -> int:
    with open(path, "rb") as stream:
        return sum(len(parts(line)) for line in stream)

"""Our recipes against the authors' steps, on frozen pairs, from archives to subwords.

authors.json has, by corpus, raw pairs (a number behind a pair: so many in a row) and what Moses'
Perl scripts and subword-nmt make of them, as a slow preparation by the scripts' rules once computed
it; and, as ``departures``, where sacremoses and Python differ from the scripts, with an example
each: corpus, language, what Moses does, what we do, a line, Moses' tokens of it, ours.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple, Tuple

import pytest
from sacrebleu.dataset import DATASETS

from fairseq_posenc.data.segmentation import tokenise_lines
from fairseq_posenc.files import read_lines
from fairseq_posenc.tools.translation.corpora import named
from fairseq_posenc.tools.translation.segmentation import moses_of_tests, moses_of_training
from fairseq_posenc.tools.translation.sources import saved_name

FROZEN = json.loads(Path(__file__).with_name("authors.json").read_text(encoding="utf-8"))
DEPARTURES = FROZEN.pop("departures")
EUROPARL = "wmt13.training-parallel-europarl-v7.tgz training/europarl-v7."
CRAWL = "wmt13.training-parallel-commoncrawl.tgz commoncrawl."
NEWS = "wmt{}.translation-task.training-parallel-nc-v{}.tgz "
NEWS += "training{}/news-commentary-v{}."
TED = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
CZENG = "repository.xmlui.bitstream.handle.11234.1-1458.data-plaintext-format.tar"


class Recipe(NamedTuple):
    """What prepares a corpus, and the archives and stems that its text comes from.

    ``tests`` has sacreBLEU's names of the test sets; the last stage is that of subwords or before.
    """

    script: str
    setting: str
    parts: Tuple[str, ...]
    tests: Tuple[str, ...] = ()
    stage: int = 3


RECIPES = {
    # ADMIN's scripts, which CAPE follows
    "wmt14_en_de": Recipe(
        "cape/run", "de6",
        (EUROPARL + "de-en", CRAWL + "de-en", NEWS.format(17, 12, "", 12) + "de-en"),
        ("wmt13", "wmt14/full"), stage=4,
    ),
    "wmt14_en_fr": Recipe(
        "cape/run", "fr6",
        (EUROPARL + "fr-en", CRAWL + "fr-en", "wmt13.training-parallel-un.tgz un/undoc.2000.fr-en",
         "wmt14.training-parallel-nc-v9.tgz training/news-commentary-v9.fr-en",
         "wmt10.training-giga-fren.tar giga-fren.release2.fixed"),
        ("wmt14/full",), stage=4,
    ),
    # Google's wmt16_en_de, from which Ott et al. and SHAPE have their text
    "wmt16_en_de": Recipe(
        "shape/run", "vanilla",
        (EUROPARL + "de-en", CRAWL + "de-en",
         NEWS.format(16, 11, "-parallel-nc-v11", 11) + "de-en"),
        ("wmt13", "wmt10", "wmt11", "wmt12", "wmt13", "wmt14/full", "wmt15", "wmt16"),
    ),
    # our reading of Chen et al., who name the corpora only: the same steps
    "wmt18_en_cs": Recipe(
        "rel_scalar/translate", "en-cs",
        (EUROPARL + "cs-en", CRAWL + "cs-en",
         NEWS.format(18, 13, "-parallel-nc-v13", 13) + "cs-en"),
        ("wmt13", "wmt15"),
    ),
    # fairseq's prepare-iwslt14.sh
    "iwslt14_de_en": Recipe("iwslt14", "de-en", ("de-en.tgz de-en/train.tags.de-en",)),
}  # fmt: skip


def pairs(corpus, name):
    """Return frozen pairs, each as often as it stands in a row."""
    return [(a, b) for a, b, *times in FROZEN[corpus][name] for _ in range(*times or [1])]


def archives(corpus, recipe):
    """Return the downloads: name of the archive -> member -> lines."""
    found, languages = defaultdict(dict), corpus.split("_")[1:]
    train, tests = pairs(corpus, "raw train"), pairs(corpus, "raw tests")
    size = -(-len(train) // len(recipe.parts))
    for side, language in enumerate(languages):
        for number, part in enumerate(recipe.parts):
            archive, stem = part.split(" ")
            lines = [pair[side] for pair in train[number * size :][:size]]
            if corpus.startswith("iwslt"):
                tagged = (("<url>http://x</url>", f"<title>{line}</title>") for line in lines)
                lines = [line for both in tagged for line in both]
            suffix = ".gz" if archive.endswith(".tar") else ""
            found[archive][f"{stem}.{language}{suffix}"] = lines
        sgm = [f'<seg id="{n}"> {pair[side]} </seg>' for n, pair in enumerate(tests, 1)]
        for title in () if recipe.tests else TED:
            found["de-en.tgz"][f"de-en/IWSLT14.{title}.de-en.{language}.xml"] = sgm
        for test in recipe.tests:
            member = DATASETS[test].langpairs["-".join(languages)][side]
            found[saved_name(DATASETS[test].data[0])][member] = sgm
    if "cs" in languages:
        found[CZENG] = {"data/01train.gz": ["1\t1\tAhoj.\tHello."]}
    return found


@pytest.mark.parametrize("corpus", FROZEN)
def test_text_is_that_of_the_authors_steps(run, tmp_path, make_archive, corpus):
    recipe, text = RECIPES[corpus], tmp_path / "text" / corpus
    for archive, members in archives(corpus, recipe).items():
        make_archive(tmp_path / "raw" / archive, members)
    run(
        "bash", f"recipes/{recipe.script}.sh", "--stage", 2, "--stop-stage", recipe.stage,
        "--settings", recipe.setting, "--raw-dir", tmp_path / "raw", "--run-dir", tmp_path,
        "--bpe", 300, "--workers", 1, "--device", "cpu", "--jobs", 1,
    )  # fmt: skip

    def made(name):
        files = (read_lines(f"{text / name}.{language}") for language in corpus.split("_")[1:])
        return list(zip(*([" ".join(line.split()) for line in lines] for lines in files)))

    tests = read_lines(str(text / "tests"))
    assert len(tests) == max(1, len(recipe.tests) - (corpus != "wmt14_en_fr"))
    for name in FROZEN[corpus]:
        split, _, kind = name.partition(".")
        expected = pairs(corpus, name)
        if kind == "tok" and split == "test":
            copies = len(made(f"{tests[0]}.tok")) // len(expected)
            assert copies == (1 if recipe.tests else len(TED))
            assert all(made(f"{test}.tok") == expected * copies for test in tests)
        elif kind:
            assert made("newstest2014.bpe" if split == "test" else name) == expected, name


@pytest.mark.parametrize("departure", DEPARTURES, ids=lambda departure: departure[2])
def test_a_departure_from_moses_is_as_listed(departure):
    name, language, _, _, line, theirs, ours = departure
    tokens = [
        tokenise_lines([line], moses(named(name))._replace(language=language))[0]
        for moses in (moses_of_training, moses_of_tests)
    ]
    assert ours in [" ".join(found.split()) for found in tokens] and ours != theirs

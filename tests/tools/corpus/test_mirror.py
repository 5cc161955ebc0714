"""The generated mirror of WMT's sites: all that the corpora need is there, in the real formats."""

import copy
import gzip
import html
import os
import re
import tarfile
from pathlib import Path

import pytest
from sacrebleu.dataset import DATASETS

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.corpus.mirror import Sizes, text, write_mirror
from fairseq_posenc.tools.corpus.mirror.text import _EUROPEAN, _TO_CZECH, _TO_FRENCH
from fairseq_posenc.tools.prepare.parallel.corpora import CORPORA

PAIRS, TESTED = 400, 19
SIZES = Sizes(PAIRS, TESTED, seed=3)
TEST_PAIRS = [
    (corpus, name)
    for corpus in CORPORA
    for name in sorted({*CORPORA[corpus].tests.values(), CORPORA[corpus].valid} - {None})
]


@pytest.fixture(scope="module")
def mirror(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mirror")
    write_mirror(str(folder), sizes=SIZES)
    return folder


def place(mirror, url):
    return mirror / re.fullmatch(r"https?://[^/]*statmt\.org/(.+)", url)[1]


def lines_of(mirror, part, language):
    """Return the lines of one side of a training file, as only newlines end them."""
    with tarfile.open(place(mirror, part.url)) as archive:
        raw = archive.extractfile(f"{part.stem}.{language}{part.suffix}").read()
    raw = gzip.decompress(raw) if part.suffix else raw
    assert raw.endswith(b"\n")
    return raw.decode("utf-8").split("\n")[:-1]


def sides(mirror, corpus, number=0):
    part = CORPORA[corpus].train[number]
    languages = (CORPORA[corpus].source, CORPORA[corpus].target)
    return [lines_of(mirror, part, language) for language in languages]


def fields(mirror, tmp_path, name, pair):
    """Return what sacreBLEU reads for a pair of a test set: field -> lines."""
    data = copy.copy(DATASETS[name])
    data._outdir, data._rawdir = str(tmp_path), str(tmp_path / "raw")
    data.maybe_download = lambda: None
    with tarfile.open(place(mirror, data.data[0])) as archive:
        archive.extractall(data._rawdir)
    files = (Path(file).read_text("utf-8").splitlines() for file in data.get_files(pair))
    return dict(zip(data.fieldnames(pair), files))


def files(folder):
    return {
        os.path.relpath(os.path.join(base, name), folder): Path(base, name).read_bytes()
        for base, _, names in os.walk(folder)
        for name in names
    }


@pytest.mark.parametrize("corpus", CORPORA)
def test_every_training_file_of_the_table_is_there_and_aligned(mirror, corpus):
    for number, part in enumerate(CORPORA[corpus].train):
        for lines in sides(mirror, corpus, number):
            assert len(lines) == PAIRS, part


@pytest.mark.parametrize("corpus, name", TEST_PAIRS)
def test_sacrebleu_reads_every_test_set_in_both_directions(mirror, tmp_path, corpus, name):
    source, target = CORPORA[corpus].source, CORPORA[corpus].target
    there = fields(mirror, tmp_path / "1", name, f"{source}-{target}")
    back = fields(mirror, tmp_path / "2", name, f"{target}-{source}")
    assert {len(lines) for lines in there.values()} == {TESTED}
    assert "" not in there["src"] + there["ref"]
    assert (there["src"], there["ref"]) == (back["ref"], back["src"])
    assert set(there["origlang"]) == {"en", "de"} and set(there["genre"]) == {"news"}
    assert len(set(there["docid"])) == 3


def test_every_archive_has_all_pairs_of_the_table(mirror):
    with tarfile.open(mirror / "wmt13" / "training-parallel-europarl-v7.tgz") as archive:
        pairs = ("de-en.de", "de-en.en", "fr-en.fr", "fr-en.en", "cs-en.cs", "cs-en.en")
        assert set(archive.getnames()) == {f"training/europarl-v7.{pair}" for pair in pairs}
    with tarfile.open(mirror / "wmt15" / "test.tgz") as archive:
        names = archive.getnames()
    assert "test/newsdiscusstest2015-enfr-ref.fr.sgm" in names and len(names) == len(set(names))
    assert len(names) == 12


def test_test_sets_are_sgm_with_entities(mirror):
    with tarfile.open(mirror / "wmt14" / "test-full.tgz") as archive:
        name = "test-full/newstest2014-deen-"
        source = archive.extractfile(f"{name}src.en.sgm").read().decode("utf-8")
        reference = archive.extractfile(f"{name}ref.de.sgm").read().decode("utf-8")
    assert source.startswith('<srcset setid="newstest2014" srclang="any">\n<doc sysid="ref" docid=')
    assert reference.startswith('<refset setid="newstest2014" srclang="any" trglang="de">\n<doc ')
    assert source.endswith("</doc>\n</srcset>\n") and reference.endswith("</doc>\n</refset>\n")
    numbers = [
        int(found) for found in re.findall(r'^<seg id="(\d+)"> \S.*\S </seg>$', source, re.M)
    ]
    assert numbers == [*range(1, 9), *range(1, 9), 1, 2, 3]
    inside = "".join(re.findall("<seg[^>]*>(.*)</seg>", source))
    assert not set('<>"') & set(inside)
    assert set(re.findall("&.*?;", inside)) == {"&amp;", "&lt;", "&gt;", "&quot;"}
    assert "’" in inside and '"' in html.unescape(inside)


def test_no_test_sentence_comes_twice_or_in_training_text(monkeypatch):
    # short sentences are few, so that chance would repeat them
    monkeypatch.setattr(text, "LENGTHS", (3, 4))
    monkeypatch.setattr(text, "ornamented", lambda pair, number: {"en": pair.english})
    texts = text.Texts(Sizes(500, 100), ["wmt13", "wmt15"])
    tests = [
        line["en"] for name in ("wmt13", "wmt15") for part in texts.test(name) for line in part
    ]
    train = {line["en"] for line in texts.train("europarl")}
    assert len(set(tests)) == len(tests) == 200
    assert len(train) > 100 and not train.intersection(tests)


def too_long(one, other):
    return min(one, other) > 80


def empty(one, other):
    return min(one, other) == 0


def lopsided(one, other):
    return not empty(one, other) and max(one, other) > 9 * min(one, other)


@pytest.mark.parametrize("corpus", CORPORA)
def test_a_few_pairs_are_there_to_be_cleaned_away(mirror, corpus):
    pairs = list(zip(*sides(mirror, corpus)))
    counts = [tuple(len(text.split()) for text in pair) for pair in pairs]
    assert sum(too_long(*count) for count in counts) == PAIRS // 100
    assert sum(empty(*count) for count in counts) == 3 * PAIRS // 100
    assert sum(count[0] == 0 < count[1] for count in counts) == PAIRS // 100
    assert sum(count[1] == 0 < count[0] for count in counts) == PAIRS // 100
    assert sum(lopsided(*count) for count in counts) == 2 * PAIRS // 100
    assert {one < other for one, other in filter(lambda c: lopsided(*c), counts)} == {True, False}


@pytest.mark.parametrize("corpus", CORPORA)
def test_odd_characters_are_in_some_lines_on_both_sides(mirror, corpus):
    for lines in sides(mirror, corpus):
        for character in '\t\u00a0\r\u0085\u2028\u200b\u00ad\ufeff\x07"&<':
            assert 0 < sum(character in line for line in lines) < PAIRS / 2, character
        assert any("   " in line for line in lines)
        assert any(line.startswith("  ") and line.endswith(" \t") for line in lines)


def test_both_sides_of_a_line_have_the_same_ornaments(mirror):
    for one, other in zip(*sides(mirror, "wmt14_en_fr")):
        if one and other and not lopsided(len(one.split()), len(other.split())):
            assert ("“" in one) == ("«" in other) and ("&" in one) == ("&" in other)


def test_invented_languages_say_one_word_for_one_and_forget_nothing(mirror):
    for table in (_TO_FRENCH, _TO_CZECH):
        letters = _EUROPEAN.translate(table)
        assert len(set(letters)) == len(_EUROPEAN) and letters.isalpha() and letters.islower()
        assert _EUROPEAN[:-1].upper().translate(table) == letters[:-1].upper()
    english, french = sides(mirror, "wmt14_en_fr")
    german, czech = sides(mirror, "wmt16_en_de")[1], sides(mirror, "wmt18_en_cs")[1]
    plain = [number for number in range(PAIRS) if number % 8 in (1, 3, 6) and number % 5 == 1]
    assert [len(english[number].split()) for number in plain] == [
        len(french[number].split()) for number in plain
    ]
    assert [german[number].translate(_TO_CZECH) for number in plain] == [
        czech[number] for number in plain
    ]
    assert sides(mirror, "wmt16_en_de")[0] == english


@pytest.mark.parametrize("corpus", CORPORA)
def test_there_are_enough_words_for_subwords(mirror, corpus):
    for lines in sides(mirror, corpus):
        assert len({word for line in lines for word in line.split()}) > 500


def test_the_same_seed_gives_the_same_bytes_whatever_the_corpora(mirror, tmp_path):
    write_mirror(str(tmp_path), ["wmt14_en_fr", "wmt18_en_cs"], SIZES)
    whole, part = files(mirror), files(tmp_path)
    assert 5 < len(part) < len(whole) and part.items() <= whole.items()
    write_mirror(str(tmp_path / "other"), ["wmt14_en_fr"], SIZES._replace(seed=4))
    other = files(tmp_path / "other")
    assert all(part[name] != content for name, content in other.items())


def test_what_is_there_is_left_alone_and_what_lacks_is_added(mirror, tmp_path):
    sizes = Sizes(10, 2)
    write_mirror(str(tmp_path), ["wmt15_en_de"], sizes)
    first = files(tmp_path)
    kept, lost = tmp_path / "wmt15" / "test.tgz", tmp_path / "wmt14" / "test-full.tgz"
    kept.write_bytes(b"mine")
    lost.unlink()
    shown = []
    for _ in range(2):
        write_mirror(
            str(tmp_path), ["wmt15_en_de"], sizes, lambda paths: shown.append(paths) or paths
        )
    assert shown == [["wmt14/test-full.tgz"]]
    assert files(tmp_path) == {**first, "wmt15/test.tgz": b"mine"}


def test_bad_requests_are_refused_and_write_nothing(tmp_path):
    with pytest.raises(UsageError, match="no corpus is called 'wmt99'"):
        write_mirror(str(tmp_path), ["wmt14_en_fr", "wmt99"])
    for sizes in (Sizes(pairs=0), Sizes(test_pairs=0)):
        with pytest.raises(UsageError, match="at least one pair"):
            write_mirror(str(tmp_path), sizes=sizes)
    assert not os.listdir(tmp_path)
    write_mirror(str(tmp_path), ["wmt15_en_de"], Sizes(5, 2))
    with pytest.raises(
        UsageError, match="--pairs 5 --test-pairs 2 --seed 1, not with --pairs 5 --t"
    ):
        write_mirror(str(tmp_path), ["wmt15_en_de"], Sizes(5, 3))


def test_the_script_writes_the_corpora_that_were_asked_for(run, start, tmp_path):
    command = [
        "python",
        "-m",
        "fairseq_posenc.tools.corpus.make_mirror",
        "--output",
        tmp_path,
        "--pairs",
        5,
    ]
    run(*command, "--test-pairs", 2, "--seed", 7, "--corpora", "wmt14_en_de,wmt15_de_en")
    assert (tmp_path / "settings").read_text() == "--pairs 5 --test-pairs 2 --seed 7\n"
    assert (tmp_path / "wmt15" / "training-parallel-nc-v10.tgz").exists()
    assert not (tmp_path / "wmt10").exists()
    process = start(*command, "--corpora", "wmt14_de_fr")
    assert process.communicate()[0].count("\n") == 1 and process.returncode == 1

"""SHAPE, Table 1: a sentence at the start and at the end of a joined input."""

from argparse import Namespace

import pytest
from fairseq.data import Dictionary

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.analyses import swap as module
from fairseq_posenc.tools.analyses.swap import parts, swap

SEP = 4


@pytest.fixture
def analyse(corpus):
    def analyse(*models, **options):
        options = {"data": corpus.path, "cpu": True, "max_len_b": 3, **options}
        return swap(models=list(models), **options)

    return analyse


@pytest.fixture
def oracle(monkeypatch, corpus, trained):
    """A function that puts a translator with the references at hand in the model's place.

    It translates sentence by sentence, whatever their order, and `spoils` what it has done. The
    function returns the list of what the translator is given.
    """
    pairs = trained("sinusoidal").pairs("train")
    lexicon = {}
    for pair in pairs:
        sides = [parts(pair[side].tolist()[:-1], SEP) for side in ("source", "target")]
        lexicon.update({tuple(s): t for s, t in zip(*sides)})
    # a sentence that occurs twice has two translations, and 100 % cannot be reached
    assert len(lexicon) == 3 * len(pairs)

    def oracle(spoil=lambda sentences: sentences):
        seen = []

        def translate(trained, sources, search, max_tokens):
            seen.append(sources)
            orders = [[lexicon[tuple(s)] for s in parts(source, SEP)] for source in sources]
            return [module.join(spoil(sentences), SEP) for sentences in orders]

        monkeypatch.setattr(module, "_translate", translate)
        return seen

    return oracle


def figures(report):
    found = report.data["models"]["x"]
    return [found[key] for key in ("original", "swapped", "drop")]


def wrong(report):
    found = report.data["models"]["x"]
    return [found["wrong_original"], found["wrong_swapped"]]


def test_a_translator_that_sees_no_order_loses_nothing(analyse, checkpoint, oracle):
    sources = oracle()
    report = analyse(checkpoint("sinusoidal", name="x"))
    original, swapped = ([parts(source, SEP) for source in order] for order in sources)
    assert [[*rest, first] for first, *rest in original] == swapped
    assert figures(report) == pytest.approx([100, 100, 0]) and wrong(report) == [0, 0]
    assert report.data["pairs"] == 40


def test_what_is_bad_at_the_end_drops(analyse, checkpoint, oracle):
    oracle(lambda sentences: [*sentences[:-1], [5] * len(sentences[-1])])
    original, swapped, drop = figures(analyse(checkpoint("sinusoidal", name="x")))
    assert original == pytest.approx(100) and swapped < 20 and drop == original - swapped


def test_first_and_last_parts_count_whatever_the_separators(analyse, checkpoint, oracle):
    oracle(lambda sentences: [sentences[0], [6], *sentences[1:]])
    report = analyse(checkpoint("sinusoidal", name="x"), pairs=10)
    assert figures(report) == pytest.approx([100, 100, 0]) and wrong(report) == [10, 10]
    assert "x 10 and 10" in report.notes[1]


def test_outputs_are_those_of_fairseq_one_by_one(trained, corpus):
    model = trained("shaw")
    # a share of the source would be of the longest source in the batch, in fairseq
    search = Namespace(beam=3, max_len_a=0, max_len_b=9)
    sources = [[7, 8, 9], [10, 11, 12, 13, 14, 15, 16], [7]]
    together = module._translate(model, sources, search, max_tokens=12)
    alone = [module._translate(model, [source], search, max_tokens=100)[0] for source in sources]
    assert together == alone and all(0 < len(output) <= 9 for output in alone)
    assert all(corpus.dictionary.eos() not in output for output in together)


def test_subwords_are_joined_and_punctuation_is_detokenised():
    dictionary = Dictionary()
    tokens = [dictionary.add_symbol(word) for word in ("Hal@@", "lo", ",", "Welt", "!")]
    line = [*tokens, dictionary.unk()]
    assert module._texts([line], dictionary, "@@ ", "de") == ["Hallo, Welt! <unk>"]
    references = module._texts([line], dictionary, "@@ ", "de", escape_unk=True)
    assert references == ["Hallo, Welt! <<unk>>"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": "<nothing>"}, "no <nothing>"),
        ({"separator": "unused", "subset": "test"}, "no pair of 'test'"),
        ({"pairs": 0}, "--pairs must be 1"),
    ],
)
def test_bad_options_are_refused(analyse, checkpoint, options, message):
    with pytest.raises(UsageError, match=message):
        analyse(checkpoint("sinusoidal"), **options)

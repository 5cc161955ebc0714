"""Sampling of languages."""

import pytest

from fairseq_posenc.tools.bert.sampling import repeat, repetitions, spread


def stream(count):
    for number in range(count):
        yield f"{number}a"
        yield f"{number}b"
        yield None


def documents(lines):
    return [line[:-1] for line in lines if line is not None and line.endswith("a")]


@pytest.mark.parametrize("exponent", [0, 0.3, 0.7, 1])
def test_shares_become_powers_of_shares_and_the_largest_language_is_read_once(exponent):
    sizes = {"en": 10000, "de": 2500, "sw": 16}
    times = repetitions(sizes, exponent)
    assert times["en"] == 1 and min(times.values()) == 1
    read = {language: size * times[language] for language, size in sizes.items()}
    for language, size in sizes.items():
        share = size**exponent / sum(other**exponent for other in sizes.values())
        assert read[language] / sum(read.values()) == pytest.approx(share)


def test_a_fraction_is_a_chance_of_every_document_and_depends_on_the_key():
    def extra(key):
        lines = list(repeat(lambda: stream(2000), 1.25, key))
        assert lines.count(None) * 2 == len(lines) - lines.count(None)
        assert documents(lines)[:2000] == [str(number) for number in range(2000)]
        return documents(lines)[2000:]

    chosen = extra("1 de")
    # binomial, standard deviation 19
    assert 420 < len(chosen) < 580 and len(set(chosen)) == len(chosen)
    assert chosen == extra("1 de")
    assert chosen != extra("2 de") and chosen != extra("1 en")
    # the same on every machine
    assert chosen[:3] == ["7", "9", "10"]


@pytest.mark.parametrize("limit, count", [(0, 20), (7, 7), (20, 20), (99, 20), (1, 1)])
def test_lines_are_thinned_evenly(limit, count):
    lines = list(spread(stream(10), 20, limit))
    assert len(lines) == count and None not in lines
    places = [line for line in stream(10) if line is not None]
    gaps = [places.index(b) - places.index(a) for a, b in zip(lines, lines[1:])]
    assert not gaps or max(gaps) - min(gaps) <= 1
    assert lines[-1] == places[-1]

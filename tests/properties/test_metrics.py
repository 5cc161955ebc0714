"""Scores against formulas written out, and parts of a test set that make up the whole."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU as SacreBleu

from fairseq_posenc.tools.results.bleu import Scorer as TranslationScorer
from fairseq_posenc.tools.results.bleu import corpus_score
from fairseq_posenc.tools.results.lengths import by_edges, by_percentiles
from fairseq_posenc.tools.results.texts import Texts

sentences = st.lists(st.sampled_from("abcd."), max_size=9).map(" ".join)


@given(
    lengths=st.lists(st.integers(0, 60), min_size=1, max_size=40),
    edges=st.sets(st.integers(1, 50), min_size=1, max_size=5),
    percentiles=st.booleans(),
)
def test_every_length_is_in_one_bin_and_bins_rise(lengths, edges, percentiles):
    bins = by_percentiles(lengths) if percentiles else by_edges(sorted(edges))
    members = [part.members(lengths) for part in bins]
    assert sorted(sum(members, [])) == list(range(len(lengths)))
    for lower, upper in zip(members, members[1:]):
        assert not (lower and upper) or max(lengths[i] for i in lower) < min(
            lengths[i] for i in upper
        )
    if not percentiles:
        tops = [*sorted(edges), math.inf]
        for part, top, bottom in zip(members, tops, [-1, *tops]):
            assert part == [i for i, length in enumerate(lengths) if bottom < length <= top]


@given(
    lines=st.lists(st.tuples(sentences, sentences), min_size=1, max_size=8),
    edge=st.integers(1, 8),
)
def test_figures_of_bins_add_up_to_those_of_the_whole(lines, edge):
    hypotheses, references = (list(side) for side in zip(*lines))
    texts = Texts(hypotheses, references, hypotheses, references)
    scorer = TranslationScorer("de")
    summands = scorer.statistics(texts)
    bins = by_edges([edge])
    members = [part.members([len(line.split()) for line in references]) for part in bins]
    whole, *parts = (scorer.score(summands, chosen) for chosen in (None, *members))
    assert whole["sentences"] == len(lines) == sum(part["sentences"] for part in parts)
    details = [part["tokenised_detail"] for part in parts if part["sentences"]]
    for name, side in (("hypothesis_tokens", hypotheses), ("reference_tokens", references)):
        tokens = sum(len(line.split()) for line in side)
        assert tokens == sum(detail[name] for detail in details)
        assert tokens == whole["tokenised_detail"][name]


@given(
    lines=st.lists(st.tuples(sentences, sentences), min_size=1, max_size=8),
    drawn=st.lists(st.integers(0, 7), min_size=1, max_size=8),
)
def test_bleu_of_summed_statistics_is_that_of_the_sentences(lines, drawn):
    drawn = [index % len(lines) for index in drawn]
    hypotheses, references = (list(side) for side in zip(*lines))
    texts = Texts(hypotheses, references, hypotheses, references)
    summands = TranslationScorer("de").statistics(texts)["sacrebleu"]
    found = corpus_score("sacrebleu", summands[np.array(drawn)].sum(axis=0))
    chosen = [[side[i] for i in drawn] for side in (hypotheses, references)]
    expected = SacreBleu(trg_lang="de").corpus_score(chosen[0], [chosen[1]]).score
    assert found == pytest.approx(expected, abs=1e-9)

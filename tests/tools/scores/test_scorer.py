import math
import random

import pytest
import sacrebleu

from fairseq_posenc.tools.scores import texts as results
from fairseq_posenc.tools.scores.scorer import DEFAULT, Scorer


def slow_bleu(hypotheses, references):
    """BLEU (Papineni et al. 2002) with one reference, cased, unsmoothed: score, precisions, brevity
    penalty, lengths.
    """
    hypothesis_length = reference_length = 0
    correct, total = [0] * 4, [0] * 4
    for hypothesis, reference in zip(hypotheses, references):
        hypothesis, reference = hypothesis.split(), reference.split()
        hypothesis_length += len(hypothesis)
        reference_length += len(reference)
        for n in range(1, 5):
            left = [tuple(reference[i : i + n]) for i in range(len(reference) - n + 1)]
            for i in range(len(hypothesis) - n + 1):
                total[n - 1] += 1
                ngram = tuple(hypothesis[i : i + n])
                if ngram in left:
                    left.remove(ngram)
                    correct[n - 1] += 1
    precisions = [100 * c / t if t else 0.0 for c, t in zip(correct, total)]
    penalty = 1.0
    if hypothesis_length < reference_length:
        penalty = math.exp(1 - reference_length / hypothesis_length) if hypothesis_length else 0.0
    score = 0.0
    if all(precisions):
        score = penalty * math.exp(sum(math.log(p) for p in precisions) / 4)
    return score, precisions, penalty, hypothesis_length, reference_length


def corrupted(line, rng, rate):
    words = [w if rng.random() > rate else rng.choice("abcdefgh") for w in line.split()]
    return " ".join(w for w in words if rng.random() > rate / 2)


def random_corpus(seed, rate):
    rng = random.Random(seed)
    references = [
        " ".join(rng.choice("abcdefghABC.") for _ in range(rng.randint(1, 25))) for _ in range(30)
    ]
    return [corrupted(line, rng, rate) for line in references], references


def has_four_tokens(references):
    """Whether BLEU is defined."""
    return any(len(line.split()) >= 4 for line in references)


def texts_of(hypotheses, references):
    return results.TestSet(hypotheses, references, hypotheses, references)


def scored(texts, members=None, language="de"):
    scorer = Scorer(language)
    return scorer.score(scorer.statistics(texts), members)


CASES = [random_corpus(seed, rate) for seed, rate in enumerate([0.05, 0.2, 0.4, 0.8])]
CASES += [
    (["a b c d e f", "a a a a a"], ["a b c d e f g h", "a a b a"]),
    (["a b c", "d e"], ["a b c", "d e"]),  # no 4-gram at all
    (["a b c x y z u v"], ["a b c d e f g h"]),  # no 4-gram that matches
    (["", "a b c d"], ["x y", "a b c d"]),
    (["a b c d", "e"], ["", "e"]),
    (["x"], ["y"]),
    (["", ""], ["a", "b"]),
]


@pytest.mark.parametrize(("hypotheses", "references"), CASES)
def test_tokenised_bleu_is_that_of_multi_bleu(hypotheses, references):
    score, precisions, penalty, length, reference_length = slow_bleu(hypotheses, references)
    subset = scored(texts_of(hypotheses, references))
    figures, detail = subset.metrics, subset.tokenised_detail
    if has_four_tokens(references):
        assert figures["tokenised_bleu"] == pytest.approx(score, abs=1e-9)
    else:
        assert figures["tokenised_bleu"] is None
    assert detail.precisions == pytest.approx(precisions)
    assert detail.brevity_penalty == pytest.approx(penalty)
    assert (detail.hypothesis_tokens, detail.reference_tokens) == (length, reference_length)
    assert figures["length_ratio"] == pytest.approx(length / reference_length)


def test_tokens_and_plain_text_are_not_confused():
    texts = results.TestSet(["a b, c d."], ["a b, c d."], ["x"], ["y y y y"])
    figures = scored(texts).metrics
    assert figures["sacrebleu"] == pytest.approx(100)
    assert figures["tokenised_bleu"] == 0


def test_a_part_is_scored_like_a_test_set_of_its_own():
    hypotheses, references = random_corpus(7, 0.1)
    part = [0, 3, 4, 20]
    alone = texts_of([hypotheses[i] for i in part], [references[i] for i in part])
    assert scored(texts_of(hypotheses, references), part) == scored(alone)


def test_what_is_not_there_has_no_score_and_no_ratio_of_lengths():
    nothing = scored(texts_of(["a"], ["a"]), [])
    assert nothing.sentences == 0
    assert all(nothing.metrics[name] is None for name in DEFAULT)
    figures = scored(texts_of(["a", ""], ["", ""])).metrics
    assert figures["length_ratio"] is None
    assert figures["tokenised_bleu"] is figures["sacrebleu"] is figures["chrf"] is None


@pytest.mark.parametrize(("language", "tokenizer"), [("de", "13a"), ("zh", "zh")])
def test_signatures_name_the_choices(language, tokenizer):
    scorer = Scorer(language)
    scorer.statistics(texts_of(["你好"], ["你好"]))
    signatures = scorer.signatures()
    assert set(signatures) == set(DEFAULT)
    start = f"nrefs:1|case:mixed|eff:no|tok:{tokenizer}|smooth:exp|"
    assert signatures["sacrebleu"] == f"{start}version:{sacrebleu.__version__}"
    assert "case:lc" in signatures["sacrebleu_lowercase"]
    assert "tok:none|smooth:none" in signatures["tokenised_bleu"]


@pytest.mark.parametrize(("hypotheses", "references"), CASES)
def test_bleu_without_penalty_is_that_of_equal_precisions_and_enough_words(hypotheses, references):
    figures = scored(texts_of(hypotheses, references)).metrics
    bleu = sacrebleu.corpus_bleu(hypotheses, [references])
    expected = bleu.score / bleu.bp if bleu.bp else 0.0
    if not has_four_tokens(references):
        assert figures["bleu_without_penalty"] is figures["sacrebleu"] is None
        return
    assert figures["bleu_without_penalty"] == pytest.approx(expected)
    assert figures["bleu_without_penalty"] >= figures["sacrebleu"]

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.metrics.answers import METRICS, AnswerScorer, normalise

# metric, language, prediction, gold answers, F1, exact match; by hand from the official definitions
CASES = [
    # SQuAD 1.1: case, ASCII punctuation, English articles, spaces
    ("squad", "en", "The  Broncos!", ["broncos"], 100, 100),
    ("squad", "en", "a the-cat an", ["thecat"], 100, 100),
    ("squad", "en", "anthem", ["them"], 0, 0),
    ("squad", "en", "Denver Broncos won", ["Denver Broncos"], 80, 0),
    ("squad", "en", "Denver", ["Broncos", "Denver Broncos", "the Denver"], 100, 100),
    ("squad", "en", "Denver Broncos won", ["Broncos won it", "Denver"], 200 / 3, 0),
    ("squad", "en", "to be or not to be", ["to be to"], 200 / 3, 0),
    ("squad", "en", "", ["Denver"], 0, 0),
    ("squad", "en", "The", ["a"], 0, 100),
    ("squad", "en", "", ["the"], 0, 100),
    ("squad", "en", "1,000", ["1000"], 100, 100),
    # only ASCII punctuation is removed, and only English articles, in every language
    ("squad", "en", "“Denver”", ["Denver"], 0, 0),
    ("squad", "de", "der Bund", ["Bund"], 200 / 3, 0),
    ("squad", "de", "a Bund", ["Bund"], 100, 100),
    ("squad", "zh", "北京市", ["北京"], 0, 0),
    ("squad", "zh", "北京。", ["北京"], 0, 0),
    ("squad", "th", "กรุงเทพ", ["กรุงเทพ"], 100, 100),
    ("squad", "ar", "القاهرة", ["قاهرة"], 0, 0),
    # MLQA: punctuation of every script, articles of the language
    ("mlqa", "en", "“The Broncos”…", ["broncos"], 100, 100),
    ("mlqa", "en", "5$ + 3", ["5 3"], 100, 100),
    ("mlqa", "en", "5€", ["5"], 0, 0),
    ("mlqa", "de", "Der Bund des Landes", ["einer Bund Landes"], 100, 100),
    ("mlqa", "de", "the Bund", ["Bund"], 200 / 3, 0),
    ("mlqa", "de", "derweil", ["weil"], 0, 0),
    ("mlqa", "es", "¿Los gatos?", ["unos gatos"], 100, 100),
    ("mlqa", "es", "del mar", ["mar"], 200 / 3, 0),
    ("mlqa", "vi", "Những người của làng", ["người làng"], 100, 100),
    ("mlqa", "hi", "एक घर।", ["एक घर"], 100, 100),
    ("mlqa", "hi", "the घर", ["घर"], 200 / 3, 0),
    ("mlqa", "ar", "القاهرة", ["قاهرة"], 100, 100),
    ("mlqa", "ar", "في القاهرة؟", ["في قاهرة"], 100, 100),
    # the script cuts the two letters inside a word too: مالك becomes two words
    ("mlqa", "ar", "مالك", ["م ك"], 100, 100),
    ("mlqa", "zh", "北京市", ["北京"], 80, 0),
    ("mlqa", "zh", "「北京」，2020 年", ["北京 2020年"], 100, 100),
    ("mlqa", "zh", "使用Linux系统", ["Linux 系统"], 75, 0),
    ("mlqa", "zh", "Linux系统", ["linux"], 50, 0),
    ("mlqa", "zh", "", ["北京"], 0, 0),
]


@pytest.mark.parametrize(("metric", "language", "prediction", "golds", "f1", "match"), CASES)
def test_scores_are_those_of_the_official_definition(
    metric, language, prediction, golds, f1, match
):
    scores = AnswerScorer({"q": golds}, metric, language).score({"q": prediction})
    assert scores == {"f1": pytest.approx(f1, abs=1e-12), "exact_match": match}


def test_chinese_is_compared_by_character_and_other_scripts_in_it_by_word():
    words = normalise("2020年，使用 Linux系统。", "mlqa", "zh")
    assert words == "2020 年 使 用 linux 系 统"


def test_scores_are_means_over_all_questions_and_missing_answers_count_zero():
    scorer = AnswerScorer({"a": ["x"], "b": ["y z"], "c": ["w"], "d": ["v"]}, "squad", "en")
    assert scorer.score({"a": "x", "b": "y"}) == {
        "f1": pytest.approx(100 * (1 + 2 / 3) / 4),
        "exact_match": 25.0,
    }
    assert scorer.score({"e": "x"}) == {"f1": 0.0, "exact_match": 0.0}


def test_chance_is_f1_beside_the_answers_to_other_questions_of_a_context():
    golds = {"a": ["x", "z"], "b": ["y z"], "c": ["w"], "d": ["x"]}
    contexts = {"a": 0, "b": 0, "c": 0, "d": 1}
    scorer = AnswerScorer(golds, "squad", "en")
    # x beside b and c; y beside a and c; z beside a and b; d has no other
    chance = scorer.chance({"a": "x", "b": "y", "c": "The z", "d": "x"}, contexts)
    assert chance == pytest.approx(100 * (0 + 0 + (1 + 2 / 3) / 2) / 3)
    assert scorer.chance({}, contexts) == 0
    assert scorer.chance({"a": "x"}, {**contexts, "c": 2}) is None


@pytest.mark.parametrize("language", ["fr", "th", "", "german"])
def test_mlqa_refuses_languages_it_has_no_rules_for(language):
    advice = "vi, zh; give the code where it is one of these languages, otherwise --metric squad"
    with pytest.raises(UsageError, match=advice):
        AnswerScorer({}, "mlqa", language)
    assert "squad" in METRICS and AnswerScorer({}, "squad", language)


def test_an_unknown_metric_is_refused():
    with pytest.raises(UsageError, match="squad, mlqa"):
        normalise("x", "bleu")

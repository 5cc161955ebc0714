import copy
import json
import re

import numpy as np
import pytest

from fairseq_posenc.data.questions import NOWHERE, Question
from fairseq_posenc.data.questions import GoldAnswer as Answer
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert.squad import reachable
from fairseq_posenc.tools.bert.squad_files import SquadFile, read
from tests.tiny import learn_subwords

CONTEXT = "Tesla wurde 1856 in Smiljan geboren. 🙂 Er starb 1943."


def entry(key, answer, start=None):
    start = CONTEXT.index(answer) if start is None else start
    return {"id": key, "question": "Wo?", "answers": [{"text": answer, "answer_start": start}]}


def document(*entries):
    return {
        "version": "1.1",
        "data": [{"title": "T", "paragraphs": [{"context": CONTEXT, "qas": list(entries)}]}],
    }


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "file.json"
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_everything_is_read(write):
    first, second = document(entry("a", "Smiljan")), document(entry("b", "1943"))
    second["data"][0]["paragraphs"][0]["qas"][0]["answers"].append(
        {"text": "Er starb", "answer_start": CONTEXT.index("Er starb"), "more": 1}
    )
    first["data"] += second["data"]
    found = read(write(first))
    assert found.contexts == [CONTEXT, CONTEXT] and found.dropped == []
    assert [(q.id, q.text, q.context) for q in found.questions] == [
        ("a", "Wo?", 0),
        ("b", "Wo?", 1),
    ]
    assert found.questions[1].answers == (Answer("1943", 48), Answer("Er starb", 39))


def exported(kind, *entries):
    """Text of records of single questions, as the datasets library exports them."""
    records = []
    for one in entries:
        columns = {name: [answer[name] for answer in one["answers"]]
                   for name in ("text", "answer_start")}  # fmt: skip
        records.append({**one, "title": "T", "context": CONTEXT, "answers": columns})
    if kind == "a list":
        return json.dumps(records)
    return "".join(f"{json.dumps(record)}\n" for record in records)


@pytest.mark.parametrize("kind", ["a list", "lines"])
def test_records_of_single_questions_are_read_as_the_same_questions(write, kind):
    entries = [entry("a", "Smiljan"), entry("b", "1943")]
    for number in 1, 2:
        plain = read(write(document(*entries[:number])))
        assert read(write(exported(kind, *entries[:number]))) == plain
    # questions without answers have empty lists
    path = write(exported(kind, *({**one, "answers": []} for one in entries)))
    assert [question.answers for question in read(path).questions] == [(), ()]
    longer = exported(kind, entries[0]).replace('"answer_start": [20]', '"answer_start": [20, 3]')
    with pytest.raises(UsageError, match="answers should be a list"):
        read(write(longer))
    place = "line 2" if kind == "lines" else "1"
    with pytest.raises(UsageError, match=f"file.json: {place}: id should be text"):
        read(write(exported(kind, entries[0], {**entries[1], "id": 7})))
    with pytest.raises(UsageError, match="question b: answer '1943' is not at answer_start 1"):
        read(write(exported(kind, entries[0], entry("b", "1943", 1))))


def test_records_of_something_else_are_named(write):
    with pytest.raises(UsageError, match="line 2: context is missing; each is to be a question"):
        read(write(exported("lines", entry("a", "1943")) + '{"text": "a"}\n'))
    with pytest.raises(UsageError, match="line 2 is not JSON"):
        read(write(exported("lines", entry("a", "1943")) + "{\n"))


def test_contexts_without_questions_are_left_out(write):
    content = document(entry("a", "Smiljan"))
    content["data"][0]["paragraphs"].insert(0, {"context": "nothing", "qas": []})
    found = read(write(content))
    assert (found.contexts, found.questions[0].context) == ([CONTEXT], 0)


def test_questions_are_chosen_by_the_beginning_of_their_ids(write):
    path = write(document(entry("english-1", "Smiljan"), entry("thai-1", "1943")))
    assert [q.id for q in read(path, prefix="english-").questions] == ["english-1"]
    with pytest.raises(UsageError, match="begins with arabic-"):
        read(path, prefix="arabic-")


def test_a_byte_order_mark_is_no_part_of_the_file(write):
    assert len(read(write("\ufeff" + json.dumps(document(entry("a", "1943"))))).questions) == 1


def without_answers(how):
    questions = [entry("a", "Smiljan"), entry("b", "1943")]
    for question in questions:
        if how is None:
            del question["answers"]
        else:
            question["answers"] = how
    return questions


@pytest.mark.parametrize("how", [None, [], [{"text": "", "answer_start": 0}]])
def test_files_without_answers_are_read_to_be_predicted(write, how):
    """XTREME's test files have empty ones."""
    questions = without_answers(how)
    found = read(write(document(*questions)))
    assert [(q.id, q.answers) for q in found.questions] == [("a", ()), ("b", ())]
    assert found.dropped == []
    # where some have answers, the others are mistakes
    with pytest.raises(UsageError, match="question b: .*answer"):
        read(write(document(entry("a", "Smiljan"), questions[1])))
    with pytest.raises(UsageError, match="the question is empty"):
        read(write(document({**questions[0], "question": " "})))


def test_answers_in_another_form_are_not_taken_for_none(write):
    other = {"text": ["Smiljan"], "answer_start": [20]}
    with pytest.raises(UsageError, match="answers should be a list"):
        read(write(document(*without_answers(other))))


@pytest.mark.parametrize(
    ("pieces", "golds", "share"),
    [
        ("甲|。", ["甲"], 100),
        ("甲。|乙", ["甲"], 0),
        ("甲。|乙", ["甲", "乙"], 100),
        ("of b).|c", ["b"], 0),
        ("of |b).|c", ["b"], 100),  # the metric ignores ASCII punctuation
        ('a"|b', ['"b'], 100),
        ("a|b", [], None),
    ],
)
def test_the_exact_match_that_pieces_can_reach(pieces, golds, share):
    context = pieces.replace("|", "")
    ends = np.cumsum([len(piece) for piece in pieces.split("|")])
    answers = tuple(Answer(gold, context.index(gold)) for gold in golds)
    found = SquadFile([context], [Question("a", "Wo?", 0, answers)], [], [])
    assert reachable(found, [np.stack([[0, *ends[:-1]], ends], axis=1)], "squad", "en") == share


BROKEN_FILES = [
    ("", "is empty"),
    (" \n", "is not JSON"),
    ("{\n,}", "is not JSON: .* line 2"),
    ("[" * 100000, "nested too deeply"),
    ("[]", "it should be an object"),
    ({"data": {}}, "data should be a list"),
    ({"data": []}, "holds no question"),
    ({"data": [{"paragraphs": []}, {"title": "T"}]}, "data.1.paragraphs is missing"),
    ({"data": [{"paragraphs": [{"qas": []}]}]}, "data.0.paragraphs.0.context is missing"),
    ({"data": [{"paragraphs": [{"context": "x"}]}]}, "qas is missing"),
    ({"data": [{"paragraphs": [{"context": 3, "qas": []}]}]}, "context should be text"),
]


@pytest.mark.parametrize(("content", "message"), BROKEN_FILES)
def test_what_is_no_question_file_is_refused_by_name(write, content, message):
    path = write(content)
    with pytest.raises(UsageError, match=message) as error:
        read(path, skip_malformed=True)
    assert path in str(error.value)


def without(key):
    return {name: value for name, value in entry("x", "1943").items() if name != key}


MISPLACED = [
    (entry("x", "Smiljan", 3), "question x: answer 'Smiljan' is not at answer_start 3"),
    (entry("x", "Smiljan", 3), "where there is 'la wurd'"),
    (entry("x", "1943", 51), "counted in characters"),
    (entry("x", "1943", -8), "answer_start -8"),
    (entry("x", "1943", 4000), "answer_start 4000"),
    (entry("x", "1943 ", 48), "'1943 ' is not at"),
]
BROKEN_QUESTIONS = [
    (entry("x", " ", 5), "an answer is empty"),
    (entry("x", "1943", "48"), "question x: answers.0.answer_start should be a whole number"),
    (entry("x", "1943", True), "answer_start should be a whole number"),
    ({**entry("x", "1943"), "answers": []}, "it has no answer; questions of SQuAD 2.0"),
    ({**entry("x", "1943"), "answers": [{"answer_start": 0}]}, "answers.0.text is missing"),
    ({**entry("x", "1943"), "question": " "}, "question x: the question is empty"),
    ({**entry("x", "1943"), "question": "\ud83d"}, "question should be text"),
    ({**entry("x", "1943"), "id": 7}, "qas.1: id should be text"),
    (without("id"), "data.0.paragraphs.0.qas.1: id is missing"),
    (without("question"), "question x: question is missing"),
    (without("answers"), "question x: answers is missing"),
    (None, "qas.1: it should be an object"),
]


@pytest.mark.parametrize(("broken", "message"), BROKEN_QUESTIONS)
def test_malformed_questions_are_refused_by_id_or_left_out_and_named(write, broken, message):
    path = write(json.dumps(document(entry("good", "Smiljan"), copy.deepcopy(broken))))
    with pytest.raises(UsageError, match=message) as error:
        read(path)
    assert path in str(error.value) and "--skip-malformed" in str(error.value)
    found = read(path, skip_malformed=True)
    assert [question.id for question in found.questions] == ["good"]
    assert len(found.dropped) == 1 and found.dropped[0] in str(error.value)


@pytest.mark.parametrize("skip_malformed", [False, True])
def test_questions_of_sets_that_are_scored_are_never_left_out(write, skip_malformed):
    path = write(document(entry("good", "Smiljan"), {**entry("x", "1943"), "question": " "}))
    with pytest.raises(UsageError, match="question x: .* left out of a set that is scored$"):
        read(path, skip_malformed=skip_malformed, scored=True)


@pytest.mark.parametrize(("broken", "message"), MISPLACED)
def test_answers_that_are_not_at_their_places_are_compared_but_not_trained_on(
    write, broken, message
):
    text = broken["answers"][0]["text"]
    path = write(document(entry("good", "Smiljan"), broken))
    with pytest.raises(UsageError, match=f"{message}.* --skip-malformed keeps those without"):
        read(path, scored=True)
    found = read(path, skip_malformed=True, scored=True)
    assert found.questions[1].answers == (Answer(text, NOWHERE),)
    assert found.questions[1].trained is None and found.dropped == []
    # among others, it takes nothing away
    several = copy.deepcopy(broken)
    several["answers"] += [*entry("x", "1943")["answers"], {"text": " ", "answer_start": 1}]
    found = read(write(document(entry("good", "Smiljan"), several)), scored=True)
    assert found.questions[1].answers == (Answer(text, NOWHERE), Answer("1943", 48))
    assert found.questions[1].trained == Answer("1943", 48)
    assert re.search(message, found.misplaced[0]) and "is empty" in found.misplaced[1]


def test_ids_may_repeat_in_training_files_alone(write):
    """TyDiQA-GoldP's has one id for the questions of several passages."""
    path = write(document(entry("good", "Smiljan"), entry("good", "1943")))
    assert [question.id for question in read(path).questions] == ["good", "good"]
    with pytest.raises(UsageError, match="question good: the id occurs twice"):
        read(path, scored=True)


def test_how_many_questions_are_malformed_is_said(write):
    path = write(document(entry("a", "Smiljan", 0), entry("b", "Smiljan", 0), entry("c", "1943")))
    with pytest.raises(UsageError, match=r"question a: .* \(and 1 more\)"):
        read(path)


def test_a_file_of_malformed_questions_alone_is_refused(write):
    path = write(document({**entry("a", "Smiljan"), "question": ""}))
    with pytest.raises(UsageError, match="holds no question that is well formed"):
        read(path, skip_malformed=True)


def test_invalid_utf8_and_missing_files_are_named(tmp_path):
    path = tmp_path / "latin.json"
    path.write_bytes('{"data": "ü"}'.encode("latin-1"))
    with pytest.raises(UsageError, match="latin.json, line 1: invalid UTF-8"):
        read(str(path))
    with pytest.raises(UsageError, match="cannot read .*nowhere"):
        read(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("question, share", [("Wo?", 0.0), ("哪里", 100.0)])
def test_unknown_tokens_are_told_by_part(write, tmp_path, posenc, question, share):
    pytest.importorskip("tokenizers")
    words = learn_subwords(tmp_path / "words", [CONTEXT, "Wo?"] * 9, 120)
    path = write(document({**entry("a", "Smiljan"), "question": question}))
    command = ["--input", path, "--split", "valid", "--subwords", words]
    command += ["--output", str(tmp_path / "bin"), "--workers", 1]
    printed = posenc("prepare", "squad", *command)
    told = f"valid: unknown tokens: {share:.2f} % of question, "
    assert told in printed.out
    warning = "warning: 100.0 % of the tokens of valid.question are not in the dictionary"
    assert (warning in printed.err) == (share > 1)

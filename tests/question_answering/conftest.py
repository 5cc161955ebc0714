"""Question files in four scripts, subword models learned from them, and prepared folders."""

import json

import pytest

from fairseq_posenc.tools.bert.squad import prepare
from tests.tiny import learn_subwords

# sentences with answers in square brackets; {n} differs from sentence to sentence
TEMPLATES = {
    "en": [
        "In year {n} the [city of Dresden (1185–1226)] had 5{n},000 people.",
        "Its river, the [Elbe], is [1,09{n}.5 km] long; a map [cost 7,0]00 pounds in 19{n}0s.",
    ],
    "ar": [
        "في عام {n} كانت [القاهرة] عاصمة مصر، وعدد سكانها [9,{n} مليون] نسمة.",
        "يبلغ طول [نهر النيل] نحو {n} كيلومترًا، وهو [أطول أنهار العالم]!",
    ],
    "th": [
        "ในปี {n} [กรุงเทพมหานคร]เป็นเมืองหลวงของ[ประเทศไทย] ",
        "แม่น้ำ[เจ้าพระยา]มีความยาว [{n} กิโลเมตร] และไหลลงสู่[อ่าวไทย] ",
    ],
    "zh": [
        "{n}年，[北京]是中华人民共和国的[首都]，人口约[2,1{n}万]。",
        "[长江]全长约{n}公里，是[亚洲最长的河流]（世界第三）。",
    ],
}
LANGUAGES = list(TEMPLATES)


def paragraphs(language, count=2, sentences=4):
    """Return contexts of different sentences, with a question about each of their answers."""
    found = []
    for paragraph in range(count):
        context, qas = "", []
        for sentence in range(sentences):
            template = TEMPLATES[language][sentence % 2]
            for part in template.replace("{n}", str(100 + 10 * paragraph + sentence)).split("["):
                answer, bracket, rest = part.partition("]")
                if bracket:
                    key = f"{language}-{paragraph}-{len(qas)}"
                    gold = {"text": answer, "answer_start": len(context)}
                    question = f"{sentence} {part[:2]}?"
                    qas.append({"id": key, "question": question, "answers": [gold]})
                context += answer + rest if bracket else part
            context += " " if language in ("en", "ar") else ""
        found.append({"context": context, "qas": qas})
    return found


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Paths of question files by language."""
    folder = tmp_path_factory.mktemp("questions")
    paths = {}
    for language in LANGUAGES:
        paths[language] = str(folder / f"{language}.json")
        content = {"version": "1.1", "data": [{"paragraphs": paragraphs(language)}]}
        (folder / f"{language}.json").write_text(
            json.dumps(content, ensure_ascii=False), encoding="utf-8"
        )
    return paths


@pytest.fixture(scope="session")
def lines(files):
    """Everything there is to learn a vocabulary from."""
    entries = [entry for language in LANGUAGES for entry in paragraphs(language)]
    questions = [qa["question"] for entry in entries for qa in entry["qas"]]
    return [entry["context"] for entry in entries] + questions


@pytest.fixture(scope="session", params=["wordpiece", "cased wordpiece", "sentencepiece"])
def subwords_folder(request, lines, tmp_path_factory):
    """A folder with a subword model, of each kind in turn."""
    *cased, kind = request.param.split()
    pytest.importorskip({"wordpiece": "tokenizers"}.get(kind, kind))
    folder = tmp_path_factory.mktemp("subwords")
    if kind == "sentencepiece":
        return learn_subwords(folder, lines, 400, kind, character_coverage=1.0)
    return learn_subwords(folder, lines, 500, cased=bool(cased))


@pytest.fixture(scope="session")
def prepared(files, subwords_folder, tmp_path_factory):
    """A prepared folder with a split for each language, and ``train``, which is English."""
    folder = str(tmp_path_factory.mktemp("prepared"))
    for language in LANGUAGES:
        metric = "squad" if language == "th" else "mlqa"
        prepare(files[language], f"valid-{language}", subwords_folder, folder, language, metric)
    prepare(files["en"], "train", subwords_folder, folder)
    return folder

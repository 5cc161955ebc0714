"""XTREME's lists of languages, and where the files of its benchmarks are found."""

import csv

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert import glue_files
from fairseq_posenc.tools.bert.glue_tasks import TASKS
from fairseq_posenc.tools.bert.xtreme import BENCHMARKS, find_questions

LAYOUTS = {
    "the benchmarks' own": [
        "xquad/xquad.{}.json",
        "MLQA_V1/test/test-context-{0}-question-{0}.json",
        "tydiqa-goldp-v1.1-dev/tydiqa-goldp-dev-{1}.json",
    ],
    "XTREME's download": [
        "xquad/xquad.{}.json",
        "mlqa/MLQA_V1/test/test-context-{0}-question-{0}.json",
        "tydiqa/tydiqa-goldp-v1.1-dev/tydiqa.goldp.{0}.dev.json",
    ],
    "the small benchmarks": [
        "xquad/xquad.{}.json",
        "mlqa/test/test-context-{0}-question-{0}.json",
        "tydiqa/tydiqa.goldp.{0}.dev.json",
    ],
}
NAMES = {"ar": "arabic", "bn": "bengali", "en": "english", "fi": "finnish", "id": "indonesian",
         "ko": "korean", "ru": "russian", "sw": "swahili", "te": "telugu"}  # fmt: skip
ALL = sorted({language for one in BENCHMARKS.values() for language in one.languages} | {"ro"})


def lay_out(folder, patterns, languages=ALL):
    for pattern in patterns:
        for language in languages:
            path = folder / pattern.format(language, NAMES.get(language, language))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()


@pytest.mark.parametrize(
    ("name", "count", "some"),
    [("XNLI", 15, "ur bg sw"), ("XQuAD", 11, "el th zh"), ("MLQA", 7, "vi hi es"),
     ("TyDiQA-GoldP", 9, "bn fi te")],
)  # fmt: skip
def test_the_lists_are_those_of_xtreme(name, count, some):
    languages = BENCHMARKS[name].languages
    assert len(languages) == len(set(languages)) == count
    assert {"en", *some.split()} <= set(languages) and "ro" not in languages


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_are_found_in_every_layout_and_other_languages_left_out(tmp_path, layout):
    lay_out(tmp_path, LAYOUTS[layout])
    found, missing = find_questions(str(tmp_path))
    expected = [split for one in BENCHMARKS.values() if one.files for split in one.splits()]
    assert [file.split for file in found] == expected and missing == []
    assert {file.split[:4] for file in found if file.metric == "mlqa"} == {"mlqa"}
    patterns = dict(zip(("xquad", "mlqa", "tydiqa"), LAYOUTS[layout]))
    for file in found:
        benchmark, _, language = file.split.partition("-")
        path = tmp_path / patterns[benchmark].format(language, NAMES.get(language))
        assert (file.language, file.path) == (language, str(path))


def test_what_is_missing_is_named(tmp_path):
    lay_out(tmp_path, LAYOUTS["XTREME's download"][:1], ["en", "de", "ro"])
    lay_out(tmp_path, LAYOUTS["XTREME's download"][1:2])
    found, missing = find_questions(str(tmp_path))
    assert [list(one)[:3] for one in found] == [
        *([f"xquad-{language}", language, "squad"] for language in ("en", "de")),
        *([f"mlqa-{language}", language, "mlqa"] for language in BENCHMARKS["MLQA"].languages),
    ]
    assert str(found[0][3]) == f"{tmp_path}/xquad/xquad.en.json"
    assert missing == [
        "XQuAD: 2 of 11 languages, without es, el, ru, tr, ar, vi, th, zh, hi",
        "TyDiQA-GoldP: 0 of 9 languages, without ar, bn, en, fi, id, ko, ru, sw, te",
    ]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ([], "no files of XQuAD, MLQA or TyDiQA-GoldP in"),
        (["xquad/xquad.ro.json"], "xquad holds no file of XQuAD where it should be, as xquad/"),
        (["xquad/xquad.de.json", "mlqa/test-de.json"], "mlqa holds no file of MLQA where"),
        (["xquad/xquad.de.json", "tydiqa/de.json"], "tydiqa holds no file of TyDiQA-GoldP"),
    ],
)
def test_folders_without_the_expected_files_are_refused_in_one_line(tmp_path, files, told):
    lay_out(tmp_path, files, [""])
    with pytest.raises(UsageError, match=told):
        find_questions(str(tmp_path))


PAIRS = [('I said "yes".', 'the "first'), ("a\u2028b", "c's"), ("甲。", "乙")]


@pytest.fixture
def downloaded(tmp_path):
    """A function that writes files of sentence pairs as XTREME's script does, and reads them."""

    def downloaded(task, **labels):
        for name, label in labels.items():
            file = tmp_path / f"{name.replace('_', '-', 1)}.tsv"
            with open(file, "w", encoding="utf-8", newline="") as stream:
                csv.writer(stream, delimiter="\t").writerows((*pair, *label) for pair in PAIRS)
        return glue_files.read(TASKS[task], str(tmp_path), [])

    return downloaded


def test_sentence_pairs_of_xtreme_download_are_read(downloaded):
    """A file for each language, quoted as CSV, without names of columns; tests without labels."""
    files = {"train_en": ["neutral"], "dev_en": ["entailment"], "dev_zh": ["contradiction"]}
    unlabelled = {"test_en": [], "test_zh": []}
    splits = downloaded("MNLI", **files, **unlabelled)
    assert {name: part.targets for name, part in splits.items()} == {
        "train": [1, 1, 1], "valid": [0, 0, 0],
    }  # fmt: skip
    splits = downloaded("XNLI", **files, **unlabelled)
    assert {name: part.targets for name, part in splits.items()} == {
        "valid-en": [0, 0, 0], "valid-zh": [2, 2, 2], "test-en": None, "test-zh": None,
    }  # fmt: skip
    assert all(part.sentences == PAIRS for part in splits.values())


def test_labels_of_tests_are_read_where_somebody_has_put_them_back(downloaded):
    assert downloaded("XNLI", test_de=["neutral"])["test-de"].targets == [1, 1, 1]


def test_translations_into_english_are_no_language(downloaded):
    files = {"test_de": [], "test_de-en": [], "test_zh-CN": []}
    assert sorted(downloaded("XNLI", **files)) == ["test-de", "test-zh-CN"]


def test_malformed_lines_of_xtreme_download_are_named(downloaded):
    with pytest.raises(UsageError, match="test-de.tsv, line 1: label 'no' is not one of"):
        downloaded("XNLI", test_de=["no"])

"""The generated benchmarks on disk: names, columns and formats of the official downloads."""

import ast
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.corpus import benchmarks
from fairseq_posenc.tools.corpus.benchmarks import Plan, write_benchmarks

EXAMPLES, HELD_OUT = 60, 20
PARSES = "sentence1_binary_parse sentence2_binary_parse sentence1_parse sentence2_parse"
MNLI = f"index promptID pairID genre {PARSES} sentence1 sentence2"
VOTES = "label1 label2 label3 label4 label5"
STS = "index genre filename year old_index source1 source2 sentence1 sentence2"
LABELS = {
    **dict.fromkeys(("CoLA", "SST-2", "MRPC", "QQP", "WNLI"), {"0", "1"}),
    **dict.fromkeys(("QNLI", "RTE"), {"entailment", "not_entailment"}),
    "MNLI": {"entailment", "neutral", "contradiction"},
}
LABEL = {"MRPC": "Quality", "QQP": "is_duplicate", "MNLI": "gold_label", "STS-B": "score"}
TEXTS = {
    "MRPC": ("#1 String", "#2 String"),
    "QQP": ("question1", "question2"),
    "QNLI": ("question", "sentence"),
    **dict.fromkeys(("CoLA", "SST-2"), ("sentence",)),
}
HEADERS = {
    "CoLA": ("source label mark sentence", "index sentence"),
    "SST-2": ("sentence label", "index sentence"),
    "MRPC": ("Quality #1_ID #2_ID #1_String #2_String", "index #1_ID #2_ID #1_String #2_String"),
    "QQP": ("id qid1 qid2 question1 question2 is_duplicate", "id question1 question2"),
    "STS-B": (f"{STS} score", STS),
    "MNLI": (f"{MNLI} label1 gold_label", MNLI),
    "QNLI": ("index question sentence label", "index question sentence"),
    "RTE": ("index sentence1 sentence2 label", "index sentence1 sentence2"),
    "WNLI": ("index sentence1 sentence2 label", "index sentence1 sentence2"),
}
QUESTIONS = {
    "squad/train-v1.1.json": (EXAMPLES, 1),
    "squad/dev-v1.1.json": (HELD_OUT, 3),
    **{f"xquad/xquad.{code}.json": (HELD_OUT, 1) for code in ("ar", "de", "en", "th", "zh")},
    **{
        f"mlqa/test/test-context-{code}-question-{code}.json": (HELD_OUT, 1)
        for code in ("ar", "de", "en", "zh")
    },
    **{f"tydiqa/tydiqa.goldp.{code}.dev.json": (HELD_OUT, 3) for code in ("ar", "en")},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmarks")
    write_benchmarks(str(folder), Plan(1, EXAMPLES))
    return folder


def header(task, split):
    labelled, unlabelled = (
        [name.replace("_ID", " ID").replace("_String", " String") for name in columns.split()]
        for columns in HEADERS[task]
    )
    if task == "MNLI" and split.startswith("dev"):
        return [*MNLI.split(), *VOTES.split(), "gold_label"]
    return unlabelled if split.startswith("test") else labelled


def splits(task):
    if task == "MNLI":
        return ["train", "dev_matched", "dev_mismatched", "test_matched", "test_mismatched"]
    return ["train", "dev", "test"]


def rows(folder, task, split):
    lines = (folder / "glue" / task / f"{split}.tsv").read_text(encoding="utf-8").split("\n")[:-1]
    names = header(task, split)
    if task != "CoLA" or split == "test":
        assert lines.pop(0).split("\t") == names
    cells = [line.split("\t") for line in lines]
    assert {len(row) for row in cells} == {len(names)}
    return [dict(zip(names, row)) for row in cells]


def questions(folder, path):
    data = json.loads((folder / path).read_text(encoding="utf-8"))
    for article in data["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                yield paragraph["context"], question


def everything(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("task", HEADERS)
def test_columns_and_sizes_are_those_of_glue(folder, task):
    assert {path.stem for path in (folder / "glue" / task).iterdir()} == set(splits(task))
    for split in splits(task):
        read = rows(folder, task, split)
        assert len(read) == (EXAMPLES if split == "train" else HELD_OUT)
        texts = TEXTS.get(task, ("sentence1", "sentence2"))
        assert all(row[text].strip() for row in read for text in texts)
        if task == "MNLI":
            assert {row[name] for row in read for name in PARSES.split()} == {""}


@pytest.mark.parametrize("task", LABELS)
def test_labels_are_those_of_glue_and_equally_many(folder, task):
    for split in splits(task)[:-1] if task != "MNLI" else splits(task)[:3]:
        counts = Counter(row[LABEL.get(task, "label")] for row in rows(folder, task, split))
        assert set(counts) == LABELS[task]
        assert max(counts.values()) - min(counts.values()) <= 1


def test_scores_go_from_0_to_5_and_most_annotators_agree(folder):
    scores = [float(row["score"]) for row in rows(folder, "STS-B", "train")]
    assert min(scores) < 1 and max(scores) == 5
    dissent = 0
    for row in rows(folder, "MNLI", "dev_matched") + rows(folder, "MNLI", "dev_mismatched"):
        votes = Counter(row[vote] for vote in VOTES.split())
        assert votes.most_common(1)[0][0] == row["gold_label"]
        dissent += len(votes) > 1
    assert dissent


def test_genres_of_mismatched_mnli_are_not_those_of_training(folder):
    genres = {
        split: {row["genre"] for row in rows(folder, "MNLI", split)} for split in splits("MNLI")
    }
    assert genres["train"] >= genres["dev_matched"]
    assert not genres["train"] & (genres["dev_mismatched"] | genres["test_mismatched"])


def test_quirks_of_the_official_files_are_there(folder):
    for task in HEADERS:
        text = (folder / "glue" / task / "train.tsv").read_text(encoding="utf-8")
        assert any(line.count('"') % 2 for line in text.split("\n"))
    for row in rows(folder, "CoLA", "train"):
        assert row["mark"] == ("" if row["label"] == "1" else "*")
    assert all(row["sentence"].endswith(" ") for row in rows(folder, "SST-2", "dev"))


@pytest.mark.parametrize("task", HEADERS)
def test_no_text_of_glue_is_in_two_splits(folder, task):
    seen = {}
    for split in splits(task):
        for row in rows(folder, task, split):
            for column in TEXTS.get(task, ("sentence1", "sentence2")):
                text = row[column].replace('"', "").strip()
                assert seen.setdefault(text, split) == split, text


def test_xnli_has_its_columns_and_says_the_same_in_every_language(folder):
    names = f"language gold_label {PARSES} sentence1 sentence2 promptID pairID genre {VOTES}"
    names += " sentence1_tokenized sentence2_tokenized match"
    trained = {row["sentence1"].replace('"', "") for row in rows(folder, "MNLI", "train")}
    for split in ("dev", "test"):
        path = folder / "xnli" / f"xnli.{split}.tsv"
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        assert lines.pop(0).split("\t") == names.split() and len(names.split()) == 19
        cells = [dict(zip(names.split(), line.split("\t"))) for line in lines]
        assert all(len(row) == 19 and row["match"] == "True" for row in cells)
        by_language = {}
        for row in cells:
            assert row["sentence1_tokenized"].replace(" ", "") == row["sentence1"].replace(" ", "")
            by_language.setdefault(row["language"], []).append(row)
        assert sorted(by_language) == ["ar", "de", "en", "th", "zh"]
        labels = [[row["gold_label"] for row in read] for read in by_language.values()]
        assert len(labels[0]) == HELD_OUT and set(labels[0]) == LABELS["MNLI"]
        assert all(read == labels[0] for read in labels)
        assert not trained & {row["sentence1"] for row in by_language["en"]}


@pytest.mark.parametrize("path", QUESTIONS)
def test_answers_stand_where_they_are_said_to_stand(folder, path):
    number, golds = QUESTIONS[path]
    asked = list(questions(folder, path))
    assert len(asked) == number == len({question["id"] for _, question in asked})
    for context, question in asked:
        assert len(question["answers"]) == golds and question["question"][-1] in "?؟？"
        for answer in question["answers"]:
            start, text = answer["answer_start"], answer["text"]
            assert text.strip() == text != "" and context[start : start + len(text)] == text
            if "th" not in path and "zh" not in path:
                assert not (" " + context)[start].isalnum()
                assert not context[start + len(text)].isalpha()
        longest = question["answers"][0]["text"]
        assert all(longest.endswith(answer["text"]) for answer in question["answers"])
    for one in {context for context, _ in asked}:
        texts = [question["question"] for context, question in asked if context == one]
        assert len(set(texts)) == len(texts) <= 5


def test_only_files_of_the_official_names_are_written(folder):
    found = {str(path.relative_to(folder)) for path in folder.rglob("*.json")}
    assert found == set(QUESTIONS)
    folders = "glue mlqa squad text text-multilingual tydiqa xnli xquad"
    assert sorted(path.name for path in folder.iterdir()) == folders.split()


def test_contexts_may_be_longer_than_a_window_and_are_not_shared(folder):
    trained = {context for context, _ in questions(folder, "squad/train-v1.1.json")}
    assert max(len(context.split()) for context in trained) > 384
    assert min(len(context.split()) for context in trained) < 100
    sentences = {text for context in trained for text in context.split(". ")}
    for path in QUESTIONS:
        if "train" not in path and (".en." in path or "-en" in path or "squad/" in path):
            for context, _ in questions(folder, path):
                assert not sentences & set(context.split(". "))


@pytest.mark.parametrize(
    "path", ["xquad/xquad.{}.json", "mlqa/test/test-context-{0}-question-{0}.json"]
)
def test_parallel_sets_ask_the_same_of_the_same_passages(folder, path):
    identities = [
        [question["id"] for _, question in questions(folder, path.format(code))]
        for code in ("ar", "de", "en", "zh")
    ]
    assert all(read == identities[0] for read in identities)


def test_contexts_are_written_as_their_script_is(folder):
    scripts = {"ar": "\u0600\u06ff", "th": "\u0e00\u0e7f", "zh": "\u4e00\u9fff"}
    for code, (first, last) in scripts.items():
        for context, _ in questions(folder, f"xquad/xquad.{code}.json"):
            assert all(
                not character.isalpha() or first <= character <= last for character in context
            )
            assert code != "zh" or " " not in context
            # in Thai a blank ends a sentence, not a word
            assert code != "th" or min(map(len, context.split(" "))) > 8


def test_raw_text_is_documents_that_no_other_split_has(folder):
    for place in (
        "text",
        *(f"text-multilingual/{code}" for code in ("ar", "de", "en", "th", "zh")),
    ):
        texts = [
            (folder / place / f"{split}.txt").read_text(encoding="utf-8")
            for split in ("train", "valid")
        ]
        train, valid = ([part.strip().split("\n") for part in text.split("\n\n")] for text in texts)
        assert (len(train), len(valid)) == (EXAMPLES * 5 // 2, EXAMPLES // 4)
        assert {len(document) for document in train + valid} == {8}
        assert all(line.strip() == line != "" for document in train for line in document)
        held_out = {line for document in valid for line in document}
        assert not held_out & {line for document in train for line in document}


def test_a_seed_gives_the_same_files_always(folder, tmp_path):
    write_benchmarks(str(tmp_path / "again"), Plan(1, EXAMPLES))
    write_benchmarks(str(tmp_path / "other"), Plan(2, 9))
    assert everything(tmp_path / "again") == everything(folder)
    other = everything(tmp_path / "other")
    assert set(other) == set(everything(folder))
    assert not any(content == other[path] for path, content in everything(folder).items())


def test_a_failed_run_leaves_the_files_as_they_were(tmp_path):
    (tmp_path / "xnli").mkdir()
    (tmp_path / "xnli" / "xnli.dev.tsv").write_text("before\n")
    (tmp_path / "squad").write_text("not a folder")
    with pytest.raises(UsageError, match="cannot write"):
        write_benchmarks(str(tmp_path), Plan(1, 9))
    before = {"squad": b"not a folder", os.path.join("xnli", "xnli.dev.tsv"): b"before\n"}
    assert everything(tmp_path) == before


def test_the_command_writes_and_tells_bad_input_in_one_line(run, start, tmp_path):
    command = [
        "python",
        "-m",
        "fairseq_posenc.tools.corpus.make_benchmarks",
        "--output",
        tmp_path / "new",
    ]
    run(*command, "--examples", 9)
    assert len(list(questions(tmp_path / "new", "squad/train-v1.1.json"))) == 9
    process = start(*command, "--examples", 3)
    printed = process.communicate()[0]
    assert process.returncode == 1
    assert "at least 9" in printed and printed.count("\n") == 1


def test_only_the_standard_library_is_imported():
    allowed = set("re os json hashlib typing dataclasses contextlib itertools".split())
    for path in Path(benchmarks.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name.split(".")[0] in allowed | {"fairseq_posenc"}, path
                if name.startswith("fairseq_posenc"):
                    assert name.split(".", 1)[1].startswith(("data.corpus", "errors", "files"))

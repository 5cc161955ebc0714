"""Damaged files of tasks and vocabularies, and of the folders that are made of them."""

import io
import json
import tarfile

import pytest

from fairseq_posenc.data import sentence_folder, subwords
from fairseq_posenc.data.questions import NOWHERE, QuestionFolder
from fairseq_posenc.tools.bert import glue, glue_files, squad, squad_files
from fairseq_posenc.tools.bert.glue_tasks import TASKS
from fairseq_posenc.tools.translation.sources import of_test_set, read_test_set
from tests.tiny import learn_subwords

CONTEXT = "Berlin ist die Hauptstadt 😀 von Deutschland . é"
SPOKEN = [f"the dog {i} runs over häuser {chr(97 + i % 26) * 3} <unk>" for i in range(200)]


def rows(name, language="language"):
    """The lines of a file of GLUE or XNLI."""
    task = TASKS[name]
    columns = task.columns or ("index", *task.sentences, language, task.label)
    lines = [] if task.columns else ["\t".join(columns)]
    for i in range(12):
        label = task.labels[i % len(task.labels)] if task.labels else f"{i % 5}.5"
        cells = {task.label: label, language: ["de", "en", "zh"][i % 3]}
        lines.append("\t".join(cells.get(column, f'He said "x {i}" é .') for column in columns))
    return "\n".join(lines) + "\n"


def questions():
    answers = [{"text": word, "answer_start": CONTEXT.index(word)} for word in ("Berlin", "von")]
    entries = [{"id": f"q{i}", "question": "Was ist Berlin ?", "answers": answers} for i in (1, 2)]
    paragraphs = [{"context": CONTEXT, "qas": entries}, {"context": CONTEXT, "qas": []}]
    return json.dumps({"version": "1.1", "data": [{"paragraphs": paragraphs}]})


def segments(kind):
    lines = (f'<seg id="{i}">Der Hund {i} &amp; „so“.</seg>\n' for i in range(1, 5))
    return f'<{kind} setid="x"><doc docid="a"><p>\n{"".join(lines)}</p></doc></{kind}>\n'


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with every kind of file."""
    folder = tmp_path_factory.mktemp("prepared")
    learn_subwords(folder / "sentencepiece", SPOKEN, 60, "sentencepiece")
    words = learn_subwords(folder / "wordpiece", SPOKEN, 120)
    for name in ("CoLA", "RTE", "STS-B", "XNLI"):
        (folder / name).mkdir()
        for file in TASKS[name].labelled.values():
            (folder / name / file).write_text(rows(name))
        glue.prepare(TASKS[name], str(folder / name), words, str(folder / "bin" / name))
    (folder / "squad.json").write_text(questions())
    squad.prepare(str(folder / "squad.json"), "valid", words, str(folder / "questions"))
    (folder / "src.sgm").write_text(segments("srcset"))
    return folder


def read_task(name):
    return lambda folder: glue_files.read(TASKS[name], str(folder / name), [])


def targets(name, split="valid"):
    labels = len(TASKS[name].labels)
    return lambda folder: sentence_folder.targets(str(folder / "bin" / name), split, labels)


def use(kind):
    def read(folder):
        model = subwords.load(str(folder / kind))
        model.encode_with_offsets("the dog häuser ½ zz")
        return model.dictionary()

    return read


def read_inputs(folder):
    inputs = sentence_folder.inputs(str(folder / "bin" / "RTE"), "valid")
    return [part[index].tolist() for part in inputs for index in range(len(part))]


def read_answers(folder):
    split = QuestionFolder(str(folder / "questions"), "valid")
    lasts = [len(split.context_tokens(number)) - 1 for number in range(len(split))]
    return [split.span_text(number, last, last) for number, last in enumerate(lasts)]


def read_segments(folder):
    member, other = "test/newstest2013-src.en.sgm", "test/newstest2013-src.de.sgm"
    with tarfile.open(folder / of_test_set("wmt13")[0].name, "w:gz") as archive:
        contents = {member: (folder / "src.sgm").read_bytes(), other: segments("refset").encode()}
        for name, content in contents.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return read_test_set("wmt13", ("en", "de"), str(folder))


def aligned(splits, data):
    targets = ((split.sentences, split.targets) for split in splits.values())
    return any(t is not None and len(s) != len(t) for s, t in targets) and "sentences unlabelled"


def in_place(found, data):
    places = ((found.contexts[q.context], a) for q in found.questions for a in q.answers)
    placed = ((c, a) for c, a in places if a.start != NOWHERE)
    return any(not c.startswith(a.text, a.start) for c, a in placed) and "an answer elsewhere"


# name: file, how to read it, what is wrong with a result
READERS = {
    "GLUE without header": ("CoLA/dev.tsv", read_task("CoLA"), aligned),
    "GLUE": ("RTE/train.tsv", read_task("RTE"), aligned),
    "GLUE, scores": ("STS-B/dev.tsv", read_task("STS-B"), aligned),
    "XNLI": ("XNLI/xnli.dev.tsv", read_task("XNLI"), aligned),
    "SQuAD": ("squad.json", lambda f: squad_files.read(str(f / "squad.json")), in_place),
    "WordPiece": ("wordpiece/wordpiece.json", use("wordpiece"), None),
    "SentencePiece": ("sentencepiece/sentencepiece.model", use("sentencepiece"), None),
    "dictionary": (
        "wordpiece/dict.txt", lambda f: subwords.load_dictionary(str(f / "wordpiece")), None),
    "index of sentences": ("bin/RTE/input0/valid.idx", read_inputs, None),
    "sentences": ("bin/RTE/input1/valid.bin", read_inputs, None),
    "labels": (
        "bin/RTE/label/valid.bin", targets("RTE"),
        lambda found, _: not set(found.tolist()) <= {0, 1} and "other labels"),
    "index of labels": ("bin/RTE/label/valid.idx", targets("RTE"), None),
    "scores": (
        "bin/STS-B/label/valid.label", targets("STS-B"),
        lambda found, _: not found.isfinite().all() and "no numbers"),
    "index of questions": ("questions/valid.question.idx", read_answers, None),
    "contexts": ("questions/valid.context.bin", read_answers, None),
    "offsets": (
        "questions/valid.offsets.bin", read_answers,
        lambda found, _: not all(text and text in CONTEXT for text in found) and "no text"),
    "SGM": (
        "src.sgm", read_segments, lambda pairs, _: len(pairs) != 4 and "sentences lost"),
}  # fmt: skip
SLOW = {"SentencePiece": 100, "SGM": 60}


@pytest.mark.parametrize("name", READERS)
def test_damaged_data_is_reported_or_read_right(fuzz, prepared, name):
    file, read, wrong = READERS[name]
    fuzz(name, prepared / file, lambda: read(prepared), wrong, SLOW.get(name, 200))

"""What is written is whole or not there, whatever happens to disk and process meanwhile."""

import json
import shutil
import time

import pytest
import torch

from fairseq_posenc.data import subwords
from fairseq_posenc.data.segmentation import Moses
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools import averaging
from fairseq_posenc.tools.analyses.report import Report
from fairseq_posenc.tools.bert import glue, squad, vocabulary
from fairseq_posenc.tools.bert import predict as prediction
from fairseq_posenc.tools.bert.glue_tasks import TASKS
from fairseq_posenc.tools.bert.preparation import Options, prepare
from fairseq_posenc.tools.bert.vocabulary import copy_subwords
from fairseq_posenc.tools.downloads.archives import unpack
from fairseq_posenc.tools.tables.plots import new_figure
from fairseq_posenc.tools.translation import bpe, cleaning, settings, tokens
from fairseq_posenc.tools.translation.corpora import Cleaning, Corpus, Part
from fairseq_posenc.tools.translation.text import prepare_text
from fairseq_posenc.tools.writing import replacing_folder
from recipes.corpus import Range, Split, write_corpus
from recipes.lib.score_cell import score_cell

LANGUAGES = ("en", "de")
CORPUS = Corpus("en", "de", [Part("http://a.b/x.tgz", "a")], None, {}, 9, True, False,
                Cleaning(1, 80, 9), Cleaning(1, 20, 9), hold_out=5)  # fmt: skip
LOG = """| num. model params: 1,000 (num. trained: 1,000)
| training on 1 devices (GPUs/TPUs)
| INFO | train_inner | epoch 001: loss=1, wps={}.0, num_updates=20, wall=1
"""


def lines(version, language="en"):
    animal = ("puppy", "bobcat")[version - 1]
    return [f"the {language} {animal} {i * version} runs , over häuser" for i in range(40)]


def text(version, language="en"):
    return "".join(f"{line}\n" for line in lines(version, language))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory, make_archive):
    """A folder for each of two versions of everything that is to be written."""
    home = tmp_path_factory.mktemp("inputs")
    for version in (1, 2):
        make_inputs(home / str(version), version)
        members = {f"x/a.{language}": lines(version, language) for language in LANGUAGES}
        make_archive(home / str(version) / "raw" / "x.tgz", members)
    return home


def make_inputs(folder, version):
    folder.mkdir()
    for language in LANGUAGES:
        (folder / f"a.{language}").write_text(text(version, language))
    bpe.learn([str(folder / "a.en")], str(folder / "codes"), 9)
    (folder / "vocabulary").mkdir()
    # the same for both, as question folders demand
    vocabulary.learn_wordpiece(lambda: iter(lines(1)), str(folder / "vocabulary"), 100)
    copy_subwords(subwords.load(str(folder / "vocabulary")), str(folder / "vocabulary"))
    for name, content in glue_files(version).items():
        (folder / name).write_text(content)
    answers = [{"text": "runs", "answer_start": lines(version)[0].index("runs")}]
    entries = [{"id": "a", "question": "what ?" * version, "answers": answers}]
    paragraphs = [{"context": lines(version)[0], "qas": entries}]
    (folder / "squad.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    model = {"a": torch.arange(3000.0) * version}
    torch.save({"model": model, "args": None}, folder / "model.pt")


def glue_files(version):
    head, labels = "index\tsentence1\tsentence2\tlabel\n", ("entailment", "not_entailment")
    rows = [f"{i}\t{lines(version)[i]}\tno\t{labels[i % 2]}\n" for i in range(9)]
    return {"train.tsv": head + "".join(rows), "dev.tsv": head + rows[1]}


def make_cell(folder):
    (folder / "train.log").write_text(LOG.format(1))
    output = "".join(f"T-{i}\ta b c\nH-{i}\t-1\ta b c\nD-{i}\t-1\ta b c\n" for i in range(3))
    (folder / "test.out").write_text(output)


def write_report(folder, version):
    figure = new_figure(2, 1)
    figure.add_subplot().plot([1, version])
    report = Report("t", [["", "a"], ["b", str(version)]], {"x": version}, {".png": figure})
    report.write(str(folder / "report"))


class Task:
    """A task whose predictions are known."""

    predictions_suffix = "tsv"

    def __init__(self, version):
        self.version = version

    def dataset(self, subset):
        return [0] * self.version

    def score(self, subset, pairs):
        return {"accuracy": float(self.version)}

    def write(self, subset, pairs, stream):
        stream.write(text(self.version))


def write_predictions(folder, version):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prediction, "load", lambda *_: (torch.nn.Linear(1, 1), Task(version)))
        patch.setattr(prediction, "predictions", lambda *_: [])
        patch.setattr(time, "perf_counter", lambda: 0.0)
        options = {"cpu": True, "notes": {"version": version}}
        prediction.predict(path="", data="", subsets=["valid"], output=str(folder), **options)


def write_folder(folder, version):
    with replacing_folder(str(folder / "model")) as partial:
        for name in ("a", "b"):
            with open(f"{partial}/{name}", "w") as stream:
                stream.write(text(version))


def splits(version):
    lengths = Range(4, 8)
    return [Split(name, 9 * version, [lengths]) for name in ("test", "valid", "train")]


def text_options(source, folder):
    files = {"output": str(folder / "text"), "train": [str(source / "a.en")]}
    return Options(**files, valid=[str(source / "a.de")], vocabulary_size=100)


# name: how to write from the inputs of a version into a folder
WRITERS = {
    "tokenised": lambda s, f, v: tokens.tokenise_file(
        str(s / "a.en"), str(f / "a"), Moses("en")),
    "BPE codes": lambda s, f, v: bpe.learn([str(s / "a.en")], str(f / "codes"), 9),
    "BPE": lambda s, f, v: bpe.apply(str(s / "codes"), str(s / "a.en"), str(f / "bpe")),
    "cleaned": lambda s, f, v: cleaning.clean(
        str(s / "a"), str(f / "a"), LANGUAGES, CORPUS.after_bpe),
    "setting": lambda s, f, v: settings.write_setting(
        "interpolate", str(s / "a"), str(f / "a"), LANGUAGES),
    "text of a corpus": lambda s, f, v: prepare_text(CORPUS, str(s / "raw"), str(f)),
    "WordPiece": lambda s, f, v: vocabulary.learn_wordpiece(
        lambda: iter(lines(v)), str(f), 100),
    "SentencePiece": lambda s, f, v: vocabulary.learn_sentencepiece(
        lambda: iter(lines(v)), str(f), 60),
    "vocabulary": lambda s, f, v: copy_subwords(subwords.load(str(s / "vocabulary")), str(f)),
    "text folder": lambda s, f, v: prepare(text_options(s, f), say=lambda line: None),
    "GLUE": lambda s, f, v: glue.prepare(
        TASKS["RTE"], str(s), str(s / "vocabulary"), str(f)),
    "questions": lambda s, f, v: squad.prepare(
        str(s / "squad.json"), "valid", str(s / "vocabulary"), str(f)),
    "average": lambda s, f, v: averaging.save_average([str(s / "model.pt")], str(f / "average.pt")),
    "score": lambda s, f, v: score_cell(str(f), {"test": None}, {"version": v}, language="de"),
    "report": lambda s, f, v: write_report(f, v),
    "predictions": lambda s, f, v: write_predictions(f, v),
    "folder": lambda s, f, v: write_folder(f, v),
    "corpus": lambda s, f, v: write_corpus(str(f), 1, splits(v)),
    "unpacked": lambda s, f, v: unpack(str(s / "raw" / "x.tgz"), str(f)),
}  # fmt: skip
# which are only ever written into an empty folder, or complete what is there
ONCE = ("text folder", "vocabulary")
# whose files are of one version, all or none, unless a rename fails
TOGETHER = ("cleaned", "setting", "GLUE", "questions", "folder", "corpus")
PREPARED = {"score": make_cell}


@pytest.fixture(scope="module", params=WRITERS)
def writer(request, inputs, written):
    name = request.param

    def write(folder, version):
        WRITERS[name](inputs / str(version), folder, version)

    return written(write, PREPARED.get(name), name not in ONCE, name in TOGETHER)


def test_a_full_disk_is_reported_and_spoils_nothing(writer):
    for number in writer.points(5):
        outcome = writer.attempt(number)
        assert outcome.startswith("told: "), (number, outcome)
        renaming = "Input/output error" in outcome
        assert renaming or "No space left on device" in outcome
        writer.check(mixed=renaming)
    writer.check_again()


def test_killed_anywhere_it_spoils_nothing_and_succeeds_again(writer):
    for number in writer.points(3):
        assert writer.attempt(number, kill=True) == "killed"
        writer.check(killed=True)
        writer.check_again()


def test_a_limit_of_the_kernel_is_reported_and_spoils_nothing(writer):
    largest = max(len(writer.after[name]) for name in writer.names)
    for most in {0, largest - 1}:
        outcome = writer.attempt(largest=most)
        assert outcome.startswith("told: "), (most, outcome)
        writer.check()


def test_a_folder_under_a_name_is_reported_and_spoils_nothing(writer):
    for name in {writer.names[0], writer.names[-1]}:
        writer.reset()
        (writer.folder / name).unlink(missing_ok=True)
        (writer.folder / name / "in the way").mkdir(parents=True)
        try:
            writer.run()
        except UsageError:
            writer.check_without(name)
        else:
            # a whole folder was replaced
            assert (writer.folder / name).is_file()


def test_a_file_in_place_of_the_folder_is_reported(writer):
    writer.reset()
    shutil.rmtree(writer.folder)
    writer.folder.write_text("no folder")
    with pytest.raises(UsageError):
        writer.run()
    assert writer.folder.read_text() == "no folder"
    writer.folder.unlink()

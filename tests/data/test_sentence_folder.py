import json
import sys
from types import SimpleNamespace

import pytest
import torch
from fairseq.tasks.sentence_prediction import SentencePredictionTask

from fairseq_posenc.data import sentence_folder, subwords
from fairseq_posenc.data.glue import TASKS
from fairseq_posenc.data.sentence_folder import Description, prepare
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools import cli

pytest.importorskip("tokenizers")

PAIRS = [("a cat sleeps", "it is 'awake'"), ("a dog runs", "a dog moves"), ("cats", "dogs run")]
LABELS = ["contradiction", "entailment", "neutral"]
MNLI = "sentence1\tsentence2\tgold_label\n"


@pytest.fixture
def text(tmp_path):
    """A folder with a WordPiece model."""
    from fairseq_posenc.tools.prepare.text.vocabulary import learn_wordpiece

    lines = [sentence for pair in PAIRS for sentence in pair]
    learn_wordpiece(lambda: iter(lines), str(tmp_path / "text"), 60)
    model = subwords.load(str(tmp_path / "text"))
    model.dictionary().save(str(tmp_path / "text" / "dict.txt"))
    return str(tmp_path / "text")


@pytest.fixture
def raw(tmp_path):
    """A function that writes official files of a task and returns their folder."""

    def raw(name, header, lines):
        folder = tmp_path / f"raw-{name}"
        folder.mkdir(exist_ok=True)
        for file in TASKS[name].labelled.values():
            (folder / file).write_text(header + "".join(f"{line}\n" for line in lines))
        return str(folder)

    return raw


@pytest.fixture
def mnli(raw):
    return raw("MNLI", MNLI, ["\t".join([*pair, label]) for pair, label in zip(PAIRS, LABELS)])


def test_sentences_and_labels_come_back(text, mnli, tmp_path):
    output = str(tmp_path / "bin")
    examples, problems = prepare(TASKS["MNLI"], mnli, text, output)
    assert examples == {"train": 3, "valid": 3, "valid1": 3} and not problems
    dictionary, model = subwords.load_dictionary(output), subwords.load(output)
    inputs = sentence_folder.inputs(output, "valid1")
    for number, pair in enumerate(PAIRS):
        for part, sentence in zip(inputs, pair):
            *indices, last = part[number].tolist()
            assert [dictionary[index] for index in indices] == model.pieces(sentence)
            assert last == dictionary.eos()
    assert sentence_folder.targets(output, "train", 3).tolist() == [2, 0, 1]
    description = Description.read(output)
    assert description.labels == ["entailment", "neutral", "contradiction"]
    assert description.splits["valid1"] == "dev_mismatched.tsv"


def test_scores_come_back_exactly(text, raw, tmp_path):
    lines = [
        f"{first}\t{second}\t{score}" for (first, second), score in zip(PAIRS, "0 3.1 5".split())
    ]
    folder = raw("STS-B", "sentence1\tsentence2\tscore\n", lines)
    prepare(TASKS["STS-B"], folder, text, str(tmp_path / "bin"))
    scores = sentence_folder.targets(str(tmp_path / "bin"), "valid", 0)
    assert scores.tolist() == [0.0, 3.1, 5.0] and scores.dtype == torch.float64
    assert Description.read(str(tmp_path / "bin")).regression


def test_the_stock_task_reads_the_folder_too(text, mnli, tmp_path):
    output = str(tmp_path / "bin")
    prepare(TASKS["MNLI"], mnli, text, output)
    cfg = SimpleNamespace(
        data=output, num_classes=3, regression_target=False, init_token=0, separator_token=None,
        seed=1, shorten_method="none", shorten_data_split_list="", max_positions=512,
        add_prev_output_tokens=False, no_shuffle=True, d2v2_multi=False,
    )  # fmt: skip
    stock = SentencePredictionTask.setup_task(cfg).load_dataset("valid")
    batch = stock.collater([stock[1]])
    first, second = (part[1] for part in sentence_folder.inputs(output, "valid"))
    tokens = torch.cat([torch.tensor([0]), first, second])
    assert batch["net_input"]["src_tokens"].tolist() == [tokens.tolist()]
    assert batch["target"].tolist() == [[0]]


def test_the_number_of_workers_changes_nothing(text, mnli, tmp_path, monkeypatch):
    monkeypatch.setattr(sentence_folder, "_CHUNK", 1)
    for workers in (1, 2):
        prepare(TASKS["MNLI"], mnli, text, str(tmp_path / str(workers)), workers)
    files = [path for path in (tmp_path / "1").rglob("*") if path.is_file()]
    assert len(files) == 3 * 2 * 3 + 3 + 3
    for path in files:
        other = tmp_path / "2" / path.relative_to(tmp_path / "1")
        assert path.read_bytes() == other.read_bytes()


def test_a_folder_whose_making_was_cut_is_as_it_was(text, mnli, raw, tmp_path, monkeypatch):
    output = tmp_path / "bin"
    prepare(TASKS["MNLI"], mnli, text, str(output))
    before = {path: path.is_file() and path.read_bytes() for path in output.rglob("*")}

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sentence_folder, "_write_targets", killed)
    folder = raw("SST-2", "sentence\tlabel\n", ["a cat\t1"])
    with pytest.raises(KeyboardInterrupt):
        prepare(TASKS["SST-2"], folder, text, str(output))
    assert before == {path: path.is_file() and path.read_bytes() for path in output.rglob("*")}


def test_nothing_of_another_task_stays(text, mnli, raw, tmp_path):
    output = str(tmp_path / "bin")
    prepare(TASKS["MNLI"], mnli, text, output)
    prepare(TASKS["SST-2"], raw("SST-2", "sentence\tlabel\n", ["a cat\t1"]), text, output)
    assert len(sentence_folder.input_folders(output)) == 1
    assert not list((tmp_path / "bin").rglob("valid1.*"))


def test_malformed_lines_are_refused_before_anything_is_written(text, raw, tmp_path):
    folder = raw("SST-2", "sentence\tlabel\n", ["a cat\t1", "no label", "a dog\t0"])
    with pytest.raises(UsageError, match=r"2 malformed lines: .*train.tsv, line 3"):
        prepare(TASKS["SST-2"], folder, text, str(tmp_path / "bin"))
    assert not (tmp_path / "bin").exists()


def test_the_script_names_the_lines_it_leaves_out(text, raw, tmp_path, monkeypatch, capsys):
    folder = raw("SST-2", "sentence\tlabel\n", ["a cat\t1", "no label", "a dog\t0"])
    command = f"posenc prepare glue --task SST-2 --input {folder} --subwords {text}"
    monkeypatch.setattr(
        sys,
        "argv",
        [*command.split(), *f"--output {tmp_path}/bin --skip-malformed --workers 1".split()],
    )
    cli.main()
    printed = capsys.readouterr()
    assert "SST-2, train 2, valid 2" in printed.out
    assert printed.err.count("left out: ") == 2 and "dev.tsv, line 3: 1 columns" in printed.err
    assert Description.read(str(tmp_path / "bin")).skipped == {"train": [1], "valid": [1]}


@pytest.mark.parametrize(
    "change, message",
    [
        (None, "there is no .*task.json"),
        ("{", "is no JSON"),
        ({"splits": 1}, "damaged: splits should be an object"),
        ({"best": "bleu"}, "no metric is called 'bleu'"),
        ({"kind": "ranking"}, "neither a classification nor a regression"),
        ({"labels": []}, "neither a classification nor a regression"),
    ],
)
def test_a_damaged_description_is_refused(change, message, tmp_path):
    whole = {"name": "x", "kind": "classification", "labels": ["a", "b"], "metrics": ["accuracy"]}
    whole.update(best="accuracy", splits={"train": "train.tsv"})
    if change is not None:
        text = change if isinstance(change, str) else json.dumps({**whole, **change})
        (tmp_path / "task.json").write_text(text)
    with pytest.raises(UsageError, match=message):
        Description.read(str(tmp_path))

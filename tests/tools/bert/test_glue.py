"""Official files of GLUE and XNLI, and the folders that are made of them."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.tasks.sentence_prediction import SentencePredictionTask

from fairseq_posenc.data import sentence_folder, subwords
from fairseq_posenc.data.sentence_folder import Description
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert import glue
from fairseq_posenc.tools.bert.glue import prepare
from fairseq_posenc.tools.bert.glue_files import read
from fairseq_posenc.tools.bert.glue_tasks import TASKS
from tests.tiny import learn_subwords

# columns of the official files, with what a line of a labelled one may hold
PARSES = "sentence1_binary_parse sentence2_binary_parse sentence1_parse sentence2_parse".split()
STS = "index genre filename year old_index source1 source2 sentence1 sentence2 score".split()
MNLI = ["index", "promptID", "pairID", "genre", *PARSES, "sentence1", "sentence2"]
XNLI = ["language", "gold_label", *PARSES, "sentence1", "sentence2", "promptID", "pairID"]
COLUMNS = {
    "CoLA": ["source", "label", "mark", "sentence"],
    "SST-2": ["sentence", "label"],
    "MRPC": ["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"],
    "QQP": ["id", "qid1", "qid2", "question1", "question2", "is_duplicate"],
    "STS-B": STS,
    "MNLI": [*MNLI, "label1", "label2", "label3", "label4", "label5", "gold_label"],
    "QNLI": ["index", "question", "sentence", "label"],
    "RTE": ["index", "sentence1", "sentence2", "label"],
    "WNLI": ["index", "sentence1", "sentence2", "label"],
    "XNLI": XNLI,
}
TRAIN_COLUMNS = {**COLUMNS, "MNLI": [*MNLI, "label1", "gold_label"]}
TARGETS = {"STS-B": 3.75}


def line(task, columns, **cells):
    values = {column: "x" for column in columns}
    values[task.label] = task.labels[1] if task.labels else "3.750"
    values.update(zip(task.sentences, ('A "first', "second's one")), language="de")
    values.update(cells)
    return "\t".join(values[column] for column in columns)


def write(folder, name, lines, header=None):
    text = [*([] if header is None else ["\t".join(header)]), *lines]
    (folder / name).write_text("".join(f"{line}\n" for line in text), encoding="utf-8")


@pytest.fixture
def official(tmp_path):
    """A function that writes the files of a task, with given lines in the development file."""

    def official(name, *development):
        task = TASKS[name]
        for split, file in task.labelled.items():
            columns = (TRAIN_COLUMNS if split == "train" else COLUMNS)[name]
            lines = [line(task, columns)]
            header = None if task.columns else columns
            write(
                tmp_path, file, development if split == "valid" and development else lines, header
            )
        return task, str(tmp_path)

    return official


def all_of(task, folder):
    problems = []
    splits = read(task, folder, problems)
    assert not problems
    return splits


@pytest.mark.parametrize("name", TASKS)
def test_every_task_is_read_from_its_official_columns(name, official):
    task, folder = official(name)
    sentences = ('A "first', "second's one")[: len(task.sentences)]
    for split in all_of(task, folder).values():
        assert split.sentences == [sentences]
        assert split.targets == [TARGETS.get(name, 1)]


def test_xnli_has_a_split_per_language_with_the_labels_of_mnli(official):
    task = TASKS["XNLI"]
    lines = [line(task, XNLI, language=code, sentence1=code) for code in ("ar", "de", "ar", "zh")]
    splits = all_of(*official("XNLI", *lines))
    assert list(splits) == ["valid-ar", "valid-de", "valid-zh", "test-de"]
    assert [first for first, _ in splits["valid-ar"].sentences] == ["ar", "ar"]
    assert task.labels == TASKS["MNLI"].labels


@pytest.mark.parametrize("name", [name for name in TASKS if name != "XNLI"])
def test_files_without_labels_are_read_if_they_are_there(name, official, tmp_path):
    task, folder = official(name)
    assert not set(task.unlabelled) & set(all_of(task, folder))
    for file, *_ in task.unlabelled.values():
        write(tmp_path, file, ["0\ta\tb", "1\tc\td"], ["index", *task.sentences, "y"][:3])
    splits = all_of(task, folder)
    for split in task.unlabelled:
        assert splits[split].targets is None
        assert [sentences[0] for sentences in splits[split].sentences] == ["a", "c"]


MALFORMED = [
    ("SST-2", "a\tb\t1", "3 columns instead of 2"),
    ("SST-2", "a", "1 columns instead of 2"),
    ("SST-2", "a\t2", "label '2' is not one of 0, 1"),
    ("SST-2", " \t1", "an empty sentence"),
    ("CoLA", "gj04\t1\t", "3 columns instead of 4"),
    ("RTE", "0\ta\tb\tneutral", "label 'neutral' is not one of entailment, not_entailment"),
    ("QNLI", "0\ta\t\tentailment", "an empty sentence"),
    ("STS-B", "\t".join([*"0123456", "a", "b", "high"]), "score 'high' is not a number"),
    ("STS-B", "\t".join([*"0123456", "a", "b", "5.1"]), "score 5.1 is not in 0…5"),
    ("STS-B", "\t".join([*"0123456", "a", "b", "nan"]), "score nan is not in 0…5"),
    ("STS-B", "\t".join([*"0123456", "a", "b", "0_1"]), "score '0_1' is not a number"),
    ("STS-B", "\t".join([*"0123456", "a", "b", "２"]), "score '２' is not a number"),
    ("XNLI", line(TASKS["XNLI"], XNLI, language="../de"), "'../de' is not a language"),
    ("XNLI", line(TASKS["XNLI"], XNLI, gold_label="-"), "label '-' is not one of"),
]


@pytest.mark.parametrize("name, bad, message", MALFORMED, ids=[case[2] for case in MALFORMED])
def test_malformed_lines_are_named_and_left_out(name, bad, message, official):
    task = TASKS[name]
    good = line(task, COLUMNS[name])
    problems = []
    splits = read(*official(name, good, bad, good), problems)
    first = 1 if task.columns else 2
    assert len(problems) == 1
    assert f"{task.labelled['valid']}, line {first + 1}: {message}" in problems[0]
    split = splits["valid-de" if task.language else "valid"]
    assert len(split.sentences) == len(split.targets) == 2
    assert split.skipped == ([] if "not a language" in message else [1])


@pytest.mark.parametrize("place", ["AX.tsv", "../AX.tsv", "../diagnostic/diagnostic.tsv"])
def test_the_diagnostic_set_is_found(place, official, tmp_path):
    task, folder = official("MNLI")
    inside = tmp_path / "MNLI"
    inside.mkdir()
    for file in tmp_path.glob("*.tsv"):
        file.rename(inside / file.name)
    (inside / place).parent.mkdir(exist_ok=True)
    write(inside, place, ["0\ta\tb"], ["index", "sentence1", "sentence2"])
    assert all_of(task, str(inside))["ax"].sentences == [("a", "b")]


@pytest.mark.parametrize("ids", TASKS["MRPC"].original[2:])
def test_mrpc_is_read_as_microsoft_published_it(ids, tmp_path):
    task, columns = TASKS["MRPC"], COLUMNS["MRPC"]
    train, test, *_ = task.original
    lines = [line(task, columns, **{"#1 ID": str(n), "#2 ID": "9", "#1 String": f"text {n}"})
             for n in range(4)]  # fmt: skip
    write(tmp_path, train, ["a", *lines], columns)
    write(tmp_path, test, lines[:1], ["\ufeff" + columns[0], *columns[1:]])
    write(tmp_path, ids, ["1\t9", "3\t9", "1\t8"])
    problems = []
    splits = read(task, str(tmp_path), problems)
    found = {name: [first for first, _ in split.sentences] for name, split in splits.items()}
    assert found == {
        "train": ["text 0", "text 2"], "valid": ["text 1", "text 3"], "test": ["text 0"],
    }  # fmt: skip
    assert splits["valid"].targets == [1, 1] and splits["test"].targets is None
    assert len(problems) == 1 and splits["train"].skipped == [0]
    (tmp_path / ids).unlink()
    with pytest.raises(UsageError, match="mrpc_dev_ids.tsv"):
        read(task, str(tmp_path), [])


def test_no_row_of_a_test_set_is_left_out(official, tmp_path, text):
    task, folder = official("SST-2")
    write(tmp_path, "test.tsv", ["0\ta cat", "1\t", "2\ta dog"], ["index", "sentence"])
    assert len(all_of(task, folder)["test"].sentences) == 3
    write(tmp_path, "test.tsv", ["0\ta cat", "1", "2\ta dog"], ["index", "sentence"])
    with pytest.raises(UsageError, match=r"test.tsv, line 3: 1 columns .* never left out"):
        prepare(task, folder, text, str(tmp_path / "bin"), skip_malformed=True)
    assert not (tmp_path / "bin").exists()


def test_an_empty_question_of_quora_is_kept(official):
    splits = all_of(*official("QQP", "0\t1\t2\t\tb\t0"))
    assert splits["valid"].sentences == [("", "b")]


def test_a_byte_order_mark_is_no_part_of_a_name(official, tmp_path):
    task, folder = official("SST-2")
    (tmp_path / "dev.tsv").write_text("\ufeffsentence\tlabel\na\t0\n", encoding="utf-8")
    assert all_of(task, folder)["valid"].sentences == [("a",)]


@pytest.mark.parametrize(
    "text, message",
    [
        ("sentence\tgold\na\t0\n", "line 1: SST-2 needs a column 'label'; there are 'sentence'"),
        ("sentence\tlabel\n", "holds no examples"),
        ("sentence\tlabel\na\n", "holds no examples: .*line 2: 1 columns"),
        ("", "is empty"),
        (None, "cannot read"),
    ],
)
def test_unusable_files_are_refused(text, message, official, tmp_path):
    task, folder = official("SST-2")
    (tmp_path / "dev.tsv").unlink()
    if text is not None:
        (tmp_path / "dev.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        read(task, folder, [])


PAIRS = [("a cat sleeps", "it is 'awake'"), ("a dog runs", "a dog moves"), ("cats", "dogs run")]
LABELS = ["contradiction", "entailment", "neutral"]


@pytest.fixture
def text(tmp_path):
    """A folder with a WordPiece model."""
    pytest.importorskip("tokenizers")
    return learn_subwords(tmp_path / "text", sum(PAIRS, ()), 60)


@pytest.fixture
def raw(tmp_path):
    """A function that writes labelled files of a task with the columns that are read."""

    def raw(name, *rows):
        task, folder = TASKS[name], tmp_path / f"raw-{name}"
        folder.mkdir()
        for file in task.labelled.values():
            write(folder, file, map("\t".join, rows), [*task.sentences, task.label])
        return task, str(folder)

    return raw


@pytest.fixture
def mnli(raw):
    return raw("MNLI", *((*pair, label) for pair, label in zip(PAIRS, LABELS)))


def files_in(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}


def test_sentences_and_labels_come_back_also_in_the_stock_task(text, mnli, tmp_path):
    output = str(tmp_path / "bin")
    assert prepare(*mnli, text, output) == ({"train": 3, "valid": 3, "valid1": 3}, [])
    dictionary, model = subwords.load_dictionary(output), subwords.load(output)
    inputs = sentence_folder.inputs(output, "valid1")
    for number, pair in enumerate(PAIRS):
        for part, sentence in zip(inputs, pair):
            *indices, last = part[number].tolist()
            assert [dictionary[index] for index in indices] == model.encode(sentence)
            assert last == dictionary.eos()
    assert sentence_folder.targets(output, "train", 3).tolist() == [2, 0, 1]
    description = Description.read(output)
    assert description.labels == ["entailment", "neutral", "contradiction"]
    assert description.splits["valid1"] == "dev_mismatched.tsv"
    cfg = SimpleNamespace(
        data=output, num_classes=3, regression_target=False, init_token=0, separator_token=None,
        seed=1, shorten_method="none", shorten_data_split_list="", max_positions=512,
        add_prev_output_tokens=False, no_shuffle=True, d2v2_multi=False,
    )  # fmt: skip
    stock = SentencePredictionTask.setup_task(cfg).load_dataset("valid")
    batch = stock.collater([stock[1]])
    tokens = torch.cat([torch.tensor([0]), inputs[0][1], inputs[1][1]])
    assert batch["net_input"]["src_tokens"].tolist() == [tokens.tolist()]
    assert batch["target"].tolist() == [[0]]


def test_scores_come_back_exactly(text, raw, tmp_path):
    scores = ["0", "3.1", "5"]
    prepare(
        *raw("STS-B", *((*pair, score) for pair, score in zip(PAIRS, scores))), text, str(tmp_path)
    )
    found = sentence_folder.targets(str(tmp_path), "valid", 0)
    assert found.tolist() == [0.0, 3.1, 5.0] and found.dtype == torch.float64
    assert Description.read(str(tmp_path)).regression


def test_the_number_of_workers_changes_nothing(text, mnli, tmp_path, monkeypatch):
    monkeypatch.setattr(glue, "_CHUNK", 1)
    for workers in (1, 2):
        prepare(*mnli, text, str(tmp_path / str(workers)), workers)
    files = files_in(tmp_path / "1")
    assert len(files) == 3 * 2 * 3 + 3 + 3 and files == files_in(tmp_path / "2")


def test_a_folder_is_replaced_as_a_whole(text, mnli, raw, tmp_path):
    output = tmp_path / "bin"
    prepare(*mnli, text, str(output))
    (output / "label" / "notes").touch()
    prepare(*raw("SST-2", ("a cat", "1")), text, str(output))
    assert (output / "label" / "notes").exists()  # what is not its own
    assert len(sentence_folder.input_folders(str(output))) == 1
    assert not list(output.rglob("valid1.*"))


def test_a_folder_may_be_prepared_again_with_subwords_of_another_kind(text, mnli, tmp_path):
    pytest.importorskip("sentencepiece")
    pieces = learn_subwords(tmp_path / "pieces", sum(PAIRS, ()), 60, "sentencepiece")
    output = str(tmp_path / "bin")
    for folder, name in ((text, "wordpiece.json"), (pieces, "sentencepiece.model")) * 2:
        prepare(*mnli, folder, output)
        assert subwords.load(output).name == name
    assert not (tmp_path / "bin/wordpiece.json").exists()
    with pytest.raises(UsageError, match="pieces has data that are not of this command"):
        prepare(*mnli, text, pieces)
    assert subwords.load(pieces).name == "sentencepiece.model"


def test_malformed_lines_are_refused_or_named(text, raw, tmp_path, posenc):
    task, folder = raw("SST-2", ("a cat", "1"), *[("no label",)] * 4, ("a dog", "0"))
    with pytest.raises(UsageError) as error:
        prepare(task, folder, text, str(tmp_path / "bin"))
    assert "8 malformed lines: " in str(error.value) and "3 more" in str(error.value)
    assert str(error.value).count(".tsv, line ") == 5 and not (tmp_path / "bin").exists()
    options = f"--task SST-2 --input {folder} --subwords {text} --output {tmp_path}/bin"
    printed = posenc("prepare", "glue", *f"{options} --skip-malformed --workers 1".split())
    assert "SST-2, train 2, valid 2" in printed.out
    assert printed.err.count("left out: ") == 8 and "dev.tsv, line 3: 1 columns" in printed.err
    skipped = {"train": [1, 2, 3, 4], "valid": [1, 2, 3, 4]}
    assert Description.read(str(tmp_path / "bin")).skipped == skipped


@pytest.mark.parametrize("strange", [0, 1])
def test_unknown_tokens_are_told_by_split_and_sentence(text, raw, tmp_path, posenc, strange):
    """With a vocabulary of other text, a model would learn from unknown tokens, silently."""
    pairs = [(first, "猫" if strange else second, "neutral") for first, second in PAIRS]
    task, folder = raw("MNLI", *pairs)
    command = f"--task MNLI --input {folder} --subwords {text} --output {tmp_path}/bin --workers 1"
    printed = posenc("prepare", "glue", *command.split())
    share = "100.00" if strange else "0.00"
    assert f"train: unknown tokens: 0.00 % of sentence1, {share} % of sentence2" in printed.out
    warning = "warning: 100.0 % of the tokens of train.sentence2 are not in the dictionary"
    assert (warning in printed.err) == bool(strange) == ("warning" in printed.err)

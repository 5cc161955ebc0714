import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from fairseq_posenc.data import subwords
from fairseq_posenc.data.questions import QuestionFolder
from fairseq_posenc.data.windows import WindowDataset, WindowLayout, covering_tokens
from fairseq_posenc.errors import UsageError
from fairseq_posenc.metrics.answers import normalise
from fairseq_posenc.tools.bert.squad import prepare

LANGUAGES = ["en", "ar", "th", "zh"]
SMALL = WindowLayout(40, 8, 2)
one_kind = pytest.mark.parametrize("subwords_folder", ["cased wordpiece"], indirect=True)


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def paragraphs(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))["data"][0]["paragraphs"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_ids_and_answers_come_back(prepared, files, language):
    split = QuestionFolder(prepared, f"valid-{language}")
    data = paragraphs(files[language])
    assert split.contexts == [paragraph["context"] for paragraph in data]
    qas = [(number, qa) for number, paragraph in enumerate(data) for qa in paragraph["qas"]]
    assert [(q.id, q.text, q.context) for q in split.questions] == [
        (qa["id"], qa["question"], number) for number, qa in qas
    ]
    assert [q.answers[0]._asdict() for q in split.questions] == [
        {"text": gold["text"], "start": gold["answer_start"]}
        for _, qa in qas
        for gold in qa["answers"]
    ]
    assert split.language == language


@one_kind
@pytest.mark.parametrize("name", ["zh_CN", "zh-CN", "zh-Hans", "zho_Hans", "cmn", "ZH"])
def test_the_rules_of_mlqa_are_those_of_the_languages_code(files, subwords_folder, tmp_path, name):
    prepare(files["zh"], "valid", subwords_folder, str(tmp_path), name, "mlqa")
    assert QuestionFolder(str(tmp_path), "valid").language == "zh"


@pytest.mark.parametrize("language", LANGUAGES)
def test_tokens_are_those_of_the_dictionary_and_lie_where_the_offsets_say(
    prepared, subwords_folder, language
):
    split = QuestionFolder(prepared, f"valid-{language}")
    dictionary, model = subwords.load_dictionary(prepared), subwords.load(subwords_folder)
    for number in range(0, len(split), 7):
        context = split.contexts[split.questions[number].context]
        tokens, offsets = split.context_tokens(number), split.offsets(number)
        assert len(tokens) == len(offsets) and dictionary.unk() not in tokens
        pieces = [dictionary[token] for token in tokens]
        assert model.decode(pieces) == model.decode(model.encode(context))
        assert offsets[:, 0].min() >= 0 and offsets[:, 1].max() <= len(context)
        question = [dictionary[token] for token in split.question_tokens(number)]
        assert model.decode(question) == model.decode(model.encode(split.questions[number].text))


@pytest.mark.parametrize("language", LANGUAGES)
def test_answers_come_back_in_no_more_pieces_than_they_touch(prepared, language, subwords_folder):
    """They come back exactly but in Thai, and in Chinese with pieces of several words."""
    sentencepiece = subwords.load(subwords_folder).name == "sentencepiece.model"
    exact = language in ("en", "ar") or (language == "zh" and not sentencepiece)
    split = QuestionFolder(prepared, f"valid-{language}")
    for number, question in enumerate(split.questions):
        text, start = question.answers[0]
        first, last = covering_tokens(split.offsets(number), start, start + len(text))
        found = split.span_text(number, first, last)
        assert text in found and found in split.contexts[question.context]
        for token in (first, last):
            begin, end = split.offsets(number)[token]
            assert begin < start + len(text) and end > start
        if exact:
            assert normalise(found, "mlqa", language) == normalise(text, "mlqa", language)


def test_windows_are_question_and_context_with_segments(prepared):
    split, dictionary = QuestionFolder(prepared, "valid-en"), subwords.load_dictionary(prepared)
    windows = WindowDataset(split, "valid-en", dictionary, SMALL)
    assert split.sizes("question").max() > 2
    seen = {}
    for index in range(len(windows)):
        item, window = windows[index], windows.window(index)
        tokens, segments = item["tokens"].tolist(), item["segments"].tolist()
        query = split.question_tokens(window.question)[:2].tolist()
        part = split.context_tokens(window.question)[window.first :][: window.length].tolist()
        bos, eos = dictionary.bos(), dictionary.eos()
        assert tokens == [bos, *query, eos, *part, eos] and len(tokens) <= 40
        assert len(tokens) == windows.sizes[index] == windows.num_tokens(index)
        assert segments == [0] * (len(query) + 2) + [1] * (len(part) + 1)
        assert np.flatnonzero(item["answerable"]).tolist() == list(
            range(len(query) + 2, len(tokens) - 1)
        )
        assert not (item["beginnings"] & ~item["answerable"]).any()
        mine = np.flatnonzero(item["beginnings"]) - window.before + window.first
        seen.setdefault(window.question, []).extend(mine.tolist())
    # every token of every context may begin an answer, in exactly one window
    assert {number: sorted(tokens) for number, tokens in seen.items()} == {
        number: list(range(len(split.context_tokens(number)))) for number in range(len(split))
    }


def test_answers_are_marked_in_windows_that_hold_them_whole_and_at_the_start_elsewhere(prepared):
    split, dictionary = QuestionFolder(prepared, "valid-ar"), subwords.load_dictionary(prepared)
    windows = WindowDataset(split, "valid-ar", dictionary, SMALL)
    marked = set()
    for index in range(len(windows)):
        window, (start, end) = windows.window(index), windows[index]["answer"].tolist()
        answer, at = split.questions[window.question].answers[0]
        first, last = covering_tokens(split.offsets(window.question), at, at + len(answer))
        if (start, end) != (0, 0):
            shift = window.first - window.before
            assert (start + shift, end + shift) == (first, last)
            assert windows[index]["answerable"][[start, end]].all()
            marked.add(window.question)
        else:
            assert first < window.first or last >= window.first + window.length
    assert marked == set(range(len(split)))


@one_kind
def test_batches_are_padded_on_the_right(prepared):
    split, dictionary = QuestionFolder(prepared, "valid-th"), subwords.load_dictionary(prepared)
    windows = WindowDataset(split, "valid-th", dictionary, SMALL)
    names = ("tokens", "segments", "answerable", "beginnings")
    items = [windows[0], windows[len(windows) - 1]]
    items[1].update({name: items[1][name][:9] for name in names})
    batch = windows.collater(items)
    assert batch["net_input"]["src_lengths"].tolist() == [windows.sizes[0], 9]
    for name in names[2:]:
        assert batch[name].dtype == torch.bool and not batch[name][1, 9:].any()
        assert batch[name].shape == batch["net_input"]["src_tokens"].shape
    assert batch["split"] == "valid-th" and windows.collater([]) == {}


@one_kind
def test_workers_make_no_difference(files, subwords_folder, tmp_path):
    for workers in (1, 3):
        prepare(
            files["zh"], "valid", subwords_folder, str(tmp_path / str(workers)), workers=workers
        )
    assert contents(tmp_path / "1") == contents(tmp_path / "3")


@one_kind
def test_other_splits_stay_and_other_subwords_are_refused(files, subwords_folder, tmp_path, lines):
    folder = str(tmp_path / "out")
    prepare(files["en"], "valid", subwords_folder, folder)
    before = contents(folder)
    prepare(files["ar"], "valid-ar", subwords_folder, folder)
    assert before.items() <= contents(folder).items()
    other = str(tmp_path / "other")
    shutil.copytree(subwords_folder, other)
    with open(os.path.join(other, "dict.txt"), encoding="utf-8") as stream:
        lines = [f"{line.rsplit(' ', 1)[0]} {n}\n" for n, line in enumerate(stream)]
    with open(os.path.join(other, "dict.txt"), "w", encoding="utf-8") as stream:
        stream.writelines(lines)
    # the same types, counted
    prepare(files["en"], "valid", other, folder)
    with open(os.path.join(other, "dict.txt"), "a", encoding="utf-8") as stream:
        stream.write("more 1\n")
    with pytest.raises(UsageError, match="prepared with other subwords"):
        prepare(files["en"], "train", other, folder)


@one_kind
def test_the_command_reports_what_it_wrote_and_left_out(files, subwords_folder, tmp_path, run):
    data = json.loads(Path(files["en"]).read_text(encoding="utf-8"))
    first, second, *_ = data["data"][0]["paragraphs"][0]["qas"]
    first["answers"][0]["answer_start"] += 1
    second["question"] = ""
    (tmp_path / "broken.json").write_text(json.dumps(data), encoding="utf-8")
    options = ["--input", tmp_path / "broken.json", "--split", "train", "--workers", "1"]
    options += ["--subwords", subwords_folder, "--output", tmp_path / "out", "--skip-malformed"]
    printed = run("posenc", "prepare", "squad", *options)
    assert re.search("left out: .*question en-0-1: the question is empty", printed)
    assert re.search("is not trained on: .*question en-0-0: answer", printed)
    assert "out: train, 15 questions, 2 contexts, " in printed
    assert "context tokens, exact match can reach 100.00 %" in printed
    questions = QuestionFolder(str(tmp_path / "out"), "train")
    dictionary = subwords.load_dictionary(subwords_folder)
    trained, scored = (
        WindowDataset(questions, "train", dictionary, WindowLayout(), seed) for seed in (1, None)
    )
    asked = [{part.window(n).question for n in range(len(part))} for part in (trained, scored)]
    assert asked == [{*range(1, 15)}, {*range(15)}]


@one_kind
@pytest.mark.parametrize("split", ["", "a/b", "a,b", "a.b", "-a"])
def test_names_that_make_no_split_are_refused(files, subwords_folder, tmp_path, split):
    with pytest.raises(UsageError, match="--split"):
        prepare(files["en"], split, subwords_folder, str(tmp_path))


@one_kind
def test_missing_and_damaged_splits_are_named(prepared, tmp_path):
    with pytest.raises(UsageError, match=r"no split 'test' in .* \(there: train, valid-ar"):
        QuestionFolder(prepared, "test")
    folder = str(tmp_path / "copy")
    shutil.copytree(prepared, folder)
    shutil.copy(os.path.join(folder, "valid-ar.context.idx"), f"{folder}/train.context.idx")
    with pytest.raises(UsageError, match="'train' .* is damaged"):
        QuestionFolder(folder, "train")
    os.remove(f"{folder}/valid-en.offsets.bin")
    with pytest.raises(UsageError, match="valid-en.offsets is missing"):
        QuestionFolder(folder, "valid-en")
    with open(f"{folder}/valid-zh.json", "w", encoding="utf-8") as stream:
        stream.write("{}")
    with pytest.raises(UsageError, match="valid-zh.json is not from posenc prepare squad"):
        QuestionFolder(folder, "valid-zh")

"""Trained BERT models in Python: what they say of texts is what the model says of their tokens."""

import csv
import json
import random
from argparse import Namespace
from dataclasses import asdict

import pytest
import torch

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.bert import PosencBertModel
from fairseq_posenc.models.bert_hub import Answer, Label
from fairseq_posenc.tasks.masked_lm import PosencMaskedLMConfig, PosencMaskedLMTask
from fairseq_posenc.tasks.question_answering import (
    PosencQuestionAnsweringConfig,
    PosencQuestionAnsweringTask,
)
from fairseq_posenc.tasks.sentence_prediction import (
    PosencSentencePredictionConfig,
    PosencSentencePredictionTask,
)
from fairseq_posenc.tools.bert import glue, squad
from fairseq_posenc.tools.bert.glue_tasks import TASKS
from fairseq_posenc.tools.bert.predict import predict
from tests.tiny import checkpoint_of, learn_subwords

WORDS = "the cat dog bird sees hears likes a red old house tree and not walks walked".split()
LIMIT = 24
both_kinds = pytest.mark.parametrize("text", ["wordpiece", "sentencepiece"], indirect=True)


@pytest.fixture(scope="module")
def text(request, tmp_path_factory):
    """A folder with a subword model, WordPiece if not told otherwise."""
    kind = getattr(request, "param", "wordpiece")
    sizes = {"wordpiece": 70, "sentencepiece": 60}
    return learn_subwords(tmp_path_factory.mktemp("text"), [" ".join(WORDS)] * 9, sizes[kind], kind)


def save(folder, task, name, **options):
    """Write a checkpoint of a new model with strong weights, as fairseq-train would."""
    sizes = {"encoder_layers": 2, "encoder_embed_dim": 16, "encoder_ffn_embed_dim": 24}
    args = Namespace(arch="posenc_bert_tiny", encoder_attention_heads=2, **sizes, **options)
    args.max_positions = LIMIT
    torch.manual_seed(3)
    model = task.build_model(args)
    for parameter in model.parameters():
        parameter.data += 0.4 * torch.randn(parameter.shape)
    cfg = {"model": args, "task": {**asdict(task.cfg), "_name": name}, "common": {}}
    state = checkpoint_of(cfg, model.state_dict(), task_state=task.state_dict())
    torch.save(state, str(folder / "model.pt"))


def predicted(folder, data):
    """What ``posenc predict`` writes for the validation set."""
    output = {"output": str(folder / "out"), "notes": {}, "cpu": True}
    predict(path=str(folder / "model.pt"), data=data, subsets=["valid"], **output)
    (path,) = (folder / "out").glob("predictions.valid.*")
    if path.suffix == ".json":
        return json.loads(path.read_text())
    with open(path) as stream:
        return [row["prediction"] for row in csv.DictReader(stream, delimiter="\t")]


@pytest.fixture
def masked(text, tmp_path):
    """A masked language model, which knows segments."""
    cfg = PosencMaskedLMConfig(
        data=text, tokens_per_sample=LIMIT, seed=1, train_subset="train", sample_break_mode="eos"
    )
    task = PosencMaskedLMTask.setup_task(cfg)
    options = {"position_encoding": "rel_scalar", "position_segments": "per_head"}
    save(tmp_path, task, "posenc_masked_lm", **options)
    return PosencBertModel.from_pretrained(str(tmp_path), data_name_or_path=text)


@pytest.fixture
def fine_tuned(text, tmp_path):
    """A function from the name of a task of GLUE to a model of it, its data and its sentences."""

    def fine_tuned(name, **options):
        task, draw = TASKS[name], random.Random(4)
        raw, data = tmp_path / f"raw-{name}", str(tmp_path / f"bin-{name}")
        raw.mkdir()
        examples = [
            tuple(" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in task.sentences)
            for _ in range(20)
        ]
        target = task.labels[0] if task.labels else "1.5"
        rows = [[*task.sentences, task.label], *([*cells, target] for cells in examples)]
        for file in task.labelled.values():
            (raw / file).write_text("".join("\t".join(row) + "\n" for row in rows))
        glue.prepare(task, str(raw), text, data)
        cfg = PosencSentencePredictionConfig(
            data=data, max_positions=LIMIT, seed=1, train_subset="train"
        )
        made = PosencSentencePredictionTask.setup_task(cfg)
        save(tmp_path, made, "posenc_sentence_prediction", **options)
        hub = PosencBertModel.from_pretrained(str(tmp_path), data_name_or_path=data)
        return hub, data, examples

    return fine_tuned


@both_kinds
def test_masks_are_filled_by_the_model_s_best_tokens(masked):
    texts = ["the <mask> sees a dog .", "<mask>", "a bird and the old <mask>walks"]
    for text, found in zip(texts, masked.fill_mask(texts, topk=30)):
        before, after = text.split("<mask>")
        own, dictionary = masked.subwords, masked.task.source_dictionary
        pieces = [*own.encode(before), "<mask>", *own.encode(after, after_special=True)]
        tokens = torch.tensor([[0, *map(dictionary.index, pieces), 2]])
        assert masked.encode(text).tolist() == tokens[0].tolist()
        with torch.no_grad():
            scores = masked.model(tokens)[0][0, 1 + pieces.index("<mask>")]
        best = scores.softmax(0).topk(30)
        assert [dictionary.index(token) for _, _, token in found] == best.indices.tolist()
        assert [chance for _, chance, _ in found] == pytest.approx(best.values.tolist(), abs=1e-6)
        # among so many are some that begin words and some that continue them
        assert len({own.begins_word(token) for _, _, token in found}) == 2
        for filled, _, token in found:
            if token.startswith("<"):
                continue  # </s> is no text
            plain = token.replace("##", "").replace("▁", "")
            joined = not own.begins_word(token)
            assert filled == (before.rstrip() if joined else before) + plain + after
        alone = masked.fill_mask(text, topk=30)
        assert [one[0] for one in alone] == [one[0] for one in found]
        assert [one[1] for one in alone] == pytest.approx([one[1] for one in found], abs=1e-6)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda hub: hub.fill_mask("the cat"), "one <mask> in every text, not as in 'the cat'"),
        (lambda hub: hub.fill_mask(["<mask>", "<mask> <mask>"]), "one <mask>"),
        (lambda hub: hub.fill_mask("cat " * 30 + "<mask>"), "input 1 of 1 has .*more than the 24"),
        (lambda hub: hub.fill_mask("<mask>", topk=0), "topk must be from 1 to"),
        (lambda hub: hub.predict("the cat"), "--task posenc_masked_lm, which predicts nothing"),
        (lambda hub: hub.extract_features(torch.zeros(30, dtype=torch.long)), "30 tokens.* 24"),
    ],
)
def test_what_a_masked_language_model_cannot_do_is_reported_in_one_line(masked, call, words):
    with pytest.raises(UsageError, match=words):
        call(masked)


def test_no_text_has_no_result(masked, fine_tuned):
    assert masked.fill_mask([]) == [] and fine_tuned("SST-2")[0].predict([]) == []


def test_features_are_the_model_s(masked):
    tokens = masked.encode("the cat", "a dog")
    assert tokens.tolist().count(2) == 2 and tokens[0] == 0
    first = tokens.tolist().index(2)
    segments = torch.tensor([[0] * (first + 1) + [1] * (len(tokens) - first - 1)])
    with torch.no_grad():
        expected = masked.model(tokens.unsqueeze(0), features_only=True, segments=segments)[0]
    assert torch.equal(masked.extract_features(tokens), expected)
    longest = torch.full((2, LIMIT), 5)
    assert masked.extract_features(longest).shape == (2, LIMIT, 16)


@pytest.mark.parametrize("name", ["SST-2", "MNLI", "STS-B"])
def test_predictions_are_those_of_the_command(fine_tuned, tmp_path, name):
    options = {"position_encoding": "shaw", "position_segments": "per_head"}
    hub, data, examples = fine_tuned(name, **options)
    expected = predicted(tmp_path, data)
    found = hub.predict([e[0] if name == "SST-2" else e for e in examples], cut=True)
    if name == "STS-B":
        assert found == pytest.approx(list(map(float, expected)), abs=1e-5)
        assert len(set(expected)) > 10
        return
    assert [one.label for one in found] == expected and isinstance(found[0], Label)
    for example, one in list(zip(examples, found))[:6]:
        assert one.label == max(one.probabilities, key=one.probabilities.get)
        assert sum(one.probabilities.values()) == pytest.approx(1, abs=1e-6)
        alone = hub.predict(*example, cut=True)
        assert list(alone.probabilities) == list(TASKS[name].labels)
        assert alone.probabilities == pytest.approx(one.probabilities, abs=1e-5)


def test_too_long_sentences_and_wrong_numbers_of_them_are_refused(fine_tuned):
    hub, _, _ = fine_tuned("MNLI", position_encoding="learned")
    long = "cat " * 40
    for arguments, words in (
        ((["a", "b"],), "a pair of texts at a time, not 1"),
        (([("a", "b", "c")],), "a pair of texts at a time, not 3"),
        (("a", long), "input 1 of 1 has .* tokens, more than the 24 .*'a cat cat"),
        (([("a", "b"), (long, "a")],), "input 2 of 2"),
        ((["a"], "b"), "a list is given alone"),
    ):
        with pytest.raises(UsageError, match=words):
            hub.predict(*arguments)
    assert isinstance(hub.predict("a", long, cut=True), Label)
    with pytest.raises(UsageError, match="fill_mask needs a masked language model"):
        hub.fill_mask("<mask>")


@both_kinds
def test_answers_are_those_of_the_command_and_stand_in_the_context(text, tmp_path):
    draw, paragraphs, asked = random.Random(2), [], []
    for number in range(6):
        context = ", ".join(" ".join(draw.choices(WORDS, k=5)) for _ in range(1 + 3 * number))
        question = " ".join(draw.choices(WORDS, k=3))
        asked.append((question, context))
        qa = {"id": str(number), "question": question}
        qa["answers"] = [{"text": context[:3], "answer_start": 0}]
        paragraphs.append({"context": context, "qas": [qa]})
    (tmp_path / "raw.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    data = str(tmp_path / "bin")
    squad.prepare(str(tmp_path / "raw.json"), "valid", text, data)
    cfg = PosencQuestionAnsweringConfig(
        data=data, max_positions=LIMIT, stride=6, max_query_length=6, seed=1, train_subset="train"
    )
    task = PosencQuestionAnsweringTask.setup_task(cfg)
    save(tmp_path, task, "posenc_question_answering", position_encoding="t5")
    hub = PosencBertModel.from_pretrained(str(tmp_path), data_name_or_path="./bin")
    found = hub.predict(asked)
    assert {str(n): one.text for n, one in enumerate(found)} == predicted(tmp_path, data)
    for (question, context), one in zip(asked, found):
        assert isinstance(one, Answer) and one.text == context[one.start : one.end] != ""
        alone = hub.predict(question, context)
        assert alone[:3] == one[:3] and alone.score == pytest.approx(one.score, abs=1e-5)
    assert len(asked[-1][1].split()) > LIMIT
    with pytest.raises(UsageError, match="a pair of texts"):
        hub.predict("only a question")


def test_no_checkpoint_of_another_kind_is_taken(masked, text, tmp_path):
    load = PosencBertModel.from_pretrained
    with pytest.raises(UsageError, match=f"there is no checkpoint {tmp_path}/none.pt"):
        load(str(tmp_path), "none.pt", text)
    with pytest.raises(UsageError, match="there is no folder .*nowhere"):
        load(str(tmp_path), data_name_or_path="./nowhere")
    state = load_checkpoint(tmp_path / "model.pt")
    state["cfg"]["model"].arch = "posenc_transformer"
    torch.save(state, tmp_path / "other.pt")
    with pytest.raises(UsageError, match="not a BERT model, but one of --arch posenc_transformer"):
        load(str(tmp_path), "other.pt", text)
    (tmp_path / "model-shard0.pt").write_bytes((tmp_path / "model.pt").read_bytes())
    with pytest.raises(UsageError, match="there are both .*/model.pt and .*/model-shard0.pt, and"):
        load(str(tmp_path), data_name_or_path=text)

import io
import json
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from fairseq.logging import metrics

from fairseq_posenc.criterions.fine_tuning import FineTuningCriterionConfig
from fairseq_posenc.criterions.question_answering import PosencQuestionAnsweringCriterion
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tasks.question_answering import (
    PosencQuestionAnsweringConfig,
    PosencQuestionAnsweringTask,
)
from fairseq_posenc.tools.bert.squad import prepare

LANGUAGES = ["en", "ar", "th", "zh"]
pytestmark = pytest.mark.parametrize("subwords_folder", ["cased wordpiece"], indirect=True)
SMALL = {"max_positions": 60, "stride": 10, "max_query_length": 6}


class Knowing(torch.nn.Module):
    """Knows every answer."""

    def forward(self, src_tokens, src_lengths, segments, span_head_name):
        assert span_head_name == "span"
        logits = torch.zeros(*src_tokens.shape, 2)
        return logits.scatter_(1, self.sample["answer"].unsqueeze(1), 10.0), {}


class Guessing(torch.nn.Module):
    """Scores tokens by their index and position, in no sensible way."""

    def forward(self, src_tokens, src_lengths, segments, span_head_name):
        numbers = 7.1 * src_tokens + 3.3 * torch.arange(src_tokens.size(1))
        return torch.stack([numbers.sin(), (1.7 * numbers).sin()], dim=-1), {}


@pytest.fixture
def make_task(prepared):
    def make_task(*splits, **options):
        settings = {"data": prepared, "seed": 1, "train_subset": "train", **SMALL, **options}
        cfg = PosencQuestionAnsweringConfig(**settings)
        task = PosencQuestionAnsweringTask.setup_task(cfg)
        for split in splits:
            task.load_dataset(split)
        return task

    return make_task


def make_criterion(task):
    cfg = FineTuningCriterionConfig(
        best_checkpoint_metric="f1", maximize_best_checkpoint_metric=True
    )
    return PosencQuestionAnsweringCriterion(cfg, task)


def batches(task, split, size=7):
    windows = task.dataset(split)
    order = windows.ordered_indices().tolist()
    for start in range(0, len(order), size):
        yield windows.collater([windows[i] for i in order[start : start + size]])


def predict(task, split, model, size=7):
    found = []
    for model.sample in batches(task, split, size):
        found += task.predict(model, model.sample)
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_whoever_knows_where_answers_are_gets_every_point_that_pieces_allow(make_task, language):
    split = f"valid-{language}"
    task, model = make_task(split), Knowing()
    found = predict(task, split, model)
    answers = task.answers(split, found)
    questions = task.dataset(split).split.questions
    assert list(answers) == [question.id for question in questions]
    for question in questions:
        assert question.answers[0].text in answers[question.id]
        assert answers[question.id] in task.dataset(split).split.contexts[question.context]
    if language in ("en", "ar"):
        assert task.score(split, found) == {"f1": 100.0, "exact_match": 100.0}
        assert task.chance(split, found) < 99


def test_questions_without_answers_are_predicted_alike_and_not_scored_or_trained(
    make_task, files, prepared, subwords_folder, tmp_path
):
    document = json.loads(Path(files["ar"]).read_text(encoding="utf-8"))
    for paragraph in document["data"][0]["paragraphs"]:
        for question in paragraph["qas"]:
            del question["answers"]
    (tmp_path / "asked.json").write_text(json.dumps(document), encoding="utf-8")
    folder = str(tmp_path / "asked")
    prepare(str(tmp_path / "asked.json"), "valid-ar", subwords_folder, folder, "ar")
    task, known = make_task("valid-ar", data=folder), make_task("valid-ar")
    found = predict(task, "valid-ar", Guessing())
    expected = known.answers("valid-ar", predict(known, "valid-ar", Guessing()))
    assert task.answers("valid-ar", found) == expected
    assert task.score("valid-ar", found) == {}
    with pytest.raises(UsageError, match="can be predicted .* not be trained"):
        make_criterion(task)(Guessing(), next(batches(task, "valid-ar")))


def test_a_context_without_pieces_gets_an_empty_answer(make_task, subwords_folder, tmp_path):
    asked = {"context": " ", "qas": [{"id": "a", "question": "?"}]}
    known = {"context": "Elbe", "qas": [{"id": "b", "question": "?"}]}
    (tmp_path / "asked.json").write_text(json.dumps({"data": [{"paragraphs": [asked, known]}]}))
    folder = str(tmp_path / "asked")
    prepare(str(tmp_path / "asked.json"), "test", subwords_folder, folder)
    task = make_task("test", data=folder)
    found = task.answers("test", predict(task, "test", Guessing()))
    assert found == {"a": "", "b": found["b"]} and found["b"]


def test_answers_have_no_more_tokens_than_allowed(make_task):
    task = make_task("valid-en", max_answer_length=2)
    for _, (start, end, _) in predict(task, "valid-en", Guessing()):
        assert 0 <= end - start < 2


def test_scores_do_not_depend_on_batches_or_repetitions(make_task):
    task, model = make_task("valid-en"), Guessing()
    scores = [task.score("valid-en", predict(task, "valid-en", model, size)) for size in (1, 9)]
    assert scores[0] == scores[1] and 0 < scores[0]["f1"] < 100
    found = predict(task, "valid-en", model)
    assert task.answers("valid-en", found + found[:50]) == task.answers("valid-en", found)
    with pytest.raises(ValueError, match="exactly one"):
        task.score("valid-en", found[1:])


def test_validation_scores_the_whole_set(make_task):
    task = make_task("valid-en", "valid-ar")
    criterion = make_criterion(task)
    for split in ("valid-en", "valid-ar"):
        model = Guessing().eval()
        with metrics.aggregate(new_root=True) as found:
            for model.sample in batches(task, split):
                log = task.valid_step(model.sample, model, criterion)[2]
                task.reduce_metrics([log], criterion)
        values = found.get_smoothed_values()
        expected = task.score(split, predict(task, split, model))
        assert {name: values[name] for name in expected} == expected
        assert "_predictions" not in values and values["loss"] > 0


def test_predictions_are_written_as_the_official_scripts_read_them(make_task):
    task, stream = make_task("valid-zh"), io.StringIO()
    found = predict(task, "valid-zh", Knowing())
    task.write("valid-zh", found, stream)
    assert json.loads(stream.getvalue()) == task.answers("valid-zh", found)
    assert "北京" in stream.getvalue()


def test_loss_is_the_mean_of_start_and_end_over_context_and_start_symbol(make_task):
    task = make_task("train")
    criterion, model = make_criterion(task), Guessing().train()
    for sample in list(batches(task, "train"))[:3]:
        loss, size, log = criterion(model, sample)
        logits = model(**sample["net_input"], span_head_name="")[0]
        expected = 0.0
        for row, (start, end) in enumerate(sample["answer"].tolist()):
            kept = [0] + torch.nonzero(sample["answerable"][row]).flatten().tolist()
            for side, position in ((0, start), (1, end)):
                scores = logits[row, kept, side].log_softmax(0)
                expected -= scores[kept.index(position)].item() / 2
        assert loss.item() == pytest.approx(expected, rel=1e-5) and size == len(sample["id"])
        assert "predictions" not in log


def test_positions_that_cannot_be_answers_get_no_gradient(make_task):
    task = make_task("train")
    sample = next(iter(batches(task, "train")))
    logits = torch.zeros(*sample["net_input"]["src_tokens"].shape, 2, requires_grad=True)
    model = torch.nn.Module()
    model.forward = lambda **_: (logits, {})
    make_criterion(task)(model, sample)[0].backward()
    possible = sample["answerable"].clone()
    possible[:, 0] = True
    assert (logits.grad[~possible] == 0).all() and (logits.grad[possible] != 0).all()
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_positions": 9}, "--max-positions 9 leaves no room"),
        ({"max_positions": -1}, "must be 1 or more"),
        ({"stride": 0}, "--stride"),
        ({"max_query_length": 0}, "--max-query-length"),
        ({"max_answer_length": 0}, "--max-answer-length 0"),
        ({"n_best": 0}, "--n-best 0"),
        ({"data": "nowhere"}, "nowhere/dict.txt"),
    ],
)
def test_options_that_allow_no_answer_are_refused(make_task, options, message):
    with pytest.raises(UsageError, match=message):
        make_task(**options)
    make_task(max_positions=10)  # room for one token


def test_questions_that_are_cut_are_counted(make_task, caplog):
    caplog.set_level("INFO")
    task = make_task("train", max_query_length=2)
    cut = (task.dataset("train").split.sizes("question") > 2).sum()
    assert cut and f"; {cut} questions are cut to --max-query-length 2" in caplog.text
    caplog.clear()
    make_task("train", max_query_length=40)
    assert "windows" in caplog.text and "are cut" not in caplog.text


def test_only_training_windows_are_shuffled(make_task):
    task = make_task("train", "valid-en")
    train, valid = task.dataset("train"), task.dataset("valid-en")
    assert not train.can_reuse_epoch_itr_across_epochs and valid.can_reuse_epoch_itr_across_epochs


def test_defaults_are_those_of_xtreme(prepared):
    cfg = PosencQuestionAnsweringConfig(data=prepared)
    assert (cfg.max_positions, cfg.stride, cfg.max_query_length) == (384, 128, 64)
    assert (cfg.max_answer_length, cfg.n_best) == (30, 20)


def test_missing_and_combined_splits_are_refused(make_task):
    task = make_task()
    with pytest.raises(UsageError, match="no split 'valid-fr'"):
        task.load_dataset("valid-fr")
    with pytest.raises(UsageError, match="not combined"):
        task.load_dataset("valid-en", combine=True)


def test_models_without_a_span_head_are_refused(make_task):
    task = make_task()
    args = Namespace(_name="roberta", arch="roberta_base", encoder_layers=1, encoder_embed_dim=8)
    args.encoder_attention_heads = 1
    with pytest.raises(UsageError, match="--arch posenc_bert"):
        task.build_model(args)

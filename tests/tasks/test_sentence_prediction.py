import io
import json
import random
import re
import sys

import numpy as np
import pytest
import torch
from fairseq.logging import meters, metrics

from fairseq_posenc.criterions.sentence_prediction import (
    PosencSentencePredictionCriterion,
    PosencSentencePredictionCriterionConfig,
)
from fairseq_posenc.errors import UsageError
from fairseq_posenc.metrics import glue
from fairseq_posenc.tasks import fine_tuning
from fairseq_posenc.tasks.sentence_prediction import (
    PosencSentencePredictionConfig,
    PosencSentencePredictionTask,
)
from fairseq_posenc.tools import cli
from fairseq_posenc.tools.bert.glue import prepare
from fairseq_posenc.tools.bert.glue_tasks import TASKS
from fairseq_posenc.tools.bert.predict import predict
from tests.tiny import learn_subwords

pytest.importorskip("tokenizers")
pytest.importorskip("sklearn")

WORDS = "the cat dog bird sees hears likes a red old house tree and not".split()


def lines(task, count, seed):
    """Lines of words at random, with labels or scores, and languages where there are any."""
    generator = random.Random(seed)
    for _ in range(count):
        cells = [
            " ".join(generator.choices(WORDS, k=generator.randint(1, 9))) for _ in task.sentences
        ]
        target = generator.choice(task.labels) if task.labels else f"{generator.uniform(0, 5):.2f}"
        yield "\t".join([*cells, target, "de" if task.language else ""])


@pytest.fixture
def folder(tmp_path):
    """A function that prepares a task with 30 examples per split."""
    text = learn_subwords(tmp_path / "text", [" ".join(WORDS)] * 3, 70)

    def folder(name, extra=(), skip_malformed=False):
        task = TASKS[name]
        raw = tmp_path / f"raw-{name}"
        raw.mkdir()
        header = "\t".join([*task.sentences, task.label, task.language or "unused"])
        unlabelled = [files[0] for files in task.unlabelled.values()]
        for seed, file in enumerate([*task.labelled.values(), *unlabelled]):
            content = [header, *lines(task, 30, seed)]
            content[3:3] = extra if file in task.labelled.values() else ()
            (raw / file).write_text("".join(f"{line}\n" for line in content))
        output = str(tmp_path / f"bin-{name}")
        prepare(task, str(raw), text, output, skip_malformed=skip_malformed)
        return output

    return folder


def task_of(folder, **options):
    cfg = PosencSentencePredictionConfig(data=folder, seed=1, train_subset="train", **options)
    return PosencSentencePredictionTask.setup_task(cfg)


class Model(torch.nn.Module):
    """Takes the sum of an example's tokens for its score, or the remainder for its label."""

    def __init__(self, labels):
        super().__init__()
        self.labels = labels

    def forward(self, src_tokens, src_lengths, segments, features_only, classification_head_name):
        sums = (src_tokens * (src_tokens > 3) * (1 + segments)).sum(1)
        if not self.labels:
            return torch.sqrt(sums.float()).unsqueeze(1), {}
        return torch.nn.functional.one_hot(sums % self.labels, self.labels).float(), {}


def validated(task, split, sentences):
    """What fairseq-train would print, and choose checkpoints by."""
    return meters_of(task, split, sentences).get_smoothed_values()


def meters_of(task, split, sentences):
    cfg = PosencSentencePredictionCriterionConfig(
        best_checkpoint_metric="loss", maximize_best_checkpoint_metric=False
    )
    criterion, model = (
        PosencSentencePredictionCriterion(cfg, task),
        Model(len(task.description.labels)),
    )
    batches = task.get_batch_iterator(
        task.dataset(split), max_sentences=sentences, required_batch_size_multiple=8
    ).next_epoch_itr(shuffle=False)
    with metrics.aggregate(new_root=True) as aggregator:
        for sample in batches:
            with metrics.aggregate():
                log = task.valid_step(sample, model, criterion)[2]
                task.reduce_metrics([log], criterion)
    return aggregator


@pytest.mark.parametrize("name", ["SST-2", "MRPC", "STS-B", "RTE"])
def test_validation_scores_the_whole_set_whatever_the_batch_size(name, folder):
    task = task_of(folder(name))
    task.load_dataset("valid")
    examples = [task.dataset("valid")[index] for index in range(30)]
    targets = np.array([example["target"].item() for example in examples])
    outputs = [
        Model(len(task.description.labels))(
            **task.dataset("valid").collater([example])["net_input"],
            features_only=True,
            classification_head_name="x",
        )[0][0]
        for example in examples
    ]
    predictions = [out.item() if len(out) == 1 else int(out.argmax()) for out in outputs]
    expected = glue.score(task.description.metrics, targets, predictions)
    assert len(set(predictions)) > 1
    for sentences in (1, 7, 8, 64):
        found = validated(task, "valid", sentences)
        for metric, value in expected.items():
            assert abs(found[metric] - value) < 1e-10  # percent
            assert type(found[metric]) is float
        assert not any(name.startswith("_") for name in found)


def test_an_example_that_two_workers_saw_counts_once(folder, monkeypatch):
    task = task_of(folder("SST-2"))
    task.load_dataset("valid")
    alone = validated(task, "valid", 7)
    first = {}

    def with_a_worker_that_repeats_the_first_batch(part):
        first.update(first or part)
        return [part, first]

    monkeypatch.setattr(fine_tuning, "from_all_workers", with_a_worker_that_repeats_the_first_batch)
    assert validated(task, "valid", 7)["accuracy"] == alone["accuracy"]


def test_one_subset_does_not_count_in_the_next(folder):
    task = task_of(folder("MNLI"))
    for split in ("valid", "valid1"):
        task.load_dataset(split)
    second = task.dataset("valid1")
    second.sizes = second.sizes[:10]
    alone = validated(task, "valid1", 4)["accuracy"]
    assert validated(task, "valid", 4)["accuracy"] != alone
    assert validated(task, "valid1", 4)["accuracy"] == alone


def test_training_can_be_resumed_after_a_validation(folder):
    task = task_of(folder("SST-2"))
    task.load_dataset("valid")
    state = meters_of(task, "valid", 7).state_dict()  # fairseq puts it into the checkpoint
    meters.MetersDict().load_state_dict(state)
    assert "_predictions" not in [name for _, name, *_ in state]


def test_predictions_are_scored_in_the_order_of_the_examples(folder):
    task = task_of(folder("STS-B"))
    task.load_dataset("valid")
    pairs = []
    for batch in task.dataset("valid").batch_by_size(np.arange(30)[::-1], max_sentences=4):
        sample = task.dataset("valid").collater([task.dataset("valid")[i] for i in batch])
        pairs += task.predict(Model(0), sample)
    assert task.score("valid", pairs) == pytest.approx(
        {name: validated(task, "valid", 8)[name] for name in task.description.metrics}
    )
    with pytest.raises(ValueError, match="exactly one prediction"):
        task.score("valid", pairs[1:])
    with pytest.raises(ValueError, match="exactly one prediction"):
        task.score("valid", pairs[1:] + pairs[1:2])


def test_predictions_are_written_for_the_rows_of_the_file(folder):
    task = task_of(folder("RTE", extra=["malformed"], skip_malformed=True))
    stream = io.StringIO()
    task.write("valid", [(1, 0), (0, 1), (2, 1)], stream)
    assert stream.getvalue().splitlines() == [
        "index\tprediction",
        "0\tnot_entailment",
        "1\tentailment",
        "3\tnot_entailment",
    ]


def test_a_split_without_labels_has_no_scores(folder):
    task = task_of(folder("SST-2"))
    task.load_dataset("test")
    assert task.score("test", [(index, 0) for index in range(30)]) == {}


def test_only_training_data_is_shuffled(folder):
    data = folder("SST-2")
    task = task_of(data)
    train, valid = task.load_dataset("train"), task.load_dataset("valid")
    assert not train.can_reuse_epoch_itr_across_epochs and valid.can_reuse_epoch_itr_across_epochs
    assert task_of(data, no_shuffle=True).load_dataset("train").ordered_indices().tolist() == list(
        range(30)
    )


def test_long_examples_are_cut_and_counted(folder, caplog):
    caplog.set_level("INFO")
    data = folder("RTE")
    whole = task_of(data).load_dataset("train").sizes
    assert "are cut" not in caplog.text
    task = task_of(data, max_positions=7)
    assert task.load_dataset("train").sizes.max() == 7 == task.max_positions()
    words = f"train: {(whole > 7).sum()} of 30 examples have more tokens than --max-positions 7"
    assert (whole > 7).any() and words in caplog.text


def test_a_damaged_or_foreign_folder_is_refused(folder, tmp_path):
    with pytest.raises(UsageError, match="prepare the folder with posenc prepare glue"):
        task_of(str(tmp_path))
    data = folder("RTE")
    with pytest.raises(UsageError, match="no room for words; give at least 5"):
        task_of(data, max_positions=4)
    with pytest.raises(UsageError, match="no split 'valid1'; there are train, valid, test"):
        task_of(data).load_dataset("valid1")
    with pytest.raises(UsageError, match="--valid-subset valid,valid1"):
        task_of(data).load_dataset("valid", combine=True)
    (tmp_path / "bin-RTE" / "input1" / "train.idx").unlink()
    with pytest.raises(UsageError, match=r"is incomplete \('train'\)"):
        task_of(data).load_dataset("train")
    with open(f"{data}/dict.txt", "a") as stream:
        stream.write("one_more 1\n")
    with pytest.raises(UsageError, match="the dictionaries of .*input0 and .* differ"):
        task_of(data)


def test_a_checkpoint_predicts_only_with_its_own_labels_and_vocabulary(folder):
    task = task_of(folder("MNLI"))
    task_of(folder("XNLI")).load_state_dict(task.state_dict())
    with pytest.raises(UsageError, match=r"different labels \(\['entailment'"):
        task_of(folder("RTE")).load_state_dict(task.state_dict())
    with pytest.raises(UsageError, match="different vocabulary"):
        task.load_state_dict({**task.state_dict(), "vocabulary": 1})


def test_a_model_of_another_task_with_the_same_labels_is_told(folder, caplog):
    own, another = (task_of(folder(name)) for name in ("QNLI", "RTE"))
    state = own.state_dict()
    another.load_state_dict(state)
    assert "fine-tuned for QNLI, and " in caplog.text and "is of RTE" in caplog.text
    caplog.clear()
    earlier = {name: value for name, value in state.items() if name != "benchmark"}
    for task, loaded in ((own, state), (another, earlier)):
        task.load_state_dict(loaded)
    task_of(folder("XNLI")).load_state_dict(task_of(folder("MNLI")).state_dict())
    assert "fine-tuned for" not in caplog.text


def test_a_model_trained_on_mnli_predicts_xnli(folder, run, tmp_path, monkeypatch, capsys):
    mnli, checkpoint = folder("MNLI"), str(tmp_path / "run" / "checkpoint_best.pt")
    printed = run(
        "fairseq-train", mnli, "--user-dir", "fairseq_posenc", "--cpu", "--seed", 1,
        "--task", "posenc_sentence_prediction", "--criterion", "posenc_sentence_prediction",
        "--arch", "posenc_bert_tiny", "--encoder-embed-dim", 16, "--max-positions", 32,
        "--position-encoding", "rel_scalar", "--position-segments", "per_head",
        "--optimizer", "adam", "--lr", 0.01, "--batch-size", 7, "--max-epoch", 2,
        "--valid-subset", "valid,valid1", "--best-checkpoint-metric", "accuracy",
        "--maximize-best-checkpoint-metric", "--save-dir", tmp_path / "run",
        "--no-epoch-checkpoints", "--log-format", "json", "--num-workers", 0,
    )  # fmt: skip
    logged = [json.loads(line) for line in re.findall(r'\{"epoch": .*"valid1?_loss".*\}', printed)]
    best = max(float(log["valid_accuracy"]) for log in logged if "valid_accuracy" in log)
    out = str(tmp_path / "out")
    command = (
        f"posenc predict --path {checkpoint} --data {mnli} --output {out} --note row=rel_scalar"
    )
    monkeypatch.setattr(sys, "argv", [*command.split(), "--subsets", "valid,valid1,test", "--cpu"])
    cli.main()
    with open(f"{out}/score.json") as stream:
        result = json.load(stream)
    assert result["scores"]["valid"]["accuracy"] == pytest.approx(best, abs=1e-3)
    assert list(result["scores"]) == ["valid", "valid1", "test"] and not result["scores"]["test"]
    # from which intervals are drawn
    assert result["task"] == "MNLI" and list(result["per_example"]) == ["valid", "valid1"]
    assert len(result["per_example"]["valid"]["prediction"]) == 30
    assert result["notes"] == {"row": "rel_scalar"} and "test: no labels" in capsys.readouterr().out
    assert {"torch", "scikit-learn", "scipy"} <= set(result["versions"])
    with open(f"{out}/predictions.test.tsv") as stream:
        assert len(stream.readlines()) == 31
    with pytest.raises(UsageError, match="no split 'other'"):
        # before it predicts the first
        sets = ["valid", "other"]
        predict(path=checkpoint, data=mnli, subsets=sets, output=f"{out}2", cpu=True, notes={})
    assert not (tmp_path / "out2").exists()
    zero_shot = predict(
        path=checkpoint, data=folder("XNLI"), subsets=["test-de"], output=out, cpu=True, notes={}
    )
    assert zero_shot.examples == {"test-de": 30} and zero_shot.scores["test-de"]["accuracy"] > 0

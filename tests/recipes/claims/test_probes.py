"""The probes of small masked language models, against slow references."""

import math
from argparse import Namespace

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary

from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.bert import PosencBertModel
from fairseq_posenc.tasks.masked_lm import PosencMaskedLMConfig, PosencMaskedLMTask
from fairseq_posenc.tools.analyses.models import LoadedModel
from recipes.claims import probes
from recipes.claims.probe_tasks import swapped, write_tasks
from recipes.corpus.grammar import PortableRandom
from tests.tiny import binarise

TRAINED = 12


@pytest.fixture
def text(tmp_path):
    """A binarised set `valid` of 60 random sentences, in documents of six."""
    dictionary = Dictionary()
    for word in range(20):
        dictionary.add_symbol(f"w{word}", n=word + 1)
    dictionary.save(str(tmp_path / "dict.txt"))
    rng, sentences = np.random.default_rng(1), []
    for number in range(60):
        words = rng.integers(4, len(dictionary), rng.integers(2, 7))
        sentences += [[*words, dictionary.eos()], *[[dictionary.eos()]] * (number % 6 == 5)]
    binarise(tmp_path / "valid", sentences)
    return tmp_path


@pytest.fixture
def load(text):
    """A function that gives a tiny model of an encoding, as it would be loaded."""

    def load(encoding):
        cfg = PosencMaskedLMConfig(data=str(text), tokens_per_sample=TRAINED, seed=7)
        cfg.train_subset = "train"
        task = PosencMaskedLMTask.setup_task(cfg)
        args = Namespace(
            arch="posenc_bert_tiny", encoder_layers=1, encoder_embed_dim=16,
            encoder_ffn_embed_dim=16, encoder_attention_heads=2, position_encoding=encoding,
        )  # fmt: skip
        torch.manual_seed(1)
        model = PosencBertModel.build_model(args, task).eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
        return LoadedModel("model", model, task)

    return load


def log_probabilities(loaded, tokens):
    with torch.no_grad():
        return loaded.model(tokens.long().unsqueeze(0))[0][0].double().log_softmax(dim=-1)


def likelihood(loaded, tokens, first):
    total = 0.0
    for place in range(first, len(tokens) - 1):
        masked = tokens.clone()
        masked[place] = loaded.task.mask_idx
        total += float(log_probabilities(loaded, masked)[place, tokens[place]])
    return total


@pytest.mark.parametrize("length", [TRAINED, 2 * TRAINED])
def test_the_order_of_words_is_that_of_one_masked_token_at_a_time(load, length):
    loaded = load("sinusoidal")
    pairs = probes.order_pairs(loaded, length, 20)
    gains = []
    for right, wrong, first in pairs:
        assert len(right) <= length and int(right[0]) == 0 and int(right[-1]) == 2
        changed = np.flatnonzero((right != wrong).numpy())
        assert len(changed) == 2 and changed[1] == changed[0] + 1 and changed[0] >= first
        assert right[changed].tolist() == wrong[changed].tolist()[::-1]
        gains.append(likelihood(loaded, right, first) - likelihood(loaded, wrong, first))
    assert min(map(abs, gains)) > 1e-4
    share = np.mean([gain > 0 for gain in gains])
    assert probes.word_order(loaded, length, 20) == pytest.approx(100 * share)


def test_the_same_sentences_are_asked_at_every_length_and_more_context_is_before_them(load):
    loaded = load("none")
    short, long = (probes.order_pairs(loaded, length, 20) for length in (TRAINED, 2 * TRAINED))
    for few, many in zip(short, long):
        assert torch.equal(few.wrong[few.first :], many.wrong[many.first :])
    assert sum(pair.first for pair in long) > 2 * sum(pair.first for pair in short)


def test_a_bag_of_words_knows_no_order(load):
    assert probes.word_order(load("none"), TRAINED, 30) == 50


def test_bits_are_those_of_every_hidden_token(load):
    loaded = load("rel_scalar")
    bits, unigram = probes.masked_lm_bits(loaded, TRAINED)
    found, frequencies = [], []
    dataset = loaded.task.dataset("valid")
    counts = loaded.task.source_dictionary.count
    for index in range(len(dataset)):
        item = dataset[index]
        logs = log_probabilities(loaded, item["tokens"])
        for place in np.flatnonzero(item["target"].ne(1).numpy()):
            target = int(item["target"][place])
            found.append(-float(logs[place, target]) / math.log(2))
            frequencies.append(-math.log2(counts[target] / sum(range(1, 21))))
    assert bits == pytest.approx(np.mean(found), abs=1e-5)
    assert unigram == pytest.approx(np.mean(frequencies), abs=1e-5)


def test_tables_give_nothing_beyond_the_trained_length(load, text, monkeypatch):
    for encoding, known in [("learned", False), ("tupe", False), ("t5", True)]:
        monkeypatch.setattr(probes, "load_models", lambda *_, cpu, e=encoding: iter([load(e)]))
        result = probes.probe(model="m", data=str(text), pairs=20, notes=[("seed", "1")])
        assert result["seed"] == "1" and result["longer_length"] == 2 * TRAINED
        for name in ("longer_bits", "longer_word_order_accuracy"):
            assert (result[name] is not None) == known
    with pytest.raises(UsageError, match="not --pairs 61"):
        probes.probe(model="m", data=str(text), pairs=61)


def test_tasks_ask_which_order_is_right(tmp_path):
    lines = [f"The {a} sees the {b}, and sings." for a in ("cat", "dog") for b in ("cup", "hat")]
    (tmp_path / "test.en").write_text("\n".join(4 * lines))
    (tmp_path / "test.docs").write_text("\n".join(str(i // 4) for i in range(16)))
    write_tasks(str(tmp_path / "test"), str(tmp_path / "tasks"), train=6, dev=3)
    rows = {
        (name, split): [line.split("\t") for line in path.read_text().splitlines()[1:]]
        for name, columns in (("one", 2), ("two", 4))
        for split, path in ((s, tmp_path / "tasks" / name / f"{s}.tsv") for s in ("dev", "train"))
    }
    assert {key: len(found) for key, found in rows.items()} == {
        ("one", "dev"): 3, ("one", "train"): 6, ("two", "dev"): 3, ("two", "train"): 6
    }  # fmt: skip
    for sentence, label in rows["one", "train"]:
        assert (sentence in lines) == (label == "1")
    for _, first, second, label in rows["two", "train"]:
        assert (first in lines, second in lines) == (
            (False, True) if label == "1" else (True, False)
        )
    with pytest.raises(UsageError, match="has sentences for"):
        write_tasks(str(tmp_path / "test"), str(tmp_path / "tasks"), train=99, dev=3)


def test_marks_stay_where_they_are():
    assert swapped("It is, it.", PortableRandom("1")) == "is it , it ."
    assert swapped("So so.", PortableRandom("1")) is None

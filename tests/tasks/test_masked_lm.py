"""The task posenc_masked_lm; the real command lines are tested end to end."""

from argparse import Namespace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fairseq_posenc.data.masking import Masking
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tasks.masked_lm import PosencMaskedLMConfig, PosencMaskedLMTask
from tests.tiny import binarise, dictionary_of

WORDS = 60


def write_text(folder, split, documents, seed, longest=8, end=(2,)):
    """A split of sentences that count upwards, so that there is something to learn."""
    rng, sentences = np.random.default_rng(seed), []
    for _ in range(documents):
        for _ in range(rng.integers(longest // 4, longest + 1)):
            start, length = rng.integers(WORDS), rng.integers(3, 15)
            words = 4 + (start + np.arange(length)) % WORDS
            sentences.append([*words.tolist(), *end])
        sentences.append(end)
    binarise(folder / split, sentences)


def write_dictionary(folder, words=WORDS):
    counts = {f"w{index}": words - index for index in range(words)}
    dictionary_of(counts).save(str(folder / "dict.txt"))


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A text folder: 60 documents for training, 10 for validation."""
    folder = tmp_path_factory.mktemp("text")
    write_dictionary(folder)
    write_text(folder, "train", 60, seed=1)
    write_text(folder, "valid", 10, seed=2)
    return folder


@pytest.fixture
def setup(folder):
    """A function that makes the task; options are those of the configuration."""

    def setup(**options):
        options = {"data": str(folder), "tokens_per_sample": 32, **options}
        config = PosencMaskedLMConfig(**{"seed": 1, "train_subset": "train", **options})
        return PosencMaskedLMTask.setup_task(config)

    return setup


def by_first_block(samples):
    return {int(sample["id"][0]): sample for sample in samples if sample}


def epoch_of(task, epoch, split="train", **options):
    """The samples of an epoch, by their first block."""
    iterator = task.get_batch_iterator(
        task.dataset(split), max_sentences=8, required_batch_size_multiple=8, epoch=epoch,
        disable_iterator_cache=True, **options,
    )  # fmt: skip
    return by_first_block(iterator.next_epoch_itr())


def equal(samples, others):
    return samples.keys() == others.keys() and all(
        torch.equal(samples[key]["net_input"]["src_tokens"], others[key]["net_input"]["src_tokens"])
        and torch.equal(samples[key]["target"], others[key]["target"])
        for key in samples
    )


def visible(sample):
    """The tokens of a batch as they were, without padding."""
    target, source = sample["target"], sample["net_input"]["src_tokens"]
    tokens = torch.where(target == 1, source, target)
    return [row[:n].tolist() for row, n in zip(tokens, sample["net_input"]["src_lengths"].tolist())]


def test_every_token_of_the_text_is_seen_once_in_an_epoch(setup):
    task = setup()
    task.load_dataset("train")
    samples = epoch_of(task, 1)
    rows = [row for sample in samples.values() for row in visible(sample)]
    assert len(rows) == len(task.dataset("train"))
    assert max(map(len, rows)) <= 32 and {row[0] for row in rows} == {0}
    seen = np.bincount([token for row in rows for token in row], minlength=WORDS + 4)
    sentences = task.dataset("train").dataset.blocks.sentences
    text = np.concatenate([sentences[index].numpy() for index in range(len(sentences))])
    assert np.array_equal(seen[4:], np.bincount(text, minlength=WORDS + 4)[4:])


def test_segments_reach_the_model_and_blocks_may_respect_documents(setup):
    crossing, within = setup(), setup(sample_break_mode="complete_doc")
    segments = []
    for task in (crossing, within):
        task.load_dataset("train")
        net_inputs = [sample["net_input"] for sample in epoch_of(task, 1).values()]
        assert all(net["segments"].shape == net["src_tokens"].shape for net in net_inputs)
        segments.append(torch.cat([net["segments"].flatten() for net in net_inputs]))
    assert set(segments[0].tolist()) == {0, 1} and segments[0].dtype == torch.int64
    assert set(segments[1].tolist()) == {0}


def test_an_epoch_is_the_same_whatever_the_workers_and_where_it_began(setup):
    task, resumed = setup(), setup()
    task.load_dataset("train")
    resumed.load_dataset("train", epoch=3)
    iterator = task.get_batch_iterator(task.dataset("train"), max_sentences=8, num_workers=2)
    epochs = [by_first_block(iterator.next_epoch_itr()) for _ in range(3)]
    assert not equal(epochs[0], epochs[1]) and not equal(epochs[1], epochs[2])
    later = resumed.get_batch_iterator(resumed.dataset("train"), max_sentences=8, epoch=3)
    assert equal(by_first_block(later.next_epoch_itr()), epochs[2])


def test_shards_see_together_what_one_device_sees(setup):
    task = setup()
    task.load_dataset("train")
    parts = [epoch_of(task, 2, num_shards=2, shard_id=shard) for shard in (0, 1)]
    assert min(map(len, parts)) > 1 and not parts[0].keys() & parts[1].keys()
    assert equal({**parts[0], **parts[1]}, epoch_of(task, 2))


def test_validation_data_are_masked_alike_in_every_epoch(setup):
    task = setup()
    task.load_dataset("valid")
    assert equal(epoch_of(task, 1, "valid"), epoch_of(task, 5, "valid"))


def test_the_seed_decides_on_masks_and_on_the_order_of_blocks_of_one_size(setup):
    tasks = [setup(seed=seed) for seed in (1, 1, 2)]
    for task in tasks:
        task.load_dataset("valid")
    one, same, other = (task.dataset("valid") for task in tasks)
    assert equal({0: one.collater([one[0]])}, {0: same.collater([same[0]])})
    assert not equal({0: one.collater([one[0]])}, {0: other.collater([other[0]])})
    orders = [data.ordered_indices() for data in (one, same, other)]
    assert np.all(np.diff(one.sizes[orders[0]]) >= 0)
    assert np.array_equal(orders[0], orders[1]) and not np.array_equal(orders[0], orders[2])
    assert np.array_equal(one.sizes[orders[0]], one.sizes[orders[2]])


def test_folders_take_turns_and_validation_is_in_the_first(setup, folder, tmp_path):
    write_dictionary(tmp_path)
    write_text(tmp_path, "train", 20, seed=3)
    task = setup(data=f"{folder}:{tmp_path}")
    assert task.has_sharded_data("train")
    blocks = []
    for epoch in (1, 2, 3):
        task.load_dataset("train", epoch=epoch)
        task.load_dataset("valid", epoch=epoch)
        blocks.append(len(task.dataset("train")))
    assert blocks[0] == blocks[2] > blocks[1]


def test_whole_words_are_found_by_the_subword_model_of_the_folder(setup, monkeypatch):
    folders = []

    def load(folder):
        folders.append(folder)
        return SimpleNamespace(begins_word=lambda piece: piece == "w0")

    monkeypatch.setattr("fairseq_posenc.data.subwords.load", load)
    task = setup(mask_whole_words=True)
    task.load_dataset("valid")
    masking = task.dataset("valid").dataset.masking
    assert folders == [task.cfg.data]
    assert np.flatnonzero(~masking.begins_word).tolist() == list(range(5, WORDS + 4))


def test_options_reach_the_masks(setup):
    task = setup(
        mask_prob=0.5,
        leave_unmasked_prob=0.2,
        random_token_prob=0.3,
        freq_weighted_replacement=True,
    )
    task.load_dataset("train")
    masking = task.dataset("train").dataset.masking
    expected = Masking(task.dictionary, task.mask_idx, 0.5, 0.2, 0.3, by_frequency=True)
    tokens = np.arange(4, WORDS + 4)
    results = [m.draw(tokens, np.random.default_rng(0)) for m in (masking, expected)]
    assert np.array_equal(*[source for source, _ in results])
    assert np.array_equal(*[target for _, target in results])


def test_the_dictionary_ends_with_mask(setup):
    task = setup()
    assert task.source_dictionary is task.target_dictionary
    assert task.source_dictionary[task.mask_idx] == "<mask>"
    assert task.mask_idx == len(task.source_dictionary) - 1 and task.max_positions() == 32


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda f: (f / "dict.txt").unlink(), "there is no .*dict.txt"),
        (lambda f: (f / "train.idx").unlink(), "no binarised 'train' set in .*idx is missing"),
        (lambda f: (f / "train.bin").write_bytes(b""), "no binarised 'train' .*bin is missing or"),
        (lambda f: write_text(f, "train", 2, 1, longest=0), "holds no text"),
        (lambda f: write_text(f, "train", 3, 1, end=()), "do not end with </s>"),
        (lambda f: (f / "train.idx").write_bytes((f / "train.idx").read_bytes()[:99]), "damaged"),
    ],
)
def test_bad_data_are_refused(setup, tmp_path, spoil, words):
    write_dictionary(tmp_path)
    write_text(tmp_path, "train", 3, seed=1)
    spoil(tmp_path)
    with pytest.raises(UsageError, match=words):
        setup(data=str(tmp_path)).load_dataset("train")


def test_folders_with_different_dictionaries_are_refused(setup, folder, tmp_path):
    write_dictionary(tmp_path, words=WORDS - 1)
    with pytest.raises(UsageError, match="another dict.txt"):
        setup(data=f"{folder}:{tmp_path}")


def test_folders_may_have_counted_their_types_differently(setup, folder, tmp_path):
    text = (folder / "dict.txt").read_text(encoding="utf-8")
    (tmp_path / "dict.txt").write_text(text.replace("w1 ", "w1 9"), encoding="utf-8")
    assert len(setup(data=f"{folder}:{tmp_path}").dictionary) == WORDS + 5


def test_a_criterion_that_counts_all_tokens_is_refused(setup):
    # fairseq's default logged 1.41 bits for 9.98
    with pytest.raises(UsageError, match="needs --criterion masked_lm"):
        setup().build_criterion(Namespace(criterion="cross_entropy", sentence_avg=False))
    setup().build_criterion(Namespace(criterion="masked_lm", tpu=False))


def test_blocks_of_one_token_are_refused(setup):
    with pytest.raises(UsageError, match="--tokens-per-sample must be 2 or more, not 1"):
        setup(tokens_per_sample=1)


def test_blocks_that_the_model_cannot_take_are_refused_not_skipped(setup):
    task = setup()
    task.load_dataset("train")
    with pytest.raises(UsageError, match="takes 20; raise that, or lower --tokens-per-sample 32"):
        epoch_of(task, 1, max_positions=20, ignore_invalid_inputs=True)

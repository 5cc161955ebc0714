"""BOS before every source, and data that are looked at before they are used."""

import fairseq
import numpy as np
import pytest
import torch
from fairseq.data import LanguagePairDataset, ListDataset, indexed_dataset

from fairseq_posenc.data.source_bos import with_source_bos
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tasks.bleu_options import check_bleu_options
from fairseq_posenc.tasks.translation import PosencTranslationConfig, PosencTranslationTask
from tests.tiny import binarise, dictionary_of


@pytest.mark.parametrize("left_pad", [True, False])
def test_every_source_starts_with_bos_and_is_one_longer(left_pad, tmp_path):
    dictionary = dictionary_of("abcdefgh")
    (tmp_path / "text").write_text("a b c\nd\n")
    sentences = indexed_dataset.IndexedRawTextDataset(str(tmp_path / "text"), dictionary)
    # source and target in turn: the first word with the last one, and so on
    alignments = ListDataset([torch.tensor([0, 2, 1, 1, 2, 0]), torch.tensor([0, 0])], [6, 2])
    plain = LanguagePairDataset(
        sentences, sentences.sizes, dictionary, sentences, sentences.sizes, dictionary,
        left_pad_source=left_pad, shuffle=False, align_dataset=alignments,
    )  # fmt: skip
    pairs = with_source_bos(plain)
    batch = pairs.collater([pairs[0], pairs[1]])
    second = [1, 1, 0, 7, 2] if left_pad else [0, 7, 2, 1, 1]
    assert batch["net_input"]["src_tokens"].tolist() == [[0, 4, 5, 6, 2], second]
    assert batch["net_input"]["src_lengths"].tolist() == [5, 3]
    assert batch["target"].tolist() == [[4, 5, 6, 2], [7, 2, 1, 1]]
    assert [pairs.num_tokens(index) for index in range(2)] == [5, 3]
    assert pairs.sizes.tolist() == [[5, 4], [3, 2]]
    alone = with_source_bos(LanguagePairDataset(sentences, sentences.sizes, dictionary))
    assert alone.sizes.tolist() == [5, 3]
    assert plain[0]["source"].tolist() == [4, 5, 6, 2]
    # the targets of the second pair begin at 4
    assert batch["alignments"].tolist() == [[1, 2], [2, 1], [3, 0], [3 if left_pad else 1, 4]]
    # what --replace-unk takes its words from
    assert pairs.src.get_original_text(1) == "d"


@pytest.fixture
def task(tmp_path):
    """A task of the folders 0, 1 and 2, with nine sentences of 4 tokens."""
    folders = [tmp_path / str(number) for number in range(3)]
    for folder in folders:
        folder.mkdir()
        for language in ("en", "de"):
            (folder / f"dict.{language}.txt").write_text("a 1\n")
            for split in ("train", "valid"):
                binarise(folder / f"{split}.en-de.{language}", [[4, 4, 4, 2]] * 9)
    cfg = PosencTranslationConfig(
        data=":".join(map(str, folders)), source_lang="en", target_lang="de", dataset_impl=None,
        train_subset="train", required_seq_len_multiple=1,
        skip_invalid_size_inputs_valid_test=False,
    )  # fmt: skip
    return PosencTranslationTask.setup_task(cfg)


def test_each_epoch_checks_the_folder_that_it_reads(task, tmp_path):
    with open(tmp_path / "1" / "train.en-de.de.bin", "r+b") as stream:
        stream.truncate(2)
    for epoch in (1, 3, 4):
        task.load_dataset("train", epoch=epoch)
    with pytest.raises(UsageError, match="/1/train.en-de.de.bin has 2 bytes"):
        task.load_dataset("train", epoch=2)


def test_a_folder_without_the_set_is_named_before_the_epoch_that_reads_it(task, tmp_path):
    (tmp_path / "2" / "train.en-de.de.idx").unlink()
    with pytest.raises(UsageError, match="no binarised 'train' set of en and de in .*/2; run"):
        task.load_dataset("train")
    (tmp_path / "0" / "valid.en-de.de.bin").unlink()
    with pytest.raises(UsageError, match="no binarised 'valid' set of en and de in .*/0; run"):
        task.load_dataset("valid")
    # as fairseq-generate, which needs no references
    task.load_dataset("valid", task_cfg=task.cfg)
    assert task.dataset("valid").tgt is None
    task.cfg.data += f":{tmp_path}/3"
    with pytest.raises(UsageError, match="there is no folder .*/3, which the data should be in"):
        PosencTranslationTask.setup_task(task.cfg)


def test_the_search_of_eval_bleu_takes_numbers_where_it_counts(task, tmp_path):
    task.cfg.eval_bleu = True
    for search in ('{"max_len_a": "1.5"}', '{"beam": null}'):
        task.cfg.eval_bleu_args = search
        with pytest.raises(UsageError, match="--eval-bleu-args: .* must be a number, not"):
            check_bleu_options(task.cfg, str(tmp_path / "0"))
    task.cfg.eval_bleu_args = '{"beam": 4, "max_len_a": 1, "sampling": true, "replace_unk": null}'
    check_bleu_options(task.cfg, str(tmp_path / "0"))


@pytest.mark.parametrize("option", [None, "update_epoch_batch_itr", "disable_iterator_cache"])
def test_batches_that_fairseq_keeps_are_those_of_the_first_epoch(task, option):
    options = {option: True} if option else {}
    batches = []
    for epoch in (1, 3):
        task.load_dataset("train")
        data = task.dataset("train")
        iterator = task.get_batch_iterator(data, max_tokens=8, epoch=epoch, **options)
        assert iterator.epoch == epoch
        batches.append([list(map(int, batch)) for batch in iterator.frozen_batches])
    # fairseq 0.12.2 makes them from the seed alone
    assert (batches[0] == batches[1]) == (option is None or fairseq.__version__ == "0.12.2")


@pytest.mark.parametrize("length", [9, 30])
def test_a_sample_longer_than_a_batch_may_be_is_told_in_one_line(task, tmp_path, length):
    for language in ("en", "de"):
        binarise(tmp_path / "0" / f"train.en-de.{language}", [[4, 2], [4] * length + [2]])
    task.load_dataset("train")
    options = {"dataset": task.dataset("train"), "disable_iterator_cache": True}
    told = "a sample has more tokens than a batch may have, 8: raise --max-tokens"
    with pytest.raises(UsageError, match=told):
        _ = task.get_batch_iterator(**options, max_tokens=8).first_batch


@pytest.mark.skipif(fairseq.__version__ == "0.12.2", reason="it makes a batch of them")
def test_a_set_too_small_for_a_batch_is_answered_with_what_helps(task, tmp_path):
    for language in ("en", "de"):
        binarise(tmp_path / "0" / f"train.en-de.{language}", [[4, 2]] * 3)
    task.load_dataset("train")
    options = {"dataset": task.dataset("train"), "disable_iterator_cache": True}
    iterator = task.get_batch_iterator(**options, required_batch_size_multiple=8)
    with pytest.raises(UsageError, match="give --required-batch-size-multiple 1$"):
        _ = iterator.first_batch
    assert len(task.get_batch_iterator(**options).first_batch["id"]) == 3


@pytest.mark.parametrize("side", ["source", "target"])
def test_validation_sets_may_be_as_long_as_positions_and_training_sets_longer(task, side):
    setattr(task.cfg, f"max_{side}_positions", 4)
    task.load_dataset("valid")
    setattr(task.cfg, f"max_{side}_positions", 3)
    task.load_dataset("train")  # fairseq leaves out what is too long
    with pytest.raises(UsageError, match=f"a {side} of 4 tokens, .*--max-{side}-positions 3"):
        task.load_dataset("valid")
    task.cfg.skip_invalid_size_inputs_valid_test = True
    task.load_dataset("valid")


@pytest.mark.parametrize(
    "search, told",
    [("{}", True), ('{"max_len_b": 300}', False), ('{"max_len_a": 1.5, "max_len_b": 10}', False)],
)
def test_a_validation_by_bleu_that_cuts_translations_says_so(task, tmp_path, caplog, search, told):
    for language, length in (("en", 180), ("de", 201)):
        sentences = [[4] * length + [2]] * 2 + [[4, 2]]
        binarise(tmp_path / "0" / f"valid.en-de.{language}", sentences)
    task.load_dataset("valid")
    assert "longer than --eval-bleu" not in caplog.text
    task.cfg.eval_bleu, task.cfg.eval_bleu_args = True, search
    task.load_dataset("valid")
    warning = "2 of 3 references of the 'valid' set are longer than --eval-bleu lets"
    assert (warning in caplog.text) == told


def test_sources_are_cut_so_that_bos_fits(task):
    task.cfg.prepend_source_bos = task.cfg.truncate_source = True
    for limit, source in ((5, [0, 4, 4, 4, 2]), (4, [0, 4, 4, 2]), (3, [0, 4, 2])):
        task.cfg.max_source_positions = limit
        for split in ("train", "valid"):
            task.load_dataset(split)
            pairs = task.dataset(split)
            assert pairs[0]["source"].tolist() == source and pairs.src_sizes[0] <= limit
    assert task.cfg.max_source_positions == limit


def test_buckets_of_lengths_and_bos_exclude_each_other(task):
    task.cfg.prepend_source_bos, task.cfg.num_batch_buckets = True, 2
    with pytest.raises(UsageError, match="exclude each other"):
        task.load_dataset("train")


def test_buckets_of_lengths_run_with_every_numpy(tiny_task):
    sentences = [torch.tensor([4] * length + [2]) for length in (3, 9, 4, 8)]
    sizes = np.array([len(sentence) for sentence in sentences])
    side = ListDataset(sentences, sizes), sizes, tiny_task.source_dictionary
    data = LanguagePairDataset(*side, *side, num_buckets=2)
    assert len({data.num_tokens(index) for index in range(4)}) == 2

"""α from the binarised training set."""

from types import SimpleNamespace

import pytest

from fairseq_posenc.data.token_ratio import set_source_scale, training_token_ratio
from fairseq_posenc.errors import UsageError
from tests.tiny import binarise


def write(folder, name, sentences):
    """Binarise sentences of the given numbers of tokens, and end-of-sentence symbols."""
    binarise(folder / name, ([5] * length + [2] for length in sentences))


def task(*folders):
    data = ":".join(str(folder) for folder in folders)
    cfg = SimpleNamespace(data=data, train_subset="train", source_lang="en", target_lang="de")
    return SimpleNamespace(cfg=cfg)


def test_the_ratio_counts_tokens_without_the_end_of_sentence(tmp_path):
    write(tmp_path, "train.en-de.en", [3, 5])
    write(tmp_path, "train.en-de.de", [4, 8])
    assert training_token_ratio(task(tmp_path)) == 12 / 8


def test_text_that_is_not_binarised_counts_too(tmp_path):
    """fairseq reads it by ``--dataset-impl raw``."""
    for language, text in (("en", "a b\n"), ("de", "a b c\n")):
        (tmp_path / f"train.en-de.{language}").write_text(text)
    assert training_token_ratio(task(tmp_path)) == 3 / 2


def test_all_parts_and_shards_count_and_so_does_the_other_direction(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    write(tmp_path, "train.en-de.en", [3])
    write(tmp_path, "train.en-de.de", [4])
    write(tmp_path, "train1.en-de.en", [2])
    write(tmp_path, "train1.en-de.de", [6])
    write(other, "train.de-en.en", [5])
    write(other, "train.de-en.de", [7])
    assert training_token_ratio(task(tmp_path, other)) == 17 / 10


@pytest.mark.parametrize("cfg", [None, SimpleNamespace(data="text", train_subset="train")])
def test_a_task_without_a_pair_of_languages_is_reported_in_one_line(cfg):
    """``translation_multi_simple_epoch`` has no configuration, BERT's tasks have no languages."""
    args = SimpleNamespace(position_encoding="cape", position_source_scale="auto")
    with pytest.raises(UsageError, match="auto compares the two sides .*; give a number"):
        set_source_scale(args, SimpleNamespace(cfg=cfg))


def test_a_missing_or_empty_training_set_is_reported_in_one_line(tmp_path):
    with pytest.raises(UsageError, match="needs the binarised training set"):
        training_token_ratio(task(tmp_path))
    write(tmp_path, "train.en-de.en", [0])
    write(tmp_path, "train.en-de.de", [0])
    with pytest.raises(UsageError, match="needs the binarised training set"):
        training_token_ratio(task(tmp_path))

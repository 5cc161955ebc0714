"""From a checkpoint to scores by the real command lines, and back and forth to stock fairseq."""

import argparse
import shutil

import pytest
import torch
from fairseq.data import FairseqDataset

from fairseq_posenc import encodings
from tests.programs import python


def generate(binarised, checkpoint, *options):
    command = ["fairseq-generate", binarised, "--user-dir", "fairseq_posenc", "--path", checkpoint]
    command += ["--task", "posenc_translation", "--source-lang", "en", "--target-lang", "de"]
    return [*command, "--beam", "2", "--cpu", *options]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("model")


@pytest.mark.parametrize("encoding", encodings.names())
def test_every_encoding_trains_and_translates(
    trains, translates, training, binarised, folder, encoding
):
    brief = ["--max-update", "3", "--disable-validation", "--save-dir", folder]
    trains(*training(*brief), position_encoding=encoding)
    printed = translates(*generate(binarised, folder / "checkpoint_last.pt", "--max-len-b", "9"))
    shutil.rmtree(folder)
    translated = [line for line in printed.splitlines() if line.startswith("H-")]
    assert len(translated) == 20
    assert all(float(line.split("\t")[1]) < 0 for line in translated)


def test_a_training_reads_multiples_of_8_and_validates_on_all(
    trains, training, tmp_path, monkeypatch
):
    multiples, batch = [], FairseqDataset.batch_by_size

    def batch_by_size(*args, **limits):
        multiples.append(limits["required_batch_size_multiple"])
        return batch(*args, **limits)

    monkeypatch.setattr(FairseqDataset, "batch_by_size", batch_by_size)
    trains(*training("--max-update", "1", "--save-dir", tmp_path))
    assert multiples == [8, 1]


def test_a_hostile_checkpoint_is_refused_and_nothing_runs(fails, binarised, tmp_path, hostile):
    path = tmp_path / "hostile.pt"
    torch.save({"args": argparse.Namespace(), "model": {}, "extra": hostile}, path)
    printed = fails(*generate(binarised, path))
    assert not hostile.witness.exists()
    assert printed.splitlines()[-1].startswith(f"fairseq_posenc: error: checkpoint {path} refused")


@pytest.mark.parametrize("program, handlers", [("generate", 0), ("interactive", 1)])
def test_generate_may_set_up_the_log_that_tells_its_options(program, handlers):
    """fairseq's fork has one already; of other programs it stays."""
    code = f"import logging, fairseq_cli.{program}, fairseq_posenc.models"
    assert int(python(f"{code}; print(len(logging.root.handlers))")) == handlers


def test_a_model_does_not_translate_the_wrong_way_round(
    trains, fails, training, binarised, tmp_path
):
    trains(*training("--max-update", "1", "--save-dir", tmp_path, "--disable-validation"))
    command = generate(binarised, tmp_path / "checkpoint_last.pt", "--max-len-b", "2")
    swapped = [{"en": "de", "de": "en"}.get(word, word) for word in command]
    told = "was trained to translate en to de, and de to en is asked for; give --source-lang en"
    assert told in fails(*swapped)

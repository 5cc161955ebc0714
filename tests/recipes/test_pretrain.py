"""Pre-training recipes: the batch on any number of GPUs, the plan, and a run from Wikipedia."""

import hashlib
import http.server
import json
import os
import random
import re
import shutil
from functools import partial
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.tables.papers import load
from recipes.lib import batch, wikipedia

REPOSITORY = Path(__file__).resolve().parents[2]
ENGLISH, MULTILINGUAL = (
    f"recipes/rel_scalar/pretrain_{name}.sh" for name in ("english", "multilingual")
)


@pytest.mark.parametrize("gpus", [1, 2, 4, 8, 16, 64, 512])
@pytest.mark.parametrize("most", [1, 7, 16, 100, 5000])
def test_a_batch_of_4096_is_kept_on_every_power_of_two(gpus, most):
    sequences, steps, made, *_ = batch.divide(4096, gpus, most, "sequences")
    assert sequences * steps * gpus == made == 4096
    assert 1 <= sequences <= most
    # no more steps than needed, up to the next power of two
    assert sequences * 2 > min(most, 4096 // gpus)


@pytest.mark.parametrize(
    "wanted, gpus, most, divided",
    [(4096, 3, 152, "105 13 4095"), (4096, 6, 64, "62 11 4092"), (8, 16, 4, "1 1 16")],
)
def test_a_batch_that_cannot_be_kept_is_said(wanted, gpus, most, divided):
    each, steps, made, named, note = batch.divide(wanted, gpus, most, "sequences")
    assert f"{each} {steps} {made}" == divided
    assert named == (wanted if wanted == 4096 else made)  # within 1 %
    assert f"note: {wanted} sequences do not divide among {gpus} GPUs: " in note


def test_more_memory_holds_more_sequences_and_longer_ones_need_more():
    def count(memory, length, vocabulary, arch, *options):
        return batch.sequences(memory, length, vocabulary, f"posenc_bert_{arch}", list(options))

    base = count(40960, 128, 30000, "base")
    assert 64 <= base < 1024
    assert count(81920, 128, 30000, "base") > 2 * base
    assert 1.8 * base < count(40960, 128, 30000, "base", "--bf16") < 2.2 * base
    assert count(40960, 512, 30000, "base") < base / 4
    assert count(40960, 128, 30000, "large") < base / 2
    assert count(1024, 512, 120000, "large") == 1


def plan(run, recipe, *options):
    printed = run("bash", recipe, "--stage", 2, "--plan", "--device", "cuda", *options)
    return [line for line in printed.splitlines() if "fairseq-train" in line], printed


@pytest.mark.parametrize(
    "recipe, default, others", [(ENGLISH, "4", ["8", "10"]), (MULTILINGUAL, "5", ["9", "11", "12"])]
)
def test_every_row_of_the_papers_tables_has_one_training(run, recipe, default, others):
    def trainings(*options):
        commands, _ = plan(run, recipe, "--gpus", 8, "--gpu-memory", 32, *options)
        found = [re.search(r"--position-encoding (.*?) --seed 1 ", line)[1] for line in commands]
        assert len(set(found)) == len(found)
        return found

    def rows(*numbers):
        return [row for number in numbers for row in load(f"chen2021-{number}").rows]

    assert trainings() == [row.options[0] for row in rows(default)]
    everything = trainings("--rows", "all")
    for row in rows(default, *others):
        assert sum(row.has(None, options) for options in everything) == 1, row.labels
    assert all(any(row.has(None, o) for row in rows(default, *others)) for o in everything)
    for number in others:
        found = trainings("--rows", number)
        assert len(found) == len(rows(number))
        assert all(any(row.has(None, options) for options in found) for row in rows(number))


@pytest.mark.parametrize("recipe", [ENGLISH, MULTILINGUAL])
def test_ranks_are_of_as_many_tokens_as_in_the_paper(run, recipe):
    """128 (section 4.4.3): with the 64 of a head's width no rank could be above content's."""
    _, printed = plan(run, recipe, "--gpus", 1, "--gpu-memory", 16)
    (command,) = re.findall("^posenc analyse attention .*", printed, re.MULTILINE)
    assert "--length 128 " in command


def test_models_without_segments_get_them_in_fine_tuning(run):
    options = ["--gpus", 8, "--gpu-memory", 32, "--rows", "8", "--segments", "none"]
    commands, printed = plan(run, ENGLISH, *options)
    assert len(commands) == 3 and "--position-sharing heads" in printed
    assert "--position-segments" not in printed


def test_one_gpu_trains_alone_and_sequences_can_be_given(run):
    options = ["--gpus", 1, "--gpu-memory", 16, "--sequences", 32, "--encodings", "shaw"]
    (command,), printed = plan(run, ENGLISH, *options, "--books-folder", "books")
    assert command.startswith("fairseq-train --distributed-world-size 1 ")
    assert "--batch-size 32 --update-freq 128 " in command
    assert "--train runs/pretrain_english/raw/20231101.en books --kind wordpiece" in printed


def test_text_of_many_languages_is_a_folder_or_a_list(run):
    options = ["--gpus", 1, "--gpu-memory", 16, "--text"]
    assert (
        "--train texts --language-folders --kind" in plan(run, MULTILINGUAL, *options, "texts")[1]
    )
    listed = plan(run, MULTILINGUAL, *options, "de=a.txt,en=b.txt", "--sampling-exponent", "0.3")[1]
    assert "--train de=a.txt,en=b.txt --kind sentencepiece --sampling-exponent 0.3" in listed
    assert "download" not in listed


def write_snapshot(root, language, words, articles):
    """Lay out a language of random sentences in two files, and their list, as the hub does."""
    dice, listed = random.Random(1), []
    dataset = root / "datasets/wikimedia/wikipedia/resolve/main"
    (dataset / f"20231101.{language}").mkdir(parents=True)
    for number in range(2):
        texts = [
            f"{words[0]}\n\n" + " ".join(" ".join(dice.choices(words, k=8)) + "." for _ in range(6))
            for _ in range(articles // 2)
        ]
        names = [str(each) for each in range(len(texts))]
        path = dataset / f"20231101.{language}/train-{number:05}-of-00002.parquet"
        table = {"id": names, "url": names, "title": names, "text": texts}
        parquet.write_table(pyarrow.table(table), path)
        content = path.read_bytes()
        about = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content)}
        listed.append({"type": "file", "oid": "0" * 40, "size": len(content), "lfs": about,
                       "path": str(path.relative_to(dataset))})  # fmt: skip
    api = root / "api/datasets/wikimedia/wikipedia/tree/main"
    api.mkdir(parents=True, exist_ok=True)
    (api / f"20231101.{language}").write_text(json.dumps(listed))


@pytest.fixture
def mirror(tmp_path, serve):
    """A mirror of the hub with two small languages: its address, and the paths asked for."""
    root = tmp_path / "mirror"
    write_snapshot(root, "en", "the a cat dog sees hears big small and then runs home".split(), 40)
    write_snapshot(root, "de", "der die Hund sieht hört Straße groß klein und läuft".split(), 20)
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            asked.append(self.path)

    return serve(partial(Handler, directory=str(root))).url, asked


TINY = "--stage 2 --device cpu --arch posenc_bert_tiny --updates 4 --interval 2 --batch 8".split()
TINY += "--length 32 --sequences 4 --hold-out 10 --workers 2".split()


@pytest.fixture
def pretrain(run, mirror, tmp_path):
    """A function that runs a recipe on the mirror; returns its output and what it asked for."""
    url, asked = mirror

    def pretrain(recipe, *options, folder=tmp_path / "run"):
        asked.clear()
        command = ["bash", recipe, *TINY, "--url", url, *options]
        printed = run(*command, "--run-dir", folder, no_proxy="127.0.0.1")
        return printed, list(asked)

    return pretrain


def test_from_wikipedia_to_a_model_and_nothing_is_done_twice(pretrain, tmp_path):
    row = "rel=rel_scalar --position-segments per_head"
    options = [ENGLISH, "--vocabulary", 80, "--encodings", row]
    printed, asked = pretrain(*options)
    assert "an update: 8 sequences = 4 on the CPU × --update-freq 2, 256 tokens" in printed
    assert "update 4: validation loss" in printed
    assert (tmp_path / "run" / "rel" / "seed1" / "checkpoint_last.pt").exists()
    assert (tmp_path / "run" / "attention.ranks.png").exists()
    files = [f"20231101.en/train-0000{number}-of-00002.parquet" for number in range(2)]
    assert [path.partition("/main/")[2] for path in asked] == ["20231101.en", *files]
    shutil.rmtree(tmp_path / "run" / "raw")  # what is prepared needs it no more
    moved = (tmp_path / "run").rename(tmp_path / "moved")
    again, asked = pretrain(*options, folder=os.path.relpath(moved, REPOSITORY))
    assert not asked and "stage 3: prepare: done before" in again and "] train" not in again


def test_many_languages_share_a_vocabulary(pretrain, tmp_path):
    options = [MULTILINGUAL, "--languages", "en,de", "--vocabulary", 60, "--stop-stage", 3]
    pretrain(*options)
    pieces = (tmp_path / "run" / "bin" / "dict.txt").read_text(encoding="utf-8")
    assert "ß" in pieces and (tmp_path / "run" / "bin" / "sentencepiece.model").exists()


def test_files_that_are_there_are_taken_and_a_missing_folder_is_named(pretrain, fails, tmp_path):
    raw = tmp_path / "mirror/datasets/wikimedia/wikipedia/resolve/main"
    options = ["--raw-dir", raw, "--vocabulary", 80, "--stop-stage", 3]
    assert pretrain(ENGLISH, *options)[1] == []
    assert (tmp_path / "run" / "bin" / "train.idx").exists()
    command = ["bash", ENGLISH, *TINY, *options, "--run-dir", tmp_path / "other"]
    told = fails(*command, "--languages", "fr").splitlines()[-1]
    assert "20231101.fr is missing: it is https://huggingface.co/datasets/wikimedia/wiki" in told


LISTED = {"path": "20231101.en/train-00000-of-00001.parquet", "size": 1, "lfs": {"oid": "a"}}


@pytest.mark.parametrize(
    "listed, files",
    [
        ([LISTED], [(LISTED["path"], "a", 1)]),
        ([{"path": "20231101.en/README.md"}, LISTED], [(LISTED["path"], "a", 1)]),
        ([], None),
        ({"error": "not found"}, None),
        ([{**LISTED, "lfs": None}], None),
        ([{**LISTED, "path": "../../a.parquet"}], None),
        ([{**LISTED, "path": "../20231101.en/train-00000-of-00001.parquet"}], None),
        ([{**LISTED, "path": "20231101.en/train-00000-of-00002.parquet"}], None),
        ([LISTED, LISTED], None),
    ],
)
def test_the_list_of_the_hub_has_every_file_once(tmp_path, listed, files):
    path = tmp_path / "20231101.en.json"
    path.write_text(json.dumps(listed))
    if files:
        assert wikipedia.files_of(str(path)) == files
    else:
        with pytest.raises(UsageError, match="is not the hub's list"):
            wikipedia.files_of(str(path))

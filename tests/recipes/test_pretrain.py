"""Pre-training recipes: the batch on any number of GPUs, the plan, and a whole run from a dump."""

import bz2
import hashlib
import http.server
import os
import random
import re
import threading
from functools import partial
from pathlib import Path

import pytest

from fairseq_posenc.tools.recipe import batch
from fairseq_posenc.tools.results.papers import load

REPOSITORY = Path(__file__).resolve().parents[2]
ENGLISH, MULTILINGUAL = (
    f"recipes/rel_scalar/pretrain_{name}.sh" for name in ("english", "multilingual")
)
each_recipe = pytest.mark.parametrize("recipe", [ENGLISH, MULTILINGUAL])


@pytest.mark.parametrize("gpus", [1, 2, 4, 8, 16, 64, 512])
@pytest.mark.parametrize("most", [1, 7, 16, 100, 5000])
def test_a_batch_of_4096_is_kept_on_every_power_of_two(gpus, most):
    sequences, steps, made = batch.divide(4096, gpus, most)
    assert sequences * steps * gpus == made == 4096
    assert 1 <= sequences <= most
    # no more steps than needed, up to the next power of two
    assert sequences * 2 > min(most, 4096 // gpus)


@pytest.mark.parametrize(
    "wanted, gpus, most, divided",
    [(4096, 3, 152, "105 13 4095"), (4096, 6, 64, "62 11 4092"), (8, 16, 4, "1 1 16")],
)
def test_a_batch_that_cannot_be_kept_is_said(run, wanted, gpus, most, divided):
    script = f"""set -euo pipefail; source recipes/lib/stages.sh; source recipes/lib/batch.sh
        divide_batch {wanted} {gpus} {most}; echo $SEQUENCES $UPDATE_FREQ $BATCH_MADE"""
    note, numbers = run("bash", "-c", script).splitlines()
    assert numbers == divided
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


@each_recipe
def test_the_plan_has_the_settings_of_the_paper(run, recipe, tmp_path):
    options = ["--gpus", 8, "--gpu-memory", 32, "--run-dir", tmp_path / "run"]
    options += ["--data-dir", "/shared", "--", "--bf16"]
    commands, printed = plan(run, recipe, *options)
    updates, warmup, length = (500000, 12500, 128) if recipe == ENGLISH else (125000, 3125, 512)
    assert f"{4096 * length} tokens" in printed and "--output /shared --url" in printed
    assert len(commands) == 4 and not (tmp_path / "run").exists()
    for command in commands:
        for expected in [
            "torchrun --rdzv-backend c10d --rdzv-endpoint localhost:0 --nproc-per-node 8",
            f"--max-update {updates} ",
            f"--total-num-update {updates} --max-update",
            f"--warmup-updates {warmup} ",
            f"--tokens-per-sample {length} ",
            "--lr 0.0018 ",
            "--arch posenc_bert_base ",
            "--save-interval-updates 20000 ",
            "--bf16 ",
        ]:
            assert expected in command
        sequences, frequency = re.search(
            r"--batch-size (\d+) --update-freq (\d+) ", command
        ).groups()
        assert int(sequences) * int(frequency) * 8 == 4096
    rows = [re.search(r"--position-encoding (\S+) --position-segments (\S+)", c) for c in commands]
    assert [row.groups() for row in rows] == [
        ("learned", "input"), ("shaw", "input"), ("tupe", "input"), ("rel_scalar", "per_head")
    ]  # fmt: skip
    size = "30000" if recipe == ENGLISH else "120000"
    assert f"--vocabulary-size {size} " in printed
    assert f"of {1 if recipe == ENGLISH else 100} languages" in printed


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
    assert "--train runs/pretrain_english/text books --kind wordpiece" in printed


def test_text_of_many_languages_is_a_folder_or_a_list(run):
    options = ["--gpus", 1, "--gpu-memory", 16, "--text"]
    assert (
        "--train texts --language-folders --kind" in plan(run, MULTILINGUAL, *options, "texts")[1]
    )
    listed = plan(run, MULTILINGUAL, *options, "de=a.txt,en=b.txt", "--sampling-exponent", "0.3")[1]
    assert "--train de=a.txt\\,en=b.txt --kind sentencepiece --sampling-exponent 0.3" in listed
    assert "download" not in listed


def write_dump(root, language, words, pages):
    """Lay out a dump of random sentences, and its list of checksums, as Wikimedia does."""
    dice = random.Random(1)

    def sentence():
        return " ".join(dice.choices(words, k=8)) + ". "

    text = "<mediawiki>\n"
    for number in range(pages):
        body = f"{{{{Box|a=b}}}}'''{words[0]}''' " + "".join(sentence() for _ in range(6))
        text += f"<page><title>{number}</title><ns>0</ns><id>{number}</id><revision><text>{body}"
        text += "\n* [[a]]\n</text></revision></page>\n"
    packed = bz2.compress(f"{text}</mediawiki>".encode())
    wiki = f"{language}wiki"
    name = f"{wiki}-20250101-pages-articles.xml.bz2"
    for date in ("20250101", "latest"):
        (root / wiki / date).mkdir(parents=True)
        sums = f"{hashlib.sha1(packed).hexdigest()}  {name}\n"
        (root / wiki / date / f"{wiki}-{date}-sha1sums.txt").write_text(sums)
    (root / wiki / "20250101" / name).write_bytes(packed)


@pytest.fixture
def mirror(tmp_path):
    """A mirror of Wikimedia's with two small wikis: its address, and the paths asked for."""
    root = tmp_path / "mirror"
    write_dump(root, "en", "the a cat dog sees hears big small and then runs home".split(), 40)
    write_dump(root, "de", "der die Hund sieht hört Straße groß klein und läuft".split(), 20)
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            asked.append(self.path)

    handler = partial(Handler, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()


TINY = "--stage 2 --device cpu --arch posenc_bert_tiny --updates 4 --interval 2 --batch 8".split()
TINY += "--length 32 --sequences 4 --hold-out 10 --workers 2".split()


@pytest.fixture
def pretrain(run, mirror, tmp_path):
    """A function that runs a recipe on the mirror; returns its output and what it asked for."""
    url, asked = mirror

    def pretrain(recipe, *options, folder=tmp_path / "run"):
        asked.clear()
        command = ["bash", recipe, *TINY, "--url", f"{url}/gone,{url}", *options]
        printed = run(*command, "--run-dir", folder, no_proxy="127.0.0.1")
        return printed, list(asked)

    return pretrain


def test_from_a_dump_to_a_model_and_nothing_is_done_twice(pretrain, tmp_path):
    row = "rel=rel_scalar --position-segments per_head"
    options = [ENGLISH, "--vocabulary", 80, "--encodings", row]
    printed, asked = pretrain(*options)
    assert "an update: 8 sequences = 4 on the CPU × --update-freq 2, 256 tokens" in printed
    assert "update 4: validation loss" in printed
    assert (tmp_path / "run" / "rel" / "seed1" / "checkpoint_last.pt").exists()
    (text,) = (tmp_path / "run" / "text" / "en").iterdir()
    assert text.read_text().count("\n\n") == 40 and not re.search(r"[{}'*\[]", text.read_text())
    assert asked[-1].endswith("/enwiki-20250101-pages-articles.xml.bz2")
    moved = (tmp_path / "run").rename(tmp_path / "moved")
    again, asked = pretrain(*options, folder=os.path.relpath(moved, REPOSITORY))
    assert not asked and "stage 4: prepare: done before" in again and "] train" not in again


def test_many_languages_share_a_vocabulary(pretrain, tmp_path):
    options = [MULTILINGUAL, "--languages", "en,de", "--vocabulary", 60, "--stop-stage", 4]
    pretrain(*options)
    assert sorted(path.name for path in (tmp_path / "run" / "text").iterdir()) == ["de", "en"]
    pieces = (tmp_path / "run" / "bin" / "dict.txt").read_text(encoding="utf-8")
    assert "ß" in pieces and (tmp_path / "run" / "bin" / "sentencepiece.model").exists()

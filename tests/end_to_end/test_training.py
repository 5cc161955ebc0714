"""Training by the real command lines: resume, several workers, what a checkpoint keeps."""

import json
import pickletools
import re
import shlex
import shutil
import signal
import socket
import time
import zipfile

import pytest
import torch
from fairseq.tasks import FairseqTask

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.guards import scoring
from recipes.lib.newest_checkpoint import restore

BERT = "--user-dir fairseq_posenc --task posenc_masked_lm --arch posenc_bert_tiny --cpu".split()
BERT += "--criterion masked_lm --tokens-per-sample 16 --batch-size 8 --optimizer adam".split()
BERT += "--lr 0.003 --log-format json --log-interval 1 --num-workers 0".split()
LANGUAGE_MODEL = "--task language_modeling --arch posenc_transformer_lm_tiny".split()
LANGUAGE_MODEL += "--tokens-per-sample 16 --max-tokens 400 --position-encoding shape".split()


def losses(printed):
    """Updates and their losses, as printed."""
    entries = [json.loads(line) for line in re.findall(r"\{\"epoch.*?\}", printed)]
    return {int(e["num_updates"]): e["loss"] for e in entries if "loss" in e}


# an epoch has 17 updates
@pytest.mark.parametrize(("encoding", "epoch", "update"), [("shape", 1, 6), ("cape", 2, 18)])
def test_killed_and_resumed_gives_the_losses_of_an_unbroken_run(
    run, start, training, tmp_path, encoding, epoch, update
):
    options = ["--position-encoding", encoding, "--max-update", "36", "--dropout", "0.1"]
    options += ["--save-interval-updates", "6", "--disable-validation", "--no-epoch-checkpoints"]
    unbroken = losses(run(*training(*options, "--save-dir", tmp_path / "unbroken")))
    folder = tmp_path / "broken"
    process = start(*training(*options, "--save-dir", folder))
    while not (folder / f"checkpoint_{epoch}_{update}.pt").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    resumed = losses(
        run(*training(*options, "--save-dir", folder, "--restore-file", restore(str(folder))))
    )
    assert min(resumed) > update and max(resumed) == 36
    assert resumed == {update: unbroken[update] for update in resumed}


def test_what_nobody_who_trains_can_mend_is_not_printed(run, training, tmp_path):
    options = ["--max-update", "1", "--num-workers", "1", "--save-dir", tmp_path]
    # PYTHONHASHSEED is for a new Python: libraries warn when they are imported
    printed = run(*training("--position-encoding", "shaw", *options), PYTHONHASHSEED=0)
    for words in ("hydra", "ConfigStore", "autocast", "pin_memory", "_ratio_change"):
        assert words not in printed


@pytest.mark.parametrize("arch", ["posenc_transformer_tiny", "transformer_tiny"])
def test_a_training_that_ends_in_nan_says_where(trains, training, tmp_path, caplog, arch):
    wild = f"--arch {arch} --optimizer sgd --lr 1e30 --clip-norm 0 --max-update 9".split()
    with pytest.raises(FloatingPointError, match="gradients are Nan/Inf"):
        trains(*training(*wild, "--save-dir", tmp_path))
    found = [line for line in caplog.messages if "detected in output of" in line]
    assert any(line.endswith("backward") for line in found)


def test_a_training_set_in_parts_is_joined(trains, binarised, training, tmp_path):
    parts = shutil.copytree(binarised, tmp_path / "parts")
    for path in binarised.glob("train.*"):
        shutil.copy(path, parts / path.name.replace("train", "train1"))
    program, _, *options = training("--disable-validation", "--no-save", "--max-epoch", "1")
    batches = [len(losses(trains(program, folder, *options))) for folder in (binarised, parts)]
    assert batches[1] > 1.8 * batches[0]


def test_alpha_is_measured_and_kept_in_the_checkpoint(run, training, tmp_path, binarised):
    options = ["--position-encoding", "cape", "--position-source-scale", "auto"]
    options += ["--prepend-source-bos", "--max-update", "2", "--save-dir", tmp_path]
    run(*training(*options))
    kept = load_checkpoint(tmp_path / "checkpoint_last.pt")["cfg"]["model"]
    counts = {}
    for language in ("en", "de"):
        text = (binarised.parent / f"train.{language}").read_text(encoding="utf-8")
        counts[language] = len(text.split())
    assert kept.position_source_scale == pytest.approx(counts["de"] / counts["en"], abs=1e-12)
    assert kept.position_signature.startswith("position:cape|global-shift:5|local-shift:0.5|")


@pytest.mark.parametrize("kind", ["translation", "language model", "bert"])
def test_two_workers_train_as_one_does_and_each_goes_on_where_the_other_stopped(
    run, start, training, binarised, tmp_path, kind
):
    """Shifts and masks included; dropout is drawn by each worker, as in fairseq."""
    options = training("--position-encoding", "cape")
    if kind == "translation":
        options += "--criterion label_smoothed_cross_entropy --label-smoothing 0.1".split()
    if kind == "language model":
        options = [word for word in options if word != "--share-all-embeddings"]
        options[1:] = [_lines(binarised, tmp_path / "lines"), *options[2:], *LANGUAGE_MODEL]
    if kind == "bert":
        options = ["fairseq-train", tmp_path / "bin", *BERT]
        files = [f"--{split}={binarised.parent / split}.en" for split in ("train", "valid")]
        prepare = ["posenc", "prepare", "text", *files, "--vocabulary-size", "60"]
        run(*prepare, "--output", options[1])
    options += ["--disable-validation", "--dropout", "0", "--attention-dropout", "0"]
    options += ["--save-dir", tmp_path / "kept"]
    one = ["--update-freq", "2"]
    alone = losses(run(*options, *one, "--max-update", "6", "--no-save"))
    kept = [*options, "--no-epoch-checkpoints"]
    changing = losses(_two_workers(start, [*kept, "--max-update", "2"])[0])
    kept += ["--restore-file", restore(str(tmp_path / "kept"))]
    changing.update(losses(run(*kept, *one, "--max-update", "4")))
    changing.update(losses(_two_workers(start, [*kept, "--max-update", "6"])[0]))
    assert len(alone) == 6 and changing == alone


def test_a_run_scored_by_bleu_goes_on_on_two_workers_and_saves_plain_types(
    start, training, tmp_path
):
    """Meters, optimizer, and moving averages of the weights come from one worker to the other."""
    options = training("--eval-bleu", "--eval-bleu-args", '{"beam": 1, "max_len_b": 2}')
    options += ["--store-ema", "--ema-fp32", "--no-epoch-checkpoints", "--save-dir", tmp_path]
    for updates in ("1", "2"):
        _two_workers(start, [*options, "--max-update", updates])
    with zipfile.ZipFile(tmp_path / "checkpoint_last.pt") as saved:
        (name,) = (name for name in saved.namelist() if name.endswith("data.pkl"))
        pickled = saved.read(name)
    names = {arg for opcode, arg, _ in pickletools.genops(pickled) if opcode.name == "GLOBAL"}
    assert {"numpy ndarray", "argparse Namespace"} < names
    assert {name.split(".")[0].split()[0] for name in names} <= {
        "torch", "numpy", "argparse", "collections", "_codecs"
    }  # fmt: skip
    state = torch.load(tmp_path / "checkpoint_last.pt", weights_only=False)
    assert state["optimizer_history"][-1]["num_updates"] == 2 and state["extra_state"]["ema"]


def test_a_moving_average_begins_with_the_weights_of_a_checkpoint_that_has_none(
    trains, training, tmp_path
):
    """fairseq deletes these before it looks for them; that ended with KeyError: 'model'."""
    first, last = tmp_path / "1.pt", tmp_path / "tuned" / "checkpoint_last.pt"
    trains(*training("--max-update", "1", "--save-dir", tmp_path))
    (tmp_path / "checkpoint_last.pt").rename(first)
    tuned = ["--finetune-from-model", first, "--save-dir", last.parent]
    trains(*training("--max-update", "1", "--store-ema", "--ema-decay", "0.5", *tuned))
    before, after = (torch.load(path, weights_only=False) for path in (first, last))
    for name, average in after["extra_state"]["ema"].items():
        if name.endswith("fc1.weight"):  # fairseq averages embeddings as often as they are shared
            torch.testing.assert_close(
                average, (before["model"][name] + after["model"][name]) / 2, msg=name
            )
    goes_on = training("--max-update", "2", "--save-dir", last.parent)
    assert "has a moving average of the weights, which ends here" in trains(*goes_on)


def test_a_model_is_validated_by_its_own_task_and_told_of_a_dictionary(
    run, fails, trains, training, binarised, tmp_path
):
    trains(*training("--max-update", "1", "--save-dir", tmp_path, "--disable-validation"))
    command = ["--path", tmp_path / "checkpoint_last.pt", "--cpu", "--batch-size", "8"]
    command = [binarised, *command, "--user-dir", "fairseq_posenc", "--num-workers", "0"]
    assert re.search(
        r"\| loss [\d.]+ ", run("fairseq-validate", *command, "--log-format", "simple")
    )
    command += ["--task", "posenc_translation", "--lm-path", _language_model(tmp_path)]
    words = f"cp {binarised}/dict.LANGUAGE.txt {binarised}/dict.txt"
    assert words in fails("fairseq-generate", *command)


@pytest.mark.parametrize("shares", [False, True])
def test_a_worker_without_a_batch_at_the_end_of_a_set_counts_nothing(shares):
    """The step alone; by the real program: test_two_workers_validate_as_one_does."""
    shared = []
    task = FairseqTask(None)
    task.valid_step = lambda *args: (1.0, 2, {"loss": 1.0})
    if shares:  # as our fine-tuning tasks, all workers of which wait for each other
        task.share_predictions = shared.append
    scoring.patch_task_to_read_all(task)
    assert task.valid_step({"id": [1]}, None, None) == (1.0, 2, {"loss": 1.0})
    assert task.valid_step({}, None, None) == (0.0, 0, {}) and shared == [{}] * shares


def test_two_workers_validate_as_one_does(run, start, training, binarised, tmp_path):
    """On CPUs too, where fairseq's own way to gather needs a GPU; batches are not shared evenly."""
    run(*training("--max-update", "1", "--save-dir", tmp_path, "--disable-validation"))
    command = ["fairseq-validate", binarised, "--path", tmp_path / "checkpoint_last.pt", "--cpu"]
    command += ["--user-dir", "fairseq_posenc", "--batch-size", "7", "--log-format", "simple"]

    def figures(printed):
        return re.findall(r"\| (loss [\d.]+ .*)", printed)[-1]

    alone = figures(run(*command))
    assert figures(_two_workers(start, command)[0]).split(" | ")[:2] == alone.split(" | ")[:2]


def test_a_model_that_a_fork_has_named_is_fine_tuned_translated_and_validated(
    run, fails, trains, training, binarised, tmp_path
):
    words = ["--max-update", "1", "--disable-validation", "--save-dir"]
    trains(*training(*words, tmp_path, "--task", "translation", "--arch", "transformer_tiny"))
    path = tmp_path / "checkpoint_last.pt"
    state = torch.load(path, weights_only=False)
    state["cfg"]["model"].arch = state["cfg"]["model"]._name = "transformer_18_18"
    state["cfg"]["criterion"]["_name"] = state["cfg"]["task"]["_name"] = "a_fork_s"
    torch.save(state, path)
    command = [*words, tmp_path / "new", "--finetune-from-model", path]
    printed = trains(*training(*command, "--position-encoding", "rotary"))
    assert len(losses(printed)) == 1 and f"Loaded checkpoint {path}" in printed
    command = [binarised, "--path", path, "--cpu", "--batch-size", "8", "--num-workers", "0"]
    command += ["--user-dir", "fairseq_posenc"]
    for _ in range(2):  # what is advised is what is needed
        message = fails("fairseq-validate", *command)
        command += shlex.split(re.search(r"say so: (.*) with fairseq-", message)[1])
    assert re.search(r" loss [\d.]+ ", run("fairseq-validate", *command, "--log-format", "simple"))
    command += ["--gen-subset", "valid", "--max-len-b", "3"]
    assert "\nH-0\t" in run("fairseq-generate", *command)


def _lines(binarised, folder):
    """A folder with the English sides of the pairs, as fairseq-preprocess --only-source writes."""
    folder.mkdir()
    shutil.copy(binarised / "dict.en.txt", folder / "dict.txt")
    for path in binarised.glob("*.en-de.en.*"):
        shutil.copy(path, folder / path.name.replace(".en-de.en", ""))
    return folder


def _language_model(folder):
    state = torch.load(folder / "checkpoint_last.pt", weights_only=False)
    state["cfg"]["task"] = {"_name": "language_modeling"}
    state["cfg"]["model"].arch = state["cfg"]["model"]._name = "posenc_transformer_lm_tiny"
    torch.save(state, folder / "lm.pt")
    return folder / "lm.pt"


def _two_workers(start, command):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [*command, "--ddp-backend", "legacy_ddp", "--distributed-backend", "gloo"]
    command += ["--distributed-init-method", f"tcp://127.0.0.1:{port}", "--distributed-no-spawn"]
    command += ["--distributed-world-size", "2", "--distributed-rank"]
    workers = [start(*command, rank) for rank in (0, 1)]
    printed = [worker.communicate(timeout=300)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], printed[0][-3000:]
    return printed

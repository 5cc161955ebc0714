"""What a user gets wrong is answered in one line, with a non-zero exit and nothing left behind."""

import json
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
WRONG_OPTIONS = {
    "--position-encoding sinusodial": "invalid choice: 'sinusodial'",
    "--position-encoding cape --position-max-shift 3": "is not read by --position-encoding cape",
    "--position-encoding shape --position-max-shift -1": "0 or more, not -1",
    "--position-encoding cape --position-global-scale 0.5": "must be 1 or more, not 0.5",
    "--position-encoding cape --position-source-scale 0": "must be a positive number, not 0",
    "--position-encoding rel_scalar --position-sharing head": "one of none, layers, heads",
    "--position-encoding t5 --position-num-buckets 7": "even and at least 4, not 7",
    "--position-encoding abs_scalar --max-target-positions 6": "more than --max-target-positions 6",
    "--position-encoding shape --max-source-positions 5": "more than --max-source-positions 5",
    "--position-encoding learned --max-target-positions 6": "more than --max-target-positions 6",
}


@pytest.mark.parametrize("options", WRONG_OPTIONS)
def test_a_wrong_option_is_answered_in_one_line(start, training, tmp_path, options):
    process = start(*training(*options.split(), "--save-dir", tmp_path / "run"))
    printed = process.communicate()[0]
    assert process.returncode != 0
    assert WRONG_OPTIONS[options] in printed.splitlines()[-1]
    assert "Traceback" not in printed
    assert list(tmp_path.glob("run/*")) == []


def test_hydra_refuses_a_mistyped_option_without_a_traceback(start, tmp_path, binarised):
    options = {
        "common": {"user_dir": str(REPOSITORY / "fairseq_posenc"), "cpu": True},
        "task": {"_name": "posenc_translation", "data": str(binarised)},
        "model": {"_name": "posenc_transformer_tiny", "position_encodng": "shaw"},
        "criterion": {"_name": "cross_entropy"},
        "optimizer": {"_name": "adam"},
        "lr_scheduler": {"_name": "fixed"},
        "dataset": {"max_tokens": 100},
        "checkpoint": {"save_dir": str(tmp_path / "run")},
        "hydra": {"run": {"dir": str(tmp_path / "hydra")}},
    }
    (tmp_path / "options.yaml").write_text(json.dumps(options))
    process = start("fairseq-hydra-train", "--config-dir", tmp_path, "--config-name", "options")
    printed = process.communicate()[0]
    assert process.returncode != 0 and "Traceback" not in printed, printed
    assert "\nthe model has no option position_encodng; is position_encoding meant?\n" in printed
    assert list(tmp_path.glob("run/*")) == []


@pytest.mark.parametrize(
    "missing, words",
    [
        ("dict.en.txt", "run fairseq-preprocess first"),
        ("valid", "there is no binarised 'valid' set"),
    ],
)
def test_missing_data_is_answered_in_one_line(start, training, tmp_path, binarised, missing, words):
    for path in binarised.iterdir():
        if not path.name.startswith(missing):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    command = training("--position-encoding", "none", "--save-dir", tmp_path / "run")
    process = start(command[0], tmp_path, *command[2:])
    printed = process.communicate()[0]
    assert process.returncode != 0 and words in printed.splitlines()[-1]
    assert "Traceback" not in printed


@pytest.mark.parametrize(
    "content, words",
    [
        (None, "cannot read"),
        (b"", "is empty"),
        (b"one\n\xff\xfe\n", "line 2: invalid UTF-8"),
    ],
)
def test_a_bad_text_file_is_answered_in_one_line(start, tmp_path, content, words):
    if content is not None:
        (tmp_path / "text").write_bytes(content)
    command = ["posenc", "prepare", "tokenise", "--language", "en", "--input", tmp_path / "text"]
    process = start(*command, "--output", tmp_path / "out")
    printed = process.communicate()[0]
    assert process.returncode != 0 and words in printed.splitlines()[-1]
    assert "Traceback" not in printed
    assert [path.name for path in tmp_path.iterdir()] == ["text"] * (content is not None)


def test_an_unwritable_folder_is_answered_in_one_line(start, tmp_path):
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "text").write_text("a b\n")
    command = ["posenc", "prepare", "tokenise", "--language", "en", "--input", tmp_path / "text"]
    process = start(*command, "--output", tmp_path / "file" / "out")
    printed = process.communicate()[0]
    assert process.returncode != 0 and "cannot write" in printed.splitlines()[-1]

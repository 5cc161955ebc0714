"""What a user gets wrong is answered in one line, with a non-zero exit and nothing left behind."""

import json
from pathlib import Path

import hydra
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
TO_A_SHELL = {
    "--position-encoding sinusodial": "invalid choice: 'sinusodial'",
    "--position-encoding cape --position-max-shift 3": "is not read by --position-encoding cape",
}
WRONG_OPTIONS = {
    "--fp16": "--fp16 needs a GPU; on a CPU leave it out, or give --amp for products in bfloat16",
    "--bf16 --task translation": "--bf16 needs a GPU; on a CPU leave it out, or give --amp",
    "--memory-efficient-bf16": "--memory-efficient-bf16 needs a GPU; on a CPU",
    "--best-checkpoint-metric bleu": "bleu: give --eval-bleu, by which a validation computes it",
    "--eval-bleu --eval-bleu-args {beam:2}": "--eval-bleu-args is not JSON",
    '--eval-bleu --eval-bleu-args {"beem":2}': "beem is no option of fairseq-generate",
    "--eval-bleu --eval-bleu-detok mosess": "--eval-bleu-detok mosess: choose one of moses, ",
    "--position-encoding shape --max-source-positions 5": "more than --max-source-positions 5",
    "--best-checkpoint-metric nll_los --max-update 1": "nll_los: the validation has loss, ppl",
}


@pytest.mark.parametrize("options", TO_A_SHELL)
def test_a_wrong_option_is_answered_in_one_line(fails, training, tmp_path, options):
    printed = fails(*training(*options.split(), "--save-dir", tmp_path / "run"))
    assert TO_A_SHELL[options] in printed.splitlines()[-1]
    assert list(tmp_path.glob("run/*")) == []


@pytest.mark.parametrize("options", WRONG_OPTIONS)
def test_a_wrong_option_is_refused(refuses, training, tmp_path, options):
    words = training(*options.split(), "--save-dir", tmp_path / "run")
    assert WRONG_OPTIONS[options] in refuses(*words)
    assert list(tmp_path.glob("run/*.pt")) == []


@pytest.mark.skipif(hydra.__version__ < "1.1", reason="hydra's own traceback comes first")
def test_hydra_refuses_an_option_without_a_traceback(fails, tmp_path, binarised):
    options = {
        "common": {"user_dir": str(REPOSITORY / "fairseq_posenc"), "cpu": True},
        "task": {"_name": "posenc_translation", "data": str(binarised)},
        "model": {"_name": "posenc_transformer_tiny"},
        "criterion": {"_name": "cross_entropy"},
        "optimizer": {"_name": "adam"},
        "lr_scheduler": {"_name": "fixed"},
        "dataset": {"max_tokens": 100},
        "checkpoint": {"save_dir": str(tmp_path / "run")},
        "hydra": {"run": {"dir": str(tmp_path / "hydra")}},
    }
    (tmp_path / "options.yaml").write_text(json.dumps(options))
    place = ["--config-dir", tmp_path, "--config-name", "options"]
    given = "+common.position_encoding=shaw"
    told = fails("fairseq-hydra-train", *place, given)
    assert "common.position_encoding is not read in that group; write model.position_enc" in told
    assert list(tmp_path.glob("run/*")) == []


@pytest.mark.parametrize(
    "missing, words",
    [
        ("dict.en.txt", "is missing; posenc prepare translation makes such a folder"),
        ("valid", "there is no binarised 'valid' set"),
    ],
)
def test_missing_data_is_refused(refuses, training, tmp_path, binarised, missing, words):
    for path in binarised.iterdir():
        if not path.name.startswith(missing):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    command = training("--position-encoding", "none", "--save-dir", tmp_path / "run")
    assert words in refuses(command[0], tmp_path, *command[2:])

"""What people see of an error that they can mend: one line, whatever is in it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_posenc.errors import UsageError

REPOSITORY = Path(__file__).resolve().parent.parent
# a name that would begin a line, and clear the screen
NAME, WRITTEN_OUT = "no\n\x1b[2Jwhere", r"no\n\x1b[2Jwhere"
TASK = "--user-dir fairseq_posenc --task posenc_translation --cpu --max-tokens 9"
COMMANDS = {
    "posenc": ["posenc", "score", "--hypothesis", NAME, "--reference", NAME],
    "fairseq-train": ["fairseq-train", NAME, *TASK.split(), "--arch", "transformer"],
    "fairseq-hydra-train": ["fairseq-hydra-train", "--config-name", "run"],
    "recipe": ["python", "-m", "recipes.claims.probes", NAME, "--data", NAME, "--output", "x"],
}
HYDRA = {
    "common": {"user_dir": str(REPOSITORY / "fairseq_posenc")},
    "dataset": {"max_tokens": 9},
    "task": {"_name": "posenc_translation", "data": NAME},
    "model": {"_name": "posenc_transformer_tiny"},
}


def test_what_cannot_be_printed_is_written_out():
    assert str(UsageError(f"{NAME}\u2028, é…")) == WRITTEN_OUT + r"\u2028, é…"


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_command_ends_in_one_line(start, command, tmp_path):
    if "--config-name" in command:
        (tmp_path / "run.yaml").write_text(json.dumps(HYDRA))
        command = [*command, "--config-dir", tmp_path, f"hydra.run.dir={tmp_path}"]
    process = start(*command)
    printed = process.communicate()[0]
    assert process.returncode == 1 and "Traceback" not in printed
    [line] = [line for line in printed.splitlines() if "error: " in line]
    assert line == printed.splitlines()[-1]
    assert line.startswith("fairseq_posenc: error: ") and WRITTEN_OUT in line


@pytest.mark.parametrize("options", [[], ["-W", "error::FutureWarning"]])
def test_how_fairseq_uses_its_libraries_is_not_warned_of_unless_the_user_asks(options):
    # torch 2.14 says it while fairseq is imported
    text = "`torch.jit.script` is deprecated. Please switch to `torch.compile`"
    code = f"import warnings; {{}}warnings.warn('{text}', FutureWarning)"
    results = [
        subprocess.run(
            [sys.executable, *options, "-c", code.format(first)], capture_output=True, text=True
        ).stderr
        for first in ("import fairseq_posenc; ", "")
    ]
    assert ["deprecated" in stderr for stderr in results] == [bool(options), True]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_a_full_disk_under_what_is_printed_is_one_line():
    code = "from fairseq_posenc import errors; errors.print_errors_in_one_line(); print(1)"
    for end in ("", "; sys.stdout.flush()"):
        with open("/dev/full", "w") as full:
            command = [sys.executable, "-c", f"import sys; {code}{end}; print(2, flush=True)"]
            ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, encoding="utf-8")
        said = "fairseq_posenc: error: cannot print: No space left on device\n"
        assert (ended.returncode, ended.stderr) == (1, said)

"""Trainings that write to one folder: no checkpoint of another training is written over."""

import errno
import fcntl
import logging
import os
import re
import signal
import subprocess
import sys

import pytest
from fairseq.dataclass.configs import CheckpointConfig

from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards import save_folder

OTHER = "holds checkpoints of another training, .* begins with {};.*--restore-file {}$"
# files of the folder "run"; options, where {} is the path of the test's folder; None: it may begin,
# else what is told
STARTS = [
    ([], {}, None),
    (["checkpoint_last.pt", "checkpoint1.pt"], {}, None),
    (["checkpoint_last.pt"], {"reset_optimizer": True}, None),
    (["checkpoint_last.pt"], {"finetune_from_model": "{}/old.pt"}, None),
    ([], {"finetune_from_model": "{}/old.pt"}, None),
    ([], {"restore_file": "{}/old.pt"}, None),
    (["checkpoint_last.pt", "checkpoint2.pt"], {"restore_file": "{}/run/checkpoint2.pt"}, None),
    (["checkpoint_best.pt"], {"finetune_from_model": "{}/run/checkpoint_best.pt"}, None),
    (["average.pt", "checkpoint_average.pt", "checkpoint3.pt.damaged"], {}, None),
    (["checkpoint1.pt"], {"no_save": True}, None),
    (["checkpoint_last-x.pt"], {}, None),
    ([], {"restore_file": "{}/missing.pt"}, "^there is no checkpoint {}/missing.pt .--restore"),
    (["b.pt"], {"restore_file": "b.pt"}, "no checkpoint b.pt .*; is {}/run/b.pt meant"),
    ([], {"continue_once": "missing.pt"}, "no checkpoint missing.pt .--continue-once.$"),
    (["b.pt"], {"restore_file": "b.pt", "no_save": True}, "no checkpoint b.pt"),
    (["checkpoint_last.pt", "checkpoint1.pt"],
     {"restore_file": "{}/old.pt", "reset_optimizer": True},
     OTHER.format("{}/old.pt", "{}/run/checkpoint_last.pt")),
    (["checkpoint1.pt"], {}, OTHER.format("new weights", "{}/run/checkpoint1.pt")),
    (["checkpoint_1_20.pt"], {"finetune_from_model": "{}/old.pt"},
     OTHER.format("{}/old.pt", "{}/run/checkpoint_1_20.pt")),
    (["checkpoint.best_loss_1.2.pt"], {"continue_once": "{}/old.pt"}, "begins with {}/old.pt"),
]  # fmt: skip


@pytest.mark.parametrize("files, options, told", STARTS)
def test_a_training_writes_over_no_checkpoints_but_its_own(tmp_path, files, options, told):
    for name in ("old.pt", *(f"run/{name}" for name in files)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    cfg = CheckpointConfig(save_dir=str(tmp_path / "run"))
    for name, value in options.items():
        setattr(cfg, name, value.format(tmp_path) if isinstance(value, str) else value)
    if told is None:
        save_folder.check_start(cfg)
        return
    with pytest.raises(UsageError, match=told.replace("{}", re.escape(str(tmp_path)))):
        save_folder.check_start(cfg)


def test_a_checkpoint_that_is_not_read_is_reported(tmp_path, caplog):
    cfg = CheckpointConfig(save_dir=str(tmp_path), finetune_from_model="old.pt")
    (tmp_path / "checkpoint_last.pt").touch()
    with caplog.at_level(logging.INFO):
        save_folder.check_start(cfg)
    (told,) = [record.getMessage() for record in caplog.records]
    assert (
        told
        == f"continuing {tmp_path}/checkpoint_last.pt; --finetune-from-model old.pt is not read"
    )


HOLDER = """
import os, sys, time
from fairseq_posenc.guards.save_folder import lock
lock(sys.argv[1])
if not os.fork():  # as a worker that loads data, which outlives a killed training for seconds
    time.sleep(600)
print(os.getpid(), flush=True)
time.sleep(600)
"""


def test_one_training_at_a_time_writes_to_a_folder(tmp_path):
    command = [sys.executable, "-c", HOLDER, tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as holder:
        try:
            number = int(holder.stdout.readline())
            with pytest.raises(
                UsageError, match=rf"^another training \(process {number} on .*\) is"
            ):
                save_folder.lock(str(tmp_path))
            os.kill(number, signal.SIGKILL)
            holder.wait()
            save_folder.lock(str(tmp_path))
            save_folder.lock(str(tmp_path))  # the same process
        finally:
            os.killpg(holder.pid, signal.SIGKILL)
    second = [*command[:2], HOLDER.replace("600", "0"), tmp_path]
    found = subprocess.run(second, stderr=subprocess.PIPE, encoding="utf-8")
    assert found.returncode == 1
    assert f"another training (process {os.getpid()} on " in found.stderr.splitlines()[-1]


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_without_locks_a_training_goes_on(tmp_path, monkeypatch, caplog, code):
    def lockf(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "lockf", lockf)
    with caplog.at_level(logging.INFO):
        save_folder.lock(str(tmp_path / "new"))
    assert f"cannot be locked: {os.strerror(code)}" in caplog.text
    (tmp_path / "new" / "checkpoint1.pt").touch()


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path, caplog):
    (tmp_path / "mine").write_text("of value")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / save_folder.LOCK).symlink_to(tmp_path / "mine")
    with caplog.at_level(logging.INFO):
        save_folder.lock(str(tmp_path / "run"))
    assert "cannot be locked" in caplog.text and (tmp_path / "mine").read_text() == "of value"

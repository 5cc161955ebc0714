"""Settings and checksums as files: what a run is known by."""

import pytest

from fairseq_posenc.errors import UsageError
from recipes.lib import settings


def test_settings_are_those_of_results_and_can_be_mended_until_there_are_any(tmp_path):
    file = str(tmp_path / "run" / "settings")
    settings.record_fingerprint(file, ["--a", "1", "--b", "2 3"])
    settings.record_fingerprint(file, ["--a", "2", "--b", "2 3"])
    (tmp_path / "run" / "train.log").touch()
    settings.record_fingerprint(file, ["--a", "1", "--b", "2 3"])
    (tmp_path / "run" / "checkpoint1.pt").touch()
    (tmp_path / "link").symlink_to("run")
    for folder in ("run", "link"):
        with pytest.raises(UsageError, match=r"\(then: --a 1; now: --a 3 --c\); give another"):
            settings.record_fingerprint(
                f"{tmp_path}/{folder}/settings", ["--a", "3", "--b", "2 3", "--c"]
            )
    assert settings.read_lines(file) == ["--a 1", "--b 2 3"]


def test_text_is_known_by_what_it_holds_wherever_it_lies(tmp_path):
    text = "".join(f"line {number}\n" for number in range(30_000))
    for name in ("a", "moved/b"):
        (tmp_path / name).mkdir(parents=True)
        for part, content in {"1.txt": text, "2 3.txt": "x"}.items():
            (tmp_path / name / part).write_text(content)
    whole = settings.checksum([f"{tmp_path}/a"])
    assert (
        whole == settings.checksum([f"{tmp_path}/moved/b"]) == settings.checksum([f"{tmp_path}/a/"])
    )
    different = {whole, settings.checksum([f"{tmp_path}/a/1.txt"])}
    for changed in (text + "\n", "L" + text[1:], text.replace("line 15000", "line 1500O")):
        (tmp_path / "a" / "1.txt").write_text(changed)
        different.add(settings.checksum([f"{tmp_path}/a"]))
    assert len(different) == 5
    with pytest.raises(UsageError, match="cannot read"):
        settings.checksum([f"{tmp_path}/none"])


def test_a_file_is_whole_or_as_it_was(tmp_path):
    (tmp_path / "file").mkdir()
    with pytest.raises(UsageError, match=f"cannot write {tmp_path}/file"):
        settings.write(f"{tmp_path}/file", "text")


def test_a_learning_rate_that_depends_on_the_end_of_training_does_not_go_on():
    lines = ["--lr-scheduler polynomial_decay", "--max-epoch 3"]
    assert not settings.continues(lines, [lines[0], "--max-epoch 4"])
    lines[0] = "--lr-scheduler inverse_sqrt"
    assert settings.continues(lines, [lines[0], "--max-epoch 4"])

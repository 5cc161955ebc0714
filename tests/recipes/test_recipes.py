"""The recipes' shell: stages, settings, data. What they train is tested end to end."""

import gzip
import os
import sys
from pathlib import Path

import pytest

from fairseq_posenc.version import __version__


@pytest.fixture
def shell(start):
    """A function that runs a script of bash with the recipes' library; returns status, output."""

    def shell(script):
        process = start("bash", "-c", f"set -euo pipefail; source recipes/lib/stages.sh; {script}")
        return process.communicate()[0], process.returncode

    return shell


def test_a_stage_is_skipped_when_done_and_repeated_when_it_failed(shell, tmp_path):
    work = (
        f'work() {{ echo working; [[ -e {tmp_path}/allowed ]]; }}; stage 1 "work" {tmp_path}/mark'
    )
    printed, status = shell(f"{work} work")
    assert status != 0 and "working" in printed and not (tmp_path / "mark").exists()
    (tmp_path / "allowed").touch()
    printed, status = shell(f"{work} work")
    assert status == 0 and "finished in" in printed
    printed, status = shell(f"{work} work")
    assert status == 0 and "working" not in printed and "done before" in printed


def test_stages_outside_the_range_do_not_run(shell):
    printed, status = shell(
        "FIRST_STAGE=2 LAST_STAGE=3; for n in 1 2 3 4; do stage $n t - echo n$n; done"
    )
    assert status == 0
    assert [line for line in printed.splitlines() if line.startswith("n")] == ["n2", "n3"]


def test_half_an_output_is_never_taken_for_a_whole_one(shell, tmp_path):
    (tmp_path / "out").write_text("old")
    printed, status = shell(f'writing {tmp_path}/out bash -c "echo half; exit 3"')
    assert status == 3 and os.listdir(tmp_path) == ["out"]
    assert (tmp_path / "out").read_text() == "old"
    assert shell(f"writing {tmp_path}/out echo whole")[1] == 0
    assert (tmp_path / "out").read_text() == "whole\n"


def test_settings_that_cannot_be_kept_end_the_run_in_one_line(shell, tmp_path):
    printed, status = shell(f"mv() {{ false; }}; same_settings {tmp_path}/settings a; echo on")
    assert status == 1 and printed == f"bash: error: cannot write {tmp_path}/settings\n"


@pytest.mark.parametrize(
    "free, made, ends", [(400, 0, False), (399, 0, True), (100, 300, False), (100, 299, True)]
)
def test_a_disk_holds_the_archives_four_times_over(shell, tmp_path, free, made, ends):
    disk = f"df() {{ printf 'Avail\\n{free}000000\\n'; }}; du() {{ echo {made}000000; }}"
    printed, status = shell(f"{disk}; RUN_DIR={tmp_path}; check_disk 100000000; echo on")
    message = (
        f"bash: error: the disk of {tmp_path} has {free} MB left; archives of 100 MB need four "
        "times as much: give another --run-dir"
    )
    assert (printed, status) == ((f"{message}\n", 1) if ends else ("on\n", 0))


@pytest.mark.parametrize(
    "recipe, megabytes",
    [
        ("shape/run", 1651),
        ("iwslt14", 19),
        ("glue/run", 400),
    ],
)  # fmt: skip
def test_a_full_disk_ends_a_recipe_before_it_downloads(start, tmp_path, recipe, megabytes):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "df").write_text("#!/bin/sh\nprintf 'Avail\\n4096\\n'\n")
    (tmp_path / "bin" / "df").chmod(0o755)
    programs = f"{tmp_path}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    options = "--stage", "2", "--stop-stage", "2", "--device", "cpu", "--run-dir", tmp_path / "run"
    process = start("bash", f"recipes/{recipe}.sh", *options, PATH=programs)
    *_, last = process.communicate()[0].splitlines()
    assert process.returncode == 1 and f" 0 MB left; archives of {megabytes} MB need four" in last
    assert not list((tmp_path / "run").glob("raw/*"))


def test_a_failure_among_parallel_jobs_is_noticed(shell):
    job = "job() { sleep 0.1; [[ $1 != bad ]]; }; in_parallel 2 job"
    assert shell(f"{job} good fine well")[1] == 0
    assert shell(f"{job} good bad well")[1] != 0


def test_other_settings_do_not_mix_into_a_run(shell, tmp_path):
    run = tmp_path / "run"
    assert shell(f"open_run_dir {run} --a 1 --b 2")[1] == 0
    assert (run / "settings").read_text() == f"--version {__version__} --a 1 --b 2\n"
    assert shell(f"open_run_dir {run} --a 2 --b 2")[1] == 0
    (run / "result").touch()
    printed, status = shell(f"open_run_dir {run} --a 3 --b 2 --c '4 5'")
    assert status != 0 and printed == (
        f"bash: error: {run} was made with other settings (then: --a 2; now: --a 3 --c 4 5); "
        "give another --run-dir\n"
    )
    # a link, too, has results behind it
    (tmp_path / "link").symlink_to("run")
    assert shell(f"open_run_dir {tmp_path}/link --a 3 --b 2")[1] != 0


def test_data_are_known_by_what_they_hold(shell, tmp_path):
    def fingerprint(*names):
        printed, status = shell(f"cd {tmp_path}; fingerprint {' '.join(names)}")
        return printed if status == 0 else "none"

    text = "".join(f"line {number}\n" for number in range(30_000))
    for name in ("a", "moved/b"):
        (tmp_path / name).mkdir(parents=True)
        for part, content in {"1.txt": text, "2 3.txt": "x"}.items():
            (tmp_path / name / part).write_text(content)
    whole = fingerprint("a")
    assert whole == fingerprint("moved/b") == fingerprint(f"{tmp_path}/a/")
    different = {whole, fingerprint("a/1.txt"), fingerprint("a", "a"), fingerprint("none")}
    for changed in (text + "\n", "L" + text[1:], text[:-2] + "?\n"):
        (tmp_path / "a" / "1.txt").write_text(changed)
        different.add(fingerprint("a"))
    assert len(different) == 7 and "none" in different


def test_a_row_can_be_mended_until_it_has_results(shell, tmp_path):
    cell = tmp_path / "row" / "seed1"
    mistaken = f"same_settings {tmp_path}/row/settings shawl; same_settings {cell}/settings shawl"
    mended = mistaken.replace("shawl", "shaw")
    assert shell(mistaken)[1] == 0
    (cell / "train.log").touch()
    assert shell(mended)[1] == 0 and (cell / "settings").read_text() == "shaw\n"
    (cell / "checkpoint1.pt").touch()
    assert shell(mistaken)[1] != 0


@pytest.fixture
def multi30k(start, tmp_path):
    """A function that prepares small files named as Multi30k's; returns status and output."""
    for name in ("raw", "other"):
        (tmp_path / name).mkdir()
        for split in ("train", "val", "test_2016_flickr"):
            for language in ("en", "de"):
                text = "\n".join(f"{name} {split} {number} ." for number in range(40))
                with gzip.open(tmp_path / name / f"{split}.{language}.gz", "wt") as stream:
                    stream.write(text + "\n")

    def multi30k(run, *options, raw="raw"):
        command = ["bash", "recipes/multi30k.sh", "--stage", "2", "--stop-stage", "2"]
        command += ["--raw-dir", tmp_path / raw, "--run-dir", run, "--device", "cpu", *options]
        process = start(*command)
        return process.communicate()[0], process.returncode

    return multi30k


def test_a_setting_has_a_folder_of_its_own(multi30k, tmp_path):
    assert multi30k(tmp_path / "run")[1] == 0
    for options in (["--setting", "interpolate"], ["--setting", "extrapolate"]):
        printed, status = multi30k(tmp_path / "run", *options)
        assert status == 1 and printed.count("\n") == 1
        assert f"(then: --setting vanilla; now: {options[0]} {options[1]}" in printed
        assert "give another --run-dir" in printed and "delete" not in printed


def test_other_data_do_not_mix_into_a_run(multi30k, tmp_path):
    assert multi30k(tmp_path / "run")[1] == 0
    printed, status = multi30k(tmp_path / "run", raw="other")
    assert status == 1 and printed.count("\n") == 1
    assert f"was made from another train.en.gz than {tmp_path}/other/train.en.gz" in printed


@pytest.mark.parametrize("recipe", ["quickstart", "multi30k", "python_docs"])
def test_a_small_recipe_prints_every_command_and_does_nothing(run, tmp_path, recipe):
    command = ["bash", f"recipes/{recipe}.sh", "--stage", "2", "--plan", "--device", "cpu"]
    command += ["--run-dir", tmp_path / "run", "--encodings", "sinusoidal,shaw", "--seeds", "1,2"]
    lines = run(*command).splitlines()
    for program, count in {
        "posenc prepare tokenise": 6, "subword-nmt apply-bpe": 6, "posenc prepare binarise": 1,
        "fairseq-train": 4, "fairseq-generate": 4, "posenc score": 4, "posenc table": 1,
    }.items():  # fmt: skip
        assert sum(line.startswith(f"{program} ") for line in lines) == count, program
    assert not (tmp_path / "run").exists()


def test_the_plan_of_claims_has_every_training(run, tmp_path):
    folder = tmp_path / "run"
    command = ["bash", "recipes/claims.sh", "--plan", "--stage", "2", "--device", "cpu"]
    printed = run(*command, "--run-dir", folder, "--seeds", "1,2")
    rows = {  # of all parts that quickstart.sh trains, BERT, the deep models, and plain PyTorch
        "bash recipes/quickstart.sh": 11, "bash recipes/claims/bert.sh": 1, "fairseq-train": 8,
        "python -u recipes/claims/plain_transformer.py": 10,
    }  # fmt: skip
    for program, count in rows.items():
        assert sum(line.startswith(program) for line in printed.splitlines()) == count, program
    assert "shape_authors=shape" in printed.replace("\\", "") and not folder.exists()


def test_a_test_set_of_a_single_range_is_cut_by_its_own_lengths(run, tmp_path):
    command = ["bash", "recipes/quickstart.sh", "--plan", "--run-dir", tmp_path / "run"]
    for lengths, bins in ("4-12", "--percentiles --length-of source"), ("4-9,10-12", "--bins 9"):
        scoring = run(*command, "--test-lengths", lengths).partition("\nposenc score ")[2]
        assert f" {bins} " in scoring.partition("\n")[0].replace("\\", "")


@pytest.mark.parametrize("plan", ["no", "yes"])
@pytest.mark.parametrize("device, extra, told", [
    ("cuda", "", 1), ("cuda", "--adam-eps 1e-6 --patience 3", 1), ("cuda", "--bf16", 0),
    ("cuda", "--patience 3 --fp16 --fp16-scale-window 256", 0), ("cuda", "--amp", 0),
    ("cuda", "--memory-efficient-fp16", 0), ("cpu", "", 0),
])  # fmt: skip
def test_what_float32_costs_on_a_gpu_is_reported_once(shell, plan, device, extra, told):
    printed, status = shell(
        f"source recipes/lib/rows.sh; DEVICE={device} JOBS= PLAN={plan} EXTRA=({extra}); "
        "choose_device; (choose_device)"
    )
    assert status == 0
    lines = [line for line in printed.splitlines() if "5 to 10 times the hours" in line]
    assert len(lines) == told
    assert all(line.startswith("# note: in float32") == (plan == "yes") for line in lines)

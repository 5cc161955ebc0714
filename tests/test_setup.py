"""scripts/setup.sh, without installing anything."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.programs import bash, program

ROOT = Path(__file__).resolve().parent.parent
SHELL = sorted([*ROOT.glob("scripts/*.sh"), *ROOT.glob("recipes/**/*.sh"), ROOT / ".ci" / "run"])


def setup(*arguments, **keywords):
    return bash(ROOT / "scripts" / "setup.sh", *arguments, **keywords)


@pytest.fixture
def python38(tmp_path):
    """A folder of programs where python3 is 3.8 and the newer ones only fail."""
    program(tmp_path / "old" / "python3", "echo 3.8")
    for name in ("python3.10", "python3.11", "python3.12", "python3.13"):
        program(tmp_path / "old" / name, "echo not installed >&2; exit 127")
    return tmp_path / "old"


def one_line(run):
    assert run.returncode != 0
    lines = run.stderr.splitlines()
    assert len(lines) == 1, run.stderr
    return lines[0]


@pytest.mark.parametrize("script", SHELL, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_shell_script_parses(script):
    assert bash("-n", script).returncode == 0


def test_help_names_every_option():
    source = (ROOT / "scripts" / "setup.sh").read_text()
    cases = re.findall(r"^ +(--[a-z |-]+)\)", source, re.MULTILINE)
    options = {option for case in cases for option in case.split(" | ")}
    assert {"--venv", "--python", "--torch", "--extra", "--print-bin", "--help"} <= options
    run = setup("--help")
    assert run.returncode == 0
    assert not [option for option in options if option not in run.stdout]


def test_without_a_supported_python_one_line_says_what_to_install(python38, tmp_path):
    line = one_line(setup("--venv", tmp_path / "new", path=python38))
    assert "python3 is 3.8" in line
    assert "apt-get install python3.11" in line
    assert not (tmp_path / "new").exists()


def test_uv_installs_a_python_where_there_is_none(python38, tmp_path):
    """And is asked for one that it has installed, which need not be on the PATH."""
    its = program(tmp_path / "its" / "python", "case $2 in venv) exit 1 ;; esac; echo 3.11")
    uv = f'[ "$2" != install ] || touch "{tmp_path}/done"; [ -e "{tmp_path}/done" ] && echo "{its}"'
    program(python38 / "uv", uv)
    for _ in range(2):
        assert f"{its} -m venv failed" in setup("--venv", tmp_path / "new", path=python38).stderr
        assert (tmp_path / "done").exists()
        program(python38 / "uv", f'[ "$2" != install ] || exit 1\n{uv}')


def test_without_ensurepip_one_line_says_what_to_install(python38, tmp_path):
    program(python38 / "python3.12", 'case "$2" in *ensurepip*) exit 1 ;; esac\necho 3.12')
    line = one_line(setup("--venv", tmp_path / "new", path=python38))
    assert "apt-get install python3.12-venv" in line


OLD = 'case "$2" in *tarfile*) exit 1 ;; *platform*) echo 3.11.2 ;; *) echo 3.11 ;; esac'


def test_a_python_that_the_package_refuses_is_told_before_any_work(python38, tmp_path):
    """Debian 12's python3 is 3.11.2: pip would refuse the plugin after minutes of set-up."""
    program(python38 / "python3.11", OLD)
    run = setup("--venv", tmp_path / "new", path=python38)
    assert "python3.11 is Python 3.11.2, but 3.10.12, 3.11.4 or any 3.12" in one_line(run)
    run = setup("--venv", tmp_path / "new", "--python", python38 / "python3.11", path=python38)
    assert "is needed: name another (--python" in one_line(run)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--python", "no-such-python"], "no-such-python is no working Python"),
        (["--python", "python3"], "python3 is Python 3.8"),
        (["--torch", "newest"], "--torch takes a version"),
        (["--extra", "everything"], "unknown extra everything"),
        (["--venv"], "--venv needs a value"),
        (["--fast"], "unknown option --fast"),
    ],
)
def test_a_wrong_option_is_one_line(python38, arguments, said):
    assert said in one_line(setup(*arguments, path=python38))


def test_python_of_the_environment_variable_is_checked(python38):
    assert "python3 is Python 3.8" in one_line(setup(path=python38, PYTHON="python3"))


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    assert "not a working Python environment" in one_line(setup("--venv", tmp_path))
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_place_that_cannot_be_written_to_is_named_with_both_ways_out(tmp_path):
    """Recipes, which set up too, have no --venv."""
    (tmp_path / "file").touch()
    line = one_line(setup("--venv", tmp_path / "file" / "venv"))
    assert "venv: name another one (--venv or POSENC_VENV)" in line


def test_a_moved_environment_is_noticed(tmp_path):
    program(tmp_path / "bin" / "python", "echo 3.11")
    (tmp_path / ".fairseq_posenc").mkdir()
    (tmp_path / ".fairseq_posenc" / "owned").write_text("/elsewhere/.venv\n")
    assert "was made as /elsewhere/.venv" in one_line(setup("--venv", tmp_path))


def test_a_set_up_that_was_cut_begins_anew(tmp_path):
    """pip takes what it half installed for installed."""
    broken = program(tmp_path / "bin" / "python3", """case "$*" in
      *'-m venv'*) mkdir -p "$3/bin"; echo 'exit 1' >"$3/bin/python"; touch "$3/half"; exit 1 ;;
      *ensurepip*) ;;
      *) echo 3.11 ;;
    esac""")  # fmt: skip
    assert "-m venv failed" in setup("--venv", tmp_path / "env", "--python", broken).stderr
    assert (tmp_path / "env" / "half").exists()
    program(tmp_path / "bin" / "python3", "case $2 in venv) exit 1 ;; esac; echo 3.11")
    run = setup("--venv", tmp_path / "env", "--python", broken)
    assert "-m venv failed" in run.stderr and not (tmp_path / "env" / "bin").exists()


@pytest.mark.parametrize("pythons_exit", [0, 1])
def test_an_environment_that_was_complete_is_never_emptied(environment, tmp_path, pythons_exit):
    """Whatever cut its next set-up: it may have packages of the user's."""
    folder = environment()
    assert setup("--venv", folder, "--extra", "test").returncode == 0
    (folder / "mine").touch()
    (folder / ".fairseq_posenc" / "stamp").write_text("another\n2.13.0\n-test\n")
    (tmp_path / "fairseq").unlink()
    text = (folder / "bin" / "python").read_text()
    program(folder / "bin" / "python", text.replace("*fairseq-fixed*)", "*fairseq-fixed*) exit 1;"))
    assert "could not install fairseq" in setup("--venv", folder).stderr
    assert not (folder / ".fairseq_posenc" / "stamp").exists() and (folder / "mine").exists()
    program(folder / "bin" / "python", f"[ {pythons_exit} = 0 ] || exit 1\n{text}")
    run = setup("--venv", folder)
    assert (folder / "mine").exists() and run.returncode == pythons_exit
    if pythons_exit:
        assert "is not a working Python environment: remove it" in one_line(run)
    else:
        assert "pytest==" in (tmp_path / "log").read_text().rpartition("antlr4")[2]


@pytest.mark.parametrize("is_killed", [False, True])
def test_of_two_at_once_one_makes_the_environment(environment, tmp_path, is_killed):
    """The other makes nothing, or all anew if the first was killed; both begin with no folder."""
    folder = environment()
    (folder / "bin" / "python").rename(tmp_path / "python")
    shutil.rmtree(folder)
    base = program(tmp_path / "bin" / "python3.11", f"""case "$*" in
      *'-m venv'*) mkdir "$3/bin"; cp "{tmp_path}/python" "$3/bin"; echo >>"{tmp_path}/made"
        touch "$3/$(wc -l <"{tmp_path}/made")"
        while [ ! -e "{tmp_path}/go" ]; do sleep 0.1; done ;;
      *ensurepip*) echo >>"{tmp_path}/both"
        while [ "$(wc -l <"{tmp_path}/both")" -lt 2 ]; do sleep 0.01; done ;;
      *tarfile*) ;;
      *) echo 3.11 ;;
    esac""")  # fmt: skip
    command = ["bash", ROOT / "scripts" / "setup.sh", "--venv", folder, "--python", base]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [run.stdout.readline() for run in runs]
    first, second = runs if "making" in said[0] else reversed(runs)
    assert sorted("waiting for another set-up" in line for line in said) == [False, True]
    while not (folder / "1").exists():
        time.sleep(0.01)
    if is_killed:
        first.kill()
    (tmp_path / "go").touch()
    assert first.wait(60) == (-9 if is_killed else 0)
    said = second.communicate(timeout=60)[0]
    assert second.returncode == 0
    assert ("making" in said) == is_killed
    assert [file.name for file in folder.glob("[12]")] == ["2" if is_killed else "1"]


@pytest.mark.parametrize(
    ("found", "is_refused"),
    [("2.9.1+cpu", True), ("2.0.1", True), ("2.10.0", False), ("3.0.0a1", False)],
)
def test_a_torch_that_is_too_old_is_refused_in_one_line(tmp_path, found, is_refused):
    info = tmp_path / f"torch-{found}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {found}\n")
    run = subprocess.run(
        [sys.executable, "-c", "import fairseq_posenc"], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert bool(run.returncode) == is_refused
    if is_refused:
        assert f"torch {found} is too old, 2.10 or newer is needed" in one_line(run)


@pytest.fixture
def environment(tmp_path):
    """An environment of ours to be completed, whose Python only notes what pip shall install."""
    folder, log = tmp_path / "env", tmp_path / "log"

    def environment(has_cpu_builds=True):
        program(folder / "bin" / "python", f"""case "$*" in
          *version_info*) echo 3.11 ;;
          *'version("torch")'*) cat "{tmp_path}/torch" 2>/dev/null || true ;;
          *find_spec*) cat "{tmp_path}/origin" ;;
          *'import fairseq'*) [ -e "{tmp_path}/fairseq" ] ;;
          *fairseq-fixed*) touch "{tmp_path}/fairseq" ;;
          *libraries.txt*) cat "{folder}/.fairseq_posenc/libraries.txt" >>"{log}" ;;
          *torch==*) cat "{folder}/.fairseq_posenc/constraints.txt" >"{log}.constraints"
            echo "$*" | grep -o 'torch==[^ ]*' >>"{log}.torch"
            case "$*" in *+cpu*) exit {0 if has_cpu_builds else 1} ;; esac ;;
        esac""")  # fmt: skip
        (folder / ".fairseq_posenc").mkdir(exist_ok=True)
        (folder / ".fairseq_posenc" / "owned").write_text(f"{folder}\n")
        (folder / ".fairseq_posenc" / "stamp").write_text("another\n2.13.0\n-\n")
        return folder

    return environment


HAS_GPU = shutil.which("nvidia-smi") is not None
[TORCH] = re.findall("^torch==(.+)$", (ROOT / "scripts" / "constraints.txt").read_text(), re.M)


@pytest.mark.parametrize(
    "options, has_gpu, has_cpu_builds, builds",
    [
        ([], False, True, ["{}+cpu"]),
        ([], False, False, ["{}+cpu", "{}"]),
        ([], True, True, ["{}"]),
        (["--gpu"], False, True, ["{}"]),
        (["--torch", "2.4.1+cu121"], False, True, ["2.4.1+cu121"]),
    ],
)
def test_torch_is_for_the_cpu_only_where_there_is_no_gpu_and_none_is_asked_for(
    environment, tmp_path, options, has_gpu, has_cpu_builds, builds
):
    if has_gpu:
        program(tmp_path / "bin" / "nvidia-smi", "exit 0")
    elif HAS_GPU:
        pytest.skip("this machine has a GPU")
    folder = environment(has_cpu_builds=has_cpu_builds)
    run = setup("--venv", folder, *options, path=tmp_path / "bin")
    assert run.returncode == 0, run.stderr
    asked = (tmp_path / "log.torch").read_text().split()
    assert asked == [f"torch=={build.format(TORCH)}" for build in builds]
    assert ("if jobs elsewhere have some: --gpu" in run.stdout) == (asked[-1].endswith("+cpu"))


@pytest.mark.parametrize("clone, is_told", [("/other clone", True), (str(ROOT), False)])
def test_where_the_plugin_of_another_clone_gives_way_it_says_so(
    environment, tmp_path, clone, is_told
):
    (tmp_path / "origin").write_text(f"{clone}/fairseq_posenc/__init__.py")
    run = setup("--venv", environment())
    assert run.returncode == 0, run.stderr
    assert ("had the plugin of /other clone; that needs an" in run.stdout) == is_told


def test_an_environment_for_the_cpu_is_not_taken_for_one_with_a_gpu(environment):
    folder = environment()
    setup("--venv", folder)
    stamp = folder / ".fairseq_posenc" / "stamp"
    fingerprint, _, extras = stamp.read_text().splitlines()
    stamp.write_text(f"{fingerprint}\n{TORCH}+cpu\n{extras}\n")
    assert "has torch for the CPU: remove it" in one_line(setup("--venv", folder, "--gpu"))
    # nor where it is to be completed, as after an update of the plugin
    stamp.write_text(f"another\n{TORCH}+cpu\n{extras}\n")
    (folder.parent / "torch").write_text(f"{TORCH}+cpu\n")
    assert "has torch for the CPU: remove it" in one_line(setup("--venv", folder, "--gpu"))

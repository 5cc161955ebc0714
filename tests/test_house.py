"""What the repository keeps to, so that it can be read in an evening."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
LONGEST_FILE = 350
LONGEST_FUNCTION = 60
# Rooms of the plugin from the bottom up: a room imports those before it. The toolbox is on top.
ROOMS = [
    ["version", "errors"],
    ["files", "json_files", "compat"],
    ["encodings"],
    ["options", "signatures"],
    ["attention"],
    ["metrics"],
    ["checkpoints", "data"],
    ["criterions", "optim"],
    ["tasks"],
    ["models"],
    ["tools"],
]
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}
TOP = "docs fairseq_posenc recipes scripts tests setup.py pyproject.toml README.md LICENSE".split()


def files(*endings):
    """Paths of all files of the repository, or of those with these endings, as git knows them."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY, encoding="utf-8", stdout=subprocess.PIPE,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a git repository")
    paths = [REPOSITORY / line for line in listed.stdout.splitlines()]
    return [path for path in paths if path.exists() and (not endings or path.suffix in endings)]


def function_lengths(path):
    """Yield name and number of lines of each function of a Python file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            yield node.name, node.end_lineno - node.lineno + 1


def shell_function_lengths(path):
    """Yield name and number of lines of each function of a shell script."""
    text = path.read_text(encoding="utf-8")
    for found in re.finditer(r"^(\w+)\(\) \{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE):
        yield found.group(1), found.group().count("\n") + 1


def test_no_file_is_too_long():
    for path in files(".py", ".sh", ".md"):
        assert path.read_text(encoding="utf-8").count("\n") <= LONGEST_FILE, path


def test_no_function_is_too_long():
    checked = 0
    for path in files(".py", ".sh"):
        lengths = function_lengths if path.suffix == ".py" else shell_function_lengths
        for name, length in lengths(path):
            checked += 1
            assert length <= LONGEST_FUNCTION, (path, name)
    assert checked > 1000


def test_the_top_level_holds_what_it_should():
    found = {path.relative_to(REPOSITORY).parts[0] for path in files()}
    assert {name for name in found if not name.startswith(".")} <= set(TOP)


def imported(path):
    """Yield the modules of the project that a Python file imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fairseq_posenc"):
            for alias in node.names:
                yield f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith("fairseq_posenc"))


def test_imports_go_one_way_down():
    package = REPOSITORY / "fairseq_posenc"
    for path in package.rglob("*.py"):
        room = path.relative_to(package).parts[0].removesuffix(".py")
        for module in imported(path):
            below = (module.split(".") + ["version"])[1]
            assert LEVEL[below] <= LEVEL.get(room, -1), f"{path} imports {module}"


PLUGIN_ALONE = """
import sys
from importlib import import_module
import torch, fairseq.models, fairseq.tasks, fairseq.criterions, fairseq.optim, fairseq.data
import fairseq.checkpoint_utils, fairseq.sequence_generator
before = {name.partition(".")[0] for name in sys.modules}
for part in "encodings", "models", "tasks", "criterions", "optim":
    import_module(f"fairseq_posenc.{part}")
after = {name.partition(".")[0] for name in sys.modules} - before - {"fairseq_posenc"}
print(sorted(after - sys.stdlib_module_names))
print([name for name in sys.modules if name.startswith("fairseq_posenc.tools")])
"""


def test_importing_the_plugin_imports_no_library_but_fairseqs_and_no_tool():
    found = subprocess.run(
        [sys.executable, "-c", PLUGIN_ALONE],
        cwd=REPOSITORY, encoding="utf-8", stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    assert found.stdout.splitlines()[-2:] == ["[]", "[]"]


def test_no_class_name_stands_for_two_things():
    classes = [
        node.name
        for path in (REPOSITORY / "fairseq_posenc").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    assert {name for name in classes if classes.count(name) > 1} == set()

"""What the repository keeps to, so that it can be read in an evening."""

import ast
import os
import re
import subprocess

import pytest

from tests.programs import REPOSITORY, python

LONGEST_FILE = 350
LONGEST_FUNCTION = 60
# Rooms from the bottom up: a room imports those before it. Above the plugin is the toolbox; above
# all, out of the wheel, are the recipes.
ROOMS = [
    ["version", "register_all", "errors", "patching", "__init__"],
    ["files", "json_files", "compat", "hardware"],
    ["encodings"],
    ["options"],
    ["attention"],
    ["metrics"],
    ["checkpoints", "data"],
    ["guards"],
    ["nn"],
    ["criterions", "optim"],
    ["tasks"],
    ["models"],
    ["tools"],
    ["recipes"],
]
# The rooms of the toolbox likewise, above the modules that lie in tools/ itself.
TOOL_ROOMS = [["downloads", "scores"], ["bert"], ["translation", "tables"], ["analyses", "convert"],
              ["commands"]]  # fmt: skip
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}
TOOL_LEVEL = {room: level for level, rooms in enumerate(TOOL_ROOMS, 1) for room in rooms}
SOURCES = "fairseq_posenc", "recipes"
TOP = (
    "docs fairseq_posenc findings recipes scripts tests setup.py pyproject.toml README.md LICENSE"
    " CITATION.cff MANIFEST.in"
).split()


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


def documented(node, section):
    """Yield the names that a docstring has under a title such as ``Args``."""
    text = f"{ast.get_docstring(node) or ''}\n"
    for lines in re.findall(rf"^{section}:\n((?:    .*\n|\n)*)", text, re.MULTILINE):
        for names in re.findall(r"^    (\w[\w*, ]*):", lines, re.MULTILINE):
            yield from (name.strip("* ") for name in names.split(","))


def test_documented_arguments_and_attributes_are_there():
    """A renamed one must not leave its description behind."""
    checked = 0
    for path in (path for path in files(".py") if path.relative_to(REPOSITORY).parts[0] in SOURCES):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                section, kinds = "Args", (ast.arg,)
            elif isinstance(node, ast.ClassDef):
                section, kinds = "Attributes", (ast.Name, ast.Attribute, ast.arg, ast.FunctionDef)
            else:
                continue
            inside = [part for part in ast.walk(node) if isinstance(part, kinds)]
            names = {
                vars(part).get(key) for part in inside for key in ("arg", "id", "attr", "name")
            }
            missing = {*documented(node, section)} - names
            assert not missing, f"{path}: {node.name} describes {missing}"
            checked += 1
    assert checked > 1000


def test_no_file_is_too_long():
    for path in files(".py", ".sh", ".md"):
        # a recipe writes the appendix, which has a line for each figure that was measured
        if path.name != "claims_appendix.md":
            assert path.read_text(encoding="utf-8").count("\n") <= LONGEST_FILE, path


def test_no_function_is_too_long():
    checked = 0
    for path in files(".py", ".sh"):
        lengths = function_lengths if path.suffix == ".py" else shell_function_lengths
        for name, length in lengths(path):
            checked += 1
            assert length <= LONGEST_FUNCTION, (path, name)
    assert checked > 1000


def test_forward_passes_name_shapes():
    """In a comment or the docstring, as in ``# scores: (batch, heads, queries, keys)``."""
    checked = 0
    for path in (REPOSITORY / "fairseq_posenc").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name == "forward":
                lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
                prose = [line.partition("#")[2] for line in lines] + [ast.get_docstring(node) or ""]
                checked += 1
                named = re.search(r"\(\S.*?,.*?\)", "\n".join(prose))
                assert named or len(lines) < 8, (path, node.lineno)
    assert checked > 25


def test_the_top_level_holds_what_it_should():
    found = {path.relative_to(REPOSITORY).parts[0] for path in files()}
    assert {name for name in found if not name.startswith(".")} <= set(TOP)


def test_findings_are_short_pinned_listed_and_run_without_the_product():
    folder = REPOSITORY / "findings"
    listed = re.findall(r"^- \[`(.+?)`\]", (folder / "README.md").read_text("utf-8"), re.MULTILINE)
    scripts = sorted(path.name for path in folder.glob("*.sh"))
    assert listed == scripts and len(scripts) > 8
    for path in folder.glob("*.sh"):
        text = path.read_text(encoding="utf-8")
        assert os.access(path, os.X_OK) and text.count("\n") <= 60, path
        assert re.search(r"==[0-9$]", text) and "fairseq_posenc" not in text, path
        for word in ("Guess:", "Seen:", "Versions:", "Why:"):
            assert f"\n# {word}" in text, (path, word)


def imported(path):
    """Yield the modules that a Python file imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def room_of(module):
    """The room of a module of the project; None of others."""
    top, _, rest = module.partition(".")
    if top == "fairseq_posenc":
        return rest.partition(".")[0] or "version"
    return top if top in ("recipes", "tests") else None


def test_imports_go_one_way_down():
    checked = 0
    for path in (path for top in SOURCES for path in (REPOSITORY / top).rglob("*.py")):
        room = room_of(".".join(path.relative_to(REPOSITORY).with_suffix("").parts))
        for module in imported(path):
            below = room_of(module)
            if below:
                checked += 1
                assert LEVEL.get(below, len(ROOMS)) <= LEVEL.get(room, -1), (path, module)
    assert checked > 500


def test_imports_inside_the_toolbox_go_one_way_down():
    tools, checked = REPOSITORY / "fairseq_posenc" / "tools", 0
    for path in tools.rglob("*.py"):
        room = path.relative_to(tools).parts[0]
        for module in imported(path):
            top, _, rest = module.partition("fairseq_posenc.tools.")
            below = rest.partition(".")[0]
            if rest and not top and below != room:
                checked += 1
                assert TOOL_LEVEL.get(below, 0) <= TOOL_LEVEL.get(room, 0), (path, module)
                assert (below in TOOL_LEVEL) == (tools / below).is_dir(), below
                # rooms side by side know nothing of each other
                assert not TOOL_LEVEL.get(below) or TOOL_LEVEL[below] < TOOL_LEVEL[room], path
    assert checked > 200


# Who opens files to write them: the context managers of tools/writing.py, whose way is tested
# (tests/faults), and what writes into a folder that they gave.
WRITING = ["writing.py", "archives.py", "save_folder.py"]
WRITING += ["folders.py", "model_card.py", "load.py", "pieces.py"]


def test_what_is_written_goes_through_the_context_managers_that_keep_it_whole():
    checked = set()
    for path in (REPOSITORY / "fairseq_posenc").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "open":
                mode = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "mode")]
                if mode and (ast.unparse(mode[0]).strip("'")[:1] in ("w", "x", "a", "e")):
                    checked.add(path.name)
    assert checked == set(WRITING)


# one engine for each: who puts a file in another's place, locks, and makes digests of files
ENGINES = {
    r"os\.(replace|rename)\(": "writing.py download.py newest_checkpoint.py plain_transformer.py",
    r"fcntl\.\w+\(|FileLock\(": "locks.py save_folder.py",
    r"hashlib\.new\(|hashlib\.\w+\(\)": "files.py signatures.py training_text.py settings.py",
}


@pytest.mark.parametrize("pattern", ENGINES)
def test_files_are_renamed_locked_and_hashed_in_one_place_each(pattern):
    paths = [path for top in SOURCES for path in (REPOSITORY / top).rglob("*.py")]
    matching = {path.name for path in paths if re.search(pattern, path.read_text("utf-8"))}
    assert matching == set(ENGINES[pattern].split())


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
    assert python(PLUGIN_ALONE).splitlines()[-2:] == ["[]", "[]"]


REPLACED = """
import sys
import fairseq_cli.train, fairseq_cli.generate, fairseq_cli.hydra_train, fairseq.hub_utils
def places():
    for name in [name for name in sys.modules if name.partition(".")[0].startswith("fairseq")]:
        for key, value in list(vars(sys.modules[name]).items()):
            yield (name, key), value
            if isinstance(value, type) and value.__module__ == name:
                yield from (((name, f"{key}.{one}"), x) for one, x in list(vars(value).items()))
before = dict(places())
import fairseq_posenc.models
from fairseq_posenc.patching import REPLACED
registered = (dict, list, set, int)
after = {key: x for key, x in places() if key in before and not isinstance(x, registered)}
for module, name in (key for key, x in after.items() if before[key] is not x):
    place = name if "." in name else f"{module.partition('.')[2]}.{name}"
    print(place, place.replace("distributed_utils", "distributed.utils") in REPLACED)
"""


def test_what_is_replaced_in_fairseq_is_replaced_by_the_functions_for_that():
    found = python(REPLACED).splitlines()
    assert len(found) > 20
    assert [place for place in found if not place.endswith(" True")] == []


def test_no_class_name_stands_for_two_things():
    classes = [
        node.name
        for top in SOURCES
        for path in (REPOSITORY / top).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        # nn has the names that users of torch.nn expect
        if isinstance(node, ast.ClassDef) and path.parent.name != "nn"
    ]
    assert {name for name in classes if classes.count(name) > 1} == set()

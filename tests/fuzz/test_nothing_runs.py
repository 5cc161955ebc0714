"""Nothing in the sources could run what a file holds."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(
    path for top in ("fairseq_posenc", "scripts") for path in (ROOT / top).rglob("*.py")
)
# modules that build whatever objects a file asks for, and functions that run text
RUNNING = {"pickle", "marshal", "shelve", "dill", "joblib", "yaml", "jsonpickle", "runpy"}
CALLS = {"eval", "exec", "compile", "os.system", "os.popen", "np.load", "numpy.load", "torch.load"}
OPTIONS = {"shell", "allow_pickle", "resolve_entities"}
# the reader of checkpoints takes names of opcodes from pickle, and its handlers of plain values
EXEMPT = {f"fairseq_posenc/checkpoints/{name}.py": {"pickle"} for name in ("reader", "unpickler")}


def runs(source):
    """Names in a source by which a file could run something."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from {name.name.split(".")[0] for name in node.names} & RUNNING
        elif isinstance(node, ast.ImportFrom):
            yield from {(node.module or "").split(".")[0]} & RUNNING
        elif isinstance(node, ast.Call):
            yield from {ast.unparse(node.func)} & CALLS
            yield from {keyword.arg for keyword in node.keywords} & OPTIONS


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_source_runs_what_a_file_holds(path):
    allowed = EXEMPT.get(str(path.relative_to(ROOT)), set())
    assert set(runs(path.read_text(encoding="utf-8"))) <= allowed


@pytest.mark.parametrize(
    "source",
    ["import pickle", "from yaml import load", "eval(a)", "os.system(a)", "np.load(a)",
     "torch.load(a)", "subprocess.run(a, shell=True)", "exec(compile(a, b, c))"],
)  # fmt: skip
def test_what_is_looked_for_is_found(source):
    assert list(runs(source))
    assert not list(runs("model.eval(); torch.compile(a); re.compile(b); json.loads(c)"))

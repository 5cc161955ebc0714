"""The package: its metadata, what its wheel holds, and what the package index shows of it."""

import distutils.core
import re
import shutil
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from fairseq_posenc.version import __version__

ROOT = Path(__file__).resolve().parent.parent
PINS = sorted(ROOT.glob("scripts/constraints*.txt"))


def pins(path):
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split(";")[0].split("==") for line in lines)


def described(folder, monkeypatch):
    """What setuptools makes of setup.py and pyproject.toml."""
    monkeypatch.chdir(folder)
    return distutils.core.run_setup("setup.py", stop_after="config")


@pytest.fixture
def package(monkeypatch):
    return described(ROOT, monkeypatch)


def test_the_package_has_the_version_and_every_package(package):
    assert package.metadata.version == __version__
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    folders = {p.parent for p in (ROOT / "fairseq_posenc").rglob("__init__.py")}
    assert set(package.packages) == {".".join(p.relative_to(ROOT).parts) for p in folders}


def test_every_file_that_is_no_module_is_in_the_wheel(package):
    listed = {
        path
        for name, patterns in package.package_data.items()
        for pattern in patterns
        for path in ROOT.joinpath(*name.split(".")).glob(pattern)
    }
    there = {path for path in (ROOT / "fairseq_posenc").rglob("*.*") if path.is_file()}
    assert {path for path in there if path.suffix not in (".py", ".pyc")} == listed


@pytest.mark.parametrize("address", ["", "https://example.org/us/posenc"])
def test_the_package_index_shows_no_link_into_the_repository(address, tmp_path, monkeypatch):
    for path in ("setup.py", "README.md", "LICENSE", "fairseq_posenc/version.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    urls = f'[project.urls]\nRepository = "{address}"\n' if address else ""
    text = (ROOT / "pyproject.toml").read_text()
    (tmp_path / "pyproject.toml").write_text(text + urls)
    shown = described(tmp_path, monkeypatch).metadata.long_description
    here = re.findall(r"\]\(((?!https?:|#).+?)\)", (ROOT / "README.md").read_text())
    assert here and not re.findall(r"\]\((?!https://|#).*?\)", shown)
    found = re.findall(rf"\({address}/(?:blob|raw)/HEAD/(.+?)\)", shown) if address else here
    assert found == here


def test_installing_the_plugin_never_replaces_fairseq(package):
    assert not [r for r in package.install_requires if r.startswith("fairseq")]


def test_extra_fairseq_and_constraints_name_the_same_releases(package):
    pinned = {f"{k}=={v}" for p in PINS for k, v in pins(p).items() if k.startswith("fairseq")}
    required = {r.split(";")[0] for r in package.extras_require["fairseq"]}
    assert {r for r in required if r.startswith("fairseq")} == pinned


@pytest.mark.parametrize("path", PINS, ids=lambda p: p.name)
def test_every_requirement_of_the_plugin_is_pinned(package, path):
    extras = package.extras_require
    wanted = [*package.install_requires]
    wanted += [one for name in ("tools", "recipes", "test") for one in extras[name]]
    python = "3.10" if "3.10" in path.name else "3.11"
    applies = {"python_version": python, "sys_platform": "linux"}
    wanted = [requirement for requirement in map(Requirement, wanted)
              if requirement.marker is None or requirement.marker.evaluate(applies)]  # fmt: skip
    assert {requirement.name for requirement in wanted} <= set(pins(path))


def test_every_list_of_pythons_has_the_same(package):
    found = re.findall(r"Python :: (3\.\d+)", "\n".join(package.metadata.get_classifiers()))
    lists = {
        ".github/workflows/tests.yml": r'python: \["(.+)"\]',
        "scripts/setup.sh": r"for version in (.+); do",
        "scripts/test_environments.sh": r"versions=\((3.+)\)",
        "scripts/check_package.sh": r"\|\| set -- (.+)",
        "docs/install.md": r"Linux and Python (.+)\. fairseq",
    }
    for path, pattern in lists.items():
        [text] = re.findall(pattern, (ROOT / path).read_text())
        assert sorted(re.findall(r"3\.\d+", text)) == sorted(found), path


def test_an_image_takes_nothing_that_git_ignores():
    of_git, of_docker = (
        set((ROOT / f".{name}ignore").read_text().split()) for name in ("git", "docker")
    )
    assert {line.rstrip("/") for line in of_git} <= {line.removeprefix("**/") for line in of_docker}
    assert ".git" in of_docker

"""The wheel, installed beside a fairseq that is there, works from any folder."""

import os
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_wheel_works_from_any_folder(run, tmp_path):
    # building leaves files where it builds
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, tmp_path)
    shutil.copytree(REPOSITORY / "fairseq_posenc", tmp_path / "fairseq_posenc")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, tmp_path)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    folders = {folder for name in names for folder in Path(name).parent.parts}
    # what only recipes call, our evidence among it, stays in recipes/
    assert "tools" in folders and not folders & {"recipes", "recipe", "claims", "corpus"}
    assert all(name.startswith("fairseq_posenc/") for name in names)
    run(*pip, "install", "--no-deps", "--target", tmp_path / "site", wheel)
    corpus = "-m", "recipes.corpus", "--train", "60", "--valid", "10", "--test", "10", "--quiet"
    run(sys.executable, *corpus, "--output", tmp_path / "text")
    site = {"PYTHONPATH": tmp_path / "site", "PATH": f"{tmp_path}/site/bin:{os.environ['PATH']}"}
    commands = Path(__file__).with_name("installed.sh")
    assert "sacreBLEU" in run("bash", commands, tmp_path / "text", tmp_path / "work", **site)

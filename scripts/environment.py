"""Questions that scripts/setup.sh asks a Python environment; run by that environment's own Python.

Only the standard library is used: the environment may hold nothing else yet.
"""

import re
import shutil
import sys
from importlib.metadata import Distribution, distributions
from importlib.util import find_spec
from pathlib import Path
from sysconfig import get_path
from typing import List, Optional


def normalized(name: str) -> str:
    """A project's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of(distribution: Distribution) -> str:
    """The normalized name of an installed project, empty where the installation is damaged."""
    return normalized(distribution.metadata["Name"] or "")


def version(project: str) -> Optional[str]:
    """The installed version of a project, None where it is not installed."""
    found = [d.version for d in distributions() if name_of(d) == normalized(project)]
    return found[0] if found else None


def repair(begun: Path) -> List[str]:
    """Remove what a cut run of pip left, so that the next one installs it again.

    pip writes RECORD last; without it pip takes the project for installed all the same, so records
    without it go if they are newer than the file ``begun``. While it replaces a project, pip keeps
    the old one under a name with ``~``, which later hides the new one.
    """
    site = Path(get_path("purelib"))
    since = begun.stat().st_mtime
    new = [d for d in site.glob("*.dist-info") if d.stat().st_mtime >= since]
    rubble = {d for d in new if not (d / "RECORD").is_file()} | set(site.glob("~*"))
    for path in rubble:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return sorted(path.name for path in rubble)


def installed(but: List[str]) -> List[str]:
    """Constraints that keep every installed project but some at its version."""
    versions = {name_of(d): d.version for d in distributions()}
    kept = sorted(set(versions) - set(but) - {""})
    return [f"{name}=={versions[name]}" for name in kept]


def answer(question: str, arguments: List[str]) -> List[str]:
    """The lines to print."""
    if question == "has":
        return [module for module in arguments if find_spec(module)]
    if question == "version":
        return [found for found in map(version, arguments) if found]
    if question == "repair":
        return repair(Path(arguments[0]))
    if question == "installed":
        return installed(arguments)
    if question == "uri":
        return [Path(argument).resolve().as_uri() for argument in arguments]
    raise SystemExit(f"environment.py: unknown question {question!r}")


if __name__ == "__main__":
    print("\n".join(answer(sys.argv[1], sys.argv[2:])))

"""All metadata is in pyproject.toml, but for README as the package index shows it."""

import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent
# of [project.urls]
ADDRESS = re.search(
    r'^Repository = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
)


def outside(link: re.Match) -> str:
    """Give a link into the repository its address, or leave its text where there is none."""
    kind = "raw" if link["picture"] else "blob"
    if ADDRESS is None:
        return link["text"]
    return f"{link['picture']}[{link['text']}]({ADDRESS[1]}/{kind}/HEAD/{link['path']})"


setup(
    long_description=re.sub(
        r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<path>(?!https?:|#)[^)\s]+)\)",
        outside,
        (ROOT / "README.md").read_text(encoding="utf-8"),
    ),
    long_description_content_type="text/markdown",
)

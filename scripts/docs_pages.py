"""Write the pages of the site that are not in docs/: the front page, the help of every command, and
what is there for Python.

usage: python scripts/docs_pages.py FOLDER, where docs/ has been copied to.
"""

import contextlib
import importlib
import inspect
import io
import os
import re
import sys
from pathlib import Path

from fairseq_posenc.tools import cli

ROOT = Path(__file__).resolve().parent.parent
# what users import, by module; names with a dot are methods of a class
API = {
    "fairseq_posenc.models.transformer": ["PosencTransformerModel.from_pretrained"],
    "fairseq_posenc.models.bert": ["PosencBertModel.from_pretrained"],
    "fairseq_posenc.models.bert_hub": ["BertHub.fill_mask", "BertHub.predict"],
    "fairseq_posenc.nn": ["Encoder", "EncoderLayer", "SelfAttention", "load"],
    "fairseq_posenc.encodings": ["names", "options", "build", "StackConfig", "Positions", "Terms"],
}
ANALYSES = ("shift-invariance", "swap", "tokens", "attention")


def main() -> None:
    """Write index.md, commands.md and api.md, and let pages link to nothing outside of the site."""
    pages = Path(sys.argv[1])
    os.environ["COLUMNS"] = "100"  # as wide as argparse makes it
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (pages / "index.md").write_text(readme.replace("](docs/", "]("), encoding="utf-8")
    (pages / "commands.md").write_text(commands(), encoding="utf-8")
    (pages / "api.md").write_text(api(), encoding="utf-8")
    for page in pages.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(without_links_outside(text, page, pages), encoding="utf-8")


def commands() -> str:
    """Return a page with the help of every command, as it prints it."""
    prepare = [f"prepare {name}" for name in cli.PREPARATIONS]
    names = [name for name in cli.COMMANDS if name != "prepare"] + prepare
    names += [f"analyse {name}" for name in ANALYSES]
    parts = ["# Commands\n\nWhat `posenc COMMAND --help` prints.\n"]
    parts += [f"## posenc {name}\n\n```text\n{shown(name)}```\n" for name in sorted(names)]
    return "\n".join(parts)


def api() -> str:
    """Return a page with the signatures and docstrings of what users import."""
    parts = ["# Python\n\nWhat is there to import, with its docstrings.\n"]
    for module, names in API.items():
        parts.append(f"## {module}\n")
        for name in names:
            thing = importlib.import_module(module)
            for word in name.split("."):
                thing = getattr(thing, word)
            text = inspect.getdoc(thing)
            called = f"{name}{inspect.signature(thing)}"
            parts.append(f"### {name}\n\n```text\n{called}\n\n{text}\n```\n")
    return "\n".join(parts)


def shown(name: str) -> str:
    """Return the help of a command."""
    sys.argv = ["posenc", *name.split(), "--help"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        cli.main()
    return printed.getvalue()


def without_links_outside(text: str, page: Path, pages: Path) -> str:
    """Return a page in which the names of files that the site does not have are text."""

    front = (pages.parent / "README.md").resolve()  # as seen from docs/

    def kept(link: re.Match) -> str:
        target, hash_, place = link.group(2).partition("#")
        if target.endswith("../README.md") and (page.parent / target).resolve() == front:
            target = os.path.relpath(pages / "index.md", page.parent)
            return f"[{link.group(1)}]({target}{hash_}{place})"
        inside = (page.parent / target).resolve()
        if (
            "://" in target
            or not target
            or (inside.is_file() and pages.resolve() in inside.parents)
        ):
            return link.group()
        return link.group(1)

    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", kept, text)


if __name__ == "__main__":
    main()

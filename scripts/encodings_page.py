"""Write docs/encodings.md: what the docstrings of the encodings say, and below it what is by hand.

usage: python scripts/encodings_page.py [PAGE]

In each section, what stands above `**In use.**` is made anew, and what stands from there on stays.
"""

import inspect
import re
import sys
import textwrap
from pathlib import Path

from fairseq_posenc.encodings import TABLE
from fairseq_posenc.tools.writing import replacing

ROOT = Path(__file__).resolve().parent.parent
BY_HAND = "**In use.**"


def main() -> None:
    """Write the page anew; an encoding that it lacks gets a section."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "encodings.md"
    text, *old = re.split(r"^## (\w+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = dict(zip(old[::2], old[1::2]))
    for name in dict.fromkeys([*TABLE, *sections]):
        said, marked, by_hand = sections.get(name, "").partition(BY_HAND)
        parts = [described(name) if name in TABLE else said.strip(), (marked + by_hand).strip()]
        text += f"## {name}\n\n" + "".join(f"{part}\n\n" for part in parts if part)
    with replacing(str(path)) as stream:
        stream.write(text.rstrip() + "\n")


def described(name: str) -> str:
    """Return the docstring of an encoding and of what it refers to beside it, as Markdown."""
    encoding = TABLE[name]
    text, _, arguments = (inspect.getdoc(encoding) or "").partition("\n\nArgs:\n")
    found = re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", arguments, re.MULTILINE)
    options = (f"- ``--position-{option.replace('_', '-')}``: {said}" for option, said in found)
    # names and shapes of weights are for readers of the source
    text = re.sub(r"\n\nParameters?\b.*?(?=\n\n|$)", "", text, flags=re.DOTALL)
    parts = [markdown(text), "\n".join(map(markdown, options))]
    beside = vars(sys.modules[encoding.__module__])
    for other in re.findall(r":(?:func|class):`(\w+)`", text):
        if getattr(beside.get(other), "__module__", None) == encoding.__module__:
            said = re.split(r"\n\n(?:Args|Returns):", inspect.getdoc(beside[other]) or "")[0]
            parts.append(markdown(f"``{other}``: {said}".replace(": Return ", " returns ", 1)))
    return "\n\n".join(filter(None, parts))


def markdown(text: str) -> str:
    """Return a docstring as Markdown, in lines as long as those of other pages."""
    anchors = {encoding.__name__: name for name, encoding in TABLE.items()}

    def name(found: re.Match) -> str:
        anchor = anchors.get(found[1])
        return f"[`{anchor}`](#{anchor})" if anchor else f"`{found[1]}`"

    text = text.replace("\n\n", " ", 1)  # the first line is a paragraph of its own in Python alone
    text = re.sub(r" ?::$", ":", text, flags=re.MULTILINE)  # a formula follows
    blocks = re.sub(r":\w+:`([\w.]+)`", name, text.replace("``", "`")).split("\n\n")
    return "\n\n".join(one if one.startswith("    ") else filled(one) for one in blocks)


def filled(block: str) -> str:
    """Return a paragraph, or an item of a list, in long lines."""
    lines = textwrap.TextWrapper(150, break_long_words=False, break_on_hyphens=False)
    lines.subsequent_indent = "  " * block.startswith("- ")
    return lines.fill(" ".join(block.split()))


if __name__ == "__main__":
    main()

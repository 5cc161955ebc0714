"""What the command lines of several sub-commands have in common."""

import argparse
import os
import re
import sys
from typing import Any, List, Optional, Tuple

from fairseq_posenc.tools.outputs import Parser


def command_parser(text: Optional[str], **options: Any) -> Parser:
    """Return a parser whose help shows ``text``, the docstring of a module, as it stands."""
    kind = argparse.RawDescriptionHelpFormatter
    return Parser(description=text, formatter_class=kind, **options)


def command_line() -> List[str]:
    """Return the words of this call, as results keep them."""
    return [os.path.basename(sys.argv[0]), *sys.argv[1:]]


def positive(text: str) -> int:
    """Parse a whole number above 0."""
    if not re.fullmatch("[0-9]+", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a positive number, not {text!r}")
    return int(text)


def whole_numbers(text: str) -> List[int]:
    """Parse ``10,20,30``."""
    return [int(number) for number in text.split(",")]


def key_value(text: str) -> Tuple[str, str]:
    """Parse ``KEY=VALUE``."""
    if "=" not in text[1:]:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, not {text!r}")
    key, _, value = text.partition("=")
    return key, value

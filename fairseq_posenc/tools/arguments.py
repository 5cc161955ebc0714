"""Types of command-line arguments that several sub-commands have."""

import argparse
from typing import List, Tuple


def positive(text: str) -> int:
    """Parse a whole number above 0."""
    if not text.isdecimal() or int(text) < 1:
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

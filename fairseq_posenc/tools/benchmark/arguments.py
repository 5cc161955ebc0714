"""Types of arguments of the benchmarks' command lines."""

import argparse
from typing import Callable, List, Sequence


def one_of(known: Sequence[str]) -> Callable[[str], str]:
    """Return a type of one of some names."""
    return lambda text: some_of(known)(text)[0]


def some_of(known: Sequence[str]) -> Callable[[str], List[str]]:
    """Return a type of some of them, with commas between."""

    def parsed(text: str) -> List[str]:
        unknown = [name for name in text.split(",") if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"unknown: {', '.join(unknown)}; choose from {', '.join(known)}"
            )
        return text.split(",")

    return parsed


def numbers(text: str) -> List[int]:
    """Read whole numbers, 1 or more, with commas between."""
    return [at_least(1)(number) for number in text.split(",")]


def probabilities(text: str) -> List[float]:
    """Read probabilities below 1, with commas between."""
    try:
        found = [float(number) for number in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 <= number < 1 for number in found):
        raise argparse.ArgumentTypeError(f"expected probabilities below 1: {text}")
    return found


def at_least(least: int) -> Callable[[str], int]:
    """Return a type of whole numbers from some on."""

    def parsed(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number, {least} or more: {text}")
        return int(text)

    return parsed

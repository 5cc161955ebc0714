"""What the command lines of several sub-commands have in common."""

import argparse
import os
import re
import sys
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.output_options import Parser


def command_parser(text: Optional[str], **options: Any) -> Parser:
    """Return a parser whose help shows ``text``, the docstring of a module, as it stands."""
    formatter = argparse.RawDescriptionHelpFormatter
    return Parser(description=text, formatter_class=formatter, **options)


def plain_parser(text: Optional[str]) -> argparse.ArgumentParser:
    """Return such a parser of a program that replaces files without asking."""
    formatter = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=text, formatter_class=formatter)


def command_line() -> List[str]:
    """Return the words of this call, as results keep them."""
    # the dispatcher of posenc puts its command behind its name
    return [*os.path.basename(sys.argv[0]).split(), *sys.argv[1:]]


def positive(text: str) -> int:
    """Parse a whole number above 0."""
    if not re.fullmatch("[0-9]+", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a positive number, not {text!r}")
    return int(text)


def comma_separated(text: str) -> List[str]:
    """Parse ``chrf,ter``; blanks beside a comma do not count."""
    return [part.strip() for part in text.split(",")]


def whole_numbers(text: str) -> List[int]:
    """Parse ``10,20,30``."""
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        message = f"expected whole numbers such as 10,20,30, not {text!r}"
        raise argparse.ArgumentTypeError(message) from None


def add_workers(add: Callable[..., Any]) -> None:
    """Add --workers, by a parser's ``add_argument``."""
    help_text = "processes (default: as many as processors); the result does not depend on it"
    add("--workers", type=positive, default=os.cpu_count(), metavar="N", help=help_text)


def add_notes(parser: argparse.ArgumentParser) -> None:
    """Add --note and --training-log, which :func:`read_notes` makes one."""
    parser.add_argument(
        "--note",
        type=key_value,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="notes",
        help="kept in the JSON; may be given several times",
    )
    parser.add_argument(
        "--training-log",
        metavar="FILE",
        help="of fairseq-train; how it describes its positions is noted as the signature",
    )


def read_notes(options: Dict[str, Any]) -> None:
    """Replace both options of :func:`add_notes` by the notes as a dictionary."""
    notes, log = by_key("--note", options["notes"]), options.pop("training_log")
    if log:
        text = _read_log(log)
        signatures = re.findall("position:[^\n]*", text)
        if not signatures and "fairseq_cli.train" not in text:
            raise UsageError(f"--training-log {log} is not a log of fairseq-train")
        notes["signature"] = signatures[-1] if signatures else ""
        if options.get("generated"):
            path = options["generated"]
            check_signature(notes, path, re.findall(r"\| (position:\S*)", _read_log(path)))
    options["notes"] = notes


def check_signature(notes: Mapping[str, str], path: str, signatures: Sequence[str]) -> None:
    """Check that the encoding of a training log is one of those that a result was made with.

    Args:
        notes: with that of the log, if there is one.
        path: of what has the others, for the message.
        signatures: the others; empty where they are not known.
    """
    noted = notes.get("signature")
    names = [signature.split("|")[0] for signature in signatures]
    if noted and any(names) and noted.split("|")[0] not in names:
        raise UsageError(
            f"--training-log is of another training: {path} is of {signatures[0]}, and the log of "
            f"{noted}"
        )


def _read_log(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def by_key(flag: str, pairs: Sequence[Tuple[str, str]]) -> Dict[str, str]:
    """Return the pairs of an option that may be given several times, each key once."""
    values: Dict[str, str] = {}
    for key, value in pairs:
        if values.setdefault(key, value) != value:
            raise UsageError(f"{flag} {key} has two values, {values[key]} and {value}; give one")
    return values


def key_value(text: str) -> Tuple[str, str]:
    """Parse ``KEY=VALUE``."""
    if "=" not in text[1:]:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, not {text!r}")
    key, _, value = text.partition("=")
    return key, value

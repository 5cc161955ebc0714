"""Rows of a table of results: an encoding with its options, under a label."""

import fnmatch
import re
from pathlib import Path
from typing import List, NamedTuple, Sequence

from fairseq_posenc import errors
from fairseq_posenc.errors import UsageError
from recipes.lib.value_checks import no_repeats

# what else is in a run folder
_OTHERS = (
    "bin benchmarks corpus data lock pretrain raw report row settings subwords text train.* "
    "valid.* "
    "test.* *.codes *.csv *.done *.md *.out *.part *.png"
).split()


# the table of all encodings is read as text: to import it takes torch, which a plan does without
_ENCODINGS = Path(errors.__file__).parent / "encodings" / "__init__.py"


class PlannedRow(NamedTuple):
    """A row of a table.

    Attributes:
        label: by which tables know it, and the name of its folder.
        options: the encoding, and what follows it: the words behind ``--position-encoding``.
    """

    label: str
    options: List[str]

    @property
    def spec(self) -> str:
        """``encoding option…``, or ``label=encoding option…`` where the label is another."""
        text = " ".join(self.options)
        return text if text == self.label else f"{self.label}={text}"


def read_row(text: str) -> PlannedRow:
    """Read ``label=encoding option…`` or ``encoding option…``, whose label is made of its words."""
    labelled = re.match(r"([A-Za-z0-9_.-]+)=(.*)", text, re.S)
    if labelled:
        return PlannedRow(labelled[1], labelled[2].split())
    label = re.sub("[^A-Za-z0-9_.-]+", "-", re.sub(" *--position-", "_", text))
    return PlannedRow(label, text.split())


def read_rows(texts: Sequence[str]) -> List[PlannedRow]:
    """Read the rows of a table.

    Raises:
        UsageError: a label is none, or is there twice, or a row has no encoding that is known.
    """
    rows = [read_row(text) for text in texts]
    encodings = re.findall(r'^    "(\w+)": ', _ENCODINGS.read_text(encoding="utf-8"), re.M)
    for row, text in zip(rows, texts):
        if not re.fullmatch("[A-Za-z0-9_][A-Za-z0-9_.-]*", row.label) or not row.options:
            raise UsageError(
                f"the row '{text}' needs a label of letters, digits and _.- that begins with none "
                "of .-: label=encoding (--encodings)"
            )
        if row.options[0] not in encodings:
            raise UsageError(
                f"there is no encoding {row.options[0]}; see posenc encodings (--encodings)"
            )
        if any(fnmatch.fnmatchcase(row.label, pattern) for pattern in _OTHERS):
            raise UsageError(
                f"the run folder has something else called {row.label}: give the row another "
                "label (--encodings)"
            )
    no_repeats("--encodings", [row.label for row in rows])
    return rows

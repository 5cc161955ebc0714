"""A table of results as LaTeX, for a paper: booktabs, intervals, the best in bold where it is."""

import re
from typing import List, Optional, Sequence

from fairseq_posenc.tools.tables.intervals import Estimate
from fairseq_posenc.tools.tables.table import Table

_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"}, "±": r"$\pm$",
}  # fmt: skip


def latex(table: Table, best: Sequence[Optional[str]]) -> str:
    r"""Return a ``tabular`` for ``\usepackage{booktabs}``; ``best``: see :func:`best_rows`."""
    head = [f"{escaped(name)} ($n={n}$)" for name, n in zip(table.columns, table.sentences)]
    lines = [["", *head]]
    for name, row in table.rows.items():
        cells = [
            _cell(estimate, name == winner, table.digits) for estimate, winner in zip(row, best)
        ]
        lines.append([escaped(name), *cells])
    return tabular(lines, [table.title, *table.words, *table.notes])


def tabular(lines: Sequence[Sequence[str]], comments: Sequence[str], labels: int = 1) -> str:
    r"""Return cells of LaTeX, the header first, as a ``tabular`` for ``\usepackage{booktabs}``.

    Args:
        lines: of cells, as LaTeX prints them.
        comments: stand before it, as comments of LaTeX.
        labels: the first columns, which are text and so stand to the left.
    """
    columns = "l" * labels + "r" * (len(lines[0]) - labels)
    first, *body = (" & ".join(line) + r" \\" for line in lines)
    # each row stays on a line of its own, so that two versions of a paper differ by rows
    return "\n".join(
        [
            *(f"% {' '.join(comment.split())}" for comment in comments),
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            first,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def best_rows(table: Table) -> List[Optional[str]]:
    """Return the best run of each column, None where its interval to the second holds 0.

    A run of a single seed is never the best: its interval says nothing about other seeds.
    """
    best: List[Optional[str]] = []
    for at, sign in enumerate(table.signs):
        means = {name: row[at].mean for name, row in table.rows.items()}
        signed_means = {name: sign * mean for name, mean in means.items() if mean is not None}
        order = sorted(signed_means, key=signed_means.__getitem__, reverse=True)[:2]
        cells = [table.sampled[name][at] for name in order]
        several = len(cells) == 2 and all(len(sampled.values) > 1 for sampled in cells)
        is_clear = bool(sign) and several and cells[0].less(cells[1]).is_clear()
        best.append(order[0] if is_clear else None)
    return best


def escaped(text: str) -> str:
    """Return text as LaTeX prints it."""
    text = "".join(_SPECIAL.get(character, character) for character in " ".join(text.split()))
    return re.sub(r"(?<![\w.-])-(?=\d)", "$-$", text)  # a minus, not a hyphen


def _cell(estimate: Estimate, is_best: bool, digits: int) -> str:
    if estimate.mean is None:
        return "--"
    mean, low, high = (f"{value:.{digits}f}" for value in estimate[:3])
    mean = rf"\mathbf{{{mean}}}" if is_best else mean
    return rf"${mean}$ {{\footnotesize $[{low}, {high}]$}}"

"""Print the last column of README's table of encodings, of the figures that are kept.

    python -m recipes.claims.first_screen recipes/claims/kept.json

Rows are of part ``length`` alone, so that all have as many updates, of the run with most seeds, and
are compared with the sinusoids of that run.
"""

import sys
from typing import Dict

from recipes.claims.compared import read_kept
from recipes.claims.pages import difference
from recipes.claims.rows import BASE, Rows


def differences(rows: Rows) -> Dict[str, str]:
    """Return the last cells of the table, by encoding: at 31-45 words, and seeds."""
    rows = [row for row in rows if row.part == "length" and row.row != BASE and row.seeds > 2]
    # a later one of the same name, with more seeds, takes its place
    best = {row.row: row for row in sorted(rows, key=lambda row: row.seeds)}
    return {name: f"{difference(row, '31-45')} ({row.seeds})" for name, row in best.items()}


def main() -> None:
    """Print them."""
    rows = read_kept(sys.argv[1])[1]
    print(*(f"{name}: {cell}" for name, cell in differences(rows).items()), sep="\n")


if __name__ == "__main__":
    main()

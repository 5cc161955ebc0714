"""Print the last column of README's table of encodings, of the figures that are kept.

    python -m recipes.claims.first_screen recipes/claims/kept.json

A row comes from part ``longer`` where that has three seeds of it, from ``length`` otherwise, and is
compared with the sinusoids of its own run.
"""

import sys
from typing import Dict, Optional

from recipes.claims.compared import read_kept
from recipes.claims.pages import difference
from recipes.claims.rows import BASE, Row, Rows


def best(rows: Rows, name: str) -> Optional[Row]:
    """Return a row as it is shown: of the most updates, in the run with more seeds."""
    for part in ("longer", "length"):
        found = [one for one in rows if (one.part, one.row) == (part, name) and one.seeds > 2]
        if found:
            return max(found, key=lambda one: one.seeds)
    return None


def at_once(rows: Rows) -> Dict[str, str]:
    """Return the last cells of the table, by encoding: at 31-45 words, and seeds."""
    names = dict.fromkeys(one.row for one in rows if one.part in ("longer", "length"))
    found = {name: best(rows, name) for name in names if name != BASE}
    return {name: f"{difference(one, '31-45')} ({one.seeds})" for name, one in found.items() if one}


def main() -> None:
    """Print them."""
    rows = read_kept(sys.argv[1])[1]
    print(*(f"{name}: {cell}" for name, cell in at_once(rows).items()), sep="\n")


if __name__ == "__main__":
    main()

"""From a command line to the tables of cost."""

import sys
from typing import Any, Dict, List, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.benchmark.cost.cell import Cell, measure
from fairseq_posenc.tools.benchmark.cost.options import choice, parse
from fairseq_posenc.tools.benchmark.cost.plan import cells
from fairseq_posenc.tools.benchmark.cost.report import render
from fairseq_posenc.tools.benchmark.cost.table import Table, load, names
from fairseq_posenc.tools.benchmark.record import Record


def main(arguments: Sequence[str]) -> None:
    """Measure what has not been measured yet, and print the tables."""
    args = parse(arguments)
    tables = {name: load(name) for name in args.tables or names()}
    plan = _plan(tables, choice(args))
    record = Record(args.output)
    record.complete([cell for wanted in plan.values() for cell in wanted], measure)
    print("\n\n".join(render(tables[name], record.all(plan[name])) for name in plan))


def _plan(tables: Dict[str, Table], asked: Any) -> Dict[str, List[Cell]]:
    """Return the cells of the tables that have any.

    Raises:
        UsageError: none has.
    """
    plan = {name: cells(name, table, asked) for name, table in tables.items()}
    for name in [name for name in plan if not plan[name]]:
        lengths = dict.fromkeys(str(column["length"]) for column in tables[name].columns.values())
        del plan[name]
        print(f"{name}: no such column; lengths are {', '.join(lengths)}", file=sys.stderr)
    if not plan:
        raise UsageError("no table has a column of these --lengths and --dtype")
    return plan

"""The figures as Markdown tables."""

from typing import Dict, List, Optional, Sequence

from fairseq_posenc.tools.benchmark.record import Result
from fairseq_posenc.tools.benchmark.setting import STOCK


def render(results: Sequence[Result]) -> str:
    """Return one table per subject and base of comparison: contestants by lengths and dropouts.

    A cell is the ratio of times, median over rounds with quartiles: below 1 is faster.

    Args:
        results: of :class:`.record.Record`, measured on one machine in as many rounds.
    """
    first = results[0]["cell"]
    parts = [
        f"Ratios of times, median (quartiles) of {first['rounds']} rounds; {first['hardware']}"
    ]
    for subject in dict.fromkeys(result["cell"]["subject"] for result in results):
        columns = [result for result in results if result["cell"]["subject"] == subject]
        for against, name in (("base", columns[0]["cell"]["base"]), ("stock", STOCK)):
            if name in columns[0]["contestants"]:
                parts += ["", *_table(columns, against, name)]
    return "\n".join(parts)


def _table(columns: Sequence[Result], against: str, name: str) -> List[str]:
    cells = [column["cell"] for column in columns]
    first = cells[0]
    heads = [f"length {cell['length']}, dropout {cell['dropout']:g}" for cell in cells]
    lines = [
        f"{first['subject']}: {first['what']} ({first['shape']}, {first['tokens']} tokens, "
        f"{first['dtype']}); time / {name}, and peak memory",
        "",
        "| | " + " | ".join(heads) + " |",
        "|---|" + "---:|" * len(columns),
    ]
    for contestant in columns[0]["contestants"]:
        told = [_cell(column["contestants"].get(contestant), against) for column in columns]
        lines.append(f"| {contestant} | {' | '.join(told)} |")
    return lines


def _cell(figures: Optional[Dict[str, float]], against: str) -> str:
    if figures is None or against not in figures:
        return "-"
    spread = f"{figures[against + '_low']:.2f}-{figures[against + '_high']:.2f}"
    return f"{figures[against]:.3f} ({spread}), {figures['megabytes']:.0f} MB"

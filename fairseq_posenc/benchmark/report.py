"""The figures as Markdown tables."""

from typing import Dict, List

from fairseq_posenc.benchmark.setting import BASELINE, STOCK


def render(results: List[dict], hardware: str, rounds: int) -> str:
    """Return one table per subject and base of comparison: contestants by lengths and dropouts.

    A cell is the ratio of times, median over rounds with quartiles: below 1 is faster.
    """
    parts = [f"Ratios of times, median (quartiles) of {rounds} rounds; {hardware}"]
    for subject in dict.fromkeys(result["subject"] for result in results):
        columns = [result for result in results if result["subject"] == subject]
        for base in (BASELINE, STOCK):
            if base in columns[0]["contestants"]:
                parts += ["", *_table(columns, base)]
    return "\n".join(parts)


def _table(columns: List[dict], base: str) -> List[str]:
    first = columns[0]
    heads = [f"length {column['length']}, dropout {column['dropout']:g}" for column in columns]
    lines = [
        f"{first['subject']}: {first['what']} ({first['shape']}, {first['tokens']} tokens, "
        f"{first['dtype']}); time / {base}, and peak memory",
        "",
        "| | " + " | ".join(heads) + " |",
        "|---|" + "---:|" * len(columns),
    ]
    for name in first["contestants"]:
        cells = [_cell(column["contestants"].get(name), base) for column in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _cell(figures: Dict[str, float], base: str) -> str:
    if figures is None:
        return "-"
    spread = f"{figures[base + '_low']:.2f}-{figures[base + '_high']:.2f}"
    return f"{figures[base]:.3f} ({spread}), {figures['megabytes']:.0f} MB"

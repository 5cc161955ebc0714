"""The figures as Markdown tables."""

from typing import Dict, List, Optional

from fairseq_posenc.benchmark.setting import STOCK


def render(results: List[dict], hardware: str, rounds: int) -> str:
    """Return one table per subject and base of comparison: contestants by lengths and dropouts.

    A cell is the ratio of times, median over rounds with quartiles: below 1 is faster.
    """
    parts = [f"Ratios of times, median (quartiles) of {rounds} rounds; {hardware}"]
    for subject in dict.fromkeys(result["subject"] for result in results):
        columns = [result for result in results if result["subject"] == subject]
        for against, name in (("base", columns[0]["base"]), ("stock", STOCK)):
            if name in columns[0]["contestants"]:
                parts += ["", *_table(columns, against, name)]
    return "\n".join(parts)


def _table(columns: List[dict], against: str, name: str) -> List[str]:
    first = columns[0]
    heads = [f"length {column['length']}, dropout {column['dropout']:g}" for column in columns]
    lines = [
        f"{first['subject']}: {first['what']} ({first['shape']}, {first['tokens']} tokens, "
        f"{first['dtype']}); time / {name}, and peak memory",
        "",
        "| | " + " | ".join(heads) + " |",
        "|---|" + "---:|" * len(columns),
    ]
    for contestant in first["contestants"]:
        cells = [_cell(column["contestants"].get(contestant), against) for column in columns]
        lines.append(f"| {contestant} | {' | '.join(cells)} |")
    return lines


def _cell(figures: Optional[Dict[str, float]], against: str) -> str:
    if figures is None:
        return "-"
    spread = f"{figures[against + '_low']:.2f}-{figures[against + '_high']:.2f}"
    return f"{figures[against]:.3f} ({spread}), {figures['megabytes']:.0f} MB"

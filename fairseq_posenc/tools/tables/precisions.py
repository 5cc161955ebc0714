"""Whether compared results were trained, and generated or predicted, in one precision."""

from typing import Dict, List, Mapping, Optional, Sequence

# by row, of each seed the precision of each step, as in score.json
Precisions = Mapping[str, Sequence[Mapping[str, Optional[str]]]]


def precision_words(rows: Precisions) -> List[str]:
    """Return a sentence for each step in whose precision rows or seeds differ.

    Hardware is left out, and so are results that do not tell their precision.
    """
    names: Dict[str, Dict[str, List[str]]] = {}  # by step and precision
    for name, seeds in rows.items():
        for seed in seeds:
            for step, text in seed.items():
                if text:
                    precision = text.partition(" on ")[0]
                    names.setdefault(step, {}).setdefault(precision, []).append(name)
    return [
        f"Precision of {step} differs: "
        + "; ".join(f"{precision} ({', '.join(dict.fromkeys(by[precision]))})" for precision in by)
        + ". So may figures."
        for step, by in names.items()
        if len(by) > 1
    ]

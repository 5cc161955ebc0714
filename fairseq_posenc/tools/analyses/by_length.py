"""How much better is a model than the first, by length? (SHAPE, Figure 3; CAPE, Figure 8)."""

from typing import Any, Dict, List, Optional, Sequence

from tqdm import tqdm

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.analyses import pictures
from fairseq_posenc.tools.analyses.loading import named
from fairseq_posenc.tools.analyses.report import Report
from fairseq_posenc.tools.results import tables
from fairseq_posenc.tools.results.intervals import SAMPLES, SEED
from fairseq_posenc.tools.results.score import evaluate


def by_length(
    *,
    generated: Sequence[str],
    bins: Optional[Sequence[int]] = None,
    percentiles: bool = False,
    samples: int = SAMPLES,
    seed: int = SEED,
    **options: Any,
) -> Report:
    """Compare outputs of fairseq-generate; the arguments are the options of the command.

    The difference in sacreBLEU to the first model by source length (Kiyono et al. 2021, Figure 3)
    or for short, medium and long references (Likhomanenko et al. 2021, Figure 8). The papers show
    no uncertainty; ours is the paired bootstrap: ``samples`` times, as many sentences as a bin
    holds are drawn from it with replacement, the same for all models. The interval is from the
    2.5 % to the 97.5 % percentile of the differences.

    Raises:
        UsageError: both or neither of bins and percentiles, outputs of different test sets, and
            what is wrong with the files.
    """
    if bool(bins) == percentiles:
        raise UsageError("give either --bins or --percentiles")
    if samples < 1:
        raise UsageError(f"--samples must be 1 or more, not {samples}")
    options.update(bins=bins, percentiles=percentiles)
    outputs = tqdm(named(generated).items(), desc="score", unit=" outputs", leave=False)
    runs = {name: [evaluate(generated=path, **options)] for name, path in outputs}
    table = tables.by_length(runs, samples=samples, seed=seed)
    (first, (score,)), *_ = runs.items()
    of, parts = tables.length_label(score), score["by_length"]["bins"]
    described = ("name", "longer_than", "up_to", "sentences", "within")
    return Report(
        title=f"sacreBLEU by {of}: {first}, and differences to it",
        table=_lines(table, first),
        notes=table.notes,
        data={
            "bins": [{name: part[name] for name in described} for part in parts],
            "of": score["by_length"]["of"], "unit": score["by_length"]["unit"],
            "longest_trained": score["longest_trained"], "language": score["language"],
            "models": {name: _figures(table, name) for name in runs},
            "signature": score["signatures"]["sacrebleu"], "samples": samples, "seed": seed,
        },
        pictures={".png": pictures.differences(table, parts, of)},
    )  # fmt: skip


def _lines(table: tables.Table, first: str) -> List[List[str]]:
    others = ([name, *(c.signed() for c in table.differences[name])] for name in table.rows)
    lines = [table.header(), [first, *map(str, table.rows[first])], *list(others)[1:]]
    return lines + table.within_line()


def _figures(table: tables.Table, name: str) -> Dict[str, Dict[str, Optional[float]]]:
    """Return by bin ``bleu`` and its interval, and the difference with its own."""
    names = ("bleu", "bleu_low", "bleu_high", "difference", "low", "high")
    cells = zip(table.columns, table.rows[name], table.differences[name])
    return {part: dict(zip(names, (*own[:3], *other[:3]))) for part, own, other in cells}

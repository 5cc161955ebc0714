"""Two rows compared in one figure: over the seeds that both have, or as an earlier run had it.

**Convergence.** Where encodings are compared after as many updates, and one of the two has not
learned as much, the difference may be that. Rows whose validation losses at the end are further
apart than ``APART`` get no verdict but that one cannot tell, whoever is ahead. A difference of
losses gets none while one of the two losses still falls by as much in the last quarter.
"""

import json
import math
import statistics
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from fairseq_posenc.json_files import Each, Maybe, load_json
from fairseq_posenc.tools.scores.intervals import t_interval
from fairseq_posenc.tools.tables.length_table import by_length
from fairseq_posenc.tools.tables.runs import read_runs
from fairseq_posenc.tools.writing import replacing
from recipes.claims.claim_figures import figures_by_seed
from recipes.claims.rows import APART, BASE, SHAPE, Row
from recipes.claims.trainings import difference, read_rows
from recipes.claims.verdicts import AS_EXPECTED, AS_SAYS, JUDGED, MISSING, UNDECIDED, verdict

# figures for which the convergence of both rows counts; a loss is that convergence itself
_CONVERGED = {"BLEU", "bits_of", "share", "similarity", "drop"}
_COMPARISON = {
    "part": str, "figure": str, "row": str, "base": str, "seeds": int, "means": [float],
    "interval": [float], "by_seed": Maybe([float]), "beside": Maybe(Each([float])),
    "doubt": str,
}  # fmt: skip


class Side(NamedTuple):
    """What is compared with something else: a figure of a row of a part."""

    part: str
    row: str
    figure: str


class Compared(NamedTuple):
    """Two rows, or a row and a number, compared in one figure.

    Attributes:
        spec: its entry in ``claims.json``.
        seeds: how many both have; 0 where it is to be run.
        row, base: means over these.
        low, high: 95 % interval of ``row`` less ``base``.
        by_seed: the differences, where this run has measured them.
        bits: of BLEU, the bits per token of ``row`` and ``base``, where they are measured.
        doubt: why the difference tells nothing of the encodings; empty where it does.
    """

    spec: Dict[str, Any]
    seeds: int = 0
    row: Optional[float] = None
    base: Optional[float] = None
    low: float = -math.inf
    high: float = math.inf
    by_seed: Sequence[float] = ()
    bits: Sequence[float] = ()
    doubt: str = ""

    @property
    def verdict(self) -> str:
        """What the interval says of the claim, if both rows have learned as much."""
        if not self.seeds:
            return MISSING
        judgement = verdict(self.low, self.high, self.spec["expect"], self.spec["margin"])
        if self.doubt and judgement in JUDGED:
            return UNDECIDED
        by_paper = self.spec.get("by_paper", True)
        return AS_EXPECTED if judgement == AS_SAYS and not by_paper else judgement

    @property
    def middle(self) -> float:
        """The middle of the interval."""
        return (self.low + self.high) / 2

    @property
    def half(self) -> float:
        """Half its width."""
        return (self.high - self.low) / 2

    def names(self) -> Tuple[str, str]:
        """Return what the two sides are called."""
        if self.spec.get("names"):
            row, base = self.spec["names"]
            return row, base
        if self.spec.get("base") is None:
            return self.spec["row"], f"{self.spec['than']:g}"
        base, _, figure = self.spec["base"].partition("@")
        suffix = f" ({figure.partition(':')[2].replace('_', ' ')})" if ":" in figure else ""
        return self.spec["row"], base + suffix

    def difference(self) -> str:
        """Return the interval as text."""
        if not self.seeds:
            return "-"
        digits = 3 if abs(self.middle) + self.half < 1 else 1 if self.half > 1 else 2
        text = f"{self.middle:+.{digits}f} ± {self.half:.{digits}f}"
        if self.spec["figure"].startswith("probe:two_") and len(self.by_seed) > 2:
            # Chen et al. give medians of fine-tunings, as those that fail pull a mean
            text += f", median {statistics.median(self.by_seed):+.{digits}f}"
        return text


def compare(
    runs: str,
    spec: Dict[str, Any],
    earlier: Sequence[Dict[str, Any]] = (),
    rows: Sequence[Row] = (),
) -> Compared:
    """Measure a comparison, over the seeds that both sides have, paired.

    Args:
        runs: the folder of the recipe.
        spec: an entry of ``claims.json``, see :func:`sides`; without ``base``, ``than`` is a
            number.
        earlier: comparisons of earlier runs; one with more seeds is taken.
        rows: of this run, of all parts, for convergence.
    """
    compared = _measure(runs, spec)
    for previous in earlier:
        if key(previous) == key(spec) and previous["seeds"] > compared.seeds:
            (row, base), (low, high) = previous["means"], previous["interval"]
            by_seed, bits = previous.get("by_seed"), (previous.get("beside") or {}).get("bits_of")
            doubt = "" if spec.get("budget") else previous["doubt"]
            return Compared(
                spec, previous["seeds"], row, base, low, high, by_seed or (), bits or (), doubt
            )
    return compared._replace(doubt=doubt_of(rows, compared))


def sides(spec: Dict[str, Any]) -> Tuple[Side, Optional[Side]]:
    """Return the sides of a comparison, the second if it is no number.

    Its ``base`` is a row of the same part, ``part/row`` of another, ``row@figure`` in another
    figure.
    """
    row = Side(spec["part"], spec["row"], spec["figure"])
    if spec.get("base") is None:
        return row, None
    path, _, figure = spec["base"].partition("@")
    part, _, name = path.rpartition("/")
    return row, Side(part or row.part, name, figure or row.figure)


def key(comparison: Dict[str, Any]) -> Tuple[str, ...]:
    """Return what tells a comparison from others: part, figure, row, and base or number."""
    base = comparison.get("base")
    base_or_number = f"{comparison['than']:g}" if base is None else base
    return comparison["part"], comparison["figure"], comparison["row"], base_or_number


def main_comparison(comparisons: Sequence[Compared]) -> Compared:
    """Return the comparison whose verdict is the claim's.

    It is the first, which was fixed when the claim was registered; while that is to be run, the
    first of the others that is measured and has a verdict.
    """
    measured = [compared for compared in comparisons if compared.seeds]
    judged = [compared for compared in measured if compared.verdict in JUDGED]
    return comparisons[0] if comparisons[0].seeds else [*judged, *measured, comparisons[0]][0]


def doubt_of(rows: Sequence[Row], compared: Compared) -> str:
    """Return in words that the trainings of two rows are not equally far, where that matters.

    It does not where the claim asks what so many updates give, its ``budget``. What has no other
    row is compared with sinusoids, or is a figure that holds them already.
    """
    spec = compared.spec
    base = (spec.get("base") or BASE).partition("@")[0]
    names = spec["row"], BASE if base == spec["row"] else base
    of_part = {row.row: row for row in rows if row.part == spec["part"]}
    if spec.get("budget") or not all(name in of_part for name in names):
        return ""
    both = [of_part[name] for name in names]
    losses, falls = zip(*((row.loss[0], row.fall[0] if row.fall else 0.0) for row in both))
    if spec["figure"].partition(":")[0] in _CONVERGED and abs(losses[0] - losses[1]) > APART:
        return "losses differ"
    is_loss = spec["figure"] == "probe:masked_lm_bits"
    return "losses still fall" if is_loss and max(falls) >= abs(compared.middle) else ""


def _measure(runs: str, spec: Dict[str, Any]) -> Compared:
    row, base = sides(spec)
    metric, _, column = row.figure.partition(":")
    figures = [figures_by_seed(runs, *side) for side in (row, base) if side]
    if not base:
        figures.append(dict.fromkeys(figures[0], float(spec["than"])))
    seeds = sorted(figures[0].keys() & figures[1].keys())
    if len(seeds) < 2:
        return Compared(spec)
    row_mean, base_mean = _means(figures, seeds)
    differences = [figures[0][seed] - figures[1][seed] for seed in seeds]
    bits: List[float] = []
    if not base or metric not in ("BLEU", "bits_of") or " less " in row.row:
        low, high = t_interval(differences)
    else:
        low, high = _over_sentences(runs, row, base, seeds)
    if base and metric == "BLEU":
        per_token = [side._replace(figure=f"bits_of:{column}") for side in (row, base)]
        bits = _means([figures_by_seed(runs, *side) for side in per_token], seeds)
    return Compared(spec, len(seeds), row_mean, base_mean, low, high, differences, bits)


def _means(figures: Sequence[Dict[int, float]], seeds: Sequence[int]) -> List[float]:
    """Return the means of both sides; none where one of them lacks a seed."""
    if any(seed not in by_seed for by_seed in figures for seed in seeds):
        return []
    return [statistics.mean(by_seed[seed] for seed in seeds) for by_seed in figures]


def _over_sentences(runs: str, row: Side, base: Side, seeds: Sequence[int]) -> Tuple[float, float]:
    """Return the interval of a difference of BLEU, or of bits per token, of the test set in a range
    of lengths: over seeds and sentences.
    """
    metric, _, column = row.figure.partition(":")
    file = "score.json" if metric == "BLEU" else "bits.json"
    labels = [f"{side.part}, {side.row}" for side in (base, row)]
    files = [
        f"{label}={runs}/{side.part}/{side.row}/seed{seed}/{file}"
        for label, side in zip(labels, (base, row))
        for seed in seeds
    ]
    if metric == "bits_of":
        of_base, of_row = read_rows(files)[0].values()
        estimate = difference(of_row, of_base, column)
    else:
        read = read_runs(files)
        if row.part != base.part:
            # another part may have trained on other lengths: that is what is compared
            read = {name: [run.without_trained_lengths() for run in s] for name, s in read.items()}
        table = by_length(read)
        estimate = table.differences[labels[1]][table.columns.index(column)]
    assert estimate.low is not None and estimate.high is not None, "two seeds or more"
    return estimate.low, estimate.high


def read_kept(path: str) -> Tuple[List[Dict[str, Any]], List[Row]]:
    """Return what earlier runs have measured: comparisons, and rows of parts."""
    content = load_json(path, {"comparisons": [_COMPARISON], "rows": [SHAPE]}, "recipes/claims")
    return content["comparisons"], [Row(**row) for row in content["rows"]]


def write_kept(path: str, comparisons: Sequence[Compared], rows: Sequence[Row]) -> None:
    """Write what is known now, a comparison or row a line."""
    names = ("part", "figure", "row", "base")
    lines = [
        {
            **dict(zip(names, key(compared.spec))),
            "seeds": compared.seeds,
            "means": [compared.row, compared.base],
            "interval": [compared.low, compared.high],
            **({"by_seed": list(compared.by_seed)} if compared.by_seed else {}),
            **({"beside": {"bits_of": compared.bits}} if compared.bits else {}),
            "doubt": compared.doubt,
        }
        for compared in comparisons
        if compared.seeds
    ]
    content = {"comparisons": lines, "rows": [row._asdict() for row in rows]}
    blocks = [
        f'"{name}": [\n'
        + ",\n".join(json.dumps(rounded(line), ensure_ascii=False) for line in part)
        + "\n]"
        for name, part in content.items()
    ]
    with replacing(path) as stream:
        stream.write("{" + ",\n".join(blocks) + "}\n")


def rounded(value: Any) -> Any:
    """Return JSON with its numbers to six digits behind the point."""
    if isinstance(value, dict):
        return {name: rounded(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(member) for member in value]
    # pages print up to three: of four kept ones, a last 5 would be rounded a second time
    return round(value, 6) if isinstance(value, float) else value

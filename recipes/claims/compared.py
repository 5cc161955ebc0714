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
from recipes.claims.claim_figures import drawn_bits, figures_by_seed
from recipes.claims.rows import APART, BASE, SHAPE, Row, pair
from recipes.claims.verdicts import AS_EXPECTED, AS_SAYS, JUDGED, MISSING, UNDECIDED, verdict

# figures for which the convergence of both rows counts; a loss is that convergence itself
_CONVERGED = {"BLEU", "bits_of", "share", "similarity", "drop"}
_COMPARISON = {
    "part": str, "figure": str, "row": str, "base": str, "seeds": int, "means": [float],
    "interval": [float], "by_seed": Maybe([float]), "beside": Maybe(Each([float])),
}  # fmt: skip


class Compared(NamedTuple):
    """Two rows, or a row and a number, compared in one figure.

    Attributes:
        spec: its entry in ``claims.json``.
        seeds: how many both have; 0 where it is to be run.
        row, base: means over these.
        low, high: 95 % interval of ``row`` less ``base``.
        by_seed: the differences, where this run has measured them.
        bits: of BLEU, the bits per token of ``row`` and ``base``, where they are measured.
        apart: the validation losses of both rows, if they are not of equal convergence.
        still_falling: whether a loss fell in the last quarter by as much as the losses differ.
    """

    spec: Dict[str, Any]
    seeds: int = 0
    row: Optional[float] = None
    base: Optional[float] = None
    low: float = -math.inf
    high: float = math.inf
    by_seed: Sequence[float] = ()
    bits: Sequence[float] = ()
    apart: Optional[Tuple[float, float]] = None
    still_falling: bool = False

    @property
    def verdict(self) -> str:
        """What the interval says of the claim, if both rows have learned as much."""
        if not self.seeds:
            return MISSING
        judgement = verdict(self.low, self.high, self.spec["expect"], self.spec["margin"])
        if (self.apart or self.still_falling) and judgement in JUDGED:
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
    budget: bool = False,
) -> Compared:
    """Measure a comparison, over the seeds that both sides have, paired.

    Args:
        runs: the folder of the recipe.
        spec: an entry of ``claims.json``: ``base`` is a row of the same part, ``part/row`` of
            another, ``row@figure`` in another figure; without it, ``than`` is a number.
        earlier: comparisons of earlier runs; one with more seeds is taken.
        rows: of all parts, for a difference that nobody has kept, and for convergence.
        budget: what so many updates give is what is asked, so that convergence does not count.
    """
    compared = _bleu(runs, spec) if spec["figure"].startswith("BLEU:") else _by_seed(runs, spec)
    for previous in earlier:
        if key(previous) == key(spec) and previous["seeds"] > compared.seeds:
            means, (low, high) = previous["means"], previous["interval"]
            by_seed, bits = previous.get("by_seed"), (previous.get("beside") or {}).get("bits_of")
            compared = Compared(
                spec, previous["seeds"], means[0], means[1], low, high, by_seed or (), bits or ()
            )
    if not compared.seeds:
        compared = _of_rows(rows, spec)
    if budget:
        return compared
    apart, still_falling = _apart(rows, compared), _still_falling(rows, compared)
    return compared._replace(apart=apart, still_falling=still_falling)


def _of_rows(rows: Sequence[Row], spec: Dict[str, Any]) -> Compared:
    """Return what two rows of one run tell: BLEU less sinusoids', or a difference of losses.

    Of losses the seeds are not known: half the interval is the sum of both halves, which is more
    than Welch's.
    """
    metric, _, column = spec["figure"].partition(":")
    row_pair = pair(rows, spec["part"], spec["row"], spec.get("base") or "")
    if not row_pair:
        return Compared(spec)
    row, base = row_pair
    seeds = min(row.seeds, base.seeds)
    if metric == "bits":
        middle, half = row.loss[0] - base.loss[0], row.loss[1] + base.loss[1]
        return Compared(spec, seeds, row.loss[0], base.loss[0], middle - half, middle + half)
    less = row.by_length.get(column, {}).get("less_base")
    if metric != "BLEU" or base.row != BASE or not less:
        return Compared(spec)
    row_bleu, base_bleu = (side.by_length[column]["bleu"][0] for side in row_pair)
    return Compared(spec, seeds, row_bleu, base_bleu, less[1], less[2])


def _apart(rows: Sequence[Row], compared: Compared) -> Optional[Tuple[float, float]]:
    """Return the losses of both rows where they are too far apart to compare anything else.

    What has no other row is compared with sinusoids, or is a figure that holds them already.
    """
    spec = compared.spec
    base = (spec.get("base") or BASE).partition("@")[0]
    base = BASE if base == spec["row"] else base
    row_pair = pair(rows, spec["part"], spec["row"], base, compared.seeds)
    if spec["figure"].partition(":")[0] not in _CONVERGED or not row_pair:
        return None
    losses = row_pair[0].loss[0], row_pair[1].loss[0]
    return losses if abs(losses[0] - losses[1]) > APART else None


def _still_falling(rows: Sequence[Row], compared: Compared) -> bool:
    """Return whether a masked-LM loss fell in the last quarter by as much as two rows differ."""
    spec = compared.spec
    row_pair = pair(rows, spec["part"], spec["row"], spec.get("base") or BASE, compared.seeds)
    if spec["figure"] != "probe:masked_lm_bits" or not row_pair:
        return False
    falls = [row.fall[0] for row in row_pair if row.fall]
    return max(falls, default=0.0) >= abs(compared.middle)


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


def _by_seed(runs: str, spec: Dict[str, Any]) -> Compared:
    part, row, figure = spec["part"], spec["row"], spec["figure"]
    row_figures = figures_by_seed(runs, part, row, figure)
    if spec.get("base") is None:
        base_figures = dict.fromkeys(row_figures, float(spec["than"]))
    else:
        base_path, _, base_figure = spec["base"].partition("@")
        base_path = base_path if "/" in base_path else f"{part}/{base_path}"
        base_part, _, base = base_path.partition("/")
        base_figures = figures_by_seed(runs, base_part, base, base_figure or figure)
    seeds = sorted(row_figures.keys() & base_figures.keys())
    if len(seeds) < 2:
        return Compared(spec)
    means = [statistics.mean(side[seed] for seed in seeds) for side in (row_figures, base_figures)]
    differences = [row_figures[seed] - base_figures[seed] for seed in seeds]
    low, high = t_interval(differences, _by_sentences(runs, spec, seeds))
    return Compared(spec, len(seeds), means[0], means[1], low, high, differences)


def _by_sentences(runs: str, spec: Dict[str, Any], seeds: Sequence[int]) -> float:
    """Return the variance of a difference of bits per token over draws of sentences.

    It is 0 of other figures, and of differences of differences: of these, trainings alone count.
    """
    metric, _, name = spec["figure"].partition(":")
    rows = [f"{spec['part']}/{spec['row']}", f"{spec['part']}/{spec.get('base')}"]
    if metric != "bits_of" or "less" in spec["row"]:
        return 0.0
    row_bits, base_bits = (
        drawn_bits([f"{runs}/{row}/seed{n}" for n in seeds], name) for row in rows
    )
    return float((row_bits - base_bits).var(ddof=1))


def _bleu(runs: str, spec: Dict[str, Any]) -> Compared:
    """Compare BLEU in a range of lengths, over seeds and sentences."""
    part, names, column = spec["part"], (spec["row"], spec["base"]), spec["figure"].split(":")[1]
    # a row of another part is ``part/row``
    sides = [f"{part}/{name}".split("/")[-2:] for name in names]
    figures, bits = (
        [figures_by_seed(runs, of, row, f"{metric}:{column}") for of, row in sides]
        for metric in ("BLEU", "bits_of")
    )
    seeds = sorted(figures[0].keys() & figures[1].keys())
    if len(seeds) < 2:
        return Compared(spec)
    # a name with a slash would be read as a path; sinusoids, the base, come first
    labels = [name.replace("/", ", ") for name in names]
    read = read_runs([
        f"{labels[side]}={runs}/{'/'.join(sides[side])}/seed{seed}/score.json"
        for side in (1, 0) for seed in seeds
    ])  # fmt: skip
    if "/" in spec["base"]:
        # another part may have trained on other lengths: that is what is compared
        read = {n: [run.without_trained_lengths() for run in s] for n, s in read.items()}
    table = by_length(read)
    at = table.columns.index(column)
    row, base = (table.rows[label][at].mean for label in labels)
    _, low, high, _ = table.differences[labels[0]][at]
    differences = [figures[0][seed] - figures[1][seed] for seed in seeds]
    have_bits = all(seed in by_seed for by_seed in bits for seed in seeds)
    means = [statistics.mean(by_seed[n] for n in seeds) for by_seed in bits] if have_bits else ()
    if low is None or high is None:
        return Compared(spec)
    return Compared(spec, len(seeds), row, base, low, high, differences, means)


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
        }
        for compared in comparisons
        if compared.seeds and compared[1:6] != _of_rows(rows, compared.spec)[1:6]
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

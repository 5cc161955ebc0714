"""Intervals: how far a score may be off by the sentences, and the seeds, that were drawn.

Of one training, the paired bootstrap over sentences tells all that is known. Of several, a mean
over n seeds is off by both, and its interval is ``mean ± t · √(s²/n + v)``: s is the standard
deviation over seeds, v the variance of the mean over resampled sentences with the seeds as they
are, and t Student's 97.5 % quantile with Welch and Satterthwaite's degrees of freedom, which are
n - 1 where seeds matter alone, and more where sentences do; it is never narrower than with v = 0,
as it could be by these degrees of freedom. Redrawing the seeds instead would cover
far less than 95 %: two or three of them say little about their own spread.
"""

import math
import statistics
from typing import Any, Callable, Iterator, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from fairseq_posenc.tools.scores.metrics import corpus_score, metric_of

SAMPLES, SEED = 1000, 1
# of how often each sentence or example is drawn, ``(count,)``
Figure = Callable[[np.ndarray], float]


class Estimate(NamedTuple):
    """The mean of a score over seeds, and its 95 % interval.

    ``mean`` is None where there is no sentence to score. ``spread``, the sample standard deviation
    over seeds, is None where there is one seed.
    """

    mean: Optional[float]
    low: Optional[float] = None
    high: Optional[float] = None
    spread: Optional[float] = None

    @property
    def half(self) -> Optional[float]:
        """How far the interval reaches to either side."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    def text(self, digits: int) -> str:
        """Return mean and interval with so many decimals."""
        return self._text(f"{{:.{digits}f}}")

    def signed(self, digits: int) -> str:
        """Return a difference, with a star where its interval leaves out 0."""
        return self._text(f"{{:+.{digits}f}}") + " *" * self.is_clear()

    def is_clear(self) -> bool:
        """Return whether the interval of a difference leaves out 0.

        One without width, as of a single sentence of one training, says nothing of others.
        """
        low, high = self.low, self.high
        return low is not None and high is not None and low < high and low * high > 0

    def _text(self, form: str) -> str:
        if self.mean is None:
            return "-"
        return f"{form} [{form}, {form}]".format(self.mean, self.low, self.high)


def bootstrap(
    figures: Sequence[Figure], count: int, samples: int = SAMPLES, seed: int = SEED
) -> np.ndarray:
    """Return figures of the same resampled test sets, ``(figures, samples)``.

    A sample is as many sentences or examples as there are, drawn with replacement (Koehn 2004). One
    is drawn at a time, so that memory is that of the statistics.

    Args:
        figures: of translations those of :func:`drawn_score`.
        count: of sentences or examples.
        seed: of NumPy's ``RandomState``; a test set is ``randint(count, size=count)``.
    """
    drawn = resampled(count, samples, seed)
    return np.transpose([[figure(times) for figure in figures] for times in drawn])


def resampled(count: int, samples: int = SAMPLES, seed: int = SEED) -> Iterator[np.ndarray]:
    """Yield how often each of ``count`` sentences is drawn in a sample of :func:`bootstrap`."""
    random = np.random.RandomState(seed)
    for _ in range(samples):
        drawn = random.randint(count, size=count)
        yield np.bincount(drawn, minlength=count).astype(float)


def drawn_score(metric: str, rows: Any) -> Figure:
    """Return a metric as a function of how often each sentence is drawn.

    It is not a number where the metric is not defined, as of references without four tokens.

    Args:
        rows: its statistics, ``(sentences, numbers)``.
    """
    statistics = np.asarray(rows, float)
    counted = metric_of(metric).counts(statistics).astype(float)
    return lambda times: (
        corpus_score(metric, times @ statistics) if times @ counted > 0 else math.nan
    )


def interval(values: np.ndarray) -> Tuple[float, float]:
    """Return the 2.5 % and 97.5 % percentiles of bootstrap samples: 95 % lie between."""
    low, high = np.percentile(values[~np.isnan(values)], [2.5, 97.5])
    return float(low), float(high)


def t_interval(values: Sequence[float], extra_variance: float = 0.0) -> Tuple[float, float]:
    """Return the 95 % interval of the mean of figures by seed, of a row or of paired differences.

    Args:
        values: a figure per seed; a single one says nothing of others: (-inf, inf).
        extra_variance: of the mean, by other causes, such as the choice of sentences.
    """
    count = len(values)
    seeds = [(statistics.variance(values) / count, count - 1)] if count > 1 else []
    return _around(statistics.mean(values), seeds, extra_variance)


def welch_interval(
    values: Sequence[float], base_values: Sequence[float], extra_variance: float = 0.0
) -> Tuple[float, float]:
    """Return the 95 % interval of the difference of two means over different seeds (Welch 1947).

    Degrees of freedom are Satterthwaite's. A single value has no standard deviation of its own and
    takes that of the other side; of two single values: (-inf, inf).
    """
    sides = [side for side in (values, base_values) if len(side) > 1]
    counts, means = [len(values), len(base_values)], [*map(statistics.mean, (values, base_values))]
    if len(sides) == 1:
        seeds = [(statistics.variance(sides[0]) * sum(1 / n for n in counts), max(counts) - 1)]
    else:
        seeds = [(statistics.variance(side) / len(side), len(side) - 1) for side in sides]
    return _around(means[0] - means[1], seeds, extra_variance)


def _around(
    mean: float, seeds: Sequence[Tuple[float, int]], extra_variance: float
) -> Tuple[float, float]:
    """Return mean ± t · √variance; ``seeds`` has variances with their degrees of freedom."""
    if not seeds:
        return -math.inf, math.inf
    from scipy.stats import t

    # more variance has more degrees of freedom, and may narrow the interval: the wider one counts
    halves = []
    for extra in (0.0, extra_variance):
        variance = sum(part for part, _ in seeds) + extra
        uncertain = sum(part**2 / freedom for part, freedom in seeds)
        freedom = variance**2 / uncertain if uncertain > 0 else math.inf
        halves.append(float(t.ppf(0.975, freedom)) * math.sqrt(variance))
    return mean - max(halves), mean + max(halves)

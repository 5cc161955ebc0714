"""The paired bootstrap: how far a score may be off by the sentences, and seeds, that were drawn."""

from typing import Sequence, Tuple

import numpy as np

from fairseq_posenc.tools.results.bleu import corpus_score

SAMPLES, SEED = 1000, 1


def bootstrap(
    metric: str, runs: Sequence[Sequence[np.ndarray]], samples: int = SAMPLES, seed: int = SEED
) -> np.ndarray:
    """Return the score of each run on resampled test sets, ``(runs, samples)``.

    A sample is as many sentences as there are, drawn with replacement, the same for all runs
    (Koehn 2004). Of a run with several seeds, each sample draws as many of its seeds, too, with
    replacement, and takes the mean of their scores.

    Args:
        metric: one of ``METRICS``.
        runs: for each run, by seed, its statistics of the same sentences, ``(sentences, numbers)``.
        samples: how many.
        seed: of NumPy's ``RandomState``; a test set is ``randint(sentences, size=sentences)``.
    """
    count, random = len(runs[0][0]), np.random.RandomState(seed)
    times_drawn = np.array(
        [np.bincount(random.randint(count, size=count), minlength=count) for _ in range(samples)],
        dtype=float,
    )
    means = []
    for run in runs:
        sums = (times_drawn @ statistics for statistics in run)
        scores = np.array([[corpus_score(metric, total) for total in one] for one in sums])
        drawn = random.randint(len(run), size=scores.shape)
        means.append(np.take_along_axis(scores, drawn, axis=0).mean(axis=0))
    return np.array(means)


def interval(values: np.ndarray) -> Tuple[float, float]:
    """Return the 2.5 % and 97.5 % percentiles of bootstrap samples: 95 % lie between."""
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)

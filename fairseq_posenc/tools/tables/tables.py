"""Tables of results: encodings by length of sentence, over the ``score.json`` of many runs."""

import statistics
from typing import Any, List, Mapping, Sequence

import numpy as np

from fairseq_posenc.tools.scores.bleu import corpus_score, source_of, title_of
from fairseq_posenc.tools.scores.intervals import (
    SAMPLES,
    bootstrap,
    interval,
    t_interval,
    welch_interval,
)
from fairseq_posenc.tools.scores.lengths import length_label
from fairseq_posenc.tools.tables.grid import check_comparable
from fairseq_posenc.tools.tables.layout import Estimate, Outputs, Table
from fairseq_posenc.tools.tables.runs import (
    Runs,
    Score,
    check_sentences,
    conditions,
    members_by_column,
    seed_of,
)


def by_length(runs: Runs, metric: str = "sacrebleu") -> Table:
    """Return ``metric`` for the whole test set and each bin of length.

    Intervals of one training are percentiles of the paired bootstrap over sentences. Of several
    they are over seeds and sentences, see :mod:`.intervals`; a difference of two runs is that of
    pairs of seeds where both have the same, which ``posenc score --note seed=…`` tells (without
    that note, as many, in their order), and otherwise Welch's.

    Raises:
        UsageError: results without bins or statistics, or that cannot be compared: of other bins,
            test sets, training sets or signatures (the version of sacreBLEU aside).
    """
    runs = {name: sorted(seeds, key=seed_of) for name, seeds in runs.items()}
    scores = [(name, score) for name, seeds in runs.items() for score in seeds]
    check_comparable((name, conditions(name, score, metric)) for name, score in scores)
    for name, score in scores:
        check_sentences(name, score, metric)
    first = scores[0][1]
    parts = [{"name": "all", **first["all"]}, *first["by_length"]["bins"]]
    table = Table(
        title=f"{title_of(metric)} by {length_label(first)}",
        columns=[part["name"] for part in parts],
        sentences=[part["sentences"] for part in parts],
        within=[part.get("within") for part in parts],
        rows={name: [] for name in runs},
        differences={name: [] for name in runs},
        notes=_notes(runs, metric),
    )
    stored = source_of(metric)
    by_run = [[one["sentences"]["statistics"][stored] for one in seeds] for seeds in runs.values()]
    columns = members_by_column(first)
    if metric == "sacrebleu" and all(
        source_of("length_ratio") in one["sentences"]["statistics"] for _, one in scores
    ):
        table.outputs = {
            name: [_outputs(seeds, members) for members in columns] for name, seeds in runs.items()
        }
    for members in columns:
        if not members:
            for name in runs:
                table.rows[name].append(Estimate(None))
                table.differences[name].append(Estimate(None))
            continue
        chosen = [[np.array(one)[members] for one in seeds] for seeds in by_run]
        drawn = bootstrap(metric, chosen)
        values = [[corpus_score(metric, one.sum(axis=0)) for one in seeds] for seeds in chosen]
        for (name, seeds), each, own in zip(runs.items(), values, drawn):
            paired = [*map(seed_of, seeds)] == [*map(seed_of, next(iter(runs.values())))]
            table.rows[name].append(_estimate(each, own))
            table.differences[name].append(_difference(each, values[0], own - drawn[0], paired))
    several = [name for name, seeds in runs.items() if len(seeds) > 1]
    table.words = _in_words(table, first["by_length"]["unit"], several) + _failures(runs)
    return table


def _in_words(table: Table, unit: str, several: Sequence[str]) -> List[str]:
    """Return, for each bin, by how much rows of several seeds differ from the first, if clearly."""
    first, lines = next(iter(table.rows)), []
    for at, column in enumerate(table.columns[1:], 1):
        clear, unclear = [], []
        for name in several if first in several else ():
            mean, low, high, _ = table.differences[name][at]
            if name == first or mean is None or low is None or high is None:
                continue
            if low * high > 0:
                clear.append(f"{name} {mean:+.1f} ± {(high - low) / 2:.1f}")
            else:
                unclear.append(name)
        if unclear:
            clear.append(f"no clear difference: {', '.join(unclear)}")
        if clear:
            lines.append(f"{column} {unit}, against {first}: {'; '.join(clear)}.")
    return lines


def _outputs(seeds: Sequence[Score], members: Sequence[int]) -> Outputs:
    """Return the means over seeds of the sentences ``members``."""
    if not members:
        return Outputs()
    stored = [one["sentences"]["statistics"] for one in seeds]
    means = (
        statistics.mean(
            corpus_score(name, np.array(one[source_of(name)])[members].sum(axis=0))
            for one in stored
        )
        for name in ("bleu_without_penalty", "length_ratio")
    )
    return Outputs(*means)


def _estimate(values: Sequence[float], drawn: np.ndarray) -> Estimate:
    """Return the mean of scores by seed; ``drawn`` is that of bootstrap samples."""
    mean = statistics.mean(values)
    if len(values) == 1:
        return Estimate(mean, *interval(drawn))
    return Estimate(mean, *t_interval(values, drawn.var(ddof=1)), statistics.stdev(values))


def _difference(
    values: Sequence[float], others: Sequence[float], drawn: np.ndarray, paired: bool
) -> Estimate:
    """Return the difference of two means of scores by seed; ``drawn``: of bootstrap samples."""
    if paired or len(values) == len(others) == 1:
        return _estimate([one - other for one, other in zip(values, others)], drawn)
    bounds = welch_interval(values, others, drawn.var(ddof=1))
    return Estimate(statistics.mean(values) - statistics.mean(others), *bounds)


def nothing_learned(figures: Mapping[str, Any]) -> str:
    """Return what a note says of a model whose BLEU on the whole test set is not above chance."""
    return (
        f"has hardly learned anything: its sacreBLEU is {figures['sacrebleu']:.2f}, and "
        f"{figures['chance']:.2f} with the references of other sentences"
    )


def _failures(runs: Runs) -> List[str]:
    """Return a sentence for each training that has learned nothing."""
    found = []
    for name, seeds in runs.items():
        for number, figures in enumerate((one["all"] for one in seeds), 1):
            known = None not in (figures.get("chance"), figures.get("sacrebleu"))
            if known and figures.get("above_chance") is False:
                which = f", seed {number} of {len(seeds)}," if len(seeds) > 1 else ""
                found.append(f"{name}{which} {nothing_learned(figures)}.")
    return found


def _notes(runs: Runs, metric: str) -> List[str]:
    first, *others = runs
    score = runs[first][0]
    several = [name for name, seeds in runs.items() if len(seeds) > 1]
    notes = [f"In brackets: 95 % of {SAMPLES} paired bootstrap samples of the sentences."]
    if several:
        notes = [
            "In brackets: 95 % intervals over n seeds and over sentences, mean ± t · √(s²/n + v), "
            "with s the standard deviation over seeds (of differences over pairs of equal seeds, "
            f"else Welch's), v the variance over {SAMPLES} paired bootstrap samples of sentences."
        ]
    if others:
        notes[0] += f" *: the interval of the difference to {first} leaves out 0."
    if several:
        counts = ", ".join(f"{name} {len(seeds)}" for name, seeds in runs.items())
        notes.append(f"Trainings (seeds): {counts}.")
    if len(several) < len(runs):
        which = "Some rows are of one training: their" if several else "One training per row:"
        notes.append(
            f"{which} intervals are over sentences only and say nothing about other seeds; rows "
            "are not ranked."
        )
        if several:
            notes[-1] += " Differences of one to several trainings take s of the several for both."
    longest = score.get("longest_trained")
    if longest:
        notes.append(
            f"Within trained length: source of at most {longest['source']} and target of at most "
            f"{longest['reference']} subwords, the longest of the training set."
        )
    known = [one.get("ceiling") for seeds in runs.values() for one in seeds]
    ceilings = {each["figures"][metric] for each in known if each and metric in each["figures"]}
    if ceilings:
        notes.append(
            "Ceiling, which the references get that go through the preparation of the training "
            f"text and back: {' and '.join(f'{value:.2f}' for value in sorted(ceilings))}."
        )
        lower = {one["with_unknown"] for one in known if one and "with_unknown" in one}
        if metric == "sacrebleu" and lower and min(lower) < min(ceilings) - 0.005:
            notes[-1] += (
                f" It is {' and '.join(f'{value:.2f}' for value in sorted(lower))} without the "
                "characters that the dictionary lacks, which no model writes."
            )
    language = f"Target language: {score['language']}. " if score.get("language") else ""
    signed = (one["signatures"][source_of(metric)] for seeds in runs.values() for one in seeds)
    return [*notes, f"{language}Signature: {' and '.join(dict.fromkeys(signed))}"]

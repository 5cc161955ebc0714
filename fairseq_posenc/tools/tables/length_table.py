"""Tables of results: encodings by length of sentence, over the ``score.json`` of many runs."""

import statistics
from typing import List, Mapping, Sequence

import numpy as np

from fairseq_posenc.tools.scores.intervals import SAMPLES, bootstrap, drawn_score
from fairseq_posenc.tools.scores.lengths import length_label
from fairseq_posenc.tools.scores.metrics import base_metric, corpus_score, why_undefined
from fairseq_posenc.tools.scores.result import Score
from fairseq_posenc.tools.scores.training_options import precision_words, unlike_options
from fairseq_posenc.tools.tables.cells import check_comparable
from fairseq_posenc.tools.tables.intervals import Sampled
from fairseq_posenc.tools.tables.runs import Runs, conditions
from fairseq_posenc.tools.tables.table import Outputs, Table


def by_length(runs: Runs, metric: str = "sacrebleu") -> Table:
    """Return ``metric`` for the whole test set and each bin of length.

    Intervals of one training are percentiles of the paired bootstrap over sentences. Of several
    they are over seeds and sentences, see :mod:`fairseq_posenc.tools.scores.intervals`; a
    difference of two runs is that of pairs of seeds where both have the same, which ``posenc score
    --note seed=…`` tells (without that note, as many, in their order), and otherwise Welch's.
    """
    scores = [(name, score) for name, seeds in runs.items() for score in seeds]
    check_comparable((name, conditions(name, score, metric)) for name, score in scores)
    for name, score in scores:
        score.check_sentences(name, metric)
    first = scores[0][1]
    of_lengths = first.by_length
    assert of_lengths is not None, "conditions() has refused such results"
    columns = [_sampled(runs, metric, members) for members in first.members()]
    table = Table(
        metric=metric,
        label=length_label(of_lengths.of, of_lengths.unit),
        columns=["all", *(part.name for part in of_lengths.bins)],
        sentences=[part.sentences for part in (first.all, *of_lengths.bins)],
        within=[part.within for part in (first.all, *of_lengths.bins)],
        sampled=dict(zip(runs, map(list, zip(*columns)))),
        notes=_notes(runs, metric),
    )
    rows = np.array(first.texts.statistics[base_metric(metric)])
    reasons = (why_undefined(metric, rows[members]) for members in first.members() if members)
    table.notes += dict.fromkeys(filter(None, reasons))
    ratio = base_metric("length_ratio")
    if metric == "sacrebleu" and all(ratio in score.texts.statistics for _, score in scores):
        table.outputs = {
            name: [_outputs(seeds, members) for members in first.members()]
            for name, seeds in runs.items()
        }
    several = [name for name, seeds in runs.items() if len(seeds) > 1]
    unlike = precision_words({name: [score.precision for score in runs[name]] for name in runs})
    unlike += unlike_options(runs)
    # what has learned nothing is said before it is compared
    table.words = unlike + _failures(runs) + differences_in_words(table, several, of_lengths.unit)
    return table


def _sampled(runs: Runs, metric: str, members: Sequence[int]) -> List[Sampled]:
    """Return every run's scores of the sentences ``members``."""
    seeds = [[score.seed for score in run] for run in runs.values()]
    if not members:
        return [Sampled(own, [], np.empty(0)) for own in seeds]
    stored = base_metric(metric)
    rows = [
        [np.array(score.texts.statistics[stored])[members] for score in run]
        for run in runs.values()
    ]
    if why_undefined(metric, rows[0][0]):
        return [Sampled(own, [], np.empty(0)) for own in seeds]
    figures = [drawn_score(metric, statistics) for run in rows for statistics in run]
    # one call for all runs and seeds, so that all are scored on the same samples
    drawn = iter(bootstrap(figures, len(members)))
    means = [np.mean([next(drawn) for _ in run], axis=0) for run in rows]
    values = [[corpus_score(metric, statistics.sum(axis=0)) for statistics in run] for run in rows]
    return [Sampled(*fields) for fields in zip(seeds, values, means)]


def differences_in_words(table: Table, several: Sequence[str], unit: str = "") -> List[str]:
    """Return by how much rows of several seeds differ from the first, if clearly.

    Args:
        table: whose columns are bins of length behind all sentences, or, without unit, tasks.
        several: names of the rows of several seeds.
        unit: of the bins.
    """
    first, lines = next(iter(table.rows)), []
    for at, (column, decimals) in enumerate(zip(table.columns, table.decimals)):
        if unit and at == 0:
            continue
        clear, unclear = [], []
        for name in several if first in several else ():
            difference = table.differences[name][at]
            if name == first or difference.half is None:
                continue
            if difference.is_clear():
                bounds = f"{difference.mean:+.{decimals}f} ± {difference.half:.{decimals}f}"
                clear.append(f"{name} {bounds}")
            else:
                unclear.append(name)
        if unclear:
            clear.append(f"no clear difference: {', '.join(unclear)}")
        if clear:
            lines.append(f"{column} {unit}".rstrip() + f", against {first}: {'; '.join(clear)}.")
    return lines


def _outputs(seeds: Sequence[Score], members: Sequence[int]) -> Outputs:
    """Return the means over seeds of the sentences ``members``."""
    rows = np.array(seeds[0].texts.statistics[base_metric("sacrebleu")])
    if not members or why_undefined("sacrebleu", rows[members]):
        return Outputs()
    means = []
    for name in ("bleu_without_penalty", "length_ratio"):
        rows_of_seeds = (np.array(score.texts.statistics[base_metric(name)]) for score in seeds)
        scores = (corpus_score(name, rows[members].sum(axis=0)) for rows in rows_of_seeds)
        means.append(statistics.mean(scores))
    return Outputs(*means)


def _failures(runs: Runs) -> List[str]:
    """Return a sentence for each training that has learned nothing."""
    sentences = []
    for name, seeds in runs.items():
        for number, score in enumerate(seeds, 1):
            seed = score.seed or f"{number} of {len(seeds)}"
            which = f", seed {seed}," if len(seeds) > 1 else ""
            sentences += [f"{name}{which} {reason}." for reason in score.nothing_learned()]
    return sentences


def interval_notes(seeds: Mapping[str, int], items: str = "sentences") -> List[str]:
    """Return how intervals were computed, and what they do not say.

    Args:
        seeds: how many trainings each row has.
        items: what the metrics are over.
    """
    first, *rest = seeds
    several = [name for name, count in seeds.items() if count > 1]
    notes = [f"In brackets: 95 % of {SAMPLES} paired bootstrap samples of the {items}."]
    if several:
        notes = [
            f"In brackets: 95 % intervals over n seeds and over {items}, mean ± t · √(s²/n + v), "
            "with s the standard deviation over seeds (of differences over pairs of equal seeds, "
            f"else Welch's), v the variance over {SAMPLES} paired bootstrap samples of {items}."
        ]
    if rest:
        notes[0] += f" *: the interval of the difference to {first} leaves out 0."
    if several:
        counts = ", ".join(f"{name} {count}" for name, count in seeds.items())
        notes.append(f"Trainings (seeds): {counts}.")
    if len(several) < len(seeds):
        which = "Some rows are of one training: their" if several else "One training per row:"
        notes.append(
            f"{which} intervals are over {items} only and say nothing about other seeds; rows "
            "are not ranked."
        )
        if several:
            notes[-1] += " Differences of one to several trainings take s of the several for both."
    return notes


def _notes(runs: Runs, metric: str) -> List[str]:
    notes = interval_notes({name: len(seeds) for name, seeds in runs.items()})
    score = next(iter(runs.values()))[0]
    longest = score.longest_trained
    if longest:
        notes.append(
            f"Within trained length: source of at most {longest.source} and target of at most "
            f"{longest.reference} subwords, the longest of the training set."
        )
    other_lengths = {
        name: seeds[0].longest_trained
        for name, seeds in runs.items()
        if longest and seeds[0].longest_trained not in (None, longest)
    }
    notes += [
        f"{name} was trained on other lengths: source of at most {lengths.source} and target of "
        f"at most {lengths.reference} subwords."
        for name, lengths in other_lengths.items()
        if lengths
    ]
    scores = [training for seeds in runs.values() for training in seeds]
    trip_scores = [training.ceiling for training in scores if training.ceiling]
    ceilings = {ceiling.figures[metric] for ceiling in trip_scores if metric in ceiling.figures}
    if ceilings:
        notes.append(
            "Ceiling, which the references get that go through the preparation of the training "
            f"text and back: {' and '.join(f'{value:.2f}' for value in sorted(ceilings))}."
        )
        lower = {c.with_unknown for c in trip_scores if c.with_unknown is not None}
        if metric == "sacrebleu" and lower and min(lower) < min(ceilings) - 0.005:
            notes[-1] += (
                f" It is {' and '.join(f'{value:.2f}' for value in sorted(lower))} with <unk> for "
                "the subwords that the dictionary lacks, which no model writes."
            )
    language = f"Target language: {score.language}. " if score.language else ""
    signed = dict.fromkeys(training.signatures[base_metric(metric)] for training in scores)
    return [*notes, f"{language}Signature: {' and '.join(signed)}"]

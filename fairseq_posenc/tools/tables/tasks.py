"""Tables of results of ``posenc predict``: encodings by task, each column a metric of a subset."""

import math
from dataclasses import replace
from functools import partial
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.intervals import bootstrap
from fairseq_posenc.tools.scores.result import named_path
from fairseq_posenc.tools.scores.task_score import (
    BITS,
    DIRECTIONS,
    TITLES,
    TaskScore,
    is_task_score,
    measure,
    read_task_score,
)
from fairseq_posenc.tools.scores.training_options import (
    options_beside,
    precision_words,
    unlike_options,
)
from fairseq_posenc.tools.tables.cells import Condition, check_comparable
from fairseq_posenc.tools.tables.intervals import Sampled
from fairseq_posenc.tools.tables.length_table import by_length, differences_in_words, interval_notes
from fairseq_posenc.tools.tables.papers import CHOICES, best_learning_rate
from fairseq_posenc.tools.tables.runs import check_encoding, read_runs
from fairseq_posenc.tools.tables.table import Table

TaskRuns = Dict[str, List[TaskScore]]
# by task, subset and metric: of every training and sample, (trainings, 1 + samples)
Figures = Dict[Tuple[str, str, str], np.ndarray]
_ROUNDED = 0.01
_AGAIN = "predict again with posenc predict (in a recipe: delete score.json, and start it again)"
ABOUT_LR = (
    "Of several learning rates, the one whose median over seeds is best on the (English) "
    "development set, as Chen et al. 2021: {}."
)


class Column(NamedTuple):
    """A metric of one or more subsets of a task; of several it is their mean."""

    task: str
    subsets: Tuple[str, ...]
    metric: str

    def __str__(self) -> str:
        several = len(self.subsets) > 1
        shown = f"mean of {len(self.subsets)}" if several else self.subsets[0]
        benchmark = _benchmark(self.subsets[0])
        if several and benchmark != "test":
            shown = f"{benchmark} {shown}"
        return " ".join([self.task, *([shown] if shown != "valid" else []), TITLES[self.metric]])


def of_tasks(arguments: Sequence[str]) -> bool:
    """Return whether results are of ``posenc predict``, and not of ``posenc score``."""
    paths = [named_path(argument)[1] for argument in arguments]
    predicted = [path for path in paths if is_task_score(path)]
    if 0 < len(predicted) < len(paths):
        score = next(path for path in paths if path not in predicted)
        raise UsageError(
            f"{predicted[0]} is from posenc predict, and {score} is not: compare results of one "
            "kind at a time"
        )
    return bool(predicted)


def table_of(arguments: Sequence[str], metric: Optional[str], test: Optional[str]) -> Table:
    """Return the table of results: by length of ``posenc score``, by task of ``posenc predict``.

    Args:
        arguments: ``NAME=score.json``, or names of files.
        metric: without, sacreBLEU, or each task's own.
        test: of results of ``score_cell``, a test set.
    """
    if not of_tasks(arguments):
        return by_length(read_runs(arguments, test), metric or "sacrebleu")
    if test:
        raise UsageError("--test is for translations; results of posenc predict have subsets")
    return by_task(read_task_runs(arguments), metric)


def read_task_runs(arguments: Sequence[str]) -> TaskRuns:
    """Read results by name; several of one name are its tasks, learning rates and seeds."""
    runs: TaskRuns = {}
    paths: Dict[Any, str] = {}
    encodings: Dict[str, Tuple[str, str]] = {}
    for argument in arguments:
        path = named_path(argument)[1]
        score = replace(read_task_score(path), training_options=options_beside(path))
        name = named_path(argument, score.task)[0]
        labelled = [subset for subset, figures in score.scores.items() if figures]
        if not labelled:
            raise UsageError(
                f"{path} has no labels of {', '.join(score.scores)}, so no scores: give posenc "
                "predict --subsets that have labels, such as valid"
            )
        if set(labelled) - score.per_example.keys() or not score.task:
            raise UsageError(
                f"{path} has no results by example: an older version predicted; {_AGAIN}"
            )
        for subset, metric in ((s, m) for s in labelled for m in score.main_metrics):
            figure = score.scores[subset].get(metric, math.nan)
            try:
                measured = measure(metric, score.columns(subset))
            except KeyError:
                measured = math.inf  # examples have other columns
            if abs(measured - figure) > _ROUNDED:
                raise UsageError(
                    f"{path} has examples of {subset} that do not give its "
                    f"{TITLES.get(metric, metric)} of {figure:.2f}: it is damaged, or of two "
                    f"results; {_AGAIN}"
                )
        training = (name, score.task, score.notes.get("lr"), score.seed)
        if score.seed and training in paths:
            description = f"seed {score.seed} of {name} on {score.task}, as {paths[training]}"
            raise UsageError(f"{path} has {description}: give each training once")
        paths[training] = path
        check_encoding(encodings, name, path, score.notes.get("signature", ""))
        runs.setdefault(name, []).append(score)
    return runs


def by_task(runs: TaskRuns, metric: Optional[str] = None) -> Table:
    """Return the metrics of every task.

    Intervals are those of :func:`fairseq_posenc.tools.tables.length_table.by_length`, over seeds
    and examples.

    Args:
        metric: the only one; the main metric of each task without.
    """
    chosen, rates = _of_best_learning_rates(runs)
    scores = [(name, score) for name, results in chosen.items() for score in results]
    check_comparable((f"{name} on {score.task}", _conditions(score)) for name, score in scores)
    columns = list(_columns([score for _, score in scores], metric))
    if not columns:
        available = {
            metric_name
            for _, score in scores
            for part in score.scores.values()
            for metric_name in part
        }
        raise UsageError(
            f"no result has --metric {metric}; there are {', '.join(sorted(available))}"
        )
    # a table of one metric is called by it
    metrics = {column.metric for column in columns}
    title = TITLES[metrics.pop()] if len(metrics) == 1 else "Scores"
    figures = _bootstrap([score for _, score in scores], columns)
    sampled = [_sampled(chosen, column, figures) for column in columns]
    table = Table(
        metric=title[0].upper() + title[1:],
        label="task",
        columns=[*map(str, columns)],
        sentences=[_count(chosen, column) for column in columns],
        within=[None] * len(columns),
        sampled=dict(zip(chosen, map(list, zip(*sampled)))),
        signs=[DIRECTIONS.get(column.metric, 1) for column in columns],
        items="examples",
        decimals=[2 if column.metric == BITS else 1 for column in columns],
    )
    counts = {name: _seeds(results) for name, results in chosen.items()}
    table.notes = interval_notes(counts, "examples")
    if rates:
        table.notes.append(ABOUT_LR.format("; ".join(rates)))
    if any(sign < 0 for sign in table.signs):
        table.notes.append("Of bits fewer are better.")
    several = [name for name, count in counts.items() if count > 1]
    unlike = precision_words({name: [score.precision for score in chosen[name]] for name in chosen})
    for task in dict.fromkeys(score.task for _, score in scores):
        of_task = {n: [s for s in results if s.task == task] for n, results in chosen.items()}
        unlike += unlike_options(of_task, f" on {task}")
    table.words = (
        unlike + failures(chosen) + _doubles(chosen) + differences_in_words(table, several)
    )
    return table


def failures(runs: TaskRuns) -> List[str]:
    """Return a sentence for each training that has learned nothing."""
    return [
        sentence
        for name, results in runs.items()
        for score in results
        for sentence in score.failures(name, score.seed)
    ]


def _doubles(runs: TaskRuns) -> List[str]:
    """Return a sentence for each training with the results of another, as one model has them.

    Two models that have learned nothing, or are right everywhere, may well have the same.
    """
    models: Dict[str, str] = {}
    sentences = []
    for name, results in runs.items():
        for score in results:
            model = f"{name}, seed {score.seed}," if score.seed else name
            first = models.setdefault(str((score.task, score.per_example)), model)
            figures = (value for figures in score.scores.values() for value in figures.values())
            is_right = all(math.isclose(value, 100) for value in figures)
            if first != model and not is_right and not score.nothing_learned():
                problem = f"the same results for all examples of {score.task}"
                sentences.append(f"{first} and {model} have {problem}: are they one model?")
    return sentences


def _of_best_learning_rates(runs: TaskRuns) -> Tuple[TaskRuns, List[str]]:
    """Return the results of each task's best learning rate, and which were chosen from several."""
    chosen: TaskRuns = {}
    rates = []
    for name, results in runs.items():
        for task in dict.fromkeys(score.task for score in results):
            by_rate: Dict[str, List[TaskScore]] = {}
            for score in results:
                if score.task == task:
                    by_rate.setdefault(score.notes.get("lr", ""), []).append(score)
            rate = next(iter(by_rate))
            if len(by_rate) > 1:
                rate = _best_rate(by_rate, name)
                rates.append(f"{name} on {task} {rate}")
            chosen.setdefault(name, []).extend(by_rate[rate])
    return chosen, rates


def _best_rate(by_rate: Dict[str, List[TaskScore]], name: str) -> str:
    first = next(iter(by_rate.values()))[0]
    subset, metric = CHOICES.get(first.task, ("valid", first.main_metrics[0]))
    sign = DIRECTIONS.get(metric, 1)
    try:
        figures = {
            rate: [score.scores[subset][metric] for score in results]
            for rate, results in by_rate.items()
        }
    except KeyError:
        raise UsageError(
            f"{name} has several learning rates of {first.task}, and no {metric} of {subset} to "
            "choose by; give the results of one"
        ) from None
    return best_learning_rate(figures, sign)


def _columns(scores: Sequence[TaskScore], metric: Optional[str]) -> Iterator[Column]:
    """Yield the columns: by task each subset, behind the mean of its benchmark's, if three or more.

    Languages are subsets; of SQuAD those of XQuAD, MLQA and TyDiQA-GoldP each have a mean, as in
    XTREME.
    """
    for task in dict.fromkeys(score.task for score in scores):
        first = next(score for score in scores if score.task == task)
        for name in [metric] if metric else first.main_metrics:
            subsets = tuple(subset for subset, figures in first.scores.items() if name in figures)
            tests: Dict[str, List[str]] = {}
            for subset in subsets:
                if not subset.startswith("valid"):
                    tests.setdefault(_benchmark(subset), []).append(subset)
            means = [
                tuple(of_benchmark) for of_benchmark in tests.values() if len(of_benchmark) > 2
            ]
            yield from (Column(task, of_benchmark, name) for of_benchmark in means)
            yield from (Column(task, (subset,), name) for subset in subsets)


def _benchmark(subset: str) -> str:
    """Return what a subset's name has before its language, such as ``xquad`` or ``test``."""
    return subset.partition("-")[0]


def _conditions(score: TaskScore) -> List[Condition]:
    """Return what must be alike in results of a task that are compared."""
    subsets = {name: score.gold.get(name) for name, figures in score.scores.items() if figures}
    return [
        Condition(f"subsets of {score.task}", ", ".join(subsets)),
        Condition(f"examples or what is right in {score.task}", subsets),
        Condition(f"numbers of examples of {score.task}", [*map(score.count, subsets)]),
    ]


def _bootstrap(scores: Sequence[TaskScore], columns: Sequence[Column]) -> Figures:
    """Return the figures of each subset and metric that the columns have, each computed once."""
    figures: Figures = {}
    for task, subsets, metric in columns:
        trainings = [score for score in scores if score.task == task]
        for subset in subsets:
            if (task, subset, metric) not in figures:
                examples = [partial(measure, metric, score.columns(subset)) for score in trainings]
                # of all examples, and behind that of each sample
                values = [[figure()] for figure in examples]
                drawn = bootstrap(examples, trainings[0].count(subset))
                figures[task, subset, metric] = np.hstack([values, drawn])
    return figures


def _sampled(runs: TaskRuns, column: Column, figures: Figures) -> List[Sampled]:
    """Return every run's figures of a column; none of a run without that task."""
    parts = [figures[column.task, subset, column.metric] for subset in column.subsets]
    # (trainings, 1 + samples): of a mean of subsets, equal numbers of examples are drawn alike
    figures_of_training = iter(np.mean(parts, axis=0))
    sampled = []
    for results in runs.values():
        seeds = [score.seed for score in results if score.task == column.task]
        if seeds:
            rows = np.array([next(figures_of_training) for _ in seeds])
            sampled.append(Sampled(seeds, rows[:, 0].tolist(), rows[:, 1:].mean(axis=0)))
        else:
            sampled.append(Sampled([], [], np.empty(0)))
    return sampled


def _count(runs: TaskRuns, column: Column) -> int:
    scores = (score for results in runs.values() for score in results)
    first = next(score for score in scores if score.task == column.task)
    return sum(map(first.count, column.subsets))


def _seeds(results: Sequence[TaskScore]) -> int:
    """Return how many trainings of a run there are on the task with the fewest."""
    tasks = [score.task for score in results]
    return min(tasks.count(task) for task in tasks)

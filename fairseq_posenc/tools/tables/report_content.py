"""What a report says of results: read and compared, and not yet drawn."""

import os
import shlex
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.arguments import comma_separated
from fairseq_posenc.tools.scores.metrics import METRICS, base_metric, metric_of
from fairseq_posenc.tools.scores.result import Score, named_path
from fairseq_posenc.tools.scores.significance import paired_bootstrap
from fairseq_posenc.tools.scores.training_log import Curves, read_curves, read_log
from fairseq_posenc.tools.scores.training_options import LOG
from fairseq_posenc.tools.tables.length_table import by_length
from fairseq_posenc.tools.tables.runs import Runs, read_runs
from fairseq_posenc.tools.tables.sentences import (
    Differing,
    best_of_others,
    common_seeds,
    differing,
    length_faults,
)
from fairseq_posenc.tools.tables.table import Table
from fairseq_posenc.tools.tables.tasks import by_task, of_tasks, read_task_runs


@dataclass
class Translations:
    """What a report says of translations alone.

    Attributes:
        metric: title of the metric that p-values are of.
        signatures: metrics with their signatures.
        faults: lines of :func:`.outputs.length_faults`; None of results without lengths.
        p_values: by run and seed, their columns, and the test's signature; None if there are none.
        second: the run whose translations stand beside the baseline's.
        sentences: those that differ most by range, or the reason why there are none.
        curves: validation losses of the logs beside results, of :func:`.training_log.read_curves`,
            or the reason why there are none. A loss of fine-tuning is not one of tokens, and is not
            shown.
        facts: of each training with a log, of :func:`.training_log.read_log`, with its name.
    """

    metric: str
    signatures: List[Tuple[str, str]]
    faults: Optional[List[List[str]]]
    p_values: Optional[Dict[str, Any]]
    second: Optional[str]
    sentences: Union[str, Dict[str, List[Differing]]]
    curves: Union[str, Curves]
    facts: List[Dict[str, Any]]


@dataclass
class ReportContent:
    """What a report says.

    Attributes:
        table: of the first metric, or by task; its first row is the baseline.
        further: tables of further metrics of translations.
        versions, commands: by which the results were scored; each command behind name and seed.
        translations: None of results of ``posenc predict``.
    """

    table: Table
    versions: List[Dict[str, str]]
    commands: List[Tuple[str, str, str]]
    further: List[Table] = field(default_factory=list)
    translations: Optional[Translations] = None


def read_report(
    arguments: Sequence[str],
    *,
    baseline: Optional[str] = None,
    beside: Optional[str] = None,
    metric: Optional[str] = None,
    lower_is_better: bool = False,
    test: Optional[str] = None,
    remarks: Sequence[str] = (),
) -> ReportContent:
    """Return what a report says of results.

    Args:
        arguments: results, as :func:`.tasks.table_of` takes them; a ``train.log`` beside one is of
            its training.
        baseline: the run that others are compared with; the first without one.
        beside: the run whose translations stand beside the baseline's; without one the best other.
        metric, test: as of :func:`.tasks.table_of`; of translations several metrics, with commas:
            each has a table and a picture, and the first chooses sentences and has p-values.
        lower_is_better: of a first metric that was read from a file; of ours it is known.
        remarks: sentences that come before its own.
    """
    if of_tasks(arguments):
        refused = {"--beside": beside, "--lower-is-better": lower_is_better, "--test": test}
        for option in (option for option, value in refused.items() if value):
            raise UsageError(f"{option} is for translations; these results are of posenc predict")
        tasks = _baseline_first(read_task_runs(arguments), baseline, None)
        report = ReportContent(by_task(tasks, metric), *_origin(tasks))
    else:
        runs = _baseline_first(read_runs(arguments, test), baseline, beside)
        logs = _logs(arguments, next(iter(runs)))
        names = comma_separated(metric or "sacrebleu")
        report = _of_translations(runs, names, lower_is_better, beside, logs)
    report.table.words = [*remarks, *report.table.words]
    return report


def _of_translations(
    runs: Runs,
    metrics: Sequence[str],
    lower_is_better: bool,
    beside: Optional[str],
    logs: List[str],
) -> ReportContent:
    metric, *further_metrics = metrics
    sign = _direction(metric, lower_is_better)
    table = _by_length(runs, metric, sign)
    further = [_by_length(runs, name, _direction(name, False)) for name in further_metrics]
    table.words = table.words + _words_of_further(table, further)
    means = {name: row[0].mean for name, row in table.rows.items()}
    second = beside or best_of_others(means, sign)
    scores = [score for seeds in runs.values() for score in seeds]
    has_tokens = all("tokenised_bleu" in score.texts.statistics for score in scores)
    curves, facts = _trainings(logs)
    translations = Translations(
        metric=metric_of(metric).title,
        signatures=_signatures(scores),
        faults=length_faults(runs, table.columns) if has_tokens else None,
        p_values=_p_values(runs, metric),
        second=second,
        sentences=_sentences(runs, second),
        curves=curves,
        facts=facts,
    )
    return ReportContent(table, *_origin(runs), further, translations)


def _by_length(runs: Runs, metric: str, sign: int) -> Table:
    """Return the table of a metric whose direction is ``sign``, which a note tells."""
    table = by_length(runs, metric)
    table.signs = [sign] * len(table.columns)
    if sign < 0:
        table.notes.insert(0, f"Of {metric_of(metric).title} a lower figure is better.")
    return table


def _words_of_further(table: Table, further: Sequence[Table]) -> List[str]:
    """Return what the tables of further metrics say in words, each after its metric."""
    return [
        f"{metric_of(further_table.metric).title}, {line}"
        for further_table in further
        for line in further_table.words
        if line not in table.words
    ]


def _baseline_first(
    runs: Dict[str, Any], baseline: Optional[str], beside: Optional[str]
) -> Dict[str, Any]:
    """Return the runs with the baseline first; both are checked to be there."""
    for name in (baseline, beside):
        if name is not None and name not in runs:
            raise UsageError(f"no run is called {name!r}; there are {', '.join(runs)}")
    first = baseline or next(iter(runs))
    if beside == first:
        raise UsageError(f"{beside} is the baseline; put another run beside it")
    return {first: runs[first], **runs}


def _direction(metric: str, lower_is_better: bool) -> int:
    """Return 1 if higher figures of a metric are better, -1 if lower ones, 0 if neither."""
    if not lower_is_better:
        return metric_of(metric).direction
    if metric in METRICS and metric_of(metric).direction != -1:
        raise UsageError(
            f"--lower-is-better: lower figures of {metric_of(metric).title} are not better"
        )
    return -1


def _logs(arguments: Sequence[str], first: str) -> List[str]:
    """Return the logs beside the results, as ``name=path``, those of the run ``first`` before."""
    places = [(name, os.path.dirname(path)) for name, path in map(named_path, arguments)]
    places.sort(key=lambda pair: pair[0] != first)
    logs = [(name, os.path.join(folder, LOG)) for name, folder in places]
    return [f"{name}={path}" for name, path in logs if os.path.isfile(path)]


def _trainings(logs: Sequence[str]) -> Tuple[Union[str, Curves], List[Dict[str, Any]]]:
    """Return the curves of the logs, or why there are none, and the facts; a report needs none."""
    if not logs:
        return f"No {LOG} lies beside a score.json.", []
    try:
        facts = [{"name": name, **read_log(path)} for name, path in map(named_path, logs)]
        return read_curves(logs), facts
    except UsageError as error:
        return f"{error}.", []


def _origin(runs: Dict[str, Any]) -> Tuple[List[Dict[str, str]], List[Tuple[str, str, str]]]:
    """Return versions and commands of results of either kind."""
    results = [(name, score) for name, scores in runs.items() for score in scores]
    versions = {str(score.versions): score.versions for _, score in results}
    commands = [
        (name, score.seed, shlex.join(score.command)) for name, score in results if score.command
    ]
    return list(versions.values()), commands


def _signatures(scores: Sequence[Score]) -> List[Tuple[str, str]]:
    """Return the metrics with their signatures, each that there is."""
    pairs = (pair for score in scores for pair in score.signatures.items())
    return sorted(dict.fromkeys(pairs), key=lambda pair: [*METRICS, pair[0]].index(pair[0]))


def _p_values(runs: Runs, metric: str) -> Optional[Dict[str, Any]]:
    """Return p-values by run and seed against the first run, and the test's signature."""
    (_, seeds), *rest = runs.items()
    rows: Dict[str, Dict[str, str]] = {}
    signature = ""
    for name, other_seeds in rest:
        for seed, pair in common_seeds(seeds, other_seeds).items():
            row = rows.setdefault(name, {})
            if any(score.all.above_chance is False for score in pair):
                row[seed] = "nothing learned"
                continue
            statistics = [score.texts.statistics[base_metric(metric)] for score in pair]
            row[seed], signature = paired_bootstrap(metric, *statistics)
    if not rows:
        return None
    columns = list(dict.fromkeys(seed for row in rows.values() for seed in row))
    return {"columns": columns, "rows": rows, "signature": signature}


def _sentences(runs: Runs, second: Optional[str]) -> Union[str, Dict[str, List[Differing]]]:
    """Return sentences by range, or the reason, in words, why there are none."""
    if second is None:
        return "There is a single system."
    try:
        return differing(next(iter(runs.values())), runs[second])
    except UsageError as error:
        return str(error)

"""A report of many results as one HTML file, with its tables and pictures as files beside it."""

import base64
import os
import re
import shlex
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from jinja2 import Environment, StrictUndefined

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.metrics import METRICS, SACREBLEU_METRICS, metric_of
from fairseq_posenc.tools.scores.result import Score, named_path
from fairseq_posenc.tools.scores.significance import paired_bootstrap
from fairseq_posenc.tools.scores.training_log import (
    curves_rows,
    curves_table,
    read_curves,
    read_log,
)
from fairseq_posenc.tools.tables.latex import best_rows, latex
from fairseq_posenc.tools.tables.layout import ABOUT_OUTPUTS, Table
from fairseq_posenc.tools.tables.outputs import (
    ABOUT_LENGTHS,
    best_of_others,
    common_seeds,
    differing,
    length_faults,
)
from fairseq_posenc.tools.tables.plots import plot_by_length, plot_curves
from fairseq_posenc.tools.tables.runs import Runs, read_runs
from fairseq_posenc.tools.tables.tables import by_length
from fairseq_posenc.tools.tables.tasks import by_task, of_tasks, read_task_runs
from fairseq_posenc.tools.writing import replacing_files

_TEMPLATE = Path(__file__).with_name("report.html.jinja")
_LOG = "train.log"
_CURVES, _BY_LENGTH, _BY_TASK = ("curves.svg", "curves.md"), "by_length.svg", "by_task.svg"


def write_report(
    arguments: Sequence[str],
    output: str,
    *,
    baseline: Optional[str] = None,
    beside: Optional[str] = None,
    metric: Optional[str] = None,
    lower_is_better: bool = False,
    test: Optional[str] = None,
    command: Sequence[str] = (),
    remarks: Sequence[str] = (),
) -> Table:
    """Write ``report.html`` and its tables and pictures into the folder ``output``.

    Args:
        arguments: results, as :func:`.tasks.table_of` takes them; a ``train.log`` beside one is of
            its training.
        baseline: the run that others are compared with; the first without one.
        beside: the run whose translations stand beside the baseline's; without one the best other.
        metric, test: as of :func:`.tasks.table_of`; of translations several metrics, with commas:
            each has a table and a picture, and the first chooses sentences and has p-values.
        lower_is_better: of a first metric that was read from a file; of ours it is known.
        command, remarks: by which it was made, and sentences that come before its own.

    Raises:
        UsageError: as that function, a run that is not there, or ``lower_is_better`` of a metric
            of ours of which it is not.
    """
    if of_tasks(arguments):
        refused = {"--beside": beside, "--lower-is-better": lower_is_better, "--test": test}
        for option in (option for option, value in refused.items() if value):
            raise UsageError(f"{option} is for translations; these results are of posenc predict")
        tasks = _baseline_first(read_task_runs(arguments), baseline, None)
        table = by_task(tasks, metric)
        table.words = [*remarks, *table.words]
        results = [(name, score) for name, scores in tasks.items() for score in scores]
        content = {"of_translations": False, "signatures": [], **_origin(results)}
        _write(output, arguments, table, {**content, "command": shlex.join(command)})
        return table
    metric, *further = (metric or "sacrebleu").split(",")
    runs = _baseline_first(read_runs(arguments, test), baseline, beside)
    first = next(iter(runs))
    sign = _direction(metric, lower_is_better)
    table = _by_length(runs, metric, sign)
    tables = [_by_length(runs, name, _direction(name, False)) for name in further]
    table.words = [*remarks, *table.words, *_words_of_further(table, tables)]
    means = {name: row[0].mean for name, row in table.rows.items()}
    second = beside or best_of_others(means, sign)
    content = {
        "of_translations": True,
        **_content(runs, table, metric),
        "other": second,
        "sentences": _sentences(runs, first, second),
        "command": shlex.join(command),
    }
    _write(output, arguments, table, content, tables)
    return table


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
        f"{metric_of(one.metric).title}, {line}"
        for one in further
        for line in one.words
        if line not in table.words
    ]


def _write(
    output: str,
    arguments: Sequence[str],
    table: Table,
    content: Dict[str, Any],
    further: Sequence[Table] = (),
) -> None:
    """Write the report, its tables and its pictures; ``content`` is what only the HTML shows."""
    best, first = best_rows(table), next(iter(table.rows))
    name = _BY_TASK if table.is_by_task else _BY_LENGTH

    def clear() -> None:
        # of an earlier report, where this one has none
        for file in (*_CURVES, _BY_LENGTH, _BY_TASK):
            Path(output, file).unlink(missing_ok=True)
        for table in Path(output).glob("table_*.tex"):
            names = [table.with_suffix(ending) for ending in (".tex", ".md", ".csv", ".svg")]
            if all(name.is_file() for name in names):  # a further metric's
                for name in names:
                    name.unlink()

    with replacing_files(output, "report.html", clear) as folder:
        texts = _files("table", table)
        picture = os.path.join(folder, name)
        plot_by_length(table, picture)
        sections = [_further(one, folder) for one in further]
        for section in sections:
            texts.update(_files(section["stem"], section["table"]))
        shown = {"title": table.title, "table": table, "best": best, "baseline": first}
        shown.update(picture=_picture(picture), picture_name=name, further=sections)
        # a loss of fine-tuning is not one of tokens
        logs = [] if table.is_by_task else _logs(arguments, first)
        shown.update(_trainings(logs, folder))
        texts["report.html"] = _render({**shown, **content})
        for file, text in texts.items():
            Path(folder, file).write_text(text, encoding="utf-8")


def _files(stem: str, table: Table) -> Dict[str, str]:
    """Return the texts of a table by the names of their files."""
    text = latex(table, best_rows(table))
    return {f"{stem}.md": table.markdown(), f"{stem}.csv": table.csv(), f"{stem}.tex": text}


def _further(table: Table, folder: str) -> Dict[str, Any]:
    """Draw the picture of a further metric into ``folder``; return what the template shows."""
    stem = _stem(table.metric)
    picture = os.path.join(folder, f"{stem}.svg")
    plot_by_length(table, picture)
    section = {"name": metric_of(table.metric).title, "stem": stem, "table": table}
    return {**section, "best": best_rows(table), "picture": _picture(picture)}


def _stem(metric: str) -> str:
    """Return what the files of a further metric are called, without their endings."""
    return f"table_{re.sub('[^A-Za-z0-9+]', '_', metric)}"


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
    logs = [(name, os.path.join(folder, _LOG)) for name, folder in places]
    return [f"{name}={path}" for name, path in logs if os.path.isfile(path)]


def _render(content: Mapping[str, Any]) -> str:
    # names and translations are from elsewhere: all is escaped
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(content)


def _content(runs: Runs, table: Table, metric: str) -> Dict[str, Any]:
    """Return what the template shows of translations alone."""
    scores = [score for seeds in runs.values() for score in seeds]
    has_tokens = all("tokenised_bleu" in score.texts.statistics for score in scores)
    return {
        "metric": metric_of(metric).title,
        "about_outputs": ABOUT_OUTPUTS,
        "about_lengths": ABOUT_LENGTHS,
        "faults": length_faults(runs, table.columns) if has_tokens else None,
        "p_values": _p_values(runs, metric),
        "language": scores[0].language or "",
        "signatures": _signatures(scores),
        **_origin([(name, score) for name, seeds in runs.items() for score in seeds]),
    }


def _origin(results: Sequence[Tuple[str, Any]]) -> Dict[str, Any]:
    """Return versions and commands of results of either kind, each behind its name."""
    versions = {str(score.versions): score.versions for _, score in results}
    commands = [
        (name, score.seed, shlex.join(score.command)) for name, score in results if score.command
    ]
    return {"versions": list(versions.values()), "commands": commands}


def _signatures(scores: Sequence[Score]) -> List[Tuple[str, str]]:
    """Return the metrics with their signatures, each that there is."""
    pairs = (pair for score in scores for pair in score.signatures.items())
    return sorted(dict.fromkeys(pairs), key=lambda pair: [*METRICS, pair[0]].index(pair[0]))


def _p_values(runs: Runs, metric: str) -> Optional[Dict[str, Any]]:
    """Return p-values by run and seed against the first run, and the test's signature."""
    if not metric_of(metric).has_plain_text:
        return None
    (first, seeds), *rest = runs.items()
    rows: Dict[str, Dict[str, str]] = {}
    signature = ""
    for name, other_seeds in rest:
        for seed, pair in common_seeds(seeds, other_seeds).items():
            outputs: List[Any] = [score.texts.hypothesis for score in pair]
            texts = pair[0].texts
            references: Any = texts.reference and [texts.reference, *texts.more_references]
            if metric not in SACREBLEU_METRICS:
                references, outputs = None, [score.texts.statistics.get(metric) for score in pair]
            if None in outputs or (metric in SACREBLEU_METRICS and not references):
                return None
            named = list(zip((first, name), outputs))
            row = rows.setdefault(name, {})
            if any(score.all.above_chance is False for score in pair):
                row[seed] = "nothing learned"
                continue
            language = pair[0].language or ""
            values, signature = paired_bootstrap(metric, named, references, language)
            row[seed] = f"{values[1]:.4f}" if isinstance(values[1], float) else str(values[1])
    if not rows:
        return None
    columns = list(dict.fromkeys(seed for row in rows.values() for seed in row))
    return {"columns": columns, "rows": rows, "signature": signature}


def _trainings(logs: Sequence[str], folder: str) -> Dict[str, Any]:
    """Draw the curves of the trainings into ``folder``; return what the template shows of them.

    A report needs no logs: where one is of another kind, the reason stands in the curves' place.
    """
    none: Dict[str, Any] = {"trainings": [], "curves": [], "curves_notes": []}
    none["curves_picture"] = None
    if not logs:
        return {**none, "no_curves": f"No {_LOG} lies beside a score.json."}
    picture = os.path.join(folder, "curves.svg")
    try:
        curves = read_curves(logs)
        facts = [{"name": name, **read_log(path)} for name, path in map(named_path, logs)]
        plot_curves(curves, picture)
    except UsageError as error:
        return {**none, "no_curves": f"{error}."}
    Path(folder, "curves.md").write_text(curves_table(curves), encoding="utf-8")
    rows, notes = curves_rows(curves)
    return {
        "curves": rows,
        "curves_notes": notes,
        "curves_picture": _picture(picture),
        "trainings": facts,
    }


def _sentences(runs: Runs, first: str, second: Optional[str]) -> Any:
    """Return sentences by range, or the reason, in words, why there are none."""
    if second is None:
        return "There is a single system."
    try:
        return differing(runs[first], runs[second])
    except UsageError as error:
        return str(error)


def _picture(path: str) -> str:
    """Return a picture as an address that holds it."""
    data = base64.b64encode(Path(path).read_bytes()).decode("ascii")
    return f"data:image/svg+xml;base64,{data}"

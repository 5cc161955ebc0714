"""A report as one HTML file, with its tables and pictures as files beside it."""

import base64
import os
import re
import shlex
from pathlib import Path
from typing import Any, Dict, Mapping, Sequence, Union

from jinja2 import Environment, StrictUndefined

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.metrics import metric_of
from fairseq_posenc.tools.scores.training_log import Curves, curves_rows, curves_table
from fairseq_posenc.tools.tables.latex import best_rows, latex
from fairseq_posenc.tools.tables.plots import plot_by_length, plot_curves
from fairseq_posenc.tools.tables.report_content import ReportContent
from fairseq_posenc.tools.tables.sentences import ABOUT_LENGTHS
from fairseq_posenc.tools.tables.table import ABOUT_OUTPUTS, Table
from fairseq_posenc.tools.writing import replacing_files

_TEMPLATE = Path(__file__).with_name("report.html.jinja")
_CURVES, _BY_LENGTH, _BY_TASK = ("curves.svg", "curves.md"), "by_length.svg", "by_task.svg"


def write_report(report: ReportContent, output: str, command: Sequence[str] = ()) -> None:
    """Write ``report.html``, its tables and its pictures into the folder ``output``."""
    table, translations = report.table, report.translations
    name = _BY_TASK if table.is_by_task else _BY_LENGTH
    with replacing_files(output, "report.html", lambda: _clear(output)) as folder:
        sections = [_section(table, folder, "table", name)]
        for further in report.further:
            stem = f"table_{re.sub('[^A-Za-z0-9+]', '_', further.metric)}"
            sections.append(_section(further, folder, stem, f"{stem}.svg"))
        content = {
            **vars(report), "sections": sections, "baseline": next(iter(table.rows)),
            "curves": _curves(translations.curves, folder) if translations else None,
            "about_outputs": ABOUT_OUTPUTS, "about_lengths": ABOUT_LENGTHS,
            "command": shlex.join(command),
        }  # fmt: skip
        Path(folder, "report.html").write_text(_render(content), encoding="utf-8")


def _clear(output: str) -> None:
    """Remove what is of an earlier report, where the new one has none."""
    for file in (*_CURVES, _BY_LENGTH, _BY_TASK):
        Path(output, file).unlink(missing_ok=True)
    for table in Path(output).glob("table_*.tex"):
        names = [table.with_suffix(ending) for ending in (".tex", ".md", ".csv", ".svg")]
        if all(name.is_file() for name in names):  # a further metric's
            for name in names:
                name.unlink()


def _section(table: Table, folder: str, stem: str, picture: str) -> Dict[str, Any]:
    """Write a table and its picture into ``folder``; return what the template shows of them."""
    best = best_rows(table)
    texts = {"md": table.markdown(), "csv": table.csv(), "tex": latex(table, best)}
    for ending, text in texts.items():
        Path(folder, f"{stem}.{ending}").write_text(text, encoding="utf-8")
    plot_by_length(table, os.path.join(folder, picture))
    title = metric_of(table.metric).title
    return {
        "name": title, "stem": stem, "table": table, "best": best,
        "picture_name": picture, "picture": _picture(folder, picture),
    }  # fmt: skip


def _curves(curves: Union[str, Curves], folder: str) -> Dict[str, Any]:
    """Draw the curves into ``folder``; return what the template shows of them, or of their lack."""
    if isinstance(curves, str):
        return {"none": curves}
    try:
        plot_curves(curves, os.path.join(folder, "curves.svg"))
    except UsageError as error:
        return {"none": f"{error}."}
    Path(folder, "curves.md").write_text(curves_table(curves), encoding="utf-8")
    rows, notes = curves_rows(curves)
    return {"none": "", "rows": rows, "notes": notes, "picture": _picture(folder, "curves.svg")}


def _render(content: Mapping[str, Any]) -> str:
    # names and translations are from elsewhere: all is escaped
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(content)


def _picture(folder: str, name: str) -> str:
    """Return a picture as an address that holds it."""
    data = base64.b64encode(Path(folder, name).read_bytes()).decode("ascii")
    return f"data:image/svg+xml;base64,{data}"

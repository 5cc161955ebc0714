"""What a table of results is, and how it is written as Markdown and CSV."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from fairseq_posenc.tools.scores.lengths import share
from fairseq_posenc.tools.scores.metrics import digits_of, metric_of
from fairseq_posenc.tools.tables.intervals import Estimate, Sampled
from fairseq_posenc.tools.text_tables import csv_table, markdown_table, markdown_text

ABOUT_OUTPUTS = (
    "sacreBLEU without its brevity penalty, and tokens of the outputs / of the references (means "
    "over seeds): outputs that are right but end too early have a high figure and a low ratio."
)


class Outputs(NamedTuple):
    """What tells too short outputs from wrong ones; None where there is no sentence."""

    without_penalty: Optional[float] = None
    length_ratio: Optional[float] = None

    def __str__(self) -> str:
        bleu, ratio = self
        return "-" if bleu is None or ratio is None else f"{bleu:.2f}, {ratio:.3f}"


@dataclass
class Table:
    """A metric by length, a row per run: each column a set of sentences, the first all of them.

    Or metrics by task: each column examples of a task.

    Attributes:
        metric: its name, of ``METRICS`` or of a file; by task, what the table is of in words.
        label: what the columns are ranges of.
        columns, sentences: their names, and how many sentences or examples are in each.
        within: how many of them are no longer, on both sides, than the longest trained on, or None
            where not known.
        sampled: of each run and column the scores, and those of bootstrap samples.
        rows, differences: of each run and column the estimate, and that of the difference to the
            first run.
        outputs: of each run and column, means over seeds of sacreBLEU without brevity penalty and
            of the outputs' length by the references'; empty where they are not known.
        signs: of each column 1 if the highest figure is the best, -1 if the lowest, 0 if neither.
        items: what is counted in ``sentences``.
        digits: decimals of figures.
        decimals: of each column's differences in words.
        words, notes: what the figures say in sentences, and how they were computed.
    """

    metric: str
    label: str
    columns: List[str]
    sentences: List[int]
    within: List[Optional[int]]
    sampled: Dict[str, List[Sampled]]
    rows: Dict[str, List[Estimate]] = field(init=False)
    differences: Dict[str, List[Estimate]] = field(init=False)
    outputs: Dict[str, List[Outputs]] = field(default_factory=dict)
    signs: List[int] = field(default_factory=list)
    items: str = "sentences"
    digits: int = field(init=False)
    decimals: List[int] = field(default_factory=list)
    words: List[str] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        first = next(iter(self.sampled.values()))
        self.signs = self.signs or [metric_of(self.metric).direction] * len(self.columns)
        self.rows = {
            name: [sample.estimate() for sample in row] for name, row in self.sampled.items()
        }
        self.differences = {
            name: [sample.less(base) for sample, base in zip(row, first)]
            for name, row in self.sampled.items()
        }
        means = [estimate.mean for row in self.rows.values() for estimate in row]
        self.digits = 2 if self.is_by_task else digits_of(self.metric, means)
        # BLEU's are shown with two decimals, and told with one
        decimals = metric_of(self.metric).decimals if self.digits == 2 else self.digits
        self.decimals = self.decimals or [decimals] * len(self.columns)

    @property
    def is_by_task(self) -> bool:
        """Whether the columns are tasks, not all sentences and ranges of their lengths."""
        return self.items == "examples"

    @property
    def title(self) -> str:
        """What the table is of."""
        return f"{metric_of(self.metric).title} by {self.label}"

    def markdown(self) -> str:
        """Return the tables as Markdown, with aligned columns."""
        header = ["", *(f"{name} (n={n})" for name, n in zip(self.columns, self.sentences))]
        lines = [
            header,
            *([name, *(e.text(self.digits) for e in row)] for name, row in self.rows.items()),
        ]
        if self.within[0] is not None:
            lines.append(["within trained length", *map(share, self.within, self.sentences)])
        parts = [markdown_text(self.title), markdown_table(lines)]
        first, *rest = self.rows
        if rest:
            lines = [
                [name, *(estimate.signed(self.digits) for estimate in self.differences[name])]
                for name in rest
            ]
            parts += [markdown_text(f"Differences to {first}"), markdown_table([header, *lines])]
        if self.outputs:
            lines = [header, *([name, *map(str, row)] for name, row in self.outputs.items())]
            parts += [ABOUT_OUTPUTS, markdown_table(lines)]
        return "\n\n".join([*parts, *map(markdown_text, (*self.words, *self.notes))]) + "\n"

    def csv(self) -> str:
        """Return the table as CSV, a line per figure."""
        lines: List[Sequence[Any]] = [
            (
                "row", "column", self.items, "within trained length", "mean", "low", "high",
                "standard deviation", "difference", "difference low", "difference high",
                "sacreBLEU without brevity penalty", "length ratio",
            )
        ]  # fmt: skip
        for name, row in self.rows.items():
            outputs = self.outputs.get(name) or [Outputs()] * len(row)
            heads = zip(self.columns, self.sentences, self.within)
            columns = zip(heads, row, self.differences[name], outputs)
            lines += [
                (name, *of, *estimate, *difference[:3], *two)
                for of, estimate, difference, two in columns
            ]
        return csv_table(lines)

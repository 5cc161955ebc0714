"""The models of Chen et al. 2021, by the tables that have them; --rows chooses them by table."""

from typing import Dict, List, Sequence

from fairseq_posenc.errors import UsageError
from recipes.lib.config import Config, RecipeScript, pairs
from recipes.lib.experiment import complete_help
from recipes.lib.rows import PlannedRow, read_rows

MODELS = {
    "learned": "learned --position-segments input",
    "shaw": "shaw --position-segments input",
    "tupe": "tupe --position-segments input",
    "rel_scalar": "rel_scalar --position-segments per_head",
    "rel_heads": "rel_scalar --position-segments per_head --position-sharing heads",
    "rel_layers": "rel_scalar --position-segments per_head --position-sharing layers",
    "rel_input": "rel_scalar --position-segments input",
    "rel_input_heads": "rel_scalar --position-segments input --position-sharing heads",
    "rel_input_layers": "rel_scalar --position-segments input --position-sharing layers",
    "abs_input": "abs_scalar --position-segments input",
    "abs_scalar": "abs_scalar --position-segments per_head",
    "abs_128": "abs_scalar --position-segments per_head --position-rank 128",
}
_FIRST = "learned shaw tupe rel_scalar".split()
_SEGMENTS = "learned abs_input abs_scalar rel_input rel_scalar".split()
MODELS_OF: Dict[str, List[str]] = {
    "4": _FIRST,
    "5": _FIRST,
    "8": "rel_heads rel_layers rel_scalar".split(),
    "9": "rel_input_heads rel_input_layers rel_input rel_heads rel_layers rel_scalar".split(),
    "10": _SEGMENTS,
    "11": _SEGMENTS,
    "12": "learned abs_scalar abs_128 rel_scalar".split(),
}


def numbers_of(config: Config) -> List[str]:
    """The paper's tables of a recipe, by their numbers."""
    return config.overrides[-1]["tables"].replace("chen2021-", "").split(",")


def default_rows() -> List[str]:
    """Those of Table 4, as one writes them."""
    return [f"{label}={MODELS[label]}" for label in _FIRST]


def complete_bert_help(script: RecipeScript, stages: Sequence[str]) -> None:
    """Let the help of a recipe name these rows, the paper's tables, and its stages."""
    numbers = pairs(script.arrays["defaults"])["tables"].replace("chen2021-", "")
    script.arrays["defaults"] += ["--table-numbers", numbers]
    complete_help(script, stages, default_rows())


def rows_of(config: Config) -> List[PlannedRow]:
    """Return the rows that --encodings or --rows has chosen, or those of Table 4.

    Raises:
        UsageError: both are given, or no table has that number.
    """
    config.exclude("rows", "encodings")
    if not config.is_given("rows"):
        chosen = config["encodings"]
        rows = chosen.split(",") if chosen or config.is_given("encodings") else default_rows()
        return read_rows(rows)
    numbers, labels = numbers_of(config), []
    chosen = ",".join(numbers) if config["rows"] == "all" else config["rows"]
    for number in chosen.split(","):
        if number not in numbers:
            raise UsageError(f"--rows are of the tables {' '.join(numbers)}, or all, not {number}")
        labels += MODELS_OF[number]
    return read_rows([f"{label}={MODELS[label]}" for label in dict.fromkeys(labels)])


def whole_tables(tables: Sequence[str], rows: Sequence[PlannedRow]) -> List[str]:
    """Leave out the tables of which a model is not among the rows, unless that is every one."""
    labels = {row.label for row in rows}
    complete = [name for name in tables if labels.issuperset(MODELS_OF[name.rpartition("-")[2]])]
    return complete or list(tables)

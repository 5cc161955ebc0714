"""Write docs/fidelity.md: what papers, their authors' code and our recipes do, setting by setting.

    python -m recipes.claims.fidelity

Papers and reasons are in fidelity.json beside this file. What is ours is read from the commands
that the recipes print with `--plan`, and from the corpora that these name.
"""

import json
import re
import shlex
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any, Dict, List, Set, Tuple

from fairseq_posenc.encodings import format_value, options
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.metrics import SACREBLEU_METRICS, metric_of
from fairseq_posenc.tools.tables.cells import without_version
from fairseq_posenc.tools.tables.papers import load
from fairseq_posenc.tools.translation.corpora import named
from fairseq_posenc.tools.translation.shape_data import LONGEST, NEIGHBOURS, SEPARATOR
from fairseq_posenc.tools.writing import replacing

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCE, PAGE = Path(__file__).with_suffix(".json"), REPOSITORY / "docs" / "fidelity.md"
_PLAN, _GPUS = "--stage 2 --plan --device cuda".split(), "--gpus 8 --gpu-memory 32".split()
_ONE_GPU = ("recipes/glue/", "recipes/xtreme/")  # what fine-tunes
# figures are drawn of what is measured, and told on the recipes' pages
_PROGRAM = re.compile(
    r"^(?:torchrun .*?)?(?:fairseq-|posenc (?!plot |analyse )(?:prepare (?:pairs )?)?)([a-z-]+)"
)
_CORPUS = re.compile(r"runs/[^/]+/(?:bin|text|data)/([^/ ]+)")
_VARIABLE = re.compile(r"^(?:for (\w+) in (.+); do|(\w+)=\$\(\(([^()]+)\)\))$")  # of a plan's loops
_LIKE = ("as in English", "as pre-trained")  # reasons of settings that another table has
Cell = Tuple[str, ...]  # setting and row, or setting, or corpus
Values = Dict[str, Dict[str, Set[Cell]]]  # by `program --option`: value -> the cells that have it


def read_plan(recipe: str) -> Values:
    """Return the settings in all commands that ``bash recipe --plan`` prints.

    Raises:
        UsageError: the recipe fails.
    """
    command = ["bash", *shlex.split(recipe), *_PLAN]
    command += _GPUS if not recipe.startswith(_ONE_GPU) else []
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, encoding="utf-8")
    if done.returncode:
        raise UsageError(f"{recipe} --plan fails: {done.stderr.strip()[-300:]}")
    values: Values = defaultdict(lambda: defaultdict(set))
    variables: Dict[str, List[str]] = {}
    opened: Cell = ()  # the cell whose commands follow, as recipes/lib/cell.py prints them
    for line in done.stdout.splitlines():
        line = line.partition(" >")[0]  # where the output goes is not a setting
        variable = _VARIABLE.match(line)
        if variable:
            variables[variable[1] or variable[3]] = (variable[2] or "").split() or [variable[4]]
        batch = re.search(r"^# (?:\[([^]]+)\] )?an update: (\d+ \w+) = ", line)
        if batch:
            values["update batch"][batch[2]].add((batch[1] or "",))
        if line.startswith("#"):
            opened = tuple(line[7:].partition(",")[0].split("/")) if line[:7] == "# cell " else ()
        program, corpus = _PROGRAM.search(line), _CORPUS.search(line)
        if not program:
            continue
        cell = opened or (corpus[1] if corpus else "",)
        for flag, value in _options(shlex.split(line)).items():
            if program[1] != "profile-admin" or flag == "--max-tokens":
                for loop_value in variables.get(value.lstrip("$"), [value]):
                    values[f"{program[1]} {flag}"][loop_value].add(cell)
        words = line.split()
        if "--position-encoding" in words:
            encoding = words[words.index("--position-encoding") + 1]
            for name, default in options(encoding).items():
                flag = f"--position-{name.replace('_', '-')}"
                if flag not in words:
                    values[f"default {flag}"][f"{flag} {format_value(default)}"].add(
                        (*cell[:-1], encoding)
                    )
        if program[1] == "table":
            for measure in load(words[words.index("--paper") + 1]).measures.values():
                values["scoring metric"][_metric(measure.metric)].add((words[3],))
        if words[2:4] == ["pairs", "text"]:
            for name, content in named(words[4])._asdict().items():
                values[f"corpus {name}"][_words(content)].add(cell)
        if words[2:4] == ["pairs", "setting"]:
            form = f"up to {LONGEST} subwords", f"{NEIGHBOURS} joined by {SEPARATOR}"
            values["setting form"][form[words[4] == "interpolate"]].add((words[4],))
    return values


def _options(words: List[str]) -> Dict[str, str]:
    """Return the options of a command by flag; one without value is ``yes``."""
    parts = re.split(r"(?:^|\0)(--[^\0]+)", "\0".join(words))
    values = (part.strip("\0").replace("\0", " ") or "yes" for part in parts[2::2])
    return dict(zip(parts[1::2], values))


def _metric(name: str) -> str:
    """Return how a metric is called, and, of sacreBLEU's, its signature but for the version."""
    title = metric_of(name).title
    if name not in SACREBLEU_METRICS:
        return title
    metric = SACREBLEU_METRICS[name]("")
    metric.num_refs = 1
    # a bar would begin a column
    return f"{title}: " + without_version(str(metric.get_signature())).replace("|", " ")


def _words(content: Any) -> str:
    """Return what a :class:`Corpus` has under a name."""
    if isinstance(content, (list, dict)):
        return ", ".join(getattr(part, "stem", part).rpartition("/")[2] for part in content)
    if isinstance(content, tuple):
        return "{}-{} tokens, ratio {}".format(*content)
    return {None: "no", False: "no", True: "yes"}.get(content) or str(content)


def values_of(key: str, plan_values: Values) -> str:
    """Return the values of a `program --option`, and where they are, if not everywhere."""
    program, option = key.split()
    same = [
        values
        for program_option, values in plan_values.items()
        if program_option.split()[0] == program
    ]
    all_cells = set().union(*(cells for values in same for cells in values.values()))
    places: Dict[str, List[str]] = defaultdict(list)
    for value, cells in plan_values[key].items():
        cell_names = ", ".join(sorted("/".join(cell) for cell in cells))
        for part in (-1, 0):
            names = {cell[part] for cell in cells}
            if cells == {cell for cell in all_cells if cell[part] in names}:
                cell_names = "" if cells == all_cells else ", ".join(sorted(names))
        shown = value if value != "yes" or program == "corpus" else option
        places[cell_names if cell_names != shown else ""].append(shown.replace("<", "\\<"))
    return "; ".join(
        ", ".join(v) + (f" ({cell_names})" if cell_names else "")
        for cell_names, v in places.items()
    )


def page() -> str:
    """Return the page; a UsageError tells what a plan or the JSON lacks of the other."""
    content = json.loads(SOURCE.read_text(encoding="utf-8"))
    parts, shown = [content["about"]], set()
    for section in content["sections"]:
        plan_values = read_plan(section["plan"])
        # of a row without keys, which no command line has, ours is said in the JSON
        listed = {key for _, keys, *_ in section["settings"] if keys for key in keys.split(", ")}
        planned = {
            key for key in plan_values if not {key, key.split()[1]} & set(content["not settings"])
        }
        if listed != planned:
            raise UsageError(
                f"{SOURCE.name}, {section['plan']}: differ in {sorted(listed ^ planned)}"
            )
        plan = f"Ours: `bash {section['plan']} --plan`. {section['code']}"
        parts += [
            f"## {section['title']}",
            plan.strip(),
            *_rows(section["settings"], plan_values, shown),
        ]
    return "\n\n".join(parts) + "\n"


def _rows(settings: List[List[str]], plan_values: Values, shown: Set[str]) -> List[str]:
    """Return the table of what has a reason, and what neither the paper nor its code says.

    Args:
        settings: of a section of fidelity.json.
        plan_values: what :func:`read_plan` returned.
        shown: the rows of the tables before, to which those of this table are added.
    """
    code = ["Authors' code"] * any(authors_code != "—" for _, _, _, authors_code, *_ in settings)
    heads = ["Setting", "Paper", *code, "Ours", "Why"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    unsaid = []
    for name, keys, paper, authors_code, why, *said in settings:
        mine = "; ".join(
            said or dict.fromkeys(values_of(key, plan_values) for key in keys.split(", "))
        )
        silent = paper.startswith("—") and authors_code == "—"
        line = f"{name} ({mine})" if silent and not why else ""
        if why and why not in _LIKE:
            line = "| " + " | ".join([name, paper, *[authors_code for _ in code], mine, why]) + " |"
        if line and line not in shown:
            (lines if why else unsaid).append(line)
            shown.add(line)
    return ["\n".join(lines), *["Both are silent: " + "; ".join(unsaid) + "."] * bool(unsaid)]


if __name__ == "__main__":
    with replacing(str(PAGE)) as stream:
        stream.write(page())

"""The page of a recipe, and what the user says beside it.

A recipe's script holds arrays, ends with ``recipe KIND "$@"``, and says in its first comment what
it reproduces; ``--help`` prints that comment. Of the arrays, all kinds of recipe know

    options    its own options, as lines of help: ``"--pairs N   joined pairs of Table 1"``
    defaults   values of options, as one would give them, and of names that only the page can give
    rows       ``label=encoding option…`` or ``encoding option…``, one word each
    smoke, gpu, tiny …   other defaults, for --smoke and the names in ``presets``
    train, generate, score   words of a command; {name} in them is the value of an option

An option ``--updates N`` has a whole number, ``--lr X`` a number, ``LIST`` is divided by commas,
``a|b`` is one of these, other words are read by their kind; one without a word is a flag. A
``{field}`` that is no option and has no default is an error, and so is in recipes for translation
an option that the user gives and nothing reads: :meth:`Values.check_read`. ``DIR``, ``FOLDER``,
``PREFIX``, ``TEXT`` and ``ROW=CHECKPOINT`` are paths: a user names them from where the recipe was
started, and all runs from the top of the repository. What the user gives goes before --smoke, a
preset, the setting's own array, and the defaults. Options of fairseq-train behind ``--`` are added
to the preset's own, ``gpu_train``, whose precision is left out if there is one behind ``--``. Those
that each training has of its own are refused there. A user's words are filled in once, and never
read again: a folder may be called ``x{seed}``.
"""

import math
import os
import re
import sys
from fractions import Fraction
from typing import Dict, Iterable, List, Mapping, NamedTuple, Sequence, Set, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import parse_number
from recipes.lib.devices import is_half

FLAG = "yes"
_OPTION = re.compile(r"^  (--[a-z-]+)(?: (\S+))?(?:  |$)", re.M)
_PATHS = "DIR", "FOLDER", "PREFIX", "TEXT", "CHECKPOINT"
# options of fairseq-train that differ between trainings, and the recipe's option that says them
_OF_TRAININGS = {
    "--position-encoding": "--encodings", "--seed": "--seeds", "--save-dir": "--run-dir",
    **{name: "--help" for name in ("--source-lang", "--target-lang")},
}  # fmt: skip
_FIELD = re.compile(r"\{([a-z][a-z-]*)\}")
_NUMBERS = "X", "S", "SHARE"  # words of options that have a number
_COMPUTED = "warmup-updates"
# options of fairseq-train whose values are paths
_PATH_OPTION = re.compile(r"--(?:[a-z-]+-)?(?:dir|logdir|file|path|from-model)")


class Page(NamedTuple):
    """A recipe's script, as :mod:`recipes.lib` gets it."""

    recipe_kind: str
    script: str
    started_in: str
    arrays: Dict[str, List[str]]

    @property
    def name(self) -> str:
        """The script, from the top of the repository."""
        return os.path.relpath(self.script)

    @property
    def usage(self) -> str:
        """What stands behind the script's name."""
        return self.arrays.get("usage", ["[options] [-- options for fairseq-train]"])[0]

    @property
    def about(self) -> str:
        """The first comment of the script."""
        with open(self.script, encoding="utf-8") as stream:
            lines = stream.read().splitlines()[1:]
        end = next(number for number, line in enumerate(lines) if not line.startswith("#"))
        return "\n".join(line[2:] for line in lines[:end])


def read_page(words: Sequence[str]) -> Tuple[Page, List[str]]:
    """Return the page in the words that recipes/lib/recipe.sh passes, and the user's arguments."""
    recipe_kind, script, started_in, *rest = words
    arrays: Dict[str, List[str]] = {}
    while rest[0] != "--":
        name, count = rest[0], int(rest[1])
        arrays[name], rest = rest[2 : 2 + count], rest[2 + count :]
    return Page(recipe_kind, script, started_in, arrays), rest[1:]


class Values:
    """What is said of each option, by the first of several layers that says something."""

    def __init__(self, layers: Sequence[Dict[str, str]], options: Iterable[str] = ()):
        """Keep the layers, and the names of the options that may have no value."""
        self.layers, self.options = list(layers), frozenset(options)
        self.names_read: Set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names_read.add(name)
        if name == _COMPUTED:
            return self._warmup()
        return next((layer[name] for layer in self.layers if name in layer), "")

    def _warmup(self) -> str:
        """A share of the updates, or a number of them, which is at most half."""
        warmup, updates = self["warmup"], self["updates"]
        if Fraction(warmup or 0) < 1:
            return str(int(Fraction(warmup or 0) * int(updates or 0)))
        return str(min(int(warmup), int(updates) // 2) if updates else int(warmup))

    def number(self, name: str, otherwise: int = 0) -> int:
        """The whole number of an option."""
        return int(self[name] or otherwise)

    def list(self, name: str) -> List[str]:
        """The parts of a list."""
        return [part for part in re.split("[, ]", self[name]) if part]

    def given(self, name: str) -> bool:
        """Return whether the user has said it."""
        return name in self.layers[0]

    def over(self, layer: Dict[str, str]) -> "Values":
        """Values in which a layer goes before the defaults alone."""
        values = Values([*self.layers[:-1], layer, self.layers[-1]], self.options)
        values.names_read = self.names_read
        return values

    def check_read(self, names: Iterable[str]) -> None:
        """Raise a UsageError for an option of ``names`` that the user gives and nothing reads."""
        for name in names:
            if name != "preset" and self.given(name) and name not in self.names_read:
                preset = self["preset"]
                raise UsageError(
                    f"--{name} would be without effect"
                    + (f" with --preset {preset}" if preset else "")
                    + ": leave it out"
                )

    def fill(self, words: Iterable[str]) -> List[str]:
        """Fill in values; an option whose whole value is empty is left out."""
        filled: List[str] = []
        for word in words:
            name = _FIELD.fullmatch(word)
            if name and not self._declared(name[1]):
                if filled and filled[-1].startswith("--"):
                    filled.pop()
                continue
            filled.append(self.text(word))
        return filled

    def text(self, text: str) -> str:
        """Fill values into a text."""
        return _FIELD.sub(lambda field: self._declared(field[1]), text)

    def _declared(self, name: str) -> str:
        """Return the value of a page's field.

        Raises:
            UsageError: no option and no default has this name: a flag would be lost silently.
        """
        if name not in {_COMPUTED, *self.options}.union(*self.layers):
            raise UsageError(
                f"the page has {{{name}}}, which is neither an option nor has a default: declare it"
            )
        return self[name]


class CommandLine(NamedTuple):
    """A user's command line, read.

    Attributes:
        values: by the page and the user.
        words: all before ``--``, but for --plan and --slurm.
        passthrough: all behind it: options of fairseq-train.
        extra: the preset's options of fairseq-train, and these.
    """

    values: Values
    words: List[str]
    passthrough: List[str]
    extra: List[str]


def own_options(page: Page) -> List[str]:
    """Return the names of the page's own options, without ``--``."""
    lines = (f"  {line}" for line in page.arrays.get("options", []))
    return [match[1][2:] for match in map(_OPTION.match, lines) if match]


def pairs(words: Sequence[str]) -> Dict[str, str]:
    """Read ``--name value --name value`` as a page has them."""
    return {name[2:]: value for name, value in zip(words[::2], words[1::2])}


def read_options(
    page: Page, text: str, arguments: List[str], presets: Sequence[str] = ()
) -> CommandLine:
    """Read the user's arguments by the help of a recipe, or print it and end.

    Args:
        page: of the recipe.
        text: the help of all options of its kind, which says what there is.
        arguments: the user's.
        presets: arrays of the page that are values of --preset.

    Raises:
        UsageError: an option is unknown, or its value is none.
    """
    own = "\n".join(f"  {line}" for line in page.arrays.get("options", []))
    text = text.replace("{own options}\n", f"{own}\n" if own else "")
    forms = {name: form for name, form in _OPTION.findall(text)}
    forms["--help"] = forms["-h"] = ""
    defaults = {"preset": "", **pairs(page.arrays.get("defaults", []))}
    end = arguments.index("--") if "--" in arguments else len(arguments)
    passthrough, of_preset = _passthrough_from_top(page, arguments[end + 1 :]), []
    _check_passthrough(page, passthrough)
    chosen, words = _read_words(page, forms, arguments[:end])
    layers = [chosen]
    layers += [pairs(page.arrays[name]) for name in ("smoke", "fast") if name in chosen]
    preset = chosen.get("preset") or defaults["preset"]
    if preset:
        if preset not in presets:
            *most, last = presets
            choices = f"{', '.join(most)} or {last}" if most else last
            raise UsageError(f"--preset is {choices}, not {preset}")
        layers.append(pairs(page.arrays[preset]))
        of_preset = page.arrays.get(f"{preset}_train", [])
        if is_half(passthrough):  # instead of the preset's
            of_preset = [word for word in of_preset if not is_half([word])]
    values = Values([*layers, defaults], (name[2:] for name in forms))
    if {"help", "h", ""} & chosen.keys():
        # rows have fields too, of which some have no value before a text or a setting is chosen
        defaults_shown = _FIELD.sub(lambda field: values[field[1]], text)
        filled = _FIELD.sub(lambda field: values[field[1]] or "…", defaults_shown)
        _print_help(page, filled)
    return CommandLine(values, words, passthrough, [*of_preset, *passthrough])


def _read_words(
    page: Page, forms: Mapping[str, str], arguments: Sequence[str]
) -> Tuple[Dict[str, str], List[str]]:
    """Return the options that are given, without ``--``, and the words that give them again."""
    chosen, words, left = {}, [], iter(arguments)
    for name in left:
        if forms.get(name) == "":
            chosen[name[2:]] = FLAG
            words += [name] if name not in ("--plan", "--slurm") else []
            continue
        value = next(left, None)
        if value is None:
            raise UsageError(f"{name} needs a value, or is not an option; see --help")
        if name not in forms:
            raise UsageError(f"unknown option {name}; see --help")
        if forms[name] == "LIST":
            value = re.sub(r"\s*,\s*", ",", value).strip()
        _check(name, forms[name], value)
        value = _from_top(page, forms[name], value)
        words += [name, value]
        again = forms[name].count("=") or name == "--add"
        chosen[name[2:]] = f"{chosen[name[2:]]}\n{value}" if again and name[2:] in chosen else value
    return chosen, words


def _print_help(page: Page, text: str) -> None:
    print(f"usage: bash {page.name} {page.usage}\n\n{page.about}\n\n{text.rstrip()}")
    for line in page.arrays.get("notes", []):
        print(f"\n{line}")
    sys.exit()


def _check(name: str, form: str, value: str) -> None:
    """Raise a UsageError for a value that is not of the form in the help."""
    # an empty folder to read from is none: what is in it is downloaded
    if not value.strip() and (form != "DIR" or name == "--run-dir"):
        raise UsageError(f"{name} needs a value, and has an empty one; leave it out")
    if value.startswith("--") and form != "OPTIONS":
        raise UsageError(f"{name} needs a value; a name that begins with -- is written ./--name")
    if form == "N" and not re.fullmatch("[1-9][0-9]*", value):
        raise UsageError(f"{value} is not a whole number above 0 ({name}; see --help)")
    if form in _NUMBERS or name == "--lrs":
        for number in value.split(","):
            _check_number(name, number)
    if "|" in form and value not in form.split("|"):
        *most, last = form.split("|")
        raise UsageError(f"{name} is {', '.join(most)} or {last}, not {value}")
    if name == "--seeds":
        for seed in value.split(","):
            if not re.fullmatch("0|[1-9][0-9]*", seed):
                raise UsageError(f"{seed} is not a whole number (--seeds; see --help)")
    if name in ("--bins", "--edges"):
        edges = value.split(",")
        edges = edges[:-1] if name == "--bins" and edges[-1] == "auto" else edges
        numbers = [int(edge) if edge.isdecimal() else 0 for edge in edges]
        if numbers != sorted({*numbers} - {0}):
            raise UsageError(f"{name} takes rising whole numbers such as 10,20, not {value}")
    if form == "LIST" and name not in ("--encodings", "--rows", "--url"):
        no_repeats(name, value.split(","))


def _check_number(name: str, text: str) -> None:
    try:
        number = parse_number(text)
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf or (number == 0 and name not in ("--lr", "--lrs"))):
        least = "above" if name in ("--lr", "--lrs") else "of at least"
        raise UsageError(f"{text} is not a number {least} 0 ({name}; see --help)")


def _check_passthrough(page: Page, words: Sequence[str]) -> None:
    """Raise a UsageError for an option of fairseq-train that each training has of its own."""
    if words and "-- options" not in page.usage:
        raise UsageError("no options for fairseq-train are taken behind --; see --help")
    for name in (word.partition("=")[0] for word in words):
        if name in _OF_TRAININGS:
            raise UsageError(f"each training has a {name} of its own: see {_OF_TRAININGS[name]}")


def _from_top(page: Page, form: str, value: str) -> str:
    """Return the value of an option in which paths are named from the top of the repository."""
    start = page.started_in
    is_path = form.rpartition("=")[2] in _PATHS
    if not (value and is_path) or os.path.realpath(start) == os.getcwd():
        return value
    is_named = form == "TEXT" or "=" in form
    if os.path.exists(os.path.join(start, value)) or not (is_named and "=" in value):
        return os.path.join(start, value)
    # ROW=PATH, or LANGUAGE=PATH,LANGUAGE=PATH…
    named = [part.partition("=") for part in value.split(",")]
    return ",".join(f"{label}={os.path.join(start, path)}" for label, _, path in named)


def _passthrough_from_top(page: Page, words: Sequence[str]) -> List[str]:
    """Return options of fairseq-train in which paths are named from the top of the repository."""
    if os.path.realpath(page.started_in) == os.getcwd():
        return list(words)
    named: List[str] = []
    for word in words:
        option, equals, value = word.partition("=")
        if equals and _PATH_OPTION.fullmatch(option):
            word = f"{option}={os.path.join(page.started_in, value)}"
        elif named and _PATH_OPTION.fullmatch(named[-1]):
            word = os.path.join(page.started_in, word)
        named.append(word)
    return named


def no_repeats(name: str, words: Sequence[str]) -> None:
    """Raise a UsageError where a word is there twice: each has a folder of its own."""
    twice = sorted({word for word in words if words.count(word) > 1})
    if twice:
        raise UsageError(f"{name} has {','.join(twice)} more than once: they would share a folder")

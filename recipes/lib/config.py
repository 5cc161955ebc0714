"""The options of a recipe: of its script, and the user's.

A recipe's script holds arrays, ends with ``recipe KIND "$@"``, and says in its first comment what
it reproduces; ``--help`` prints that comment. Of the arrays, all kinds of recipe know

    options    its own options, as lines of help: ``"--pairs N   joined pairs of Table 1"``
    defaults   values of options, as one would give them, and of names that only the script can give
    rows       ``label=encoding option…`` or ``encoding option…``, one word each
    smoke, gpu, tiny …   other defaults, for --smoke and the names in ``presets``
    train, generate, score   words of a command; {name} in them is the value of an option

What all scripts of a kind take is in ``recipes/lib/help/KIND.txt``, in the same form. An option
``--updates N`` has a whole number, ``--lr X`` a number, ``LIST`` is divided by commas,
``a|b`` is one of these, other words are read by their kind; one without a word is a flag. A
``{field}`` that is no option and has no default is an error, and so is in recipes for translation
an option that the user gives and nothing reads: :meth:`Config.check_read`. ``DIR``, ``FOLDER``,
``PREFIX``, ``TEXT`` and ``ROW=CHECKPOINT`` are paths: a user names them from where the recipe was
started, and all runs from the top of the repository. What the user gives goes before --smoke, a
preset, the setting's own array, and the defaults. Options of fairseq-train behind ``--`` are added
to the preset's own, ``gpu_train``, whose precision is left out if there is one behind ``--``. Those
that each training has of its own are refused there. A user's words are filled in once, and never
read again: a folder may be called ``x{seed}``.
"""

import os
import re
import sys
from fractions import Fraction
from typing import Dict, Iterable, List, Mapping, NamedTuple, Sequence, Set, Tuple

from fairseq_posenc.errors import UsageError
from recipes.lib.devices import is_half
from recipes.lib.value_checks import check_value

FLAG = "yes"
_OPTION = re.compile(r"^  (--[a-z-]+)(?: (\S+))?(?:  |$)", re.M)
_PATHS = "DIR", "FOLDER", "PREFIX", "TEXT", "CHECKPOINT"
# options of fairseq-train that differ between trainings, and the recipe's option that says them
_OF_TRAININGS = {
    "--position-encoding": "--encodings", "--seed": "--seeds", "--save-dir": "--run-dir",
    **{name: "--help" for name in ("--source-lang", "--target-lang")},
}  # fmt: skip
_FIELD = re.compile(r"\{([a-z][a-z-]*)\}")
_COMPUTED = "warmup-updates"
# options of fairseq-train whose values are paths
_PATH_OPTION = re.compile(r"--(?:[a-z-]+-)?(?:dir|logdir|file|path|from-model)")


class RecipeScript(NamedTuple):
    """A recipe's script, as :mod:`recipes.lib` gets it."""

    recipe_kind: str
    path: str
    started_in: str
    arrays: Dict[str, List[str]]

    @property
    def name(self) -> str:
        """The script, from the top of the repository."""
        return os.path.relpath(self.path)

    @property
    def usage(self) -> str:
        """What stands behind the script's name."""
        return self.arrays.get("usage", ["[options] [-- options for fairseq-train]"])[0]

    @property
    def about(self) -> str:
        """The first comment of the script."""
        with open(self.path, encoding="utf-8") as stream:
            lines = stream.read().splitlines()[1:]
        end = next(number for number, line in enumerate(lines) if not line.startswith("#"))
        return "\n".join(line[2:] for line in lines[:end])


def read_script(words: Sequence[str]) -> Tuple[RecipeScript, List[str]]:
    """Return the script in what recipes/lib/recipe.sh passes, and the user's arguments."""
    recipe_kind, script, started_in, *rest = words
    arrays: Dict[str, List[str]] = {}
    while rest[0] != "--":
        name, count = rest[0], int(rest[1])
        arrays[name], rest = rest[2 : 2 + count], rest[2 + count :]
    return RecipeScript(recipe_kind, script, started_in, arrays), rest[1:]


class Config:
    """The value of each option: the user's, or that of the first of other overrides, or a default.

    Attributes:
        overrides: values by name, from the user's, the first, to the defaults, the last.
        options: names that may have no value.
        names_read: those that something has read.
    """

    def __init__(self, overrides: Sequence[Dict[str, str]], options: Iterable[str] = ()):
        self.overrides, self.options = list(overrides), frozenset(options)
        self.names_read: Set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names_read.add(name)
        if name == _COMPUTED:
            return self._warmup()
        return next((values[name] for values in self.overrides if name in values), "")

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

    def set_defaults(self, values: Dict[str, str]) -> None:
        """Set defaults that are known once other options are."""
        self.overrides[-1].update(values)

    def set(self, values: Dict[str, str]) -> None:
        """Put values in place of the user's."""
        self.overrides[0].update(values)

    def is_given(self, name: str) -> bool:
        """Return whether the user has said it."""
        return name in self.overrides[0]

    def with_overrides(self, values: Dict[str, str]) -> "Config":
        """A copy in which ``values`` go before the defaults alone."""
        config = Config([*self.overrides[:-1], values, self.overrides[-1]], self.options)
        config.names_read = self.names_read
        return config

    def exclude(self, option: str, *useless: str) -> None:
        """Raise a UsageError for an option that is given beside one that makes it useless."""
        for name in useless if self[option] else ():
            if self.is_given(name):
                raise UsageError(f"--{name} would be without effect with --{option}: leave it out")

    def check_read(self, names: Iterable[str]) -> None:
        """Raise a UsageError for an option of ``names`` that the user gives and nothing reads."""
        for name in names:
            if name != "preset" and self.is_given(name) and name not in self.names_read:
                preset = self["preset"]
                raise UsageError(
                    f"--{name} would be without effect"
                    + (f" with --preset {preset}" if preset else "")
                    + ": leave it out"
                )

    def interpolate(self, words: Iterable[str]) -> List[str]:
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
        """Return the value of a script's field.

        Raises:
            UsageError: no option and no default has this name: a flag would be lost silently.
        """
        if name not in {_COMPUTED, *self.options}.union(*self.overrides):
            raise UsageError(
                f"the script has {{{name}}}, which is neither an option nor has a default: "
                "declare it"
            )
        return self[name]


class ParsedArguments(NamedTuple):
    """A user's command line, read.

    Attributes:
        config: of the script and the user.
        words: of each option before ``--``, but for --plan and --slurm: those that give it again.
        passthrough: all behind it: options of fairseq-train.
        extra: the preset's options of fairseq-train, and these.
    """

    config: Config
    words: Dict[str, List[str]]
    passthrough: List[str]
    extra: List[str]


def own_options(script: RecipeScript) -> List[str]:
    """Return the names of the script's own options, without ``--``."""
    lines = (f"  {line}" for line in script.arrays.get("options", []))
    return [match[1][2:] for match in map(_OPTION.match, lines) if match]


def pairs(words: Sequence[str]) -> Dict[str, str]:
    """Read ``--name value --name value`` as a script has them."""
    return {name[2:]: value for name, value in zip(words[::2], words[1::2])}


def read_options(script: RecipeScript, text: str, arguments: List[str]) -> ParsedArguments:
    """Read the user's arguments by the help of a recipe, or print it and end.

    Args:
        script: of the recipe.
        text: the help of all options of its kind, which says what there is.
        arguments: the user's.

    Raises:
        UsageError: an option is unknown or given twice, or its value is none.
    """
    own = "\n".join(f"  {line}" for line in script.arrays.get("options", []))
    text = text.replace("{own options}\n", f"{own}\n" if own else "")
    forms = {name: form for name, form in _OPTION.findall(text)}
    forms["--help"] = forms["-h"] = ""
    defaults = {"preset": "", **pairs(script.arrays.get("defaults", []))}
    end = arguments.index("--") if "--" in arguments else len(arguments)
    passthrough, of_preset = _passthrough_from_top(script, arguments[end + 1 :]), []
    _check_passthrough(script, passthrough)
    chosen, words = _read_words(script, forms, arguments[:end])
    overrides = [chosen]
    overrides += [pairs(script.arrays[name]) for name in ("smoke", "fast") if name in chosen]
    preset = chosen.get("preset") or defaults["preset"]
    if preset:
        presets = script.arrays["presets"]
        if preset not in presets:
            *most, last = presets
            choices = f"{', '.join(most)} or {last}" if most else last
            raise UsageError(f"--preset is {choices}, not {preset}")
        overrides.append(pairs(script.arrays[preset]))
        of_preset = script.arrays.get(f"{preset}_train", [])
        if is_half(passthrough):  # instead of the preset's
            of_preset = [word for word in of_preset if not is_half([word])]
    config = Config([*overrides, defaults], (name[2:] for name in forms))
    if {"help", ""} & chosen.keys():  # --help, -h
        # rows have fields too, of which some have no value before a text or a setting is chosen
        defaults_shown = _FIELD.sub(lambda field: config[field[1]], text)
        filled = _FIELD.sub(lambda field: config[field[1]] or "…", defaults_shown)
        _print_help(script, filled)
    return ParsedArguments(config, words, passthrough, [*of_preset, *passthrough])


def _read_words(
    script: RecipeScript, forms: Mapping[str, str], arguments: Sequence[str]
) -> Tuple[Dict[str, str], Dict[str, List[str]]]:
    """Return the options that are given, without ``--``, and the words that give each again."""
    chosen: Dict[str, str] = {}
    words: Dict[str, List[str]] = {}
    left = iter(arguments)
    for argument in left:
        name, equals, inline_value = argument.partition("=")
        if forms.get(name) == "":
            if equals:
                raise UsageError(f"{name} takes no value; see --help")
            chosen[name[2:]] = FLAG
            if name not in ("--plan", "--slurm"):
                words[name] = [name]
            continue
        value = inline_value if equals else next(left, None)
        if value is None:
            raise UsageError(f"{name} needs a value, or is not an option; see --help")
        if name not in forms:
            raise UsageError(f"unknown option {name}; see --help")
        if forms[name] in ("LIST", "N[,none]"):
            value = re.sub(r"\s*,\s*", ",", value).strip()
        check_value(name, forms[name], value)
        value = _from_top(script, forms[name], value)
        is_repeated = name in words
        if is_repeated and not (forms[name].count("=") or name == "--add"):
            raise UsageError(f"{name} is given twice, but it takes one value; give it once")
        words.setdefault(name, []).extend([name, value])
        chosen[name[2:]] = f"{chosen[name[2:]]}\n{value}" if is_repeated else value
    return chosen, words


def _print_help(script: RecipeScript, text: str) -> None:
    print(f"usage: bash {script.name} {script.usage}\n\n{script.about}\n\n{text.rstrip()}")
    for line in script.arrays.get("notes", []):
        print(f"\n{line}")
    sys.exit()


def _check_passthrough(script: RecipeScript, words: Sequence[str]) -> None:
    """Raise a UsageError for an option of fairseq-train that each training has of its own."""
    if words and "-- options" not in script.usage:
        raise UsageError("no options for fairseq-train are taken behind --; see --help")
    for name in (word.partition("=")[0] for word in words):
        if name in _OF_TRAININGS:
            raise UsageError(f"each training has a {name} of its own: see {_OF_TRAININGS[name]}")


def _from_top(script: RecipeScript, form: str, value: str) -> str:
    """Return the value of an option in which paths are named from the top of the repository."""
    start = script.started_in
    is_path = form.rpartition("=")[2] in _PATHS
    if not (value and is_path) or os.path.realpath(start) == os.getcwd():
        return value
    is_named = form == "TEXT" or "=" in form
    if os.path.exists(os.path.join(start, value)) or not (is_named and "=" in value):
        return os.path.join(start, value)
    # ROW=PATH, or LANGUAGE=PATH,LANGUAGE=PATH…
    named = [part.partition("=") for part in value.split(",")]
    return ",".join(f"{label}={os.path.join(start, path)}" for label, _, path in named)


def _passthrough_from_top(script: RecipeScript, words: Sequence[str]) -> List[str]:
    """Return options of fairseq-train in which paths are named from the top of the repository."""
    if os.path.realpath(script.started_in) == os.getcwd():
        return list(words)
    named: List[str] = []
    for word in words:
        option, equals, value = word.partition("=")
        if equals and _PATH_OPTION.fullmatch(option):
            word = f"{option}={os.path.join(script.started_in, value)}"
        elif named and _PATH_OPTION.fullmatch(named[-1]):
            word = os.path.join(script.started_in, word)
        named.append(word)
    return named

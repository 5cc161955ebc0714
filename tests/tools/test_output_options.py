"""What commands write: never what they read."""

import argparse
import importlib
import os
import sys

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools import cli
from fairseq_posenc.tools.output_options import Parser, refuse_repeated

COMMANDS = [name for name in cli.COMMANDS if name != "prepare"]
COMMANDS += [f"prepare {name}" for name in cli.PREPARATIONS]
# which write nothing, or (glue-submission) into the folder of the runs under names of their own
WITHOUT = ["path", "encodings", "glue-submission", "prepare pairs files"]
WITHOUT += ["prepare pairs operations"]
# of fairseq's parsers, the options that name what is read
READ = {
    "profile-admin": ["finetune_from_model", "restore_file"],
    "prepare binarise": ["trainpref", "srcdict"],
}
MORE = {"profile-admin": ["bin", "--arch", "transformer_tiny"]}
WORDS = {"positive": "1", "whole_numbers": "1,2", "languages": "en,de", "key_value": "a=b"}


class Found(Exception):
    """Has the parser of a command as its argument."""


def main_of(command):
    module = "_".join(command.replace("-", "_").split())
    return importlib.import_module(f"fairseq_posenc.tools.commands.{module}").main


def parser_of(command):
    """The parser that a command makes itself."""

    def found(parser, *_):
        if isinstance(parser, Parser) or any(
            hasattr(one, "output_type") for one in parser._actions
        ):
            raise Found(parser)
        return really(parser, *_)

    really = argparse.ArgumentParser.parse_known_args
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_known_args", found)
        patch.setattr(sys, "argv", [command, "word"])
        try:
            main_of(command)()
        except Found as one:
            return one.args[0]
    raise AssertionError(f"posenc {command} has a parser that does not check outputs")


def leaves(command, parser):
    """The parsers of a command that take its options, by the words that lead to them."""
    below = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    if not below:
        return {command: parser}
    pairs = [leaves(f"{command} {name}", one) for name, one in below[0].choices.items()]
    return {name: one for each in pairs for name, one in each.items()}


PARSERS = {
    name: one for word in COMMANDS for name, one in leaves(word, parser_of(word)).items()
}  # fmt: skip
OUTPUTS = [
    (command, action)
    for command, parser in PARSERS.items()
    for action in parser._actions
    if hasattr(action, "output_type")
]


def shown(one):
    return one if isinstance(one, str) else one.option_strings[-1]


every_output = pytest.mark.parametrize("command, output", OUTPUTS, ids=shown)


def words_for(action, value):
    many = action.nargs if isinstance(action.nargs, int) else 1
    return [*action.option_strings[-1:], *[str(value)] * many]


def line_with(command, **values):
    """A command line with all that is required, and with values of some options."""
    parser, words = PARSERS[command], []
    chosen = {
        group._group_actions[0].dest for group in parser._mutually_exclusive_groups
        if group.required and not any(one.dest in values for one in group._group_actions)
    }  # fmt: skip
    for action in parser._actions:
        kind = getattr(action.type, "__name__", "")
        if action.dest in values:
            words.append(words_for(action, values[action.dest]))
        elif action.required or action.dest in chosen:
            known = next(iter(action.choices)) if action.choices else WORDS.get(kind, "word")
            words.append(words_for(action, known))
    words.sort(key=lambda one: one[0].startswith("--"))  # arguments first: an option may take many
    return [word for one in words for word in one] + MORE.get(command, [])


def run(command, words, monkeypatch):
    """Run a command to where its outputs are checked, or beyond."""
    program = command
    while program not in COMMANDS:
        program, _, word = program.rpartition(" ")
        words = [word, *words]
    monkeypatch.setattr(sys, "argv", [program, *words])
    main_of(program)()


def inputs_of(command, output):
    """The options that may name a file or folder to read."""
    if command in READ:
        return READ[command]
    return [
        one.dest for one in PARSERS[command]._actions
        if one.dest != output.dest and one.nargs != 0 and not one.choices and one.dest != "corpus"
        and getattr(one.type, "__name__", "key_value") == "key_value"
    ]  # fmt: skip


def test_every_command_marks_what_it_writes():
    for command, parser in PARSERS.items():
        marked = [action for action in parser._actions if hasattr(action, "output_type")]
        assert bool(marked) != (command in WITHOUT), command
        for action in parser._actions if isinstance(parser, Parser) else ():
            names = " ".join([action.dest, *action.option_strings])
            writes = any(word in names for word in ("output", "unpack", "write", "dest", "save"))
            assert action in marked or not writes, (command, names)


@every_output
@pytest.mark.parametrize("way", ["same", "dots", "link", "hard link", "folder's link"])
def test_an_input_is_never_an_output(command, output, way, tmp_path, monkeypatch):
    kind = output.output_type
    if way == "hard link" and kind.is_folder:
        pytest.skip("folders have none")
    home = tmp_path / "home"
    home.mkdir()
    name = home / "it"
    file = home / ("it.en" if kind.prefix else "it/test" if kind.is_folder else "it")
    file.parent.mkdir(exist_ok=True)
    file.write_text("a line\n")
    other = home / "other"
    if way == "same":
        other = name
    elif way == "dots":
        other = home / ".." / "home" / "." / "it"
    elif way == "folder's link":
        (tmp_path / "linked").symlink_to(home)
        other = tmp_path / "linked" / "it"
    else:
        target = other.with_name("other.en" if kind.prefix else "other")
        link = os.link if way == "hard link" else os.symlink
        link(file if kind.prefix else name, target)
    for dest in inputs_of(command, output):
        [action] = (one for one in PARSERS[command]._actions if one.dest == dest)
        pair = getattr(action.type, "__name__", "") == "key_value"
        values = {output.dest: name, dest: f"key={other}" if pair else other}
        with pytest.raises(UsageError, match="and would be lost; name another"):
            run(command, line_with(command, **values), monkeypatch)
        assert file.read_text() == "a line\n"


@every_output
def test_what_is_no_file_or_folder_is_not_replaced(command, output, tmp_path, monkeypatch):
    if output.output_type.prefix:
        pytest.skip("its files are found by their names")
    place = tmp_path / "it"
    place.write_text("") if output.output_type.is_folder else os.mkfifo(place)
    with pytest.raises(UsageError, match="is there, and not a"):
        run(command, line_with(command, **{output.dest: place}), monkeypatch)


@pytest.mark.parametrize(
    "command, option, value",
    [
        ("score", "--metrics", "sacrebleu, ter"),
        ("score", "--bins", "10, auto"),
        ("perplexity", "--lengths", "16, 32"),
        ("predict", "--subsets", "valid, valid1"),
    ],
)
def test_a_blank_behind_a_comma_does_not_count(command, option, value):
    parse = next(a.type for a in PARSERS[command]._actions if option in a.option_strings)
    assert parse(value) == parse(value.replace(" ", ""))


@pytest.mark.parametrize("command", PARSERS)
def test_an_option_given_twice_is_refused_where_the_last_would_win(command, capsys):
    """Of an option of fairseq-train, which profile-admin takes, a later value overrides."""
    parser = PARSERS[command]
    if isinstance(parser, Parser):
        refuse_repeated(parser)
    takes_fairseqs = command == "profile-admin"
    actions = [
        one for one in parser._actions
        if isinstance(one, argparse._StoreAction) and one.option_strings
        and (hasattr(one, "output_type") or not takes_fairseqs)
    ]  # fmt: skip
    assert actions or command in WITHOUT
    for action in actions:
        flag, word = action.option_strings[-1], WORDS.get(getattr(action.type, "__name__", ""), "1")
        word = str([*action.choices][0]) if action.choices else word
        with pytest.raises(SystemExit):
            argparse.ArgumentParser.parse_known_args(parser, [flag, word, flag, word])
        assert f"argument {'/'.join(action.option_strings)}: given twice" in capsys.readouterr().err


def test_a_key_with_two_values_is_refused(fails):
    for flag in ("--note", "--segment-scores"):
        words = ["--hypothesis", "h", "--reference", "r", flag, "a=1", flag, "b=1", flag, "a=2"]
        assert f"{flag} a has two values, 1 and 2; give one" in fails("posenc", "score", *words)


@pytest.mark.parametrize("command", PARSERS)
def test_a_value_of_the_wrong_form_is_answered_by_the_right_form(command):
    """argparse alone would print the name of the function that reads the value."""
    for action in PARSERS[command]._actions:
        if not getattr(action.type, "__module__", "").startswith("fairseq_posenc.tools"):
            continue
        for text in ("", "?"):
            try:
                action.type(text)
            except argparse.ArgumentTypeError as error:
                assert "such as" in str(error) or "expected" in str(error)
            except ValueError as error:
                raise AssertionError(action.option_strings) from error

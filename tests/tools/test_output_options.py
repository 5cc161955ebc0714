"""What commands write: never what they read."""

import argparse
import importlib
import os
import sys

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools import cli
from fairseq_posenc.tools.arguments import command_parser, key_value
from fairseq_posenc.tools.output_options import FILE, FOLDER, PREFIX, OutputType, Parser, add_output

COMMANDS = [name for name in cli.COMMANDS if name != "prepare"]
COMMANDS += [f"prepare {name}" for name in cli.PREPARATIONS]
# which write nothing, or (glue-submission) into the folder of the runs under names of their own
WITHOUT = ["path", "encodings", "glue-submission", "prepare pairs files"]
WITHOUT += ["prepare pairs operations"]


class Found(Exception):
    """Has the parser of a command as its argument."""


def parser_of(command):
    """The parser that a command makes itself."""

    def found(parser, *_):
        if isinstance(parser, Parser) or any(
            hasattr(one, "output_type") for one in parser._actions
        ):
            raise Found(parser)
        return really(parser, *_)

    really = argparse.ArgumentParser.parse_known_args
    module = "_".join(command.replace("-", "_").split())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_known_args", found)
        patch.setattr(sys, "argv", [command, "word"])
        try:
            importlib.import_module(f"fairseq_posenc.tools.commands.{module}").main()
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


def test_every_command_marks_what_it_writes():
    for command, parser in PARSERS.items():
        marked = [action for action in parser._actions if hasattr(action, "output_type")]
        assert bool(marked) != (command in WITHOUT), command
        for action in parser._actions if isinstance(parser, Parser) else ():
            names = " ".join([action.dest, *action.option_strings])
            writes = any(word in names for word in ("output", "unpack", "write", "dest", "save"))
            assert action in marked or not writes, (command, names)


TYPES = {"file": FILE, "folder": FOLDER, "prefix": PREFIX, "either": OutputType(None)}


def parse(output_type, *words):
    """Parse the options of a command that writes output of a type."""
    parser = command_parser("")
    add_output(parser, output_type)
    parser.add_argument("--input", nargs="+")
    parser.add_argument("--name")
    parser.add_argument("--note", type=key_value, action="append")
    return parser.parse_args([*map(str, words)])


@pytest.mark.parametrize("output_type", TYPES.values(), ids=TYPES)
@pytest.mark.parametrize("way", ["same", "dots", "link", "hard link", "folder's link"])
def test_an_input_is_never_an_output(output_type, way, tmp_path):
    if way == "hard link" and output_type.is_folder:
        pytest.skip("folders have none")
    home = tmp_path / "home"
    home.mkdir()
    name = home / "it"
    file = home / ("it.en" if output_type.prefix else "it/test" if output_type.is_folder else "it")
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
        target = other.with_name("other.en" if output_type.prefix else "other")
        link = os.symlink if way == "link" else os.link
        link(file if output_type.prefix else name, target)
    inputs = ["--input", "x", other], ["--name", f"x:{other},y"], ["--note", f"key={other}"]
    for words in inputs:
        with pytest.raises(UsageError, match="and would be lost; name another"):
            parse(output_type, "--output", name, *words)
    parse(output_type, "--output", name, "--name", home / "another")


def test_what_is_replaced_in_a_folder_is_no_input(tmp_path):
    for name in ("dict.en.txt", "text"):
        (tmp_path / name).touch()
    output_type = FOLDER._replace(writes=("dict.*",))
    with pytest.raises(UsageError, match="and would be lost; name another"):
        parse(output_type, "--output", tmp_path, "--name", tmp_path / "dict.en.txt")
    parse(output_type, "--output", tmp_path, "--name", tmp_path / "text")


@pytest.mark.parametrize(
    "words",
    [
        "profile-admin bin --arch transformer_tiny --output {} --restore-file {}",
        "profile-admin bin --arch transformer_tiny --output {} --finetune-from-model {}",
        "prepare binarise --destdir {} --trainpref {}",
        "prepare binarise --destdir {} --srcdict {}",
    ],
)
def test_parsers_of_fairseq_are_checked_too(posenc, tmp_path, words):
    path = tmp_path / "it"
    path.mkdir() if "destdir" in words else path.touch()
    with pytest.raises(UsageError, match="and would be lost; name another"):
        posenc(*words.format(path, path).split())


@pytest.mark.parametrize("output_type", [FILE, FOLDER, OutputType(None)])
def test_what_is_no_file_or_folder_is_not_replaced(output_type, tmp_path):
    place = tmp_path / "it"
    place.write_text("") if output_type.is_folder else os.mkfifo(place)
    with pytest.raises(UsageError, match="is there, and not a"):
        parse(output_type, "--output", place)


def test_an_option_given_twice_is_refused_where_the_last_would_win(posenc, capsys):
    """Of an option of fairseq-train, which profile-admin takes, a later value overrides."""
    assert parse(FILE, "--note", "a=1", "--note", "b=2").note == [("a", "1"), ("b", "2")]
    for flag in ("--output", "--input", "--name"):
        with pytest.raises(SystemExit):
            parse(FILE, flag, "1", flag, "2")
        assert f"argument {flag}: given twice" in capsys.readouterr().err
    admin = ["profile-admin", "bin", "--arch", "transformer_tiny", "--seed", "1", "--seed", "2"]
    for flag, words in (("--output", admin), ("--destdir", ["prepare", "binarise"])):
        with pytest.raises(SystemExit):
            posenc(*words, flag, "a", flag, "b")
        assert f"argument {flag}: given twice" in capsys.readouterr().err


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

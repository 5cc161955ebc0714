"""The command ``posenc``: a table of sub-commands, each imported when it is called."""

import importlib
import io
import os
import sys
from typing import Dict, List, Tuple

from fairseq_posenc.errors import printing_failed
from fairseq_posenc.version import __version__

COMMANDS: Dict[str, str] = {
    "prepare": "raw text, archives, GLUE and questions to binarised folders",
    "average": "average the parameters of checkpoints of one run",
    "score": "score translations: tokenised BLEU, sacreBLEU and chrF, also by length",
    "compare": "a report of many results: one HTML file, tables for a paper, pictures",
    "perplexity": "how well language models predict a text, by length and position",
    "table": "tables of results, beside those of the papers",
    "plot": "draw results, a line per encoding: a metric against length, or loss against updates",
    "analyse": "the papers' analyses, of trained models",
    "predict": "predictions of a fine-tuned BERT for a task of GLUE, XNLI or questions",
    "glue-submission": "a submission to GLUE's leaderboard, from a row of recipes/glue",
    "export": "write a checkpoint for stock fairseq, CTranslate2 or transformers",
    "import": "make a checkpoint of what export or transformers has written",
    "extend": "make a trained model's tables of learned positions longer",
    "profile-admin": "measure ADMIN's initialisation of a translation model",
    "encodings": "list every encoding with its options and defaults",
    "path": "print the plugin's folder, for fairseq's --user-dir",
}
PREPARATIONS: Dict[str, str] = {
    "translation": "two files of raw parallel text to a binarised folder, in one call",
    "tokenise": "tokenise text as Moses does",
    "pairs": "clean, join and cut parallel text into subwords",
    "binarise": "fairseq-preprocess that notices when one of its processes is killed",
    "text": "raw documents to the data of masked language models",
    "glue": "a task of GLUE, or XNLI, to a binarised folder",
    "squad": "SQuAD, XQuAD, MLQA or TyDiQA-GoldP to a binarised folder",
    "download": "download a file, check it, unpack it",
}


def usage(program: str, commands: Dict[str, str]) -> str:
    """Return the help text of a table of commands."""
    width = max(map(len, commands))
    lines = [f"  {name:{width}}  {summary}" for name, summary in commands.items()]
    first, last = f"usage: {program} COMMAND …", [f"{program} COMMAND --help", "posenc --version"]
    return "\n".join([first, "", *lines, "", *last])


def choose(arguments: List[str]) -> Tuple[str, List[str]]:
    """Return the words of the command that is asked for, and its own arguments."""
    program, commands = "posenc", COMMANDS
    if arguments[:1] == ["prepare"]:
        program, commands, arguments = "posenc prepare", PREPARATIONS, arguments[1:]
    if arguments == ["--version"]:
        print(f"fairseq_posenc {__version__}")
        raise SystemExit(0)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage(program, commands))
        raise SystemExit(0 if arguments else 2)
    if arguments[0] not in commands:
        print(
            f"{program}: error: no command {arguments[0]!r}; see {program} --help", file=sys.stderr
        )
        raise SystemExit(2)
    return f"{program} {arguments[0]}", arguments[1:]


def main() -> None:
    """Run the sub-command that the command line names; it prints UTF-8 in any locale."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    command, arguments = choose(sys.argv[1:])
    module = "_".join(command.replace("-", "_").split()[1:])
    # argparse takes the name that it shows from here
    sys.argv = [command, *arguments]
    try:
        importlib.import_module(f"fairseq_posenc.tools.commands.{module}").main()
        sys.stdout.flush()
    except BrokenPipeError:
        # posenc score … | head: nobody reads on, nor what Python prints at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as error:
        message = printing_failed(error)
        if not message:
            raise
        raise SystemExit(f"{command}: error: {message}") from None
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("fairseq_posenc"):
            raise
        raise SystemExit(
            f"{command}: error: {error.name} is missing: bash scripts/setup.sh, or pip install "
            "'.[tools]' beside a fairseq, at the top of the repository"
        ) from None


if __name__ == "__main__":
    main()

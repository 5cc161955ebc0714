"""Score a finished training on its test sets, and write score.json into its folder.

    python -m recipes.lib.score_cell runs/shape/vanilla/shape/seed1 --language de \\
        --test newstest2014=newstest2014.de --test newstest2015=newstest2015.de

FOLDER/<test>.out is the output of fairseq-generate. Without a reference (--test NAME=) its T-lines
are taken. FOLDER/train.log tells parameters, speed and time of the training.
"""

import logging
import os
import sys
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import write_json
from fairseq_posenc.tools.arguments import by_key, command_parser, key_value, read_notes
from fairseq_posenc.tools.commands.score import add_scoring
from fairseq_posenc.tools.scores.result import Score
from fairseq_posenc.tools.scores.score import evaluate, render, versions
from fairseq_posenc.tools.scores.training_log import read_log
from fairseq_posenc.tools.writing import replacing


def score_cell(
    folder: str,
    tests: Mapping[str, Optional[str]],
    notes: Optional[Mapping[str, str]] = None,
    command: Sequence[str] = (),
    **options: Any,
) -> Dict[str, Score]:
    """Score ``folder/<test>.out`` of each test set and write ``folder/score.json``.

    ``tests`` has the raw text of the references by test set; without one, the T-lines are taken.
    ``options`` are those of :func:`evaluate`, for every test set.

    Returns:
        By test set what :func:`evaluate` returns. The file has them as ``tests``, ``training`` (see
        :func:`read_log`; also ``versions``, of what scored), ``notes`` and ``command``.

    Raises:
        UsageError: no test sets, or whatever is wrong with the files; nothing is written then.
    """
    if not tests:
        raise UsageError("give a test set: --test NAME=REFERENCE")
    cell = Path(folder)
    scores = {
        name: evaluate(generated=str(cell / f"{name}.out"), reference=reference or None, **options)
        for name, reference in tests.items()
    }
    training = {**read_log(str(cell / "train.log")), "versions": versions()}
    result = {
        "tests": {name: score.to_json() for name, score in scores.items()},
        "training": training, "notes": dict(notes or {}), "command": list(command),
    }  # fmt: skip
    with replacing(str(cell / "score.json")) as stream:
        write_json(result, stream)
    return scores


def main() -> None:
    """Parse the command line, score, print and write."""
    parser = command_parser(__doc__)
    parser.add_argument("folder", metavar="FOLDER", help="of the training")
    parser.add_argument(
        "--test",
        type=key_value,
        action="append",
        default=[],
        metavar="NAME=REFERENCE",
        dest="tests",
        help="a test set and the raw text of its references; may be given several times",
    )
    add_scoring(parser)
    options = vars(parser.parse_args())
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    read_notes(options)
    options["tests"] = by_key("--test", options["tests"])
    command = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
    for name, score in score_cell(**options, command=command).items():
        for remark in score.remarks:
            print(f"note: {name}: {remark}", file=sys.stderr)
        print(f"{name}\n{render(score)}\n")


if __name__ == "__main__":
    main()

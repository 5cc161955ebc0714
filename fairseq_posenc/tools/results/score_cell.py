"""The result of a translation training, its ``score.json``, from the files in its folder."""

from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import replacing
from fairseq_posenc.tools.results.score import evaluate, to_json, versions
from fairseq_posenc.tools.results.training_log import read_log


def score_cell(
    folder: str,
    tests: Mapping[str, Optional[str]],
    notes: Optional[Mapping[str, str]] = None,
    command: Sequence[str] = (),
    **options: Any,
) -> Dict[str, Any]:
    """Score ``folder/<test>.out`` of each test set and write ``folder/score.json``.

    Args:
        folder: also has ``train.log``.
        tests: raw text of the references by test set; without one, the T-lines are taken.
        notes: kept in the result.
        command: kept in the result.
        options: of :func:`evaluate`, for every test set.

    Returns:
        ``tests`` (by name, what :func:`evaluate` returns), ``training`` (see :func:`read_log`; also
        ``versions``, of what scored), ``notes`` and ``command``.

    Raises:
        UsageError: no test sets, or whatever is wrong with the files; nothing is written then.
    """
    if not tests:
        raise UsageError("give a test set: --test NAME=REFERENCE")
    result = {
        "tests": {
            name: evaluate(
                generated=str(Path(folder, f"{name}.out")), reference=reference or None, **options
            )
            for name, reference in tests.items()
        },
        "training": {**read_log(str(Path(folder, "train.log"))), "versions": versions()},
        "notes": dict(notes or {}),
        "command": list(command),
    }
    with replacing(str(Path(folder, "score.json"))) as stream:
        stream.write(to_json(result))
    return result

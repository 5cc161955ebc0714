"""Tokenising with Moses' own Perl scripts, of a checkout of mosesdecoder that the user names.

sacremoses, which is used otherwise, differs from them in a few lines of a hundred. The scripts run
only where ``--moses`` asks for them, and of the checkout nothing else does.
"""

import os
import shutil
import subprocess
from typing import Dict, List, Optional

from fairseq_posenc.data.segmentation import Moses, tokenise_lines
from fairseq_posenc.errors import UsageError

_SCRIPTS = {
    name: os.path.join("scripts", "tokenizer", f"{name}.perl")
    for name in ("normalize-punctuation", "remove-non-printing-char", "tokenizer")
}


def check_moses(checkout: Optional[str]) -> Dict[str, str]:
    """Return the paths of the scripts by their names; none without a checkout."""
    if checkout is None:
        return {}
    scripts = {name: os.path.join(checkout, path) for name, path in _SCRIPTS.items()}
    for path in scripts.values():
        if not os.path.isfile(path):
            raise UsageError(f"there is no {path}; --moses takes a checkout of mosesdecoder")
    if not shutil.which("perl"):
        raise UsageError("--moses needs perl, which is not installed")
    return scripts


def tokenise(lines: List[str], moses: Moses, checkout: Optional[str] = None) -> List[str]:
    """Return each line's tokens, separated by spaces, by the scripts or, without them, sacremoses.

    Args:
        moses: what is done; the order is that of :func:`tokenise_lines`.
    """
    if checkout is None:
        return tokenise_lines(lines, moses)
    scripts, language = check_moses(checkout), moses.language
    options = (["-a"] if moses.aggressive else []) + (["-no-escape"] if not moses.escape else [])
    if moses.plain_quotes:
        lines = [line.replace("’", "'") for line in lines]
    if moses.normalise:
        # the language without -l, as of old and as fairseq's and ADMIN's recipes give it
        lines = _run(scripts["normalize-punctuation"], [language], lines)
    if moses.printable:
        lines = _run(scripts["remove-non-printing-char"], [], lines)
    lines = _run(scripts["tokenizer"], ["-q", "-l", language, *options], lines)
    return [line.lower() for line in lines] if moses.lowercase else lines


def _run(script: str, options: List[str], lines: List[str]) -> List[str]:
    """Return what a script makes of lines, one for each."""
    if not lines:
        return []
    text = "".join(f"{line}\n" for line in lines)
    # PERL_UNICODE and the like would change how the scripts read
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PERL")}
    process = subprocess.run(
        ["perl", script, *options],
        input=text.encode("utf-8"),
        capture_output=True,
        env=variables,
    )
    if process.returncode:
        error_lines = process.stderr.decode("utf-8", "replace").split("\n")
        why = next(filter(None, reversed(error_lines)), f"status {process.returncode}")
        raise UsageError(f"{script} failed: {why}")
    try:
        output_lines = process.stdout.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise UsageError(f"{script} wrote something that is not UTF-8") from None
    if output_lines.pop() or len(output_lines) != len(lines):
        raise UsageError(f"{script} made {len(output_lines)} lines of {len(lines)}")
    return output_lines

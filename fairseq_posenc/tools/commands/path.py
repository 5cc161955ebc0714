"""Print the folder of the plugin, for fairseq's --user-dir.

    posenc path

prints it in full, so that a training runs from any folder: --user-dir "$(posenc path)"
"""

from pathlib import Path

import fairseq_posenc
from fairseq_posenc.tools.arguments import command_parser


def main() -> None:
    """Print the folder."""
    command_parser(__doc__).parse_args()
    print(Path(fairseq_posenc.__file__).resolve().parent)

"""Print the folder of the plugin, for --user-dir from any folder.

fairseq-train bin --user-dir "$(posenc path)" --arch posenc_transformer --position-encoding cape …
"""

from pathlib import Path

import fairseq_posenc
from fairseq_posenc.tools.arguments import command_parser


def main() -> None:
    """Print the folder."""
    command_parser(__doc__).parse_args()
    print(Path(fairseq_posenc.__file__).resolve().parent)

"""Print the folder of the plugin, for --user-dir from any folder.

fairseq-train bin --user-dir "$(posenc path)" --arch posenc_transformer --position-encoding cape …
"""

import argparse
from pathlib import Path

import fairseq_posenc


def main() -> None:
    """Print the folder."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    print(Path(fairseq_posenc.__file__).resolve().parent)

"""fairseq-preprocess, which ends with one line when one of its processes is killed.

posenc prepare binarise --source-lang en --target-lang de --trainpref train --destdir bin

takes the options of fairseq-preprocess and writes the same files.
"""

import sys


def main() -> None:
    """Parse the command line and run."""
    if sys.argv[1:] in ([], ["--help"], ["-h"]):
        print(__doc__.strip())
    else:
        from fairseq_posenc.tools.preprocess import preprocess

        preprocess(sys.argv[1:])

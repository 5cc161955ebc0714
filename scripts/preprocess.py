"""fairseq-preprocess, which ends with one line when one of its processes is killed.

scripts/preprocess.py --source-lang en --target-lang de --trainpref train --destdir bin --workers 4

takes the options of fairseq-preprocess and writes the same files.
"""

import sys

from fairseq_posenc.data.preprocess import preprocess

if __name__ == "__main__":
    if sys.argv[1:] in ([], ["--help"], ["-h"]):
        print(__doc__.strip())
    else:
        preprocess(sys.argv[1:])

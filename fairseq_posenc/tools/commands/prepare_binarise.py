"""fairseq-preprocess, which ends with one line when one of its processes is killed.

    posenc prepare binarise --source-lang en --target-lang de --trainpref train --destdir bin

takes the options of fairseq-preprocess and writes the same files.
"""

import sys

from fairseq_posenc.tools.output_options import (
    FOLDER,
    check_outputs,
    refuse_repeated,
)


def main() -> None:
    """Parse the command line and run."""
    if sys.argv[1:] in ([], ["--help"], ["-h"]):
        print(__doc__.strip())
    else:
        from fairseq import options

        from fairseq_posenc.tools.preprocess import preprocess

        parser = options.get_preprocessing_parser()
        [folder] = (action for action in parser._actions if action.dest == "destdir")
        folder.output_type = FOLDER._replace(writes=("dict.*", "*.idx"))
        refuse_repeated(parser)
        check_outputs(parser, parser.parse_args())
        preprocess(sys.argv[1:])

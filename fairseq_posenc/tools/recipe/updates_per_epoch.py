"""Print the number of updates in an epoch of `fairseq-train` with these arguments.

python -m fairseq_posenc.tools.recipe.updates_per_epoch DATA --task … --arch …
"""

import sys

from fairseq_posenc.tools.recipe.updates import updates_per_epoch


def main() -> None:
    """Parse the command line and run."""
    if sys.argv[1:] in ([], ["--help"], ["-h"]):
        print(__doc__.strip())
    else:
        print(updates_per_epoch(sys.argv[1:]))


if __name__ == "__main__":
    main()

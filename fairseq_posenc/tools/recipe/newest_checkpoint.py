"""Print the checkpoint of a folder to continue from, or nothing if there is none.

A training that was killed while fairseq copied checkpoints is put in order first: what is damaged
is moved aside, and checkpoint_last.pt and, if it is needed, checkpoint_best.pt are copied anew.
"""

import argparse

from fairseq_posenc.checkpoints import restore


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="--save-dir of a run")
    parser.add_argument("--best", action="store_true", help="checkpoint_best.pt is needed")
    args = parser.parse_args()
    newest = restore(args.folder, args.best)
    if newest:
        print(newest)


if __name__ == "__main__":
    main()

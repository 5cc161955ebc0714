"""Print the newest whole checkpoint of a folder, or nothing if there is none.

A process killed while fairseq copies ``checkpoint_last.pt`` leaves half a file under that name.
"""

import argparse

from fairseq_posenc.checkpoints import newest_whole

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="--save-dir of a run")
    newest = newest_whole(parser.parse_args().folder)
    if newest:
        print(newest)

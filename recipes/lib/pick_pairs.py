"""Pairs of raw text by their lengths in sentencepieces, both sides in the same range.

    python -m recipes.lib.pick_pairs --subwords bin --languages en,es --input raw/test \\
        --ranges 5-32,33-48,49-64,65-96 --each 300 --seed 1 --output text/test

Of each range it takes pairs drawn at random, without ``--each`` all of them. They stay in the order
of the text. A pair whose sides fall into two ranges is left out, so that a range is one of lengths
of source and target alike.
"""

import argparse
import random
from typing import Dict, List, Optional, Tuple

from fairseq_posenc.data import subwords
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.arguments import plain_parser
from fairseq_posenc.tools.translation.pairs import Pair, pairs_of_files, write_pairs

Range = Tuple[int, int]


def ranges(text: str) -> List[Range]:
    """Parse ``5-32,33-48``."""
    bounds = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        if not (dash and low.isdecimal() and high.isdecimal() and 0 < int(low) <= int(high)):
            raise argparse.ArgumentTypeError(f"{part!r} is no range such as 5-32")
        bounds.append((int(low), int(high)))
    return bounds


def pick(
    pairs: List[Pair],
    lengths: List[Tuple[int, int]],
    ranges: List[Range],
    per_range: Optional[int],
    seed: int,
) -> List[Pair]:
    """Return the pairs both of whose lengths are in one of the ranges.

    Args:
        pairs: of text.
        lengths: source's and target's, of each pair.
        ranges: of lengths, both ends included.
        per_range: how many of each range, drawn at random; None: all.
        seed: of the draw.

    Raises:
        UsageError: a range has fewer pairs.
    """
    members: Dict[Range, List[int]] = {}
    for low, high in ranges:
        members[low, high] = [
            n for n, sizes in enumerate(lengths) if low <= min(sizes) and max(sizes) <= high
        ]
        if len(members[low, high]) < (per_range or 1):
            raise UsageError(
                f"{len(members[low, high])} pairs have {low} to {high} pieces on both sides, "
                f"and {per_range or 1} are wanted"
            )
    draw = random.Random(seed)
    chosen = {
        n
        for numbers in members.values()
        for n in (draw.sample(numbers, per_range) if per_range else numbers)
    }
    return [pairs[n] for n in sorted(chosen)]


def main() -> None:
    """Parse the command line, and write the pairs."""
    parser = plain_parser(__doc__)
    parser.add_argument("--subwords", required=True, metavar="FOLDER", help="has the model")
    parser.add_argument("--languages", required=True, metavar="en,es")
    parser.add_argument("--input", required=True, metavar="PREFIX", help="before .<language>")
    parser.add_argument("--ranges", required=True, type=ranges, metavar="A-B,…")
    parser.add_argument("--each", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", required=True, metavar="PREFIX")
    args = parser.parse_args()
    source, target = args.languages.split(",")
    model = subwords.load(args.subwords)
    pairs = list(pairs_of_files(args.input, (source, target)))
    lengths = [(len(model.encode(first)), len(model.encode(second))) for first, second in pairs]
    picked = pick(pairs, lengths, args.ranges, args.each, args.seed)
    write_pairs(args.output, (source, target), picked)
    print(f"{args.output}: {len(picked):,} of {len(pairs):,} pairs")


if __name__ == "__main__":
    main()

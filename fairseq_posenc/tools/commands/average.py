"""Average the parameters of checkpoints of one run into a checkpoint that fairseq loads.

    posenc average --inputs checkpoints/ --last 10 --output checkpoints/average.pt
    posenc average --inputs checkpoints/ --best 5 --output checkpoints/average_best.pt

--last counts checkpoints of whole epochs (checkpointN.pt), or those of --save-interval-updates
(checkpoint_E_N.pt); checkpoint_last.pt and checkpoint_best.pt are in neither.

Without --last and --best, all files of --inputs are averaged, which then may not be folders.
"""

import os

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.arguments import command_parser, positive
from fairseq_posenc.tools.output_options import FILE, add_output, refuse_inputs


def main() -> None:
    """Parse the command line, choose, average and write."""
    parser = command_parser(__doc__)
    parser.add_argument("--inputs", nargs="+", required=True, metavar="FOLDER_OR_FILE")
    add = parser.add_mutually_exclusive_group().add_argument
    add("--last", type=positive, metavar="N", help="the newest N checkpoints")
    add("--best", type=positive, metavar="N", help="the N checkpoints of best validation metric")
    add = parser.add_argument
    add(
        "--by",
        choices=("epochs", "updates"),
        help="for --last: take checkpointN.pt or checkpoint_E_N.pt, where there are both",
    )
    help_text = "replaced if it is there"
    add_output(parser, FILE, required=True, metavar="FILE", help=help_text)
    add("--across-runs", action="store_true", help="average models of different trainings")
    args = parser.parse_args()
    from fairseq_posenc.tools import averaging

    if args.by and not args.last:
        raise UsageError("--by goes with --last")
    paths = averaging.find(args.inputs)
    # also those that are not chosen: they are of a training, unlike earlier averages
    named = (path for path in paths if os.path.basename(path).startswith("checkpoint"))
    refuse_inputs(args.output, named)
    if args.last:
        paths = averaging.last(paths, args.last, args.by)
    elif args.best:
        paths = averaging.best(paths, args.best)
    elif any(map(os.path.isdir, args.inputs)):
        raise UsageError("--inputs has a folder: say which checkpoints, with --last N or --best N")
    averaging.save_average(paths, args.output, args.across_runs)
    print(f"{args.output}: average of {len(paths)} checkpoints: {', '.join(paths)}")

"""Predict with a checkpoint (GLUE, XNLI, question answering, masked language model), and score.

    posenc predict --path checkpoint_best.pt --data bin/MNLI --subsets valid,valid1 --output out

writes out/predictions.<subset>.tsv (or .json) and out/score.json: the metrics of the task on each
whole subset, in percent, and what each example contributes, from which posenc compare draws
intervals. Subsets without labels get predictions only. --data may be another folder than that of
training, for example XNLI for a model trained on MNLI. A model that is not fine-tuned predicts
hidden tokens of a folder of posenc prepare text, those of --seed 1 whatever its own seed was.
"""

import logging
import warnings

from fairseq_posenc.tools.arguments import (
    add_notes,
    comma_separated,
    command_line,
    command_parser,
    read_notes,
)
from fairseq_posenc.tools.output_options import FOLDER, add_output


def main() -> None:
    """Parse the command line, predict, and print the scores."""
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("--path", required=True, metavar="FILE", help="checkpoint")
    add("--data", required=True, metavar="FOLDER", help="prepared folder")
    help_text = "separated by commas (default: valid)"
    add("--subsets", type=comma_separated, default="valid", help=help_text)
    add_output(parser, FOLDER, required=True, metavar="FOLDER")
    add("--max-tokens", type=int, default=8192, help="of a batch, with padding (default: 8192)")
    add("--cpu", action="store_true", help="leave a GPU alone")
    add_notes(parser)
    options = vars(parser.parse_args())
    from fairseq_posenc.tools.bert.predict import predict

    read_notes(options)
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", "'pin_memory'")  # fairseq always asks for it
    result = predict(**options, command=command_line())
    for subset, scores in result.scores.items():
        figures = "  ".join(f"{name} {value:.2f}" for name, value in scores.items())
        print(f"{subset}: {figures or 'no labels'}")
    for reason in result.nothing_learned():
        print(f"note: the model {reason}: it has learned nothing")

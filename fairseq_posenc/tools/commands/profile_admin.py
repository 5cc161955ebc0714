"""Measure how ADMIN should initialise a post-norm translation model: pass one of two.

    posenc profile-admin DATA <options of fairseq-train> --output admin.json
    fairseq-train DATA <the same options> --admin-profile admin.json

One batch is passed through the model, on a GPU if there is one and no --cpu; seconds.
"""

import argparse

from fairseq import options

from fairseq_posenc.tools.output_options import (
    FILE,
    add_output,
    check_outputs,
    refuse_repeated,
)
from fairseq_posenc.tools.translation.admin_profile import write_profile


def main() -> None:
    """Parse the command line, measure, write and print."""
    parser = options.get_training_parser()
    parser.description = __doc__
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    details = {"required": True, "metavar": "FILE", "help": "the profile, as JSON"}
    add_output(parser, FILE, **details)
    # of an option of fairseq-train the last value counts, as there
    refuse_repeated(parser, "--output")
    args = options.parse_args_and_arch(parser)
    check_outputs(parser, args)
    output = args.output
    profile = write_profile(args, output)
    for side, layers in profile["omegas"].items():
        omegas = [omega for layer in layers for omega in layer.values()]
        print(f"{output}: {side}: {len(omegas)} sub-layers, ω from {omegas[0]:g} to {omegas[-1]:g}")

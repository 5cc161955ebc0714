#!/usr/bin/env python3
"""Time training steps of every position encoding and of stock fairseq against `sinusoidal`.

All are timed in turn, round after round, so that a machine whose speed drifts slows all alike;
the table gives the median over rounds of each round's ratio to `sinusoidal`, and its quartiles.
"""

import argparse
import json

from fairseq_posenc.benchmark import SHAPES, render, training_speed
from fairseq_posenc.files import replacing

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="small", help="size of the model")
    parser.add_argument("--lengths", default="32,128", help="tokens per sentence, both sides")
    parser.add_argument("--tokens", type=int, default=1024, help="tokens per batch")
    parser.add_argument("--rounds", type=int, default=15, help="timed rounds, at least 5")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--output", help="write the figures here too, as JSON")
    arguments = parser.parse_args()
    if arguments.rounds < 5:
        parser.error("--rounds must be 5 or more")
    result = training_speed(
        arguments.shape,
        [int(length) for length in arguments.lengths.split(",")],
        arguments.tokens,
        arguments.rounds,
        arguments.device,
    )
    print(render(result))
    if arguments.output:
        with replacing(arguments.output) as stream:
            json.dump(result, stream, indent=2)

"""Bits per token of a test set's references, as a whole and by length, as bits.json.

It has the bits and tokens of each sentence, too, so that sentences can be drawn anew.

    python -m recipes.claims.bits checkpoint_last.pt --data bin \\
        --score score.json --output bits.json

The model is given the reference's tokens before each (teacher forcing), so that, unlike BLEU, this
does not see where its own translations end. Ranges of lengths are those of ``score.json``.
"""

import argparse
import json
import math
from typing import Any, Dict

import numpy as np

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import OrNull, read_shaped
from fairseq_posenc.tools.analyses.models import load_models
from fairseq_posenc.tools.analyses.tokens import ScoredReferences, score_references
from fairseq_posenc.tools.scores.lengths import Bin
from fairseq_posenc.tools.writing import replacing

_BIN = {"name": str, "longer_than": float, "up_to": OrNull(float)}
_SCORE = {"by_length": {"bins": [_BIN]}, "sentences": {"length": [int]}}


def bits_by_length(scored: ScoredReferences, score: Dict[str, Any]) -> Dict[str, np.ndarray]:
    """Return -log2 p of each sentence, end of sentence included, and its tokens, by range.

    The ranges, and ``all``, have arrays ``(sentences, 2)``.

    Args:
        scored: the tokens of the references.
        score: what ``posenc score`` wrote of the same test set.
    """
    # every sentence begins at position 1
    sentence = np.cumsum(scored.positions == 1) - 1
    counted = score["sentences"]["length"]
    if sentence[-1] + 1 != len(counted):
        raise UsageError(
            f"the score has {len(counted)} sentences, the test set of --data {sentence[-1] + 1}"
        )
    bits = np.bincount(sentence, -scored.scores.astype(np.float64) / math.log(2))
    found = {"all": np.stack([bits, np.bincount(sentence)], axis=1)}
    for part in score["by_length"]["bins"]:
        members = Bin(part["name"], part["longer_than"], part["up_to"]).members(counted)
        if members:
            found[part["name"]] = found["all"][members]
    return found


def main() -> None:
    """Parse the command line, score the references, and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", metavar="CHECKPOINT")
    parser.add_argument("--data", required=True, metavar="FOLDER", help="binarised")
    parser.add_argument("--score", required=True, metavar="score.json")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--output", required=True, metavar="FILE")
    args = parser.parse_args()
    score = read_shaped(args.score, _SCORE, "posenc score --bins")
    (loaded,) = load_models([f"model={args.model}"], args.data, args.cpu)
    found = bits_by_length(score_references(loaded, "test", max_tokens=4000), score)
    with replacing(args.output) as stream:
        means = {name: part[:, 0].sum() / part[:, 1].sum() for name, part in found.items()}
        sentences = {name: part.round(4).tolist() for name, part in found.items()}
        stream.write(json.dumps({"bits": means, "sentences": sentences}) + "\n")


if __name__ == "__main__":
    main()

"""Bits per token of a test set's references, as a whole and by length, as bits.json.

It has the bits and tokens of each sentence, too, so that sentences can be drawn anew.

    python -m recipes.claims.bits checkpoint_last.pt --data bin \\
        --score score.json --output bits.json

The model is given the reference's tokens before each (teacher forcing), so that, unlike BLEU, this
does not see where its own translations end. Ranges of lengths are those of ``score.json``. The
checkpoints that ``--save-interval-updates`` left beside it are scored as well, as ``earlier``.
"""

import json
import math
import os
import re
from typing import Any, Dict, List

import numpy as np

from fairseq_posenc.checkpoints.reader import load_checkpoint
from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import OrNull, load_json
from fairseq_posenc.tools.analyses.models import load_models
from fairseq_posenc.tools.analyses.tokens import ScoredReferences, score_references
from fairseq_posenc.tools.arguments import plain_parser
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
    by_range = {"all": np.stack([bits, np.bincount(sentence)], axis=1)}
    for part in score["by_length"]["bins"]:
        members = Bin(part["name"], part["longer_than"], part["up_to"]).members(counted)
        if members:
            by_range[part["name"]] = by_range["all"][members]
    return by_range


def earlier_checkpoints(path: str) -> Dict[int, str]:
    """Return the checkpoints ``checkpoint_EPOCH_UPDATES.pt`` beside one, by updates, that have
    fewer updates than it.
    """
    folder = os.path.dirname(path) or "."
    matches = [re.fullmatch(r"checkpoint_\d+_(\d+)\.pt", name) for name in os.listdir(folder)]
    paths = {int(match[1]): os.path.join(folder, match[0]) for match in matches if match}
    if not paths:
        return {}
    updates = load_checkpoint(path)["optimizer_history"][-1]["num_updates"]
    return {number: paths[number] for number in sorted(paths) if number < updates}


def main() -> None:
    """Parse the command line, score the references, and write."""
    parser = plain_parser(__doc__)
    parser.add_argument("model", metavar="CHECKPOINT")
    parser.add_argument("--data", required=True, metavar="FOLDER", help="binarised")
    parser.add_argument("--score", required=True, metavar="score.json")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--output", required=True, metavar="FILE")
    args = parser.parse_args()
    score = load_json(args.score, _SCORE, "posenc score --bins")
    paths = earlier_checkpoints(args.model)
    names = [f"{number}={path}" for number, path in paths.items()] + [f"end={args.model}"]
    earlier: Dict[str, Dict[str, List[List[float]]]] = {}
    for loaded in load_models(names, args.data, args.cpu):
        bits = bits_by_length(score_references(loaded, "test", max_tokens=4000), score)
        earlier[loaded.name] = {name: part.round(4).tolist() for name, part in bits.items()}
    means = {name: part[:, 0].sum() / part[:, 1].sum() for name, part in bits.items()}
    sentences = earlier.pop("end")
    with replacing(args.output) as stream:
        stream.write(json.dumps({"bits": means, "sentences": sentences, "earlier": earlier}) + "\n")


if __name__ == "__main__":
    main()

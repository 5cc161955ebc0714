"""``--train-only``: parameters whose names do not match stay as they are."""

import argparse
import fnmatch
import logging
import re
from typing import Any, Optional

from torch import nn

from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards import signatures
from fairseq_posenc.guards.initial_checkpoint import InitialCheckpoint
from fairseq_posenc.guards.option_checks import TEXT

logger = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--train-only``."""
    parser.add_argument(
        "--train-only",
        metavar="PATTERN",
        help="train the parameters whose names match, such as '*embed_positions*,*self_attn*' "
        "(* any text, ? any character, commas between patterns), and freeze all others",
    )


def choose(args: Any, initial: Optional[InitialCheckpoint]) -> Optional[str]:
    """Return the patterns of the parameters to train: the option, or that of the resumed training.

    Args:
        args: of a model that is to be built; gets the pattern.
        initial: the checkpoint that a training begins with.

    Returns:
        patterns with commas between them; None: all, as in models that are not trained.

    Raises:
        UsageError: the pattern has other characters than names have, or is not that of the
            training that is resumed.
    """
    if signatures.is_from_checkpoint(args):
        return None
    pattern = getattr(args, "train_only", None)
    if pattern is not None and not re.fullmatch(TEXT["train_only"], str(pattern)):
        raise UsageError(
            f"--train-only {pattern!r}: a pattern has letters, digits and _ . * ?, with commas "
            "between patterns"
        )
    if initial is not None and not initial.fine_tuning and pattern != initial.train_only:
        if pattern is not None:
            trained = "no --train-only"
            if initial.train_only:
                trained = f"--train-only {initial.train_only}"
            raise UsageError(
                f"{initial.path} was trained with {trained}: resume it so, or begin another "
                "training with --finetune-from-model and another --save-dir"
            )
        pattern = args.train_only = initial.train_only
    return pattern


def freeze_others(model: nn.Module, pattern: Optional[str]) -> None:
    """Freeze the parameters none of whose names matches; fairseq's optimisers leave them out.

    A parameter that several modules share has several names.

    Raises:
        UsageError: no name matches one of the patterns.
    """
    if pattern is None:
        return
    named = list(model.named_parameters(remove_duplicate=False))
    matching = set()
    for glob in pattern.split(","):
        matches = {id(parameter) for name, parameter in named if fnmatch.fnmatchcase(name, glob)}
        if not matches:
            raise UsageError(
                f"--train-only {glob} matches no parameter; their names are like {named[0][0]}"
            )
        matching |= matches
    for _, parameter in named:
        parameter.requires_grad_(id(parameter) in matching)
    every = list(model.parameters())
    trained = [parameter for parameter in every if parameter.requires_grad]
    logger.info(
        "--train-only %s: %d of %d tensors are trained, %d of %d numbers",
        pattern,
        len(trained),
        len(every),
        sum(parameter.numel() for parameter in trained),
        sum(parameter.numel() for parameter in every),
    )

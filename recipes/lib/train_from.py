"""Run fairseq-train with the architecture of the model that it begins with.

    python -m recipes.lib.train_from fairseq-train bin --user-dir fairseq_posenc \\
        --finetune-from-model model.pt --position-encoding rotary …

``--finetune-from-model`` takes a model's weights, and fairseq wants its sizes typed beside it. This
reads them from the checkpoint: all options of the architecture but positions, dropout and what only
says how a model is run. An option in the command goes before the checkpoint's.
"""

import argparse
import os
import sys
from typing import Any, List, Mapping, Sequence

from fairseq.models import ARCH_MODEL_REGISTRY

import fairseq_posenc.models.transformer  # noqa: F401, registers the architectures
from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards import signatures
from fairseq_posenc.guards.option_checks import check_options
from recipes.lib.running import option

# parts of names of what a fine-tuning chooses anew
_OTHERS = ("position_encoding", "dropout", "layerdrop", "layers_to_keep", "checkpoint_activations",
           "offload_activations", "quant_noise", "min_params_to_wrap", "_path")  # fmt: skip


def architecture(settings: Mapping[str, Any], words: Sequence[str]) -> List[str]:
    """Return the options of fairseq-train that make a model as large as a trained one.

    Args:
        settings: the options of its checkpoint, checked.
        words: those of the command, whose options are left out.

    Raises:
        UsageError: its architecture is none of ours.
    """
    arch = settings.get("arch")
    if arch not in ARCH_MODEL_REGISTRY:
        raise UsageError(f"the model's architecture {arch!r} is none of fairseq or this plugin")
    named = {word.partition("=")[0] for word in words}
    parser = argparse.ArgumentParser(add_help=False)
    ARCH_MODEL_REGISTRY[arch].add_args(parser)
    options = [] if "--arch" in named else ["--arch", str(arch)]
    for action in parser._actions:
        name, value = action.dest, settings.get(action.dest)
        is_named = any(flag in named for flag in action.option_strings)
        if is_named or value is None or name.startswith("position") or _is_other(name):
            continue
        if action.nargs != 0:
            options += [action.option_strings[0], str(value)]
        elif value == action.const:
            options.append(action.option_strings[0])
    return options


def _is_other(name: str) -> bool:
    return any(part in name for part in _OTHERS)


def main() -> None:
    """Become the training."""
    command = sys.argv[1:]
    model = option(command, "--restore-file") or option(command, "--finetune-from-model")
    if not model:
        raise UsageError("the command has neither --finetune-from-model nor --restore-file")
    state = load_checkpoint(model)
    # a fork's name of fairseq's architecture does not matter: the training compares the weights
    check_options(state, model, builds=False)
    words = [*command, *architecture(signatures.model_options(state), command)]
    os.execvp(words[0], words)


if __name__ == "__main__":
    main()

"""Every difference between fairseq 0.12.2 and its maintained fork, and faults of both."""

import atexit
import contextlib
import functools
import logging
import queue
import re
import sys
import threading
import time
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, Callable, Dict

import numpy as np
import torch
from fairseq.data import data_utils, language_pair_dataset, token_block_dataset
from fairseq.modules.transformer_layer import TransformerEncoderLayerBase
from fairseq.nan_detector import NanDetector
from omegaconf import OmegaConf
from torch import Tensor, nn

from fairseq_posenc.patching import replace, replace_in_library, replaces

_FUSED_WEIGHTS = [
    f"{part}_{parameter}"
    for part in ("in_proj", "out_proj", "fc1", "fc2")
    for parameter in ("weight", "bias")
]


def remove_fused_weights(layer: nn.Module) -> None:
    """Remove the second copy of its weights that an encoder layer of fairseq 0.12.2 has.

    It is for a fused kernel that knows no positions, and would get no gradients.
    """
    for name in _FUSED_WEIGHTS:
        if hasattr(layer, name):
            delattr(layer, name)


def drop_copies(state_dict: Dict[str, Any]) -> None:
    """Remove entries of stock models besides weights: that copy, and buffers of sinusoids.

    Args:
        state_dict: of any fairseq model, changed in place.
    """
    fused = rf"(.*\.)?layers\.\d+\.({'|'.join(_FUSED_WEIGHTS)})"
    dropped = rf"{fused}|.*\.embed_positions\.(weights|_float_tensor)"
    for key in [key for key in state_dict if re.fullmatch(dropped, key)]:
        del state_dict[key]


def _percentile(values: Any, shares: Any, interpolation: Any = "linear") -> Any:
    """Call numpy's function by the name that an argument has now."""
    return np.percentile(values, shares, method=interpolation)


# names of numpy 1 that fairseq still uses: for --sample-break-mode eos, for what a language model
# is given by fairseq-interactive or from Python, and for --num-batch-buckets
_of_old = {"compat": SimpleNamespace(long=np.int64), "percentile": _percentile}
for _module in (data_utils, language_pair_dataset, token_block_dataset):
    replace_in_library(_module, "np", **_of_old)


@replaces(NanDetector, "add_hooks")
def _add_hooks(_: Callable, detector: Any, module: nn.Module) -> None:
    """Let fairseq name the modules that give NaN or Inf, when such gradients end a training.

    It asks torch for hooks that take the first tensor of any output. Outputs without one, as those
    of encoders and encodings, end in a StopIteration or TypeError, and nothing tells of NaN.
    """

    def watch_gradient(_: Any, __: Any, output: Any) -> None:
        first = output[0] if isinstance(output, (list, tuple)) and output else output
        if isinstance(first, Tensor) and first.requires_grad:
            first.register_hook(lambda gradient: detector.bhook_fn(module, None, gradient))

    if detector.forward:
        detector.fhooks.append(module.register_forward_hook(detector.fhook_fn))
    if detector.backward:
        detector.fhooks.append(module.register_forward_hook(watch_gradient))


def portable_architecture(architecture: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return an ``--arch`` for both versions of omegaconf, with which ``--bf16`` trains on a GPU.

    omegaconf 2.0 has None for options of a configuration that are not set, which then pass for set:
    it is left as it is, and ``build_model`` comes back with plain options.

    On the command line fairseq takes ``--bf16`` for ``--tpu``, and fails where there is none. The
    function of the architecture gets all options after that, and before anything reads them.
    """

    @functools.wraps(architecture)
    def set_options(args: Any) -> None:
        if OmegaConf.is_config(args):
            return
        architecture(args)
        has_gpu = torch.cuda.is_available() and not getattr(args, "cpu", False)
        if getattr(args, "bf16", False) and has_gpu and not find_spec("torch_xla"):
            args.tpu = False

    return set_options


# Encoder layers of stock models do without the fused kernel that fairseq 0.12.2 has for them: torch
# takes other arguments since, and a loaded post-norm model that meets padding would end in a
# RuntimeError.
_never = property(lambda layer: False, lambda layer, value: None)
replace(TransformerEncoderLayerBase, "can_use_fastpath", _never)


def let_generate_log() -> None:
    """Let ``fairseq-generate`` log its options into its output, as it means to.

    fairseq sets up a log where it imports tasks of speech, its fork where it imports wav2vec, so
    that what this program asks for has no effect. The other programs have asked already when models
    are imported: theirs stays.
    """
    programs = ("train", "generate", "interactive", "validate", "eval_lm", "hydra_train")
    running = [name for name in programs if f"fairseq_cli.{name}" in sys.modules]
    if running == ["generate"] and logging.root.level in (logging.DEBUG, logging.INFO):
        logging.root.handlers.clear()


@atexit.register
def stop_reading_ahead() -> None:
    """Let fairseq's threads that read batches ahead end before Python does.

    A training that stops inside an epoch leaves such a thread. If Python ends while the thread is
    inside one of torch's functions, the process aborts: a training that is complete then counts as
    failed. The thread looks at its greatest count after each batch; one that makes no batch within
    ten seconds is left.
    """
    until = time.monotonic() + 10
    for thread in threading.enumerate():
        if type(thread).__module__ != "fairseq.data.iterators":
            continue
        vars(thread)["_max_len"] = 0
        while thread.is_alive() and time.monotonic() < until:
            # it may wait for room in its queue
            with contextlib.suppress(queue.Empty):
                vars(thread)["_queue"].get(timeout=0.05)

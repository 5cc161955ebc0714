"""How large a model may become that is built from a checkpoint's options: as its weights show."""

import argparse
import ast
import contextlib
import os
import re
from typing import Any, Iterator, Optional, Sequence, Tuple

import numpy as np
from torch import Tensor
from torch.nn.modules import module

from fairseq_posenc.checkpoints.unpickler import Refused
from fairseq_posenc.errors import UsageError

_WIDTH = re.compile(r"(?!\w*ffn)(\w+_)?embed_dim")
_SIZE = re.compile(r"(\w+_)?(dim|heads|max_distance|num_buckets|kernel_size|rank|num_classes)")
_LAYERS = re.compile(r"(\w+_)?layers")
_LENGTH = re.compile(r"(\w+_)?positions|tokens_per_sample")
_SMALLEST_WIDTH = 1024  # accepted whatever the weights are
_FEWEST_LAYERS = 64
_MOST_POSITIONS = 100_000
_SPARE_WEIGHTS = 10_000_000
_LONGEST_NUMBER = 100  # characters
_NUMBERS = (int, float, np.integer, np.floating)


def check_sizes(options: Any, weights: Any) -> None:
    """Check the sizes that a checkpoint's options ask for.

    Tables of positions, such as sinusoids, are not in the weights: what length times width makes
    must be of the weights' order. A tensor that holds nothing shows nothing.

    Args:
        options: of all groups, in dictionaries and namespaces.
        weights: the model's, by name.

    Raises:
        Refused: a size is beyond what the weights show.
    """
    values = weights.values() if isinstance(weights, dict) else ()
    tensors = [value for value in values if isinstance(value, Tensor) and value.numel()]
    widest = max([_SMALLEST_WIDTH, *(size for tensor in tensors for size in tensor.shape)])
    layers = max(_FEWEST_LAYERS, len(tensors))
    entries = 2 * sum(tensor.numel() for tensor in tensors) + _SPARE_WEIGHTS
    numbers = list(_numbers(options, ""))
    width = max([1, *(number for name, number in numbers if _WIDTH.fullmatch(name))])
    longest = min(_MOST_POSITIONS, entries // min(width, widest))
    for name, number in numbers:
        for kind, most in ((_SIZE, widest), (_LAYERS, layers), (_LENGTH, longest)):
            # NaN is not below anything
            if kind.fullmatch(name) and not number <= most:
                raise Refused(f"its option {name} is beyond {most:.0f}, more than its weights show")


def _numbers(value: Any, name: str) -> Iterator[Tuple[str, Any]]:
    """Yield the name and the number of each option that is one, also if it is written as text."""
    value = vars(value) if isinstance(value, argparse.Namespace) else value
    value = _parsed(value) if isinstance(value, str) else value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, str(key))
    elif isinstance(value, (list, tuple, set)):
        for inner in value:
            yield from _numbers(inner, name)
    elif isinstance(value, _NUMBERS) and not isinstance(value, bool):
        yield name, value


def _parsed(text: str) -> Any:
    """Return what fairseq and OmegaConf make of a text: they try these one after the other."""
    for parse in (ast.literal_eval, int, float):
        with contextlib.suppress(Exception):
            value = parse(text.strip()) if len(text) <= _LONGEST_NUMBER else None
            return _parsed(value) if isinstance(value, str) else value
    return None


@contextlib.contextmanager
def no_larger_than(paths: Sequence[str]) -> Iterator[None]:
    """Refuse, while a model is built, more weights and tables than its files show.

    Twice as many as they have bytes are accepted: ties and fused layers are made twice.

    Raises:
        UsageError: the model is larger.
    """
    left = 2 * sum(map(os.path.getsize, filter(os.path.isfile, paths))) + _SPARE_WEIGHTS

    def count(_: Any, name: str, tensor: Optional[Tensor]) -> None:
        nonlocal left
        left -= 0 if tensor is None else tensor.numel()
        if left < 0:
            raise UsageError(
                f"checkpoint {os.pathsep.join(paths)} refused: its options ask for a model that is "
                "far larger than its weights; get it from a source you trust"
            )

    parameters = module.register_module_parameter_registration_hook(count)
    with parameters, module.register_module_buffer_registration_hook(count):
        yield

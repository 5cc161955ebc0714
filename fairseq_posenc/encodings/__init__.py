"""The position encodings: pure PyTorch, usable without fairseq.

>>> from fairseq_posenc.encodings import Positions, StackConfig, build, names
>>> encoding = build("cape", StackConfig(channels=512), global_shift=10.0)
>>> terms = encoding(Positions.of_tokens(tokens, padding_index=1))
>>> x = embeddings + terms.input

To add an encoding, write a file with a subclass of :class:`Encoding` and name it in ``TABLE``; to
add an option, name it in ``options.py`` as well.
"""

import inspect
from typing import Any, Dict, List, Type

from fairseq_posenc.encodings.abs_scalar import AbsScalar
from fairseq_posenc.encodings.alibi import Alibi
from fairseq_posenc.encodings.base import Encoding, Positions, StackConfig, Terms
from fairseq_posenc.encodings.cape import Cape
from fairseq_posenc.encodings.conditional import Conditional
from fairseq_posenc.encodings.kerple import Kerple
from fairseq_posenc.encodings.learned import Learned
from fairseq_posenc.encodings.none import NoPositions
from fairseq_posenc.encodings.randomized import Randomized
from fairseq_posenc.encodings.rel_scalar import RelScalar
from fairseq_posenc.encodings.rotary import Rotary
from fairseq_posenc.encodings.shape import Shape
from fairseq_posenc.encodings.shaw import Shaw
from fairseq_posenc.encodings.sinusoidal import Sinusoidal
from fairseq_posenc.encodings.t5 import T5
from fairseq_posenc.encodings.transformer_xl import TransformerXL
from fairseq_posenc.encodings.tupe import Tupe
from fairseq_posenc.encodings.unifpe import Unifpe
from fairseq_posenc.version import __version__

__all__ = [
    "Encoding",
    "Positions",
    "StackConfig",
    "Terms",
    "build",
    "format_value",
    "names",
    "options",
    "signature",
]

TABLE: Dict[str, Type[Encoding]] = {
    "none": NoPositions,
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "shape": Shape,
    "unifpe": Unifpe,
    "randomized": Randomized,
    "cape": Cape,
    "conditional": Conditional,
    "shaw": Shaw,
    "transformer_xl": TransformerXL,
    "t5": T5,
    "tupe": Tupe,
    "abs_scalar": AbsScalar,
    "rel_scalar": RelScalar,
    "rotary": Rotary,
    "alibi": Alibi,
    "kerple": Kerple,
}


def names() -> List[str]:
    """Return the values of ``--position-encoding``."""
    return list(TABLE)


def options(name: str) -> Dict[str, object]:
    """Return the options that an encoding reads, with their defaults."""
    parameters = inspect.signature(TABLE[name].__init__).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def build(name: str, stack: StackConfig, **chosen: Any) -> Encoding:
    """Build an encoding for a stack.

    Args:
        name: one of :func:`names`.
        stack: the stack of layers that it serves.
        **chosen: options; those left out have the encoding's defaults.

    Raises:
        ValueError: unknown name, an option that the encoding does not read, or a bad value.
    """
    if name not in TABLE:
        raise ValueError(f"unknown position encoding '{name}'; choose from {', '.join(TABLE)}")
    for option in chosen:
        if option not in options(name):
            readers = [reader for reader in TABLE if option in options(reader)]
            raise ValueError(
                f"position encoding '{name}' does not read {option.replace('_', '-')}"
                + (f" (read by {', '.join(readers)})" if readers else "")
            )
    return TABLE[name](stack, **chosen)


def format_value(value: object) -> str:
    """Return an option's value as users read and write it; ``None`` is ``auto``."""
    if value is None:
        return "auto"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def signature(name: str, **chosen: Any) -> str:
    """Return a line that names every choice, in the manner of sacreBLEU.

    >>> signature("shape", max_shift=100)
    'position:shape|max-shift:100|eval-shift:0|source-scale:1|version:0.1.0'
    """
    fields = {"position": name}
    for option, value in {**options(name), **chosen}.items():
        fields[option.replace("_", "-")] = format_value(value)
    fields["version"] = __version__
    return "|".join(f"{key}:{value}" for key, value in fields.items())

"""The command-line options of the encodings (``--position-…``), for every model."""

import argparse
import difflib
from dataclasses import field
from typing import Any, Callable, Dict, NamedTuple, Optional, Union

from fairseq_posenc import encodings
from fairseq_posenc.errors import UsageError

DEFAULT = "sinusoidal"


def option(default: Any, help: str) -> Any:
    """Return an option of one of fairseq's dataclasses, with its ``--help`` text."""
    return field(default=default, metadata={"help": help})


class Option(NamedTuple):
    """Parser and help text of an option of an encoding."""

    parse: Callable[[str], Any]
    help: str


def number_or_auto(text: str) -> Union[float, str]:
    """Parse the value of ``--position-source-scale``."""
    return text if text == "auto" else float(text)


def whole_or_auto(text: str) -> Optional[int]:
    """Parse a whole number or ``auto``, which is ``None``: the encoding replaces it."""
    return None if text == "auto" else int(text)


def auto_or_number(text: str) -> Union[int, str]:
    """Parse :func:`whole_or_auto` on a command line, where ``None`` is an option not given."""
    return text if text == "auto" else int(text)


_VALUES: Dict[Callable[[str], Any], str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    number_or_auto: "a number or auto",
    whole_or_auto: "a whole number or auto",
}
OPTIONS: Dict[str, Option] = {
    "max_shift": Option(int, "K of SHAPE: offsets are drawn from 0…K"),
    "eval_shift": Option(int, "constant offset in evaluation: 0 (paper) or K (authors' code)"),
    "drawn_below": Option(
        whole_or_auto,
        "M: training draws positions from 0…M-1; 'auto' is the longest sequence that is trained on",
    ),
    "separate_draws": Option(bool, "source and target draw an offset each"),
    "inner": Option(
        str, "the encoding whose positions are randomized: sinusoidal, rotary, alibi, t5 or kerple"
    ),
    "global_shift": Option(float, "largest global shift Δmax of CAPE"),
    "local_shift": Option(float, "largest local shift εmax of CAPE"),
    "global_scale": Option(float, "largest global scale λmax ≥ 1 of CAPE"),
    "source_scale": Option(
        number_or_auto,
        "α: multiplies source positions; 'auto' takes target tokens / source tokens of the "
        "binarised training set",
    ),
    "mean_normalize": Option(bool, "subtract the mean position (not for decoders)"),
    "kernel_size": Option(int, "taps of the convolution, odd, at least 3"),
    "convolve_cls": Option(bool, "the convolution of BERT sees and changes [CLS], too"),
    "max_distance": Option(int, "larger distances are not told apart; 0 (rel_scalar): all are"),
    "shared_tables": Option(bool, "one table of relative positions for both keys and values"),
    "initialization": Option(str, "both tables of relative positions start: xavier or zero"),
    "num_buckets": Option(int, "buckets of distances, even, at least 4"),
    "sharing": Option(str, "who shares one set of scalars: none, layers or heads (of a layer)"),
    "rank": Option(whole_or_auto, "width of P in ABS-SCALAR; 'auto' is the width of a head"),
    "base": Option(float, "its powers are the speeds at which pairs of channels turn"),
    "scale": Option(float, "sequences become this many times as long; 1 or more"),
    "scale_method": Option(
        str, "linear (all angles are divided), ntk (the base is raised), yarn or dynamic"
    ),
    "original_length": Option(
        int, "tokens of the longest sequence of the training before; for yarn and dynamic"
    ),
}


def defaults(option: str) -> Dict[str, Any]:
    """Return the default of an option for each encoding that reads it, by the encoding's name."""
    by_encoding = {name: encodings.options(name) for name in encodings.names()}
    return {name: read[option] for name, read in by_encoding.items() if option in read}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--position-encoding`` and the options of all encodings, which know the defaults."""
    parser.add_argument(
        "--position-encoding",
        choices=encodings.names(),
        default=argparse.SUPPRESS,
        help=f"position encoding of encoder and decoder (default: {DEFAULT})",
    )
    for name, option in OPTIONS.items():
        shown = {reader: encodings.format_value(value) for reader, value in defaults(name).items()}
        if len(set(shown.values())) == 1:
            default = next(iter(shown.values()))
        else:
            default = ", ".join(f"{reader} {value}" for reader, value in shown.items())
        as_given = auto_or_number if option.parse is whole_or_auto else option.parse
        parsing = {"action": "store_true"} if option.parse is bool else {"type": as_given}
        parser.add_argument(
            _flag(name),
            default=argparse.SUPPRESS,
            help=f"{option.help} (read by {', '.join(shown)}; default: {default})",
            **parsing,
        )


def check_names(args: Any, *additional: str) -> None:
    """Check that all options of positions are known, as they may come from a file of options.

    ``additional`` are names of options that the model has besides those of encodings.

    Raises:
        UsageError: one is not, such as ``position_encodng``.
    """
    from omegaconf import OmegaConf  # fairseq's, and this file is read where fairseq is missing

    names = [f"position_{name}" for name in ("encoding", "signature", *OPTIONS, *additional)]
    for key in args if OmegaConf.is_config(args) else vars(args):
        close = difflib.get_close_matches(str(key), names, n=1, cutoff=0.9)
        if key not in names and (close or str(key).startswith("position_")):
            close = close or difflib.get_close_matches(str(key), names, n=1, cutoff=0)
            raise UsageError(f"the model has no option {key}; is {close[0]} meant?")


def refuse_stock(args: Any) -> None:
    """Raise :class:`UsageError` if options of a model ask for fairseq's own positions."""
    for name in ("no_token_positional_embeddings", "encoder_learned_pos", "decoder_learned_pos"):
        if getattr(args, name, False):
            raise UsageError(
                f"--{name.replace('_', '-')} chooses fairseq's own positions; leave it out and "
                "use --position-encoding none or learned"
            )


def encoding_name(args: Any) -> str:
    """Return the encoding that a namespace of model options asks for.

    Raises:
        UsageError: no encoding has that name.
    """
    name = getattr(args, "position_encoding", None) or DEFAULT
    if name not in encodings.names():
        choices = ", ".join(encodings.names())
        raise UsageError(f"unknown position encoding '{name}'; choose from {choices}")
    return name


def chosen(args: Any) -> Dict[str, Any]:
    """Return the options of the encoding that were set.

    Raises:
        UsageError: a value is of another type, or an option is set that the encoding does not
            read. Its default value is accepted.
    """
    name, values = encoding_name(args), {}
    for option, (parse, _) in OPTIONS.items():
        value = getattr(args, f"position_{option}", None)
        if value is None:
            continue
        try:
            if parse is bool and not isinstance(value, bool):
                raise ValueError("neither true nor false")
            # text, if it is from a file of options
            value = value if parse is bool else parse(str(value))
        except ValueError:
            raise UsageError(f"{_flag(option)} must be {_VALUES[parse]}, not {value!r}") from None
        by_encoding = defaults(option)
        if name in by_encoding:
            values[option] = value
        elif value not in by_encoding.values():
            raise UsageError(
                f"{_flag(option)} is not read by --position-encoding {name}; leave it out, or "
                f"choose {' or '.join(by_encoding)}"
            )
    return values


def build(args: Any, stack: encodings.StackConfig) -> encodings.Encoding:
    """Build the encoding of one stack from a namespace of model options.

    Raises:
        UsageError: with the encoding's own words on what is wrong.
    """
    name = encoding_name(args)
    try:
        return encodings.build(name, stack, **chosen(args))
    except ValueError as error:
        raise UsageError(f"--position-encoding {name}: {error}") from None


def stack(**attributes: Any) -> encodings.StackConfig:
    """Return the config of a stack of layers.

    Raises:
        UsageError: with the words of :class:`encodings.StackConfig` on what is wrong.
    """
    try:
        return encodings.StackConfig(**attributes)
    except ValueError as error:
        side = "decoder" if attributes.get("decoder") else "encoder"
        raise UsageError(
            f"{error}; choose --{side}-attention-heads and --{side}-embed-dim that fit"
        ) from None


def signature(args: Any, **fields: Any) -> str:
    """Return the signature of the encoding, every choice named, and others besides.

    BOS before the sources is named where there is one, and that the encoder sees no EOS.
    """
    if getattr(args, "prepend_source_bos", False):
        fields["source_bos"] = True
    if getattr(args, "no_source_eos", False):
        fields["source_eos"] = False
    return encodings.signature(encoding_name(args), **chosen(args), **fields)


def _flag(option: str) -> str:
    return f"--position-{option.replace('_', '-')}"

"""What encodings compute from the longest sequence, beside the size of their tables."""

from typing import Any, Dict, Mapping


def options_by_length(chosen: Mapping[str, Any], length: int, decoder: bool) -> Dict[str, int]:
    """Return the options of a stack that follow from its ``max_length``.

    Args:
        chosen: all options of the encoding.
        length: ``max_length``.
        decoder: whether the stack is a decoder.
    """
    values = {}
    # None is `auto`; encodings without draws have no such option
    if "drawn_below" in chosen and chosen["drawn_below"] is None:
        values["drawn_below"] = length
    if decoder and chosen.get("scale_method") == "dynamic":
        values["longest"] = length
    return values

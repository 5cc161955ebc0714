"""What the state dictionaries of stock models hold beyond ours."""

from typing import Any, Dict


def drop_stock_position_buffers(state_dict: Dict[str, Any], prefix: str) -> None:
    """Remove the buffers that fairseq's sinusoids have left in checkpoints; they hold no weights.

    Args:
        state_dict: changed in place.
        prefix: name of the embedding, for example ``encoder.embed_positions``.
    """
    for buffer in ("weights", "_float_tensor"):
        state_dict.pop(f"{prefix}.{buffer}", None)

"""A field of a protocol buffer, such as a SentencePiece model, without its library."""

from typing import Any


def read_field(message: bytes, wanted: int, default: Any) -> Any:
    """Return a field of a message of protocol buffers, a number or bytes, or the default."""
    offset = 0

    def number() -> int:
        nonlocal offset
        value = shift = 0
        while True:  # seven bits a byte, the lowest first, until one is below 128
            byte = message[offset]
            offset, value, shift = offset + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while offset < len(message):
        field, wire_type = divmod(number(), 8)
        # wire types: 0 a number, 1 eight bytes, 2 a length and as many bytes, 5 four bytes
        length = number() if wire_type == 2 else {1: 8, 5: 4}.get(wire_type, 0)
        value = number() if wire_type == 0 else message[offset : offset + length]
        if field == wanted:
            return value
        offset += length
    return default

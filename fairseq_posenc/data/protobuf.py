"""A field of a protocol buffer, such as a SentencePiece model, without its library."""

from typing import Any


def read_field(message: bytes, wanted: int, default: Any) -> Any:
    """Return a field of a message of protocol buffers, a number or bytes, or the default."""
    place = 0

    def number() -> int:
        nonlocal place
        value = shift = 0
        while True:  # seven bits a byte, the lowest first, until one is below 128
            byte = message[place]
            place, value, shift = place + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while place < len(message):
        field, kind = divmod(number(), 8)
        # kinds: 0 a number, 1 eight bytes, 2 a length and as many bytes, 5 four bytes
        length = number() if kind == 2 else {1: 8, 5: 4}.get(kind, 0)
        value = number() if kind == 0 else message[place : place + length]
        if field == wanted:
            return value
        place += length
    return default

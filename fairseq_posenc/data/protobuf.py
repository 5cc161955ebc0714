"""Fields of protocol buffers, such as a SentencePiece model, without their library."""

from typing import Any, Container, Iterator, Tuple


def fields(message: bytes) -> Iterator[Tuple[int, Any, bytes]]:
    """Yield the number of each field of a message, its value, a number or bytes, and all bytes."""
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
        start = offset
        field, wire_type = divmod(number(), 8)
        # wire types: 0 a number, 1 eight bytes, 2 a length and as many bytes, 5 four bytes
        length = number() if wire_type == 2 else {1: 8, 5: 4}.get(wire_type, 0)
        value = number() if wire_type == 0 else message[offset : offset + length]
        offset += length
        yield field, value, message[start:offset]


def read_field(message: bytes, number: int, default: Any) -> Any:
    """Return a field of a message, a number or bytes, or the default."""
    return next((value for field, value, _ in fields(message) if field == number), default)


def without_field(message: bytes, parts: Container[int], unwanted: int) -> bytes:
    """Return a message without a field of some of its parts, which are messages, too."""
    left = []
    for field, value, all_bytes in fields(message):
        if field in parts:
            value = b"".join(part for number, _, part in fields(value) if number != unwanted)
            all_bytes = _number(field << 3 | 2) + _number(len(value)) + value
        left.append(all_bytes)
    return b"".join(left)


def _number(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + _number(value >> 7)

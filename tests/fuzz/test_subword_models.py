"""SentencePiece models made to do harm: a program in C++ reads them, and must not crash."""

import random

import pytest

from fairseq_posenc.data import subwords
from fairseq_posenc.tools.bert import vocabulary

sentencepiece = pytest.importorskip("sentencepiece")
LINES = [f"the dog {i} runs over häuser {chr(97 + i % 26) * 3}" for i in range(200)]
TEXT = "the dog häuser ½ ﬁ Ａ ㌔ \u0300 ᾳ ﷺ 각" * 5


def field(number, content):
    """A field of a protocol buffer."""
    size, digits = len(content), []
    while size > 127 or not digits:
        digits.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2, *digits, size]) + content


def with_broken_table(whole, case):
    """A model with other bytes in its table of normalised characters, which is most of it."""
    chance, data = random.Random(case), bytearray(whole)
    for _ in range(chance.choice([1, 4, 40])):
        at = chance.randrange(whole.index(b"nmt_nfkc"), len(data) - 4)
        data[at : at + 4] = chance.choice([b"\xff\xff\xff\x7f", bytes(4), chance.randbytes(4)])
    return bytes(data)


def test_no_model_crashes_the_program(tmp_path, outcome):
    vocabulary.learn_sentencepiece(lambda: iter(LINES), str(tmp_path), 60)
    path = tmp_path / "sentencepiece.model"
    whole = path.read_bytes()
    models = [whole + field(1, field(1, b"a" * 500_000))]
    models += [with_broken_table(whole, case) for case in range(100)]
    for case, model in enumerate(models):
        path.write_bytes(model)
        told = outcome(lambda: subwords.load(str(tmp_path)).encode_with_offsets(TEXT) and None)
        assert not told.startswith("ended"), case

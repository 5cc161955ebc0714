"""Attention with position terms, layers and trained models, in PyTorch alone, without fairseq.

>>> from fairseq_posenc.encodings import StackConfig
>>> from fairseq_posenc.nn import Encoder, EncoderLayer
>>> stack = StackConfig(channels=64, layers=2, heads=4)
>>> encoder = Encoder(EncoderLayer(64, heads=4, inner=256), stack, "rotary")
>>> encoder(torch.randn(3, 10, 64)).shape
torch.Size([3, 10, 64])

With ``StackConfig(…, decoder=True)`` no token sees a later one: the body of a language model.

>>> from fairseq_posenc.nn import load
>>> model = load("folder")  # written by posenc export
"""

from fairseq_posenc.nn.layers import Encoder, EncoderLayer, SelfAttention
from fairseq_posenc.nn.trained import load

__all__ = ["Encoder", "EncoderLayer", "SelfAttention", "load"]

"""Attention on a CPU in float32, written by hand; :func:`attend` is the entrance.

On a CPU, torch's own fused attention leaves its fast kernel as soon as a mask needs a gradient or
weights are dropped. Here scores are computed in chunks that stay in the cache (``chunks``) while
terms, masks, softmax and dropout pass over them in place, forward and backward (``chunk_pass``).
What encodings add to the scores is in ``score_terms`` and, for Shaw's tables, ``relative``.
"""

from fairseq_posenc.attention.cpu.autograd import attend, needs_gradient, supports

__all__ = ["attend", "needs_gradient", "supports"]

"""Checkpoints, which may be untrusted, are read without running anything.

``reader`` reads the file, by torch's own safe loading: weights and plain values alone; ``folders``
knows what lies beside it. ``guards`` check what was read, and put both into fairseq's own programs.
What is promised is in ``docs/security.md``.
"""

from fairseq_posenc.checkpoints.reader import load_checkpoint

__all__ = ["load_checkpoint"]

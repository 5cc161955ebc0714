"""Checkpoints, which may come from a stranger: read without running anything, checked, compared.

``reader`` reads the file, by torch's own safe loading: weights and plain values alone;
``option_checks`` refuses options that would run, fetch or build something else than a known model;
``guards`` put both into fairseq's own programs; ``signatures`` says what positions a checkpoint
was trained with, and ``source_bos`` whether its sources start with BOS. What is promised is in
``docs/security.md``.
"""

from fairseq_posenc.checkpoints.reader import load_checkpoint

__all__ = ["load_checkpoint"]

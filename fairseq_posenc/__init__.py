"""Position encodings for fairseq: what ``--user-dir fairseq_posenc`` imports.

Nothing is imported here, so that ``fairseq_posenc.encodings`` needs torch alone and scripts start
fast; fairseq itself then imports ``tasks/`` and ``models/``, which register what they hold.
"""

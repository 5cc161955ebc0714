"""Relative keys and values, clipped (Shaw et al. 2018)."""

import torch
from torch import nn

from fairseq_posenc.encodings.base import (
    AttentionTerms,
    Encoding,
    ExportedPositions,
    Positions,
    StackConfig,
    Terms,
)

_INITIALIZATIONS = {"xavier": nn.init.xavier_uniform_, "zero": nn.init.zeros_}


class Shaw(Encoding):
    """Vectors for clipped distances, added to keys and values (Shaw et al. 2018).

    Chen et al. 2021, section 2.2.2 (no number); per head of width d, with queries ``q``, keys ``k``
    and values ``v``, and ``c = clip(i - j, -K, K)``::

        A[i, j] = q[i] · (k[j] + keys[c]) / √d
        O[i]    = Σ_j softmax(A)[i, j] · (v[j] + values[c])

    Any length can be encoded, as every distance beyond K has the vector of K. With both tables at
    zero, attention begins as it would without positions.

    Reading: vectors have the width of a head, as in Chen et al.; SHAPE, section 2.2, writes that of
    the model.

    Parameters ``keys`` and ``values``, ``(layers, 2 K + 1, d)``: row ``K + c`` is for distance
    ``c``. The heads of a layer share them. In a decoder the first K rows, of the future, are not
    used.

    Args:
        max_distance: K, at least 1 (16, Kiyono et al. 2021).
        shared_tables: use ``keys`` for values, too, as the baseline of the authors of SHAPE does
            (False, the paper).
        initialization: of both tables, ``xavier`` (uniform) or ``zero`` (xavier).
    """

    def __init__(
        self,
        stack: StackConfig,
        max_distance: int = 16,
        shared_tables: bool = False,
        initialization: str = "xavier",
    ):
        super().__init__(stack)
        if initialization not in _INITIALIZATIONS:
            choices = " or ".join(_INITIALIZATIONS)
            raise ValueError(f"initialization must be {choices}, not {initialization}")
        if not (isinstance(max_distance, int) and max_distance >= 1):
            raise ValueError(f"max distance must be a whole number, 1 or more, not {max_distance}")
        shape = (stack.layers, 2 * max_distance + 1, stack.head_channels)
        self.keys = nn.Parameter(torch.empty(shape))
        self.values = None if shared_tables else nn.Parameter(torch.empty(shape))
        # layer by layer, as Xavier's bounds follow from the shape of one table
        for tables in self.parameters():
            for table in tables.detach():
                _INITIALIZATIONS[initialization](table)

    def forward(self, positions: Positions) -> Terms:
        """Return the tables of the layers; they do not depend on the positions."""
        # keys, values: per layer a table (2 K + 1, d)
        keys = self.keys.unbind()
        values = keys if self.values is None else self.values.unbind()
        terms = [AttentionTerms(relative_keys=k, relative_values=v) for k, v in zip(keys, values)]
        return Terms(attention=dict(enumerate(terms)))

    def export_tables(self, length: int) -> ExportedPositions:
        """Return the tables of the layers."""
        values = self.keys if self.values is None else self.values
        return ExportedPositions(relative_keys=self.keys, relative_values=values)

"""The base of encodings that add a scalar per distance to the scores."""

from torch import Tensor

from fairseq_posenc.encodings.base import Encoding, Positions, Terms
from fairseq_posenc.encodings.diagonals import spread
from fairseq_posenc.encodings.portable import Portable
from fairseq_posenc.encodings.sharing import terms_of_biases


class ByDistance(Encoding):
    """Base of encodings whose only term is a scalar per distance, added to the scaled scores."""

    def falling(self, queries: int, keys: int) -> Tensor:
        """Return the scalars ``(layers or 1, heads or 1, Q + K - 1)``.

        They are of falling distances, query minus key, from ``K - 1`` to ``1 - Q``.
        """
        raise NotImplementedError(f"{type(self).__name__}.falling")

    def forward(self, positions: Positions) -> Terms:
        """Return the biases; one object serves all layers that share their scalars."""
        queries, keys = positions.numbers.size(1), positions.keys
        biases = [spread(layer, queries, keys) for layer in self.falling(queries, keys).unbind()]
        return Terms(attention=terms_of_biases(self.stack, biases))

    def portable(self, length: int) -> Portable:
        """Return the scalars of all distances below ``length``."""
        return Portable(bias=self.falling(length, length).flip(-1))

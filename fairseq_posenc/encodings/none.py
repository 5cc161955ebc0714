"""No positions at all."""

from fairseq_posenc.encodings.base import Encoding, Positions, Terms


class NoPositions(Encoding):
    """No term: "nopos" in CAPE. An encoder then sees a bag of words; a causal decoder does not."""

    def forward(self, positions: Positions) -> Terms:
        """Return no terms."""
        return Terms()

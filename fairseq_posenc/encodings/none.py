"""No positions at all."""

from fairseq_posenc.encodings.base import Encoding, ExportedPositions, Positions, Terms


class NoPositions(Encoding):
    """No term: "nopos" in CAPE. An encoder then sees a bag of words; a causal decoder does not."""

    def forward(self, positions: Positions) -> Terms:
        """Return no terms."""
        return Terms()

    def export_tables(self, length: int) -> ExportedPositions:
        """Return nothing."""
        return ExportedPositions()

"""The one entrance to attention with position terms."""

from fairseq_posenc.modules.plain import CoreTerms, attend

__all__ = ["CoreTerms", "attend"]

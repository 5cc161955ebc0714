"""Trained translation models for other programs: stock fairseq and CTranslate2."""

"""Trained models for other programs: stock fairseq, CTranslate2, Hugging Face; and from there."""

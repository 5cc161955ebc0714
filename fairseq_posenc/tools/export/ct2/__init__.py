"""Trained translation models in CTranslate2: export, translation, comparison with fairseq's."""

from typing import Any

from fairseq_posenc.errors import UsageError


def library() -> Any:
    """Return the package ``ctranslate2``, which is needed for nothing else.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import ctranslate2
    except ImportError as error:
        raise UsageError(f"this needs CTranslate2 ({error}): pip install ctranslate2") from None
    return ctranslate2

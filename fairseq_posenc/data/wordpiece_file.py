"""The file of a WordPiece model, ``wordpiece.json``, as ``posenc prepare text`` writes it.

The library ``tokenizers`` reads far more than WordPiece as BERT has it: truncation, padding, other
normalisers and so on. From an untrusted file these lose text without a word, or end the process.
"""

import json
from typing import Any, Dict, Optional

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Each, OrNull, load_json

_UNKNOWN = "<unk>"
_CASE = {"lowercase": bool, "strip_accents": OrNull(bool), "handle_chinese_chars": bool}
_SCHEMA = {"normalizer": _CASE, "model": {"vocab": Each(int)}}


def read_wordpiece(path: str) -> str:
    """Return a WordPiece model as JSON for the library, with no part that ours do not have.

    Raises:
        UsageError: the file is missing or damaged, or differs from ours in more than vocabulary and
            what is done to case, accents and CJK characters.
    """
    content = load_json(path, _SCHEMA, "posenc prepare text")
    vocabulary = content["model"]["vocab"]
    lower, accents, chinese = (content["normalizer"][name] for name in _CASE)
    model = wordpiece_model(vocabulary, lower, accents, chinese)
    for part in sorted({*content, *model}):
        if part not in model or content.get(part) != model[part]:
            raise UsageError(
                f"{path}: its {part:.60} is not what posenc prepare text writes; learn the "
                "vocabulary anew with posenc prepare text"
            )
    numbered = sorted(vocabulary.values()) == list(range(len(vocabulary)))
    if not numbered or vocabulary.get(_UNKNOWN) != 0:
        raise UsageError(f"{path}: its pieces are not numbered from 0, which is {_UNKNOWN}")
    for piece in vocabulary:
        if piece != "".join(piece.split()) or not piece:
            raise UsageError(f"{path}: a piece is empty or holds a space ({piece!r:.60})")
    return json.dumps(model)


def wordpiece_model(
    vocabulary: Dict[str, int],
    lowercase: bool,
    strip_accents: Optional[bool] = None,
    chinese: bool = True,
) -> Dict[str, Any]:
    """Return WordPiece as ours is.

    Args:
        vocabulary: the numbers of the pieces.
        lowercase: whether text becomes lower case.
        strip_accents: whether accents are taken off; ``None``: with lower case.
        chinese: whether each CJK character is a word.
    """
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": 0, "content": _UNKNOWN, "single_word": False, "lstrip": False,
                "rstrip": False, "normalized": False, "special": True,
            }
        ],
        "normalizer": {
            "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": chinese,
            "strip_accents": strip_accents, "lowercase": lowercase,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False},
        "model": {
            "type": "WordPiece", "unk_token": _UNKNOWN, "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary,
        },
    }  # fmt: skip

"""The file of a WordPiece model, ``wordpiece.json``, as ``posenc prepare text`` writes it.

The library ``tokenizers`` reads far more than WordPiece as BERT has it: truncation, padding, other
normalisers and so on. From a stranger's file these lose text without a word, or end the process.
"""

import json
from typing import Any, Dict

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Each, read_shaped

_UNKNOWN = "<unk>"
_SHAPE = {"normalizer": {"lowercase": bool}, "model": {"vocab": Each(int)}}


def read_wordpiece(path: str) -> str:
    """Return a WordPiece model as JSON for the library, with no part that ours do not have.

    Raises:
        UsageError: the file is missing or damaged, or differs from ours in more than vocabulary
            and case.
    """
    found = read_shaped(path, _SHAPE, "posenc prepare text")
    vocabulary = found["model"]["vocab"]
    ours = wordpiece_model(vocabulary, found["normalizer"]["lowercase"])
    for part in sorted({*found, *ours}):
        if part not in ours or found.get(part) != ours[part]:
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
    return json.dumps(ours)


def wordpiece_model(vocabulary: Dict[str, int], lowercase: bool) -> Dict[str, Any]:
    """Return WordPiece as ours is: of a vocabulary, in lower case or not."""
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
            "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
            "strip_accents": None, "lowercase": lowercase,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False},
        "model": {
            "type": "WordPiece", "unk_token": _UNKNOWN, "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary,
        },
    }  # fmt: skip

"""How text is cut for BERT of transformers, as files that fairseq_posenc cuts it with."""

import json
import os
from typing import Any, Callable, Dict, List, Optional

from fairseq_posenc.data.subwords import MASK, SPECIALS, UNKNOWN, SentencePiece, WordPiece
from fairseq_posenc.data.wordpiece_file import wordpiece_model
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.json_files import Maybe, OrNull, check_schema, load_json
from fairseq_posenc.tools.convert.huggingface.folder import (
    ImportedModel,
    added_tokens,
    check_same_vocabulary,
    check_vocab_size,
    read_tokenizer_json,
    read_vocab_json,
)

# fields of tokenizer_config.json, and what they are called here
_FLAGS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "chinese",
    "do_basic_tokenize": "",
}
# of tokenizer.json, what has to be as in BERT's WordPiece
_AS_BERT = (
    *(("normalizer", name) for name in ("type", "clean_text")),
    *(("model", n) for n in ("type", "continuing_subword_prefix", "max_input_chars_per_word")),
)
# classes of tokenizers: of any kind of text, and those that cut as WordPiece does
ANY_TOKENIZER = ("TokenizersBackend", "PreTrainedTokenizerFast")
WORDPIECE = ("BertTokenizer", "BertTokenizerFast", *ANY_TOKENIZER)
# tokens of BERT's and RoBERTa's, which each tokenizer has
_OWN = frozenset((*SPECIALS, "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"))
_SENTENCEPIECES = ("sentencepiece.bpe.model", SentencePiece.name)


def read_vocabulary(folder: str, vocab_size: int) -> List[str]:
    """Return the vocabulary of a model in its order; rows without an entry get fairseq's filler."""
    readers: Dict[str, Callable[[str], Dict[int, str]]] = {
        "vocab.txt": lambda path: dict(enumerate(read_lines(path))),
        "tokenizer.json": read_tokenizer_json,
        "vocab.json": read_vocab_json,
    }
    vocabularies = {
        name: read(os.path.join(folder, name))
        for name, read in readers.items()
        if os.path.exists(os.path.join(folder, name))
    }
    check_same_vocabulary(vocabularies, folder)
    model = _sentencepieces(folder)
    if not vocabularies and model:
        # fairseq's order, which XLM-R has
        symbols = [*SPECIALS[:4], *SentencePiece(model).vocabulary()]
        vocabularies[model] = {**dict(enumerate(symbols)), vocab_size - 1: MASK}
    if not any(vocabularies.values()):
        raise UsageError(f"{folder} has no vocabulary: vocab.txt, tokenizer.json, vocab.json")
    by_number = next(filter(None, vocabularies.values()))
    if max(by_number) >= vocab_size:
        raise UsageError(f"{folder}: its vocabulary has more than the model's {vocab_size} types")
    check_vocab_size(len(by_number), vocab_size, folder)
    return [by_number.get(number, f"madeupword{number:04d}") for number in range(vocab_size)]


def _sentencepieces(folder: str) -> str:
    paths = [os.path.join(folder, name) for name in _SENTENCEPIECES]
    return next(filter(os.path.isfile, paths), "")


def add_subwords(
    imported: ImportedModel, folder: str, symbols: List[str], case: Optional[Dict[str, Any]]
) -> None:
    """Add the file that cuts text, as far as it is of a kind that ours is."""
    if _sentencepieces(folder):
        imported.files[SentencePiece.name] = _sentencepieces(folder)
    elif case is not None:
        usable = [piece for piece in symbols if piece and piece == "".join(piece.split())]
        numbers = {piece: number for number, piece in enumerate([UNKNOWN, *usable])}
        imported.texts[WordPiece.name] = json.dumps(wordpiece_model(numbers, **case))
    else:
        imported.notes.append(f"its text is cut by the tokenizer of {folder}, which posenc lacks")
    added = [token for token in added_tokens(folder).values() if token not in _OWN]
    if added:
        imported.notes.append(
            f"{folder} adds {' '.join(added)[:200]}: transformers cuts text around them, also "
            "within words; the preparation of text cuts it without them"
        )


def wordpiece_case(folder: str, named: bool) -> Optional[Dict[str, Any]]:
    """Return what a WordPiece tokenizer does before it cuts; ``None`` if it is of another kind.

    ``tokenizer.json`` tells, then ``tokenizer_config.json``, which counts more. If ``named``, its
    class must be told.
    """
    case: Dict[str, Any] = {"lowercase": True, "strip_accents": None, "chinese": True}
    tokenizer = os.path.join(folder, "tokenizer.json")
    if os.path.exists(tokenizer):
        schema: Any = {"model": {"type": str}, "normalizer": Maybe(dict)}
        content = load_json(tokenizer, schema, "tokenizers")
        normalizer = content.get("normalizer") or {}
        bert = wordpiece_model({}, lowercase=True)
        settings = {"model": content["model"], "normalizer": normalizer}
        if content.get("pre_tokenizer") != bert["pre_tokenizer"] or any(
            settings[part].get(name) != bert[part][name] for part, name in _AS_BERT
        ):
            return None
        schema = {"lowercase": bool, "strip_accents": OrNull(bool), "handle_chinese_chars": bool}
        check_schema(content, {"normalizer": schema}, tokenizer, "tokenizers")
        case = {name: normalizer[name] for name in ("lowercase", "strip_accents")}
        case["chinese"] = normalizer["handle_chinese_chars"]
    elif not os.path.exists(os.path.join(folder, "vocab.txt")):
        return None
    path = os.path.join(folder, "tokenizer_config.json")
    if not os.path.exists(path):
        return None if named else case
    flags = dict.fromkeys(_FLAGS, Maybe(bool))
    content = load_json(path, {**flags, "tokenizer_class": Maybe(str)}, "transformers")
    classes = WORDPIECE if named else (None, *WORDPIECE)
    if content.get("tokenizer_class") not in classes:
        return None
    if content.get("do_basic_tokenize") is False or content.get("never_split"):
        return None
    for hf_flag, flag in _FLAGS.items():
        if flag and content.get(hf_flag) is not None:
            case[flag] = content[hf_flag]
    return case

"""The tokeniser by which BLEU counts the words of a language."""

import os
from typing import List

from sacrebleu.tokenizers import tokenizer_ja_mecab, tokenizer_ko_mecab
from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
from sacrebleu.utils import SACREBLEU_DIR

from fairseq_posenc.data.languages import HAN, has_spaces, language_code, script_of

_FLORES = "flores200"
_MECAB = {"ja": tokenizer_ja_mecab, "ko": tokenizer_ko_mecab}


def sacrebleu_tokenizer(language: str) -> str:
    """Return the tokeniser of sacreBLEU for a target language.

    sacreBLEU's own choice: ``zh`` for Chinese characters, ``ja-mecab``, ``ko-mecab``, and ``13a``,
    which parts words at spaces. Where there are none, or MeCab is not installed, it is the
    sentencepieces of FLORES-200 if their model has been downloaded, and else single characters.
    """
    code, script = language_code(language), script_of(language)
    if script in HAN:
        return "zh"
    splitter = _MECAB.get(code) if script != "Latn" else None
    if splitter and splitter.MeCab:
        return f"{code}-mecab"
    if not splitter and has_spaces(language):
        return "13a"
    return _FLORES if os.path.exists(_flores_model()) else "char"


def tokenizer_remarks(language: str) -> List[str]:
    """Return what the user should know of the tokeniser for a language; nothing of a usual one."""
    name, code = sacrebleu_tokenizer(language), language_code(language)
    if name not in (_FLORES, "char"):
        return []
    unit = "single characters" if name == "char" else "the sentencepieces of FLORES-200"
    why = f"sacreBLEU has no tokeniser for {language}, which has no spaces between words"
    if code in _MECAB:
        why = f"MeCab is not installed: pip install 'sacrebleu[{code}]'"
    elif name == "char":
        why += f"; sacrebleu --tokenize {_FLORES} downloads one, which is taken once it is there"
    return [f"BLEU is of {unit} (tok:{name}): {why}"]


def _flores_model() -> str:
    return os.path.join(SACREBLEU_DIR, "models", os.path.basename(SPM_MODELS[_FLORES]["url"]))

"""NLLB-200, M2M-100 and mBART-50, read and written.

Their vocabularies are in fairseq's order already. Languages get fairseq's names: ``__eng_Latn__``,
``__en__``, ``[en_XX]``. Sources begin with the token of their language, and so do targets.
"""

import os
import re
import shutil
from dataclasses import replace
from typing import Any, Dict, List, Sequence, Tuple

import torch
from fairseq.data import Dictionary
from fairseq.data.multilingual.multilingual_utils import get_lang_tok
from torch import Tensor

from fairseq_posenc.data.subwords import DICTIONARY, MASK, SPECIALS, SentencePiece
from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Maybe
from fairseq_posenc.tasks.multilingual import OUR_MULTILINGUAL, default_options
from fairseq_posenc.tools.convert.checkpoint import LIMITS, SIDES, ExportSource
from fairseq_posenc.tools.convert.huggingface import language_codes
from fairseq_posenc.tools.convert.huggingface.adapters import EMBEDDINGS_TOO, Adapter, HfWeights
from fairseq_posenc.tools.convert.huggingface.config_fields import check_files
from fairseq_posenc.tools.convert.huggingface.folder import (
    ADDED,
    HfConfig,
    ImportedModel,
    added_tokens,
    check_same_vocabulary,
    check_vocab_size,
    dictionary_of,
    keep_last_norms,
    read_tokenizer_json,
    read_vocab_json,
    refuse_unexpected,
    tokenizer_field,
    with_signatures,
)
from fairseq_posenc.tools.convert.huggingface.translation import (
    BLENDERBOT,
    TRANSLATION_VALUES,
    output_bias,
    position_tables,
    translation_config,
    translation_fields,
    translation_key_map,
)

SENTENCEPIECE = "sentencepiece.bpe.model"
# a language that was added to NLLB-200 or mBART-50
_CODE = {"multilingual": "[a-z]{3}_[A-Z][a-z]{3}", "mbart": "[a-z]{2}_[A-Z]{2}"}
# what transformers' own tokenizers are made of
TOKENIZER_FILES = (
    SENTENCEPIECE,
    *"tokenizer.json tokenizer_config.json vocab.json special_tokens_map.json".split(),
    ADDED,
)
# beside an imported model: options to train it on, the folder of its tokenizer in transformers
TRAIN_OPTIONS, HF_TOKENIZER = "train.args", "hf"


def _read(adapter: Adapter, config: HfConfig) -> ImportedModel:
    folder, vocab_size = config.folder, config.fields["vocab_size"]
    if config.get("decoder_start_token_id", adapter.decoder_start_token_id) != 2:
        raise UsageError(
            f"{config.path}: decoder_start_token_id should be 2; models whose decoder starts with "
            "a language, such as mbart-large-cc25 and mbart-large-en-ro, have it at the end of the "
            "source, and are not imported"
        )
    weights, style = _read_weights(adapter, folder, vocab_size), adapter.lang_tok_style
    symbols, languages, tags = _vocabulary(folder, vocab_size, style)
    dictionary = dictionary_of(symbols, range(len(symbols)), False, folder)
    has_tables = bool(adapter.position_tables)
    model = {
        "arch": "posenc_transformer",
        **adapter.options_of(config),
        "share_all_embeddings": True,
        "share_decoder_input_output_embed": True,
        "encoder_normalize_before": True,
        "decoder_normalize_before": True,
        # of these two, mBART alone has tables of positions and such a LayerNorm
        "layernorm_embedding": has_tables,
        "position_encoding": "learned" if has_tables else "sinusoidal",
    }
    task = {
        **default_options(),
        # a task without a dataclass is found by ``task``
        **dict.fromkeys(("_name", "task"), OUR_MULTILINGUAL),
        "langs": languages,
        "encoder_langtok": "src",
        "decoder_langtok": True,
        "lang_tok_style": style,
        **{limit: model[limit] for limit in LIMITS.values()},
    }
    signed = with_signatures(model, dictionary, dictionary)
    imported = ImportedModel(signed, task, weights, {DICTIONARY: dictionary})
    imported.hf_ids = [range(len(symbols))] * 2
    imported.texts[language_codes.LANGUAGES] = "".join(f"{language}\n" for language in languages)
    imported.texts[TRAIN_OPTIONS] = _train_options(model, style)
    imported.files.update(tokenizer_files(folder))
    if os.path.isfile(os.path.join(folder, SENTENCEPIECE)):
        imported.files[SentencePiece.name] = os.path.join(folder, SENTENCEPIECE)
    else:
        imported.notes.append(
            f"{folder} has no {SENTENCEPIECE}, which cuts text; put it beside the checkpoint as "
            f"{SentencePiece.name}"
        )
    if tags:
        imported.notes.append(
            f"{folder} adds {' '.join(tags)[:200]}, which are neither subwords nor languages: the "
            "preparation of text does not write them, it cuts them like other text"
        )
    if tokenizer_field(folder, "legacy_behaviour", False):
        imported.notes.append(
            "legacy_behaviour is left out: languages are put before sources, as in its training"
        )
    return imported


def tokenizer_files(folder: str) -> Dict[str, str]:
    """Return the files of the tokenizer of transformers, by their names beside a checkpoint."""
    paths = {
        os.path.join(HF_TOKENIZER, name): os.path.join(folder, name) for name in TOKENIZER_FILES
    }
    return {name: path for name, path in paths.items() if os.path.isfile(path)}


def copy_tokenizer(
    source: ExportSource, dictionary: Dictionary, data: str, folder: str
) -> List[str]:
    """Copy the tokenizer that came with an imported model, if the dictionary is still its own."""
    tokenizer = os.path.join(data, HF_TOKENIZER)
    if not os.path.isdir(tokenizer):
        raise source.refusal(
            f"there is no {tokenizer} with the tokenizer of transformers; name the folder of "
            "posenc import with --data"
        )
    check_files(tokenizer)
    symbols, *_ = _vocabulary(tokenizer, len(dictionary), source.task["lang_tok_style"])
    if symbols != dictionary.symbols:
        raise source.refusal(f"{tokenizer} has a tokenizer of other types than the dictionary")
    for name, path in tokenizer_files(tokenizer).items():
        shutil.copy(path, os.path.join(folder, os.path.basename(name)))
    return ["the tokenizer is that of the imported model"]


def _read_weights(adapter: Adapter, folder: str, vocab_size: int) -> Dict[str, Tensor]:
    """Return the weights by fairseq's names; all embeddings are one."""
    weights = HfWeights(folder, adapter.key_map)
    shared, *copies = adapter.shared_weights
    embeddings = weights.get(shared)
    if len(embeddings) != vocab_size:
        raise UsageError(
            f"{folder}: {shared} has {len(embeddings)} rows, and not vocab_size {vocab_size}"
        )
    for name in (name for name in copies if name in weights.hf):
        if not torch.equal(weights.hf[name], embeddings):
            raise UsageError(f"{folder}: {name} is not {shared}; embeddings should be one")
    bias = weights.hf.get("final_logits_bias")
    if bias is not None and bias.any():
        raise UsageError(f"{folder}: its output has a bias (final_logits_bias), fairseq's has none")
    # M2M-100's older files have sinusoids, which are computed
    sinusoids = [f"model.{side}.embed_positions.weights" for side in SIDES]
    expected = {shared, "final_logits_bias", *(adapter.position_tables.values() or sinusoids)}
    refuse_unexpected(folder, [name for name in weights.unexpected if name not in expected])
    renamed = weights.fairseq
    renamed.update(adapter.tables(weights, required=True))
    renamed.update(dict.fromkeys(adapter.embeddings, embeddings))
    keep_last_norms(renamed, SIDES)
    return renamed


def _train_options(model: Dict[str, Any], style: str) -> str:
    """Return the options of ``fairseq-train`` that go on with the model, one a line."""
    lines = [f"--task {OUR_MULTILINGUAL}", "--encoder-langtok src", "--decoder-langtok"]
    lines.append(f"--lang-tok-style {style}")
    for name, value in model.items():
        flag = f"--{name.replace('_', '-')}"
        if value is not False:
            lines.append(flag if value is True else f"{flag} {value}")
    return "".join(f"{line}\n" for line in lines)


def _vocabulary(folder: str, rows: int, style: str) -> Tuple[List[str], List[str], List[str]]:
    """Return the types in their order, languages by fairseq's names, the languages, and tags.

    Tags are tokens that somebody added to the tokenizer, and no languages; transformers gives
    M2M-100's the numbers of languages, which are named beside them.
    """
    by_number, codes = __vocabulary(folder, style)
    named = {*SPECIALS[:4], MASK, *codes, *(get_lang_tok(code, style) for code in codes)}
    added = {n: token for n, token in added_tokens(folder).items() if token not in named}
    new_codes = [token for token in added.values() if re.fullmatch(_CODE[style], token)]
    tags = []
    codes = [*codes, *new_codes]
    for number, token in added.items():
        replaced, by_number[number] = by_number.get(number), token
        if token in new_codes:
            by_number[number] = get_lang_tok(token, style)
        elif replaced in (None, token):
            tags.append(token)
        else:
            tags.append(f"{token} (in the place of {replaced})")
    if sorted(by_number) != list(range(len(by_number))) or len(by_number) > rows:
        raise UsageError(
            f"{folder}: the numbers of its vocabulary should be 0…{len(by_number) - 1}, and no "
            f"more than vocab_size {rows}"
        )
    check_vocab_size(len(by_number), rows, folder)
    symbols = [by_number[number] for number in range(len(by_number))]
    symbols += [f"madeupword{number:04d}" for number in range(rows - len(by_number))]
    if tuple(symbols[:4]) != SPECIALS[:4]:
        raise UsageError(f"{folder}: its vocabulary does not begin with {' '.join(SPECIALS[:4])}")
    distinct = set(symbols)
    if len(distinct) < len(symbols) or any(not s or re.search("[\r\n]", s) for s in symbols):
        raise UsageError(f"{folder}: its vocabulary has types of one name, or with line breaks")
    languages = [code for code in codes if get_lang_tok(code, style) in distinct]
    if len(languages) < 2:
        raise UsageError(f"{folder}: its vocabulary has no languages that import knows")
    return symbols, languages, tags


def __vocabulary(folder: str, style: str) -> Tuple[Dict[int, str], Sequence[str]]:
    """Return the types by number, and the languages that may be among them, in their order."""
    path = {name: os.path.join(folder, name) for name in TOKENIZER_FILES}
    if style == "multilingual" and os.path.exists(path["vocab.json"]):
        # of M2M-100, behind which its tokenizer puts the languages
        numbered = read_vocab_json(path["vocab.json"])
        if os.path.exists(path["tokenizer.json"]):
            tokenizer = read_tokenizer_json(path["tokenizer.json"])
            check_same_vocabulary({"vocab.json": numbered, "tokenizer.json": tokenizer}, folder)
        codes = language_codes.WMT21 if _codes(folder) == "wmt21" else language_codes.M2M100
        tags = {len(numbered) + n: get_lang_tok(code, style) for n, code in enumerate(codes)}
        return {**numbered, **tags}, codes
    codes = language_codes.MBART50 if style == "mbart" else language_codes.NLLB
    if os.path.exists(path["tokenizer.json"]):
        by_number = read_tokenizer_json(path["tokenizer.json"])
    elif os.path.exists(path[SENTENCEPIECE]):
        subwords = SentencePiece(path[SENTENCEPIECE]).vocabulary()
        by_number = dict(enumerate([*SPECIALS[:4], *subwords, *codes, MASK]))
    else:
        raise UsageError(
            f"{folder} has no vocabulary: tokenizer.json, {SENTENCEPIECE} or vocab.json"
        )
    named = {code: get_lang_tok(code, style) for code in codes}
    return {number: named.get(symbol, symbol) for number, symbol in by_number.items()}, codes


def _codes(folder: str) -> str:
    """Return which languages the tokenizer of M2M-100 has."""
    languages = tokenizer_field(folder, "language_codes", "m2m100")
    if languages not in ("m2m100", "wmt21"):
        raise UsageError(
            f"{folder}: language_codes is {languages!r:.60}; known are m2m100 and wmt21"
        )
    return languages


M2M100 = replace(
    BLENDERBOT,
    model_type="m2m_100",
    classes=("M2M100ForConditionalGeneration",),
    config_fields=translation_fields(scale_embedding=True, attention_dropout=0.1),
    position_tables={},
    exported=(("posenc_transformer", "before", "sinusoids"),),
    extra_weights=lambda source: {},
    read=_read,
    more_fields={"vocab_size": int, "decoder_start_token_id": Maybe(int)},
    accepted_values={
        **TRANSLATION_VALUES,
        "tie_word_embeddings": (True,),
        "add_final_layer_norm": (True,),
        "normalize_before": (True,),
        "normalize_embedding": (True,),
        "static_position_embeddings": (False,),
    },
    ignored_fields=frozenset({"num_hidden_layers", "hidden_size", "num_attention_heads"}),
    lang_tok_style="multilingual",
    tokenizers=("M2M100Tokenizer", "NllbTokenizer", "NllbTokenizerFast"),
)


def _mbart_config(source: ExportSource) -> Dict[str, Any]:
    return {
        **translation_config(source),
        # which CTranslate2 asks for: mBART-50's decoder starts with EOS
        "normalize_before": True,
        "normalize_embedding": True,
        "tokenizer_class": "MBart50Tokenizer",
    }


MBART = replace(
    M2M100,
    model_type="mbart",
    classes=("MBartForConditionalGeneration",),
    key_map=translation_key_map("lm_head", "embed_tokens", "layer_norm", "layernorm_embedding"),
    config_fields=translation_fields(scale_embedding=False),
    position_tables=BLENDERBOT.position_tables,
    unused_rows=2,
    exported=tuple(
        ("posenc_transformer", EMBEDDINGS_TOO, positions) for positions in ("sinusoids", "table")
    ),
    to_config=_mbart_config,
    extra_weights=lambda source: {**position_tables(source), **output_bias(source)},
    ignored_fields=M2M100.ignored_fields | {"classif_dropout", "_num_labels"},
    # cc25 and en-ro do not say, and start with a language
    decoder_start_token_id=-1,
    lang_tok_style="mbart",
    tokenizers=("MBart50Tokenizer", "MBart50TokenizerFast"),
)

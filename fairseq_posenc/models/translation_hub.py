"""Trained translation models in Python, from sentences to sentences.

How text is cut comes from the caller's arguments and from files beside the model or in the data
folder, never from the checkpoint, which may be untrusted.
"""

import logging
import os
import re
from argparse import Namespace
from inspect import signature
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

import torch
from fairseq import hub_utils, utils
from fairseq.data import Dictionary, encoders
from fairseq.data.data_utils import post_process
from fairseq.dataclass.configs import GenerationConfig
from fairseq.tasks.translation import TranslationTask
from fairseq.tasks.translation_multi_simple_epoch import TranslationMultiSimpleEpochTask
from omegaconf import open_dict
from torch import Tensor

from fairseq_posenc.data.segmentation import (
    CODES,
    SEPARATOR,
    TOKENIZER,
    BytePairEncoder,
    SentencePieces,
    detokenise_lines,
    read_moses,
    tokenise_lines,
)
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards.loading import check_folder
from fairseq_posenc.tasks.multilingual import PosencMultilingualTask

logger = logging.getLogger(__name__)

# options of fairseq's subword classes, and the names of their files
_FILES = {
    "bpe_codes": (CODES, "code", "bpecodes"),
    "sentencepiece_model": ("sentencepiece.model", "sentencepiece.bpe.model"),
    "bpe_merges": ("merges.txt",),
    "bpe_vocab": ("vocab.json",),
}

LENGTH_LIMIT = {"max_len_a": 1.5, "max_len_b": 10}
"""Translations have at most a · (tokens of the source) + b tokens."""


class _TextCodec(NamedTuple):
    """Tokeniser or subwords for fairseq's hub: from text to pieces, and back."""

    encode: Callable[[str], str]
    decode: Callable[[str], str]


def _moses(path: str, source: str, target: str, dictionary: Dictionary) -> _TextCodec:
    """Tokenise as ``posenc prepare`` did, and detokenise as ``posenc score`` does.

    Where the dictionary has ``<sep>``, sentences that it joins are tokenised each, as in training.
    """
    moses = read_moses(path, source)
    between = f" {SEPARATOR} "

    def tokenise(text: str) -> str:
        line = _one_line(text)
        sentences = line.split(between) if SEPARATOR in dictionary else [line]
        return between.join(tokenise_lines(sentences, moses))

    return _TextCodec(tokenise, lambda text: detokenise_lines([text], target)[0])


def _sentence_pieces(path: str, dictionary: Dictionary) -> _TextCodec:
    """Encode as ``posenc prepare`` did; warn of a model that is not the dictionary's."""
    model = SentencePieces(path)
    for remark in model.remarks(dictionary.symbols[dictionary.nspecial :]):
        logger.warning(remark)
    return _TextCodec(lambda text: model.encode(_one_line(text)), model.decode)


class _Hub(hub_utils.GeneratorHubInterface):
    """fairseq's hub, with a warning where translations end since they may not be longer."""

    def generate(self, tokenized_sentences: Any, *args: Any, **options: Any) -> Any:
        """Return hypotheses of sentences of indices; ``max_len_b`` alone is a limit by itself.

        Raises:
            UsageError: an option is none of the search, which fairseq would not read.
        """
        search = {*GenerationConfig.__dataclass_fields__, *signature(super().generate).parameters}
        for name in options.keys() - search:
            raise UsageError(f"{name}= is no option of the search: see fairseq-generate --help")
        if not len(tokenized_sentences):  # fairseq takes no empty set
            return []
        if "max_len_b" in options:
            options.setdefault("max_len_a", 0)
        hypotheses = super().generate(tokenized_sentences, *args, **options)
        if not (torch.is_tensor(tokenized_sentences) and tokenized_sentences.dim() == 1):
            self._warn_of_limit(tokenized_sentences, hypotheses, options)
        return hypotheses

    def _build_batches(self, tokens: List[Tensor], skip_invalid_size_inputs: bool) -> Any:
        """Return batches, of as many tokens as in training, or of a text that is longer."""
        sets = self.cfg.dataset
        if sets.max_tokens is not None:
            # behind BOS or the tag of a language
            sets.max_tokens = max(sets.max_tokens, *(len(text) + 1 for text in tokens))
        return super()._build_batches(tokens, skip_invalid_size_inputs)

    def _warn_of_limit(self, sources: Any, hypotheses: Any, options: Dict[str, Any]) -> None:
        search = {**self.cfg.generation, **options}
        a, b = (float(str(search[name])) for name in ("max_len_a", "max_len_b"))
        most = min(model.max_decoder_positions() for model in self.models) - 1
        # fairseq's limit is of the longest source of a batch: of others it is higher
        at_limit = sum(
            len(beam[0]["tokens"]) - 1 >= min(int(a * len(source) + b), most)
            for source, beam in zip(sources, hypotheses)
        )
        if at_limit and len(hypotheses) == len(sources):
            logger.warning(
                "%d of %d translations end at the limit of %g × source + %g tokens (%d at most), "
                "and may be cut: raise max_len_a= and max_len_b=",
                at_limit, len(sources), a, b, most,
            )  # fmt: skip


class _MultilingualHub(_Hub):
    """fairseq's hub, whose translations are without the token of their language."""

    def string(self, tokens: Tensor) -> str:
        return self.tgt_dict.string(tokens, extra_symbols_to_ignore={self.task.target_token})


def _one_line(text: str) -> str:
    return re.sub("[\r\n]+", " ", text)


def load(
    model: str, checkpoints: str, data: str, options: Dict[str, Any]
) -> hub_utils.GeneratorHubInterface:
    """Load checkpoints, see :meth:`PosencTransformerModel.from_pretrained`."""
    folder = check_folder(model)
    for name in checkpoints.split(os.pathsep):
        if not os.path.isfile(os.path.join(folder, name)):
            raise UsageError(f"there is no checkpoint {os.path.join(folder, name)}")
    # fairseq looks in the model's folder for paths that begin with a dot
    check_folder(
        os.path.join(folder, data) if data.startswith(".") else data, "the data of the training"
    )
    loaded = hub_utils.from_pretrained(folder, checkpoints, data, **options)
    cfg, task = loaded["args"], loaded["task"]
    hub_class = _Hub
    if isinstance(task, TranslationMultiSimpleEpochTask):
        hub_class = _MultilingualHub
        if task.training:
            raise UsageError(
                f"{folder}: a model of many languages translates from source_lang= to target_lang="
            )
        # fairseq's own task does not take the arguments of its hub
        task = PosencMultilingualTask.of(task)
    elif not isinstance(task, TranslationTask):
        raise UsageError(f"{os.path.join(folder, checkpoints)} is not a translation model")
    generation = {**options, **(options.get("generation_args") or {})}
    if "beam" in generation:  # of fairseq's hub each call has its own, 5 by default
        raise UsageError("beam= belongs to translate(), or to sample() and generate()")
    with open_dict(cfg):
        # the checkpoint's own would read files that it names
        cfg.tokenizer = cfg.bpe = None
        cfg.generation.replace_unk = generation.get("replace_unk")
        if not LENGTH_LIMIT.keys() & generation.keys():
            # fairseq's own, 200 tokens whatever the source, cuts paragraphs
            cfg.generation.update(LENGTH_LIMIT)
    hub, chosen = hub_class(cfg, task, loaded["models"]), task.cfg or task.args
    folders = [folder, *utils.split_paths(chosen.data)[:1]]
    arguments = {"source_lang": chosen.source_lang, "target_lang": chosen.target_lang}
    arguments.update({name: _find(folders, files) for name, files in _FILES.items()})
    arguments.update({name: value for name, value in options.items() if value is not None})
    hub.bpe = _build_subwords(arguments, options, folders, task)
    hub.tokenizer = _build_tokenizer(arguments, options, folders, task.source_dictionary)
    return hub


def _find(folders: Sequence[str], names: Sequence[str]) -> Optional[str]:
    paths = (os.path.join(folder, name) for folder in folders for name in names)
    return next(filter(os.path.isfile, paths), None)


def _build_subwords(
    arguments: Dict[str, Any], options: Dict[str, Any], folders: List[str], task: Any
) -> Any:
    """Return the subword encoder of the options, or of the files."""
    codes, sentencepiece = arguments["bpe_codes"], arguments["sentencepiece_model"]
    if codes and options.get("bpe", "subword_nmt") == "subword_nmt":
        return _TextCodec(
            BytePairEncoder(codes).encode, lambda text: post_process(text, "subword_nmt")
        )
    if sentencepiece and "bpe" not in options:
        return _sentence_pieces(sentencepiece, task.source_dictionary)
    bpe = options.get("bpe")
    symbols = task.source_dictionary.symbols
    is_cut = any(symbol.endswith("@@") for symbol in symbols)
    if bpe == "subword_nmt" or (is_cut and "bpe" not in options):
        raise UsageError(
            f"the model takes subwords, but there are no codes in {' or '.join(folders)} to make "
            "them with; put them there (posenc prepare pairs bpe-keep), give bpe_codes=, or "
            "bpe=None for sentences that are tokenised and cut already"
        )
    return encoders.build_bpe(Namespace(**{**arguments, "bpe": bpe})) if bpe else None


def _build_tokenizer(
    arguments: Dict[str, Any],
    options: Dict[str, Any],
    folders: List[str],
    dictionary: Dictionary,
) -> Any:
    """Return the tokenizer of the options, or of ``tokeniser.json``."""
    if "tokenizer" in options:
        return encoders.build_tokenizer(
            Namespace(**{**arguments, "tokenizer": options["tokenizer"]})
        )
    if "bpe" in options and options["bpe"] is None:
        return None
    path = _find(folders, [TOKENIZER])
    if path:
        return _moses(path, arguments["source_lang"], arguments["target_lang"], dictionary)
    if arguments["bpe_codes"] and options.get("bpe", "subword_nmt") == "subword_nmt":
        logger.warning(
            "sentences are taken as tokenised: no %s in %s says how (posenc prepare pairs "
            "bpe-keep writes it; or give tokenizer='moses', or None)",
            TOKENIZER,
            " or ".join(folders),
        )
    return None

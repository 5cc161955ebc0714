"""Trained translation models in Python, from sentences to sentences.

How text is cut comes from the caller's arguments and from files beside the model or in the data
folder, never from the checkpoint, which may be a stranger's.
"""

import logging
import os
import re
from argparse import Namespace
from typing import Any, Dict, List, Optional, Sequence

from fairseq import file_utils, hub_utils, utils
from fairseq.data import Dictionary, encoders
from fairseq.data.data_utils import post_process
from fairseq.tasks.translation import TranslationTask
from omegaconf import open_dict

from fairseq_posenc.errors import UsageError

logger = logging.getLogger(__name__)

# options of fairseq's subword classes, and what files of theirs are called
_FILES = {
    "bpe_codes": ("codes", "code", "bpecodes"),
    "sentencepiece_model": ("sentencepiece.model", "sentencepiece.bpe.model"),
    "bpe_merges": ("merges.txt",),
    "bpe_vocab": ("vocab.json",),
}
_TOKENISER = "tokeniser.json"


class _Moses:
    """Tokenises as a recipe did, and detokenises as ``posenc score`` does."""

    def __init__(self, path: str, source: str, target: str):
        from sacremoses import MosesDetokenizer

        from fairseq_posenc.tools.prepare.parallel.segmentation import read_tokeniser

        self._moses = read_tokeniser(path, source)
        self._detokeniser = MosesDetokenizer(lang=target)

    def encode(self, text: str) -> str:
        from fairseq_posenc.tools.prepare.parallel.tokens import tokenise_lines

        return tokenise_lines([re.sub("[\r\n]+", " ", text)], self._moses)[0]

    def decode(self, text: str) -> str:
        return self._detokeniser.detokenize(text.split())


class _BytePairs:
    """Cuts words as ``subword-nmt apply-bpe`` does, and joins them."""

    def __init__(self, codes: str):
        from fairseq_posenc.tools.prepare.parallel.bpe import BytePairEncoder

        self._encoder = BytePairEncoder(codes)

    def encode(self, text: str) -> str:
        return self._encoder.cut(text)

    def decode(self, text: str) -> str:
        return post_process(text, "subword_nmt")


def load(
    model: str, checkpoints: str, data: str, options: Dict[str, Any]
) -> hub_utils.GeneratorHubInterface:
    """Load checkpoints of a translation model.

    Args:
        model: folder, or what else fairseq's ``from_pretrained`` takes.
        checkpoints: names of files in it, separated by ``:``.
        data: folder of binarised data; one that begins with a dot is looked for in that of the
            model.
        options: of ``PosencTransformerModel.from_pretrained``.

    Raises:
        UsageError: folder or checkpoint is missing, the model does not translate, or it takes
            subwords and nothing says how to make them.
    """
    folder = file_utils.load_archive_file(model)
    if folder is None:
        raise UsageError(f"there is no folder {model} with a model")
    for name in checkpoints.split(os.pathsep):
        if not os.path.isfile(os.path.join(folder, name)):
            raise UsageError(f"there is no checkpoint {os.path.join(folder, name)}")
    if not data.startswith(".") and file_utils.load_archive_file(data) is None:
        raise UsageError(f"there is no folder {data} with the data of the training")
    found = hub_utils.from_pretrained(folder, checkpoints, data, **options)
    cfg, task = found["args"], found["task"]
    if not isinstance(task, TranslationTask):
        raise UsageError(f"{os.path.join(folder, checkpoints)} is no model for translation")
    generation = {**options, **(options.get("generation_args") or {})}
    with open_dict(cfg):
        # the checkpoint's own would read files that it names
        cfg.tokenizer = cfg.bpe = None
        cfg.generation.replace_unk = generation.get("replace_unk")
    hub = hub_utils.GeneratorHubInterface(cfg, task, found["models"])
    folders = [folder, *utils.split_paths(task.cfg.data)[:1]]
    given = {"source_lang": task.cfg.source_lang, "target_lang": task.cfg.target_lang}
    given.update({name: _find(folders, files) for name, files in _FILES.items()})
    given.update({name: value for name, value in options.items() if value is not None})
    hub.bpe = _subwords(given, options, folders, task.source_dictionary)
    cut = hub.bpe is not None and not given["sentencepiece_model"]
    hub.tokenizer = _tokeniser(given, options, folders, cut)
    return hub


def _find(folders: Sequence[str], names: Sequence[str]) -> Optional[str]:
    paths = (os.path.join(folder, name) for folder in folders for name in names)
    return next(filter(os.path.isfile, paths), None)


def _subwords(
    given: Dict[str, Any], options: Dict[str, Any], folders: List[str], dictionary: Dictionary
) -> Any:
    if "bpe" in options and options["bpe"] != "subword_nmt":
        return encoders.build_bpe(Namespace(**{**given, "bpe": options["bpe"]}))
    if given["bpe_codes"]:
        return _BytePairs(given["bpe_codes"])
    if given["sentencepiece_model"] and "bpe" not in options:
        return encoders.build_bpe(Namespace(**{**given, "bpe": "sentencepiece"}))
    if "bpe" in options or any(symbol.endswith("@@") for symbol in dictionary.symbols):
        raise UsageError(
            f"the model takes subwords, but there are no codes in {' or '.join(folders)} to make "
            "them with; put them there (posenc prepare pairs bpe-keep), give bpe_codes=, or "
            "bpe=None for sentences that are tokenised and cut already"
        )
    return None


def _tokeniser(
    given: Dict[str, Any], options: Dict[str, Any], folders: List[str], cut: bool
) -> Any:
    if "tokenizer" in options:
        return encoders.build_tokenizer(Namespace(**{**given, "tokenizer": options["tokenizer"]}))
    if "bpe" in options and options["bpe"] is None:
        return None
    path = _find(folders, [_TOKENISER])
    if path:
        return _Moses(path, given["source_lang"], given["target_lang"])
    if cut:
        logger.warning(
            "sentences are taken as tokenised: no %s in %s says how (posenc prepare pairs "
            "bpe-keep writes it; or give tokenizer='moses', or None)",
            _TOKENISER,
            " or ".join(folders),
        )
    return None

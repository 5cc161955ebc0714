"""Options of ``--eval-bleu``, which fairseq reads after the data, or not at all."""

import json
import logging
import os
from typing import Any, Dict

import numpy as np
from fairseq.data.encoders import TOKENIZER_REGISTRY
from fairseq.dataclass.configs import GenerationConfig
from fairseq.tasks.translation import TranslationConfig

from fairseq_posenc.data.subwords import SentencePiece
from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import parse_json

logger = logging.getLogger(__name__)


def check_bleu_options(cfg: TranslationConfig, folder: str) -> None:
    """Check the options of ``--eval-bleu``; warn where words would be pieces.

    Raises:
        UsageError: some are no JSON, or nothing reads them.
    """
    for name in ("eval_bleu_args", "eval_bleu_detok_args"):
        option = f"--{name.replace('_', '-')}"
        values = parse_json(getattr(cfg, name) or "{}", option)
        if not isinstance(values, dict):
            raise UsageError(f"""{option}: expected an object of JSON, such as '{{"beam": 5}}'""")
        if name == "eval_bleu_args":  # the other's are those of a detokenizer
            unread = set(values) - set(GenerationConfig.__dataclass_fields__)
            if unread:
                raise UsageError(f"{option}: {min(unread)} is no option of fairseq-generate")
            _check_numbers(option, values)
    if cfg.eval_bleu_detok not in TOKENIZER_REGISTRY:
        choices = ", ".join(sorted(TOKENIZER_REGISTRY))
        raise UsageError(f"--eval-bleu-detok {cfg.eval_bleu_detok}: choose one of {choices}")
    has_pieces = os.path.exists(os.path.join(folder, SentencePiece.name))
    if has_pieces and cfg.eval_bleu_remove_bpe != "sentencepiece":
        logger.warning("BLEU is of pieces, not of words: give --eval-bleu-remove-bpe sentencepiece")


def _check_numbers(option: str, values: Dict[str, Any]) -> None:
    for name, value in values.items():
        needs_number = GenerationConfig.__dataclass_fields__[name].type in (int, float)
        if needs_number and not isinstance(value, (int, float)):
            raise UsageError(f"{option}: {name} must be a number, not {json.dumps(value):.60}")


def warn_of_limit(cfg: TranslationConfig, split: str, pairs: Any) -> None:
    """Warn where ``--eval-bleu`` may not translate as far as references are long."""
    if not cfg.eval_bleu:
        return
    search = parse_json(cfg.eval_bleu_args or "{}", "--eval-bleu-args")
    # fairseq's defaults; EOS is no token of these
    limits = search.get("max_len_a", 0) * (pairs.src_sizes - 1) + search.get("max_len_b", 200)
    cut = int(np.sum(pairs.tgt_sizes - 1 > limits))
    if cut:
        logger.warning(
            "%d of %d references of the '%s' set are longer than --eval-bleu lets a translation "
            """be: give --eval-bleu-args '{"max_len_a": 1.5, "max_len_b": 10}'""",
            cut, len(pairs.tgt_sizes), split,
        )  # fmt: skip

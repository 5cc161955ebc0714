"""Updates of translation models as ``fairseq-train`` makes them, each with a batch of new shape.

A kernel that is prepared for the shape of a batch looks fast on one shape, and is slow in training,
where fairseq's batches have another number of tokens each time.
"""

import logging
import os
import random
from typing import Any, Dict, Iterator, List

import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks.translation import TranslationTask
from fairseq.trainer import Trainer
from tqdm import tqdm

from fairseq_posenc import register_all
from fairseq_posenc.attention.bfloat16 import has_fast_bfloat16
from recipes.benchmark.settings import STOCK, Setting, Step, Steps

# fairseq's own Adam: what a training without this package has
STOCK_OPTIONS = ["--arch", "transformer", "--use-old-adam"]
HALF = {"bfloat16": ["--bf16"], "float16": ["--fp16"], "float32": []}


def updates(setting: Setting) -> Steps:
    """Whole updates by fairseq's trainer: loss, gradients, their norm, Adam."""
    register_all()
    for name in ("fairseq", "fairseq_posenc", "hydra"):
        logging.getLogger(name).setLevel(logging.WARNING)
    steps: Steps = {}
    for contestant in tqdm([STOCK, *setting.contestants], "building", mininterval=1, leave=False):
        steps[contestant] = _update(contestant, setting)
    return steps


def amp_variants() -> List[str]:
    """Return the contestant with ``--amp``, where the hardware multiplies in half precision."""
    return ["sinusoidal --amp"] if torch.cuda.is_available() or has_fast_bfloat16() else []


def _update(contestant: str, setting: Setting) -> Step:
    trainer = build_trainer(contestant, setting)
    samples = batches(setting)
    return lambda: trainer.train_step([next(samples)])


def build_trainer(contestant: str, setting: Setting) -> Trainer:
    """Build fairseq's trainer of a contestant, which is written as on the command line."""
    words = [os.curdir, "--task", "translation", "--criterion", "label_smoothed_cross_entropy"]
    words += ["--label-smoothing", "0.1", "--optimizer", "adam", "--lr", "0.0001"]
    words += ["--max-tokens", "1", "--share-all-embeddings", "--no-save"]
    words += ["--cpu"] if setting.device == "cpu" else HALF[setting.dtype]
    for name in ("--dropout", "--attention-dropout"):
        words += [name, str(setting.dropout)]
    for side in ("encoder", "decoder"):
        words += [f"--{side}-embed-dim", str(setting.sizes.width)]
        words += [f"--{side}-ffn-embed-dim", str(setting.sizes.ffn)]
        words += [f"--{side}-layers", str(setting.sizes.layers)]
        words += [f"--{side}-attention-heads", str(setting.sizes.heads)]
    architecture = ["--arch", "posenc_transformer", "--position-encoding", *contestant.split()]
    words += STOCK_OPTIONS if contestant == STOCK else architecture
    cfg = convert_namespace_to_omegaconf(
        options.parse_args_and_arch(options.get_training_parser(), words)
    )
    dictionary = setting.dictionary()
    task = TranslationTask(cfg.task, dictionary, dictionary)
    torch.manual_seed(1)
    trainer = Trainer(cfg, task, task.build_model(cfg.model), task.build_criterion(cfg.criterion))
    trainer.begin_epoch(1)
    return trainer


def batches(setting: Setting) -> Iterator[Dict[str, Any]]:
    """Yield batches of drawn lengths, for ever: half to one and a half times the setting's length.

    Sources and targets have lengths of their own; a batch has as many sentences as its tokens
    allow. All contestants get the same.
    """
    drawn = random.Random(1)
    generator = torch.Generator().manual_seed(1)
    fewest, most = max(2, setting.length // 2), max(2, setting.length * 3 // 2)

    def tokens(sentences: int, length: int) -> torch.Tensor:
        shape = sentences, length
        return torch.randint(4, setting.sizes.entries, shape, generator=generator)

    number = 0
    while True:
        lengths: List[int] = [drawn.randint(fewest, most) for _ in ("source", "target")]
        sentences = max(1, setting.batch * setting.length // max(lengths))
        source, target = (tokens(sentences, length) for length in lengths)
        number += sentences
        yield {
            "id": torch.arange(number - sentences, number),
            "nsentences": sentences,
            "ntokens": target.numel(),
            "net_input": {
                "src_tokens": source,
                "src_lengths": torch.full((sentences,), source.size(1)),
                "prev_output_tokens": target.roll(1, dims=1),
            },
            "target": target,
        }

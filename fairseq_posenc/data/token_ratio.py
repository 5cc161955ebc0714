"""α of CAPE: how much longer the target side of the training corpus is than the source side."""

import itertools
import os
from typing import Any, Iterator, Tuple

import numpy as np
from fairseq import utils
from fairseq.data import Dictionary, data_utils

from fairseq_posenc import options
from fairseq_posenc.data.indexed import check_split
from fairseq_posenc.errors import UsageError


def set_source_scale(args: Any, task: Any) -> None:
    """Replace ``--position-source-scale auto`` by the number that it stands for, if it is given.

    Args:
        args: options of a model, changed in place.
        task: of the model.
    """
    if options.chosen(args).get("source_scale") == "auto":
        args.position_source_scale = training_token_ratio(task)


def training_token_ratio(task: Any) -> float:
    """Return target tokens / source tokens of a translation task's binarised training set.

    "# tokens in target corpus / # tokens in source corpus" (CAPE, section 5.3); our reading: the
    subwords of the text, without the end-of-sentence symbols that fairseq appends. All shards
    and parts (``train``, ``train1``, …) count.

    Raises:
        UsageError: the task has no source and target, or no training set.
    """
    cfg: Any = getattr(task, "cfg", None)
    source = target = 0
    if not getattr(cfg, "source_lang", None):
        raise UsageError(
            "--position-source-scale auto compares the two sides of the data of --task translation "
            "or posenc_translation; give a number with this task"
        )
    for sizes in training_sizes(cfg.data, cfg.train_subset, cfg.source_lang, cfg.target_lang):
        source, target = source + int(sizes[0].sum()), target + int(sizes[1].sum())
    if not source or not target:
        raise UsageError(
            f"--position-source-scale auto needs the binarised training set in {cfg.data}; "
            "run fairseq-preprocess with --trainpref, or give the number"
        )
    return target / source


def training_sizes(
    data: str, subset: str, source: str, target: str
) -> Iterator[Tuple[np.ndarray, np.ndarray]]:
    """Yield the subwords of each source and target, EOS aside, of all shards and parts.

    Raises:
        UsageError: the data are damaged.
    """
    for folder in utils.split_paths(data):
        check_split(folder, subset)
        for part in itertools.count():
            prefix = os.path.join(folder, f"{subset}{part or ''}.")
            for pair in (f"{source}-{target}.", f"{target}-{source}."):
                paths = [prefix + pair + language for language in (source, target)]
                sides = [data_utils.load_indexed_dataset(path, Dictionary()) for path in paths]
                if all(side is not None for side in sides):
                    first, second = (np.array(side.sizes, dtype=np.int64) - 1 for side in sides)
                    yield first, second
                    break
            else:  # of neither order: the shard has no further part
                break

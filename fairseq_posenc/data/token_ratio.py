"""α of CAPE: how much longer the target side of the training corpus is than the source side."""

import itertools
import os
from typing import Any, Optional, Tuple

from fairseq import utils
from fairseq.data import data_utils

from fairseq_posenc.data.indexed import check_split
from fairseq_posenc.errors import UsageError


def training_token_ratio(task: Any) -> float:
    """Return target tokens / source tokens of a translation task's binarised training set.

    "# tokens in target corpus / # tokens in source corpus" (CAPE, section 5.3); our reading: the
    subwords of the text, without the end-of-sentence symbols that fairseq appends. All shards
    and parts (``train``, ``train1``, …) count.

    Raises:
        UsageError: there is no binarised training set, it is damaged, or one of its sides is empty.
    """
    source_lang, target_lang = task.cfg.source_lang, task.cfg.target_lang
    source = target = 0
    for folder in utils.split_paths(task.cfg.data):
        check_split(folder, task.cfg.train_subset)
        for part in itertools.count():
            name = f"{task.cfg.train_subset}{part or ''}"
            counts = _count(folder, name, source_lang, target_lang)
            if counts is None:
                break
            source, target = source + counts[0], target + counts[1]
    if not source or not target:
        raise UsageError(
            f"--position-source-scale auto needs the binarised training set in {task.cfg.data}; "
            "run fairseq-preprocess with --trainpref, or give the number"
        )
    return target / source


def _count(folder: str, name: str, source: str, target: str) -> Optional[Tuple[int, int]]:
    for pair in (f"{source}-{target}", f"{target}-{source}"):
        prefix = os.path.join(folder, f"{name}.{pair}.")
        sides = [data_utils.load_indexed_dataset(prefix + lang, None) for lang in (source, target)]
        if all(side is not None for side in sides):
            first, second = (int(side.sizes.sum()) - len(side) for side in sides)
            return first, second
    return None

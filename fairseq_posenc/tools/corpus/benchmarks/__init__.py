"""Benchmarks in the files of GLUE, XNLI and XTREME's question answering, written by the grammar.

They are for trying a recipe from end to end without a download, and say nothing about a model.
``scenes`` makes simple clauses and edits them, ``wording`` has other words for them, ``questions``
asks about them; ``tongues`` puts them into English, German and invented languages in other
scripts. ``sentences`` makes labelled examples of them, which ``unseen`` keeps apart between splits.
``tables`` (GLUE, XNLI), ``reading`` (SQuAD and its like) and ``texts`` lay out the files of a
``plan``.
"""

import os
from itertools import chain
from typing import Callable, Iterable

from fairseq_posenc.files import replacing_all
from fairseq_posenc.tools.corpus.benchmarks.plan import File, Plan
from fairseq_posenc.tools.corpus.benchmarks.reading import question_answering
from fairseq_posenc.tools.corpus.benchmarks.tables import glue_and_xnli
from fairseq_posenc.tools.corpus.benchmarks.texts import raw_text

__all__ = ["File", "Plan", "write_benchmarks"]


def write_benchmarks(
    folder: str,
    plan: Plan,
    *,
    progress: Callable[[Iterable[File]], Iterable[File]] = iter,
) -> None:
    """Write every file; they take their names together, once all are complete.

    ``text``, ``text-multilingual``, ``glue``, ``xnli``, ``squad``, ``xquad``, ``mlqa`` and
    ``tydiqa`` hold files named as in the official downloads. No sentence of a training file is in
    a development or test file of the same benchmark.

    Args:
        folder: made if missing.
        plan: seed and sizes.
        progress: wraps the files.

    Raises:
        UsageError: too few or too many examples, or a file cannot be written.
    """
    plan.check()
    files = chain(raw_text(plan), glue_and_xnli(plan), question_answering(plan))
    with replacing_all() as begin:
        for path, lines in progress(files):
            stream = begin(os.path.join(folder, *path.split("/")))
            stream.writelines(f"{line}\n" for line in lines)

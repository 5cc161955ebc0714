"""What ``posenc translate`` does."""

import os
import time
from argparse import Namespace
from typing import Dict, List, TextIO

import torch
from fairseq.tasks import FairseqTask

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tasks.translation import PosencTranslationConfig, PosencTranslationTask
from fairseq_posenc.tools.export.ct2.comparison import FAIRSEQ, System, compare, render
from fairseq_posenc.tools.export.ct2.translating import (
    Ct2Translator,
    FairseqTranslator,
    Search,
    Translation,
    batches,
    lines,
)
from fairseq_posenc.tools.predict import load_any

__all__ = ["Search", "comparison", "translations"]
# the model knows how long sentences may be
UNLIMITED = 1_000_000


def translations(args: Namespace, output: TextIO, log: TextIO) -> None:
    """Write the translations of one model, and then to ``log`` how fast it was."""
    task = PosencTranslationTask.setup_task(
        PosencTranslationConfig(
            data=args.data,
            source_lang=args.source_lang,
            target_lang=args.target_lang,
            max_source_positions=UNLIMITED,
            max_target_positions=UNLIMITED,
            # what they are taken from elsewhere by default
            dataset_impl=None,
            required_seq_len_multiple=1,
            train_subset="train",
        )
    )
    translator = _ct2(args, args.models[0], task)
    every: List[Translation] = []
    seconds = 0.0
    for sample in batches(task, args.gen_subset, args.max_tokens):
        begin = time.perf_counter()
        found = translator(sample)
        seconds += time.perf_counter() - begin
        every += found
        output.writelines(f"{line}\n" for line in lines(task, sample, found))
    tokens = sum(len(one.tokens) + 1 for one in every)
    print(
        f"{len(every)} sentences, {tokens} tokens in {seconds:.1f} s: {tokens / seconds:.0f} "
        f"tokens/s; {sum(not one.ended for one in every)} were cut at the greatest length",
        file=log,
    )


def comparison(args: Namespace) -> str:
    """Return the table of a checkpoint and CTranslate2 models that translate in turn.

    Raises:
        UsageError: two models of one name, and whatever is wrong with them or the data.
    """
    torch.set_num_threads(args.threads)
    model, task, _ = load_any(args.path, args.data)
    if not _on_cpu(args):
        model.cuda()
    systems: Dict[str, System] = {FAIRSEQ: FairseqTranslator(model.eval(), task, _search(args))}
    for folder in args.models:
        name = os.path.basename(os.path.normpath(folder))
        if name in systems:
            raise UsageError(f"two are named {name}; the last part of each --model is its name")
        systems[name] = _ct2(args, folder, task)
    samples = batches(task, args.gen_subset, args.max_tokens)
    measured = compare(systems, task, samples, args.output, args.reference, args.remove_bpe)
    return render(measured)


def _ct2(args: Namespace, folder: str, task: FairseqTask) -> Ct2Translator:
    device = "cpu" if _on_cpu(args) else "cuda"
    return Ct2Translator(folder, task, _search(args), args.threads, device, args.compute_type)


def _search(args: Namespace) -> Search:
    return Search(*(getattr(args, name) for name in Search._fields))


def _on_cpu(args: Namespace) -> bool:
    return args.cpu or not torch.cuda.is_available()

"""What ``posenc translate`` does: translations of one model, or a comparison with fairseq."""

import os
import time
from argparse import Namespace
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, TextIO, Tuple

import torch
from tqdm import tqdm

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tasks.translation import PosencTranslationConfig, PosencTranslationTask
from fairseq_posenc.tools.export.translators import (
    BeamSearch,
    Ct2Translator,
    FairseqTranslator,
    Sample,
    Translation,
    batches,
    generate_lines,
)
from fairseq_posenc.tools.predict import load_any
from fairseq_posenc.tools.results.score import evaluate
from fairseq_posenc.tools.writing import replacing

Translator = Callable[[Sample], List[Translation]]
FAIRSEQ = "fairseq"
# the model knows how long sentences may be
UNLIMITED = 1_000_000


class TranslatedTestSet(NamedTuple):
    """A test set, translated by one system: by number of the sentence, in seconds, sacreBLEU."""

    translations: Dict[int, Translation]
    seconds: float
    bleu: float

    @property
    def speed(self) -> float:
        """Tokens per second, EOS included."""
        return sum(len(one.tokens) + 1 for one in self.translations.values()) / self.seconds


def translate(args: Namespace, output: TextIO, log: TextIO) -> None:
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
    translator = _load_ct2(args, args.models[0], task)
    tokens = sentences = cut = 0
    seconds = 0.0
    for sample in batches(task, args.gen_subset, args.max_tokens):
        begin = time.perf_counter()
        found = translator(sample)
        seconds += time.perf_counter() - begin
        sentences += len(found)
        tokens += sum(len(one.tokens) + 1 for one in found)
        cut += sum(not one.ended for one in found)
        output.writelines(f"{line}\n" for line in generate_lines(task, sample, found))
    print(
        f"{sentences} sentences, {tokens} tokens in {seconds:.1f} s: {tokens / seconds:.0f} "
        f"tokens/s; {cut} were cut at the greatest length",
        file=log,
    )


def compare(args: Namespace) -> str:
    """Return the table of a checkpoint and CTranslate2 models that translate in turn.

    Their translations are in ``<output>/generate.<model>.out``, for ``posenc score --generated``.
    """
    torch.set_num_threads(args.threads)
    model, task, _ = load_any(args.path, args.data)
    if torch.cuda.is_available() and not args.cpu:
        model.cuda()
    ours = FairseqTranslator(model.eval(), task, BeamSearch.of(args))
    translators: Dict[str, Translator] = {FAIRSEQ: ours}
    for folder in args.models:
        name = os.path.basename(os.path.normpath(folder))
        if name in translators:
            raise UsageError(f"two are named {name}; the last part of each --model is its name")
        translators[name] = _load_ct2(args, folder, task)
    samples = batches(task, args.gen_subset, args.max_tokens)
    found, seconds = translate_in_turn(translators, samples)
    translated = {}
    for name, of_batches in found.items():
        path = os.path.join(args.output, f"generate.{name}.out")
        with replacing(path) as stream:
            for sample, translations in zip(samples, of_batches):
                lines = generate_lines(task, sample, translations)
                stream.writelines(f"{line}\n" for line in lines)
        score = evaluate(
            generated=path,
            reference=args.reference,
            remove_bpe=args.remove_bpe,
            language=task.cfg.target_lang,
            source_language=task.cfg.source_lang,
        )
        by_number = {one.sentence: one for batch in of_batches for one in batch}
        bleu = score["all"]["sacrebleu"]
        translated[name] = TranslatedTestSet(by_number, seconds[name], bleu)
    return render(translated)


def translate_in_turn(
    translators: Dict[str, Translator], samples: Sequence[Sample]
) -> Tuple[Dict[str, List[List[Translation]]], Dict[str, float]]:
    """Let all translate each batch in turn, after one batch that is not timed.

    A machine whose speed drifts slows all alike. Who begins changes with every batch. Returned are
    the translations of every batch, and the seconds, by translator.
    """
    found: Dict[str, List[List[Translation]]] = {name: [] for name in translators}
    seconds = dict.fromkeys(translators, 0.0)
    names = list(translators)
    for translator in translators.values():
        translator(samples[0])
    for turn, sample in enumerate(tqdm(samples, desc="translating", unit="batch", leave=False)):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            begin = time.perf_counter()
            found[name].append(translators[name](sample))
            seconds[name] += time.perf_counter() - begin
    return found, seconds


def render(translated: Dict[str, TranslatedTestSet]) -> str:
    """Return a Markdown table: each system against the first one."""
    (first, base), *_ = translated.items()
    rows = [
        f"| | tokens/s | ÷ {first} | sacreBLEU | same translation as {first} |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, system in translated.items():
        same, count = "", len(base.translations)
        if name != first:
            others = system.translations
            equal = sum(others[n].tokens == one.tokens for n, one in base.translations.items())
            same = f"{equal} of {count}, {100 * equal / count:.2f} %"
        ratio = system.speed / base.speed
        rows.append(f"| {name} | {system.speed:.0f} | {ratio:.2f} | {system.bleu:.2f} | {same} |")
    return "\n".join(rows)


def _load_ct2(args: Namespace, folder: str, task: Any) -> Ct2Translator:
    device = "cpu" if args.cpu or not torch.cuda.is_available() else "cuda"
    return Ct2Translator(folder, task, BeamSearch.of(args), args.threads, device, args.compute_type)

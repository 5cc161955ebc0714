"""What ``posenc translate`` does: translations of one model, or a comparison with fairseq.

CTranslate2's translator and fairseq's are alike in search and output.
"""

import math
import os
import time
from argparse import Namespace
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, TextIO, Tuple

import torch
from fairseq import utils
from fairseq.data import Dictionary
from tqdm import tqdm

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import read_json
from fairseq_posenc.tasks.translation import PosencTranslationConfig, PosencTranslationTask
from fairseq_posenc.tools.export.ct2_model import ct2_types, import_ctranslate2
from fairseq_posenc.tools.predict import load_any
from fairseq_posenc.tools.results.score import evaluate
from fairseq_posenc.tools.writing import replacing

FAIRSEQ = "fairseq"
# the model knows how long sentences may be
UNLIMITED = 1_000_000
# the options of a beam search, by fairseq's names and with its defaults
SEARCH = {"beam": 5, "lenpen": 1.0, "max_len_a": 0.0, "max_len_b": 200}
Sample = Dict[str, Any]


def longest(sample: Sample, args: Namespace) -> int:
    """Return the most tokens, EOS apart, that a translation in a batch may have."""
    return int(args.max_len_a * sample["net_input"]["src_tokens"].size(1) + args.max_len_b)


class Translation(NamedTuple):
    """The best hypothesis for one sentence.

    Attributes:
        sentence: its number in the data.
        tokens: types, without EOS.
        score: logarithm to base 2 of its probability, by length (EOS included) to the ``lenpen``.
        ended: whether it came to its EOS by itself, as far as that is known.
    """

    sentence: int
    tokens: List[str]
    score: float
    ended: bool = True


Translator = Callable[[Sample], List[Translation]]


class Ct2Translator:
    """A CTranslate2 model that translates the batches of a task, whose dictionaries it must have.

    ``args`` are those of ``posenc translate``: how to search, and on what.
    """

    def __init__(self, folder: str, task: Any, args: Namespace):
        if not os.path.isfile(os.path.join(folder, "model.bin")):
            raise UsageError(f"{folder} is no CTranslate2 model; make one with posenc export")
        self.folder, self.args = folder, args
        self.source = _checked_types(folder, "source", task.source_dictionary)
        _checked_types(folder, "target", task.target_dictionary)
        self.special = {task.source_dictionary.pad(), task.source_dictionary.eos()}
        config = read_json(os.path.join(folder, "config.json"))
        bos = task.source_dictionary.bos()
        self.bos = self.source[bos] if config.get("add_source_bos", False) else None
        try:
            self.translator = import_ctranslate2().Translator(
                folder,
                device=args.device,
                compute_type=args.compute_type,
                intra_threads=args.threads,
            )
        except (RuntimeError, ValueError) as error:
            raise UsageError(f"CTranslate2 cannot load {folder}: {error}") from None

    def __call__(self, sample: Sample) -> List[Translation]:
        """Translate a batch."""
        sources = []
        for row in sample["net_input"]["src_tokens"].tolist():
            types = [self.source[number] for number in row if number not in self.special]
            # the model adds BOS itself
            sources.append(types[1:] if self.bos and types[:1] == [self.bos] else types)
        try:
            results = self.translator.translate_batch(
                sources,
                beam_size=self.args.beam,
                length_penalty=self.args.lenpen,
                max_input_length=0,
                max_decoding_length=longest(sample, self.args),
                return_scores=True,
                return_end_token=True,
            )
        except RuntimeError as error:
            raise UsageError(
                f"CTranslate2 with {self.folder}: {error}; for longer sentences, export with more "
                "--positions or give a smaller --max-len-b"
            ) from None
        found = []
        for sentence, result in zip(sample["id"].tolist(), results):
            tokens = result.hypotheses[0]
            ended = tokens[-1:] == ["</s>"]
            score = result.scores[0] / math.log(2)
            found.append(Translation(sentence, tokens[:-1] if ended else tokens, score, ended))
        return found


class FairseqTranslator:
    """A fairseq model, in evaluation, that translates batches as ``fairseq-generate`` does."""

    def __init__(self, model: Any, task: Any, args: Namespace):
        generation = Namespace(**{name: getattr(args, name) for name in SEARCH})
        model.prepare_for_inference_(Namespace(generation=generation))
        self.model, self.task = model, task
        self.on_gpu = next(model.parameters()).is_cuda
        self.generator = task.build_generator([model], generation)

    def __call__(self, sample: Sample) -> List[Translation]:
        """Translate a batch."""
        sample = utils.move_to_cuda(sample) if self.on_gpu else sample
        found = self.task.inference_step(self.generator, [self.model], sample)
        return [
            Translation(
                sentence,
                [self.task.target_dictionary[number] for number in best["tokens"].tolist()[:-1]],
                float(best["score"]) / math.log(2),
            )
            for sentence, (best, *_) in zip(sample["id"].tolist(), found)
        ]


def generate_lines(task: Any, sample: Sample, translations: Sequence[Translation]) -> Iterator[str]:
    """Yield the lines S, T, H and D of ``fairseq-generate`` for the sentences of a batch."""
    sources, targets = task.source_dictionary, task.target_dictionary
    for row, (sentence, tokens, score, _) in enumerate(translations):
        source = utils.strip_pad(sample["net_input"]["src_tokens"][row], sources.pad())
        yield f"S-{sentence}\t{sources.string(source)}"
        if sample.get("target") is not None:
            target = utils.strip_pad(sample["target"][row], targets.pad())
            yield f"T-{sentence}\t{targets.string(target, escape_unk=True)}"
        for kind in "HD":
            yield f"{kind}-{sentence}\t{score}\t{' '.join(tokens)}"


def batches(task: Any, split: str, max_tokens: int) -> List[Sample]:
    """Return the batches of a split, longest sentences last, as ``fairseq-generate`` makes them.

    Raises:
        UsageError: there is no such split.
    """
    task.load_dataset(split)
    iterator = task.get_batch_iterator(task.dataset(split), max_tokens=max_tokens)
    return list(iterator.next_epoch_itr(shuffle=False))


def _checked_types(folder: str, side: str, dictionary: Dictionary) -> List[str]:
    """Return the types of a model's side, which must be those of a dictionary."""
    for name in (f"{side}_vocabulary.json", "shared_vocabulary.json"):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            types = read_json(path)
            if ct2_types(dictionary) == types:
                return types
    raise UsageError(
        f"the {side} dictionary of the data is not that of {folder}; give the data that the model "
        "was trained on"
    )


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
    translator = Ct2Translator(args.models[0], task, args)
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
    ours = FairseqTranslator(model.to(args.device).eval(), task, args)
    translators: Dict[str, Translator] = {FAIRSEQ: ours}
    for folder in args.models:
        name = os.path.basename(os.path.normpath(folder))
        if name in translators:
            raise UsageError(f"two are named {name}; the last part of each --model is its name")
        translators[name] = Ct2Translator(folder, task, args)
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

"""Translators of binarised data, CTranslate2's and fairseq's, alike in search and output."""

import math
import os
from argparse import Namespace
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence

from fairseq import utils
from fairseq.data import Dictionary

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import read_json
from fairseq_posenc.tools.export.ct2_model import ct2_types, import_ctranslate2

Sample = Dict[str, Any]


class BeamSearch(NamedTuple):
    """The options of a beam search, by fairseq's names and with its defaults."""

    beam: int = 5
    lenpen: float = 1.0
    max_len_a: float = 0.0
    max_len_b: int = 200

    @classmethod
    def of(cls, args: Namespace) -> "BeamSearch":
        """Return the search that a command line asks for."""
        return cls(*(getattr(args, name) for name in cls._fields))

    def longest(self, sample: Sample) -> int:
        """Return the most tokens, EOS apart, that a translation in a batch may have."""
        return int(self.max_len_a * sample["net_input"]["src_tokens"].size(1) + self.max_len_b)


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


class Ct2Translator:
    """A CTranslate2 model that translates the batches of a task, whose dictionaries it must have.

    One batch at a time is translated, with so many ``threads`` of a CPU. See CTranslate2 for
    ``compute_type``; ``default`` is the model's own, where the device has it.
    """

    def __init__(
        self, folder: str, task: Any, search: BeamSearch, threads: int = 1,
        device: str = "cpu", compute_type: str = "default",
    ):  # fmt: skip
        if not os.path.isfile(os.path.join(folder, "model.bin")):
            raise UsageError(f"{folder} is no CTranslate2 model; make one with posenc export")
        self.folder, self.search = folder, search
        self.source = _checked_types(folder, "source", task.source_dictionary)
        _checked_types(folder, "target", task.target_dictionary)
        self.special = {task.source_dictionary.pad(), task.source_dictionary.eos()}
        config = read_json(os.path.join(folder, "config.json"))
        self.adds_bos = config.get("add_source_bos", False)
        self.bos = task.source_dictionary.bos()
        try:
            self.translator = import_ctranslate2().Translator(
                folder, device=device, compute_type=compute_type, intra_threads=threads
            )
        except (RuntimeError, ValueError) as error:
            raise UsageError(f"CTranslate2 cannot load {folder}: {error}") from None

    def __call__(self, sample: Sample) -> List[Translation]:
        """Translate a batch."""
        try:
            results = self.translator.translate_batch(
                [self._types(row) for row in sample["net_input"]["src_tokens"].tolist()],
                beam_size=self.search.beam,
                length_penalty=self.search.lenpen,
                max_input_length=0,
                max_decoding_length=self.search.longest(sample),
                return_scores=True,
                return_end_token=True,
            )
        except RuntimeError as error:
            raise UsageError(
                f"CTranslate2 with {self.folder}: {error}; for longer sentences, export with more "
                "--positions or give a smaller --max-len-b"
            ) from None
        return [self._translation(*found) for found in zip(sample["id"].tolist(), results)]

    def _types(self, row: Sequence[int]) -> List[str]:
        """Return the types of a source without padding, EOS, and the BOS that the model adds."""
        types = [number for number in row if number not in self.special]
        if self.adds_bos and types[:1] == [self.bos]:
            types = types[1:]
        return [self.source[number] for number in types]

    @staticmethod
    def _translation(sentence: int, result: Any) -> Translation:
        tokens, ended = result.hypotheses[0], False
        if tokens[-1:] == ["</s>"]:
            tokens, ended = tokens[:-1], True
        return Translation(sentence, tokens, result.scores[0] / math.log(2), ended)


class FairseqTranslator:
    """A fairseq model, in evaluation, that translates batches as ``fairseq-generate`` does."""

    def __init__(self, model: Any, task: Any, search: BeamSearch):
        generation = Namespace(**search._asdict())
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

"""Print size, time and BLEU of a translation model in CTranslate2's precisions, beside fairseq's.

    python -m recipes.exports.precisions --path checkpoints/average.pt --data bin

The data are those of posenc prepare translation --test, with SentencePiece.
"""

import logging
import os
import statistics
import tempfile
import time
from argparse import Namespace
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import sacrebleu
import torch
from fairseq.data.data_utils import collate_tokens, post_process
from fairseq.sequence_generator import SequenceGenerator
from tqdm import tqdm

from fairseq_posenc.data.subwords import SentencePiece
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.hardware import hardware
from fairseq_posenc.tools.arguments import plain_parser, positive
from fairseq_posenc.tools.convert.checkpoint import (
    ExportSource,
    read_checkpoint,
    read_dictionaries,
    read_sentences,
)
from fairseq_posenc.tools.convert.ctranslate2.model import import_ctranslate2, to_ctranslate2
from fairseq_posenc.tools.scores.tokenizers import sacrebleu_tokenizer
from fairseq_posenc.tools.text_tables import markdown_table
from fairseq_posenc.version import __version__

_FAIRSEQ = "fairseq"
_PRECISIONS = ("float32", "bfloat16", "int8")
_BEAM, _A, _B = 5, 1.5, 10  # at most a·n + b tokens for the n of a batch's longest source
_BATCH = 32  # sentences
_PAD, _EOS = "<pad>", "</s>"
Batch = List[List[int]]
Translator = Callable[[Batch], List[List[str]]]


class Contestant(NamedTuple):
    """One who translates: the size of its weights in bytes, and what it computes in."""

    translate: Translator
    size: int
    computes_in: str


def table(path: str, data: str, sentences: int) -> str:
    """Return the table as Markdown.

    Args:
        path: a checkpoint of a translation model.
        data: its data; of SentencePiece's pieces, with the raw text of the test set.
        sentences: how many of the test set are translated, from its beginning.

    Raises:
        UsageError: the data have not all of these, or CTranslate2 does not take the model.
    """
    source = read_checkpoint(path)
    dictionaries = read_dictionaries(source, data)
    language = str(source.task["target_lang"])
    raw = os.path.join(data, f"test.raw.{language}")
    for file in (raw, os.path.join(data, SentencePiece.name)):
        if not os.path.isfile(file):
            raise UsageError(f"there is no {file}; posenc prepare translation --test writes it")
    tokens = read_sentences(source, data, sentences)["encoder"]
    if len(tokens) <= _BATCH:
        raise UsageError(
            f"{len(tokens)} sentences are one batch, whose times have no quartiles: more than "
            f"{_BATCH} are needed (--sentences, and in the test set)"
        )
    references = read_lines(raw)[: len(tokens)]
    with tempfile.TemporaryDirectory() as folder:
        contestants = {_FAIRSEQ: _fairseq(source, dictionaries["decoder"])}
        for precision in _PRECISIONS:
            output = os.path.join(folder, precision)
            to_ctranslate2(path, output, data, precision)
            contestants[precision] = _ctranslate2(output, dictionaries["encoder"])
        translations, seconds = _translate_in_turn(contestants, tokens)
    lines = [["", "computed in", "MB", "time ÷ fairseq (quartiles)", "BLEU", "as by fairseq"]]
    for name, contestant in contestants.items():
        texts = [post_process(" ".join(line), "sentencepiece") for line in translations[name]]
        bleu = sacrebleu.corpus_bleu(texts, [references], tokenize=sacrebleu_tokenizer(language))
        equal = sum(map(list.__eq__, translations[name], translations[_FAIRSEQ]))
        ratios = [own / base for own, base in zip(seconds[name], seconds[_FAIRSEQ])]
        low, middle, high = statistics.quantiles(ratios, n=4)
        lines.append(
            [
                name if name == _FAIRSEQ else f"CTranslate2, {name}",
                contestant.computes_in, f"{contestant.size / 1e6:.1f}",
                f"{middle:.2f} ({low:.2f} to {high:.2f})", f"{bleu.score:.1f}", f"{equal}",
            ]
        )  # fmt: skip
    heading = (
        f"n = {len(tokens)} sentences, beam {_BEAM}; times are processor time of one thread, "
        f"medians over batches of {_BATCH}; {hardware(torch.device('cpu'))}, "
        f"torch {torch.__version__}, CTranslate2 {import_ctranslate2().__version__}, "
        f"fairseq_posenc {__version__}."
    )
    return f"{heading}\n\n{markdown_table(lines, 2)}"


def _fairseq(source: ExportSource, dictionary: Any) -> Contestant:
    """The search of fairseq-generate, with the model as that prepares it."""
    model = source.model
    search = Namespace(generation=Namespace(retain_dropout=False, beam=_BEAM), common=Namespace())
    model.prepare_for_inference_(search)
    generator = SequenceGenerator([model], dictionary, beam_size=_BEAM, max_len_a=_A, max_len_b=_B)

    def translate(batch: Batch) -> List[List[str]]:
        rows = [torch.tensor(row) for row in batch]
        sources = collate_tokens(rows, dictionary.pad(), left_pad=True)
        lengths = torch.tensor([len(row) for row in batch])
        net_input = {"src_tokens": sources, "src_lengths": lengths}
        with torch.no_grad():
            hypotheses = generator.generate([model], {"net_input": net_input})
        return [[dictionary[n] for n in best["tokens"].tolist()[:-1]] for best, *_ in hypotheses]

    # of weights that are shared, one
    weights = {weight.data_ptr(): weight for weight in model.parameters()}
    size = sum(weight.numel() * weight.element_size() for weight in weights.values())
    return Contestant(translate, size, "float32")


def _ctranslate2(folder: str, dictionary: Any) -> Contestant:
    translator = import_ctranslate2().Translator(
        folder, device="cpu", intra_threads=1, inter_threads=1
    )

    def translate(batch: Batch) -> List[List[str]]:
        results = translator.translate_batch(
            [[dictionary[n] for n in row[:-1]] for row in batch],  # it adds EOS itself
            beam_size=_BEAM,
            max_input_length=0,
            max_decoding_length=int(_A * max(map(len, batch)) + _B),
        )
        return [result.hypotheses[0] for result in results]

    size = os.path.getsize(os.path.join(folder, "model.bin"))
    return Contestant(translate, size, translator.compute_type)


def _translate_in_turn(
    contestants: Dict[str, Contestant], tokens: Batch
) -> Tuple[Dict[str, List[List[str]]], Dict[str, List[float]]]:
    """Let all translate each batch in turn, after one that is not timed.

    A machine whose speed drifts slows all alike. Who begins changes with every batch. Returned are
    the translations in the order of ``tokens``, and the seconds of each batch, by contestant.
    """
    order = sorted(range(len(tokens)), key=lambda n: len(tokens[n]))
    batches = [order[n : n + _BATCH] for n in range(0, len(order), _BATCH)]
    names = list(contestants)
    translations: Dict[str, List[List[str]]] = {name: [[]] * len(tokens) for name in names}
    seconds: Dict[str, List[float]] = {name: [] for name in names}
    for contestant in contestants.values():
        contestant.translate([tokens[n] for n in batches[0]])
    for turn, batch in enumerate(tqdm(batches, "translating", leave=False)):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            begin = time.process_time()
            hypotheses = contestants[name].translate([tokens[n] for n in batch])
            seconds[name].append(time.process_time() - begin)
            for number, hypothesis in zip(batch, hypotheses):
                translations[name][number] = hypothesis
    return translations, seconds


if __name__ == "__main__":
    parser = plain_parser(__doc__)
    parser.add_argument("--path", required=True, metavar="FILE", help="a checkpoint")
    parser.add_argument("--data", required=True, metavar="FOLDER", help="its data")
    parser.add_argument("--sentences", type=positive, default=300, help="of the test (300)")
    args = parser.parse_args()
    for quiet in ("fairseq", "fairseq_posenc"):
        logging.getLogger(quiet).setLevel(logging.WARNING)
    print(table(args.path, args.data, args.sentences))

"""What a small masked language model has learned, as probes.json: questions with exact answers.

    python -m recipes.claims.probes shaw/seed1/checkpoint_last.pt --data bin \\
        --task two_sentence_accuracy shaw/seed1/two_none/checkpoint_last.pt bin/two \\
        --output probes.json

On the set `valid` of --data, in blocks of the trained length and of twice that:

masked_lm_bits, longer_bits      cross-entropy of the masked tokens; the masks are those of seed 1
unigram_bits                     that of the training text's frequencies, on the same tokens
word_order_accuracy, longer_…    which of two orders of a sentence's words is right? in percent

Beyond the trained length, an encoding that has rows for trained positions alone gets null. Every
--task is a fine-tuned classifier; its accuracy on the set `valid` is written under the NAME.
"""

import json
import logging
import math
import os
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np
import torch
from fairseq.data import data_utils
from fairseq.tasks.masked_lm import MaskedLMTask
from torch import Tensor

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.analyses.models import LoadedModel, load_models
from fairseq_posenc.tools.arguments import key_value, plain_parser, positive
from fairseq_posenc.tools.bert.predict import load, predictions
from fairseq_posenc.tools.writing import replacing

_MASK_SEED = 1
_ROWS_AT_ONCE = 8192  # tokens of a batch
_TIE = 1e-4  # nats: sums of some ten logarithms in float32 differ by less from rounding alone


class OrderPair(NamedTuple):
    """A sentence behind its context, in two orders.

    Attributes:
        right, wrong: ``<s> context sentence </s>``, each ``(length,)``; two neighbours differ.
        first: where the sentence begins; before it both are equal.
    """

    right: Tensor
    wrong: Tensor
    first: int


def probe(
    *,
    model: str,
    data: str,
    pairs: int = 500,
    tasks: Sequence[Tuple[str, str, str]] = (),
    notes: Sequence[Tuple[str, str]] = (),
) -> Dict[str, Any]:
    """Return the content of probes.json; the arguments are the options of the command.

    Raises:
        UsageError: what is wrong with a checkpoint or the data; there are no sentences whose words
            could be swapped.
    """
    (loaded,) = load_models([f"model={model}"], data, cpu=True)
    if not isinstance(loaded.task, MaskedLMTask):
        raise UsageError(f"{model} is not a masked language model")
    trained = loaded.task.cfg.tokens_per_sample
    longer = 2 * trained
    bits, unigram = masked_lm_bits(loaded, trained)
    result: Dict[str, Any] = {
        **dict(notes), "trained_length": trained, "longer_length": longer, "pairs": pairs,
        "masked_lm_bits": bits, "unigram_bits": unigram, "longer_bits": None,
        "word_order_accuracy": word_order(loaded, trained, pairs),
        "longer_word_order_accuracy": None,
    }  # fmt: skip
    if loaded.table_size is None or loaded.table_size >= longer:
        result["longer_bits"] = masked_lm_bits(loaded, longer)[0]
        result["longer_word_order_accuracy"] = word_order(loaded, longer, pairs)
    for name, path, folder in tasks:
        classifier, task = load(path, folder)
        task.load_dataset("valid")
        predicted = predictions(classifier.eval(), task, "valid", _ROWS_AT_ONCE)
        result[name] = task.score("valid", predicted)["accuracy"]
    return {**result, "signature": loaded.signature}


@torch.no_grad()
def masked_lm_bits(loaded: LoadedModel, length: int) -> Tuple[float, float]:
    """Return the bits per masked token in blocks of a length, of the model and of unigrams."""
    task, dictionary = loaded.task, loaded.task.source_dictionary
    task.cfg.tokens_per_sample, task.cfg.seed = length, _MASK_SEED
    task.load_dataset("valid")
    dataset = task.dataset("valid")
    counts = torch.tensor(dictionary.count, dtype=torch.float64).clamp(min=1)
    counts[: dictionary.nspecial] = counts[task.mask_idx] = 0
    frequencies = (counts / counts.sum()).log2()
    order = np.argsort(dataset.sizes, kind="stable")
    model_bits = unigram_bits = masked = 0.0
    for rows in dataset.batch_by_size(order, max_tokens=max(_ROWS_AT_ONCE, length)):
        batch = dataset.collater([dataset[int(row)] for row in rows])
        where = batch["target"].ne(dictionary.pad())
        targets = batch["target"][where]
        scores = loaded.model(**batch["net_input"], masked_tokens=where)[0]
        logs = scores.double().log_softmax(dim=-1).gather(1, targets.unsqueeze(1))
        model_bits -= float(logs.sum()) / math.log(2)
        unigram_bits -= float(frequencies[targets].sum())
        masked += len(targets)
    return model_bits / masked, unigram_bits / masked


def word_order(loaded: LoadedModel, length: int, pairs: int) -> float:
    """Return in how many of ``pairs`` the right order is the likelier one, in percent.

    Likelihoods are pseudo-log-likelihoods (Salazar et al. 2020): the sum of every token's
    log-probability with it alone masked. Only the sentence counts, not what stands before it in
    the block. Equal ones count half, so that a model which knows no order has 50 %.
    """
    examples = order_pairs(loaded, length, pairs)
    mask = loaded.task.source_dictionary.index("<mask>")
    pad = loaded.task.source_dictionary.pad()
    candidates = [(tokens, pair.first) for pair in examples for tokens in (pair.right, pair.wrong)]
    likelihoods = pseudo_log_likelihoods(loaded.model, candidates, mask, pad)
    gains = likelihoods[::2] - likelihoods[1::2]
    return 100 * float(np.mean((gains > _TIE) + 0.5 * (abs(gains) <= _TIE)))


def order_pairs(loaded: LoadedModel, length: int, pairs: int) -> List[OrderPair]:
    """Draw sentences of ``valid``, and in each two neighbours to swap; always the same ones.

    The last token before ``</s>``, a mark, stays where it is. As many whole sentences as fit before
    a sentence are its context: at a greater length there is more of it.
    """
    dictionary = loaded.task.source_dictionary
    text = data_utils.load_indexed_dataset(
        os.path.join(loaded.task.cfg.data.split(os.pathsep)[0], "valid"), dictionary
    )
    dice = np.random.default_rng(_MASK_SEED)
    examples: List[OrderPair] = []
    for number in dice.permutation(len(text)):
        sentence = text[int(number)]
        places = np.flatnonzero(sentence[:-3].ne(sentence[1:-2]).numpy())
        if not len(places):
            continue
        swapped_at = int(dice.choice(places))
        swapped = sentence.clone()
        swapped[swapped_at : swapped_at + 2] = sentence[swapped_at : swapped_at + 2].flip(0)
        parts: List[Tensor] = []
        room, before = length - 1 - len(sentence), int(number) - 1
        while before >= 0 and len(text[before]) <= room:
            parts.insert(0, text[before])
            room, before = room - len(text[before]), before - 1
        if room < 0:
            continue
        parts.insert(0, sentence.new_tensor([dictionary.bos()]))
        context = torch.cat(parts)
        rows = (torch.cat([context, order]) for order in (sentence, swapped))
        examples.append(OrderPair(*rows, len(context)))
        if len(examples) == pairs:
            return examples
    raise UsageError(f"'valid' has {len(examples)} sentences of words to swap, not --pairs {pairs}")


@torch.no_grad()
def pseudo_log_likelihoods(
    model: Any, examples: Sequence[Tuple[Tensor, int]], mask: int, pad: int
) -> np.ndarray:
    """Return the pseudo-log-likelihoods ``(examples,)`` of tokens from a place to before ``</s>``.

    Args:
        model: a masked language model in evaluation.
        examples: tokens ``(length,)`` and the first place that counts.
        mask, pad: indices of ``<mask>`` and ``<pad>``.
    """
    sums = np.zeros(len(examples))
    copies = sorted(
        (len(tokens), number, position)
        for number, (tokens, first) in enumerate(examples)
        for position in range(first, len(tokens) - 1)
    )
    lengths = np.array([length for length, _, _ in copies])
    most = max(_ROWS_AT_ONCE, max(lengths))
    batches = data_utils.batch_by_size(np.arange(len(copies)), None, lengths, max_tokens=most)
    for part in ([copies[row] for row in rows] for rows in batches):
        sources = [examples[number][0].clone() for _, number, _ in part]
        rows = torch.arange(len(part))
        positions = torch.tensor([position for _, _, position in part])
        tokens = data_utils.collate_tokens(sources, pad).long()
        targets = tokens[rows, positions]
        tokens[rows, positions] = mask
        masked = torch.zeros_like(tokens, dtype=torch.bool)
        masked[rows, positions] = True
        scores = model(tokens, masked_tokens=masked)[0].double().log_softmax(dim=-1)
        np.add.at(sums, [number for _, number, _ in part], scores[rows, targets].numpy())
    return sums


def main() -> None:
    """Parse the command line, probe, and write."""
    parser = plain_parser(__doc__)
    add = parser.add_argument
    add("model", metavar="CHECKPOINT", help="of a masked language model")
    add("--data", required=True, metavar="FOLDER", help="of posenc prepare text")
    add("--pairs", type=positive, default=500, help="for the order of words (default: 500)")
    add("--task", nargs=3, action="append", default=[], metavar=("NAME", "CHECKPOINT", "FOLDER"),
        dest="tasks", help="a fine-tuned classifier, and its data")  # fmt: skip
    add("--note", type=key_value, action="append", default=[], metavar="NAME=TEXT", dest="notes")
    add("--output", required=True, metavar="FILE")
    options = vars(parser.parse_args())
    output = options.pop("output")
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    result = probe(**options)
    with replacing(output) as stream:
        stream.write(json.dumps(result, indent=2) + "\n")
    shown = {name: value for name, value in result.items() if isinstance(value, float)}
    print("  ".join(f"{name} {value:.2f}" for name, value in shown.items()))


if __name__ == "__main__":
    main()

"""How well language models predict a text, by the length of what they see and by position.

A text is one stream of tokens, in which each line ends with ``</s>``. What a model sees of it at a
time is a window: of *blocks*, each starts where the last ended, and all its tokens count; of
*sliding* windows, each starts ``stride`` tokens later, and the tokens that no window before has
predicted count. As in ``fairseq-eval-lm``, a window's first token is predicted from the one before,
and a model that was trained with ``--add-bos-token`` sees ``<s>`` before each window.
"""

import math
import os
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import torch
from fairseq.data import Dictionary, data_utils
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

from fairseq_posenc.data.indexed import repeated_types
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.tools.scores.data_folder import subwords_of_symbols
from fairseq_posenc.tools.scores.intervals import Estimate, t_interval
from fairseq_posenc.tools.scores.reference_check import misfit
from fairseq_posenc.tools.scores.texts import join_subwords


class TextWindow(NamedTuple):
    """Tokens ``start … end - 1`` of a stream; those from ``first`` on count."""

    start: int
    first: int
    end: int


class Predicted(NamedTuple):
    """The tokens of a stream as one model predicted them: two arrays of the stream's length.

    ``bits`` are surprisals, -log2 of the probability; ``positions`` are in the window, from 0.
    """

    bits: np.ndarray
    positions: np.ndarray


class Text(NamedTuple):
    """A stream of tokens, and how much text it stands for."""

    tokens: Tensor
    words: Optional[int]  # ends of lines count as words, as in fairseq-eval-lm
    bytes: Optional[int]  # of UTF-8, with line feeds


def read_text(
    folder: str,
    subset: str,
    dictionary: Dictionary,
    subwords: Optional[str] = None,
    raw: Optional[str] = None,
) -> Text:
    """Read a binarised subset as a stream.

    ``subwords`` is fairseq's name of their kind; without one, it is that of the dictionary's.

    Words and bytes are those of ``raw``, or else of what the tokens spell; ``<unk>`` spells
    nothing, so that a text with unknown tokens and no ``raw`` has none.
    """
    lines = data_utils.load_indexed_dataset(os.path.join(folder, subset), dictionary)
    if lines is None or not len(lines):
        raise UsageError(f"there is no binarised '{subset}' set in {folder}, or it is empty")
    tokens = torch.cat([lines[number] for number in range(len(lines))]).long()
    subword_lines = (dictionary.string(lines[number]) for number in range(len(lines)))
    if raw is not None:
        spelt = read_lines(raw)
        if len(spelt) != len(lines):
            raise UsageError(f"{raw} has {len(spelt)} lines, and '{subset}' has {len(lines)}")
        differing = misfit(spelt, [*subword_lines])
        if differing.refused(len(spelt)):
            raise UsageError(
                f"{raw} has other sentences than '{subset}' in {folder}, the first on line "
                f"{differing.lines[0] + 1}: give the text that these data were made of"
            )
    elif torch.isin(tokens, torch.tensor([dictionary.unk(), *repeated_types(dictionary)])).any():
        return Text(tokens, None, None)
    else:
        symbol = subwords or subwords_of_symbols(dictionary.symbols)
        spelt = [join_subwords(line, symbol) for line in subword_lines]
    return Text(
        tokens,
        words=sum(len(line.split()) + 1 for line in spelt),
        bytes=sum(len(line.encode("utf-8")) + 1 for line in spelt),
    )


def windows(count: int, length: int, stride: Optional[int] = None) -> Iterator[TextWindow]:
    """Yield the windows of ``length`` tokens over a stream of ``count``.

    Args:
        count: of the stream.
        length: of a window; the last may be shorter.
        stride: of sliding windows, at most ``length``; None for blocks.
    """
    first, end = 0, min(length, count)
    while first < count:
        # a sliding window reaches back, for context; a block begins with what counts
        yield TextWindow(max(0, end - length) if stride else first, first, end)
        first, end = end, min(end + (stride or length), count)


@torch.no_grad()
def predict(
    model: Any,
    tokens: Tensor,
    parts: Sequence[TextWindow],
    eos: int,
    max_tokens: int,
    name: str = "",
    bos: Optional[int] = None,
) -> Predicted:
    """Predict all tokens of a stream.

    Args:
        model: a language model in evaluation, of ours or fairseq's.
        tokens: ``(count,)``.
        eos: what stands before the stream.
        max_tokens: of a batch, one window at least.
        bos: what stands before each window besides, as for models trained with ``--add-bos-token``;
            it is not predicted, and has no position.
    """
    device = next(model.parameters()).device
    # the input of a place is the token before it; windows are cut of both streams alike
    before = torch.cat([tokens.new_tensor([eos]), tokens[:-1]])
    bits, positions = np.empty(len(tokens)), np.empty(len(tokens), dtype=int)
    for batch in tqdm([*_batches(parts, max_tokens)], desc=name, unit=" batches", leave=False):
        # each (windows, length)
        inputs, targets = (
            torch.stack([stream[part.start : part.end] for part in batch]).to(device)
            for stream in (before, tokens)
        )
        if bos is not None:
            inputs, targets = (
                functional.pad(part, (1, 0), value=bos) for part in (inputs, targets)
            )
        output = model(inputs)
        # adaptive softmax wants to know the targets
        logs = model.get_normalized_probs(output, log_probs=True, sample={"target": targets})
        logs = logs.view(*targets.shape, -1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
        if bos is not None:
            logs = logs[:, 1:]
        surprisals = -logs.double().cpu().numpy() / math.log(2)
        for part, row in zip(batch, surprisals):
            bits[part.first : part.end] = row[part.first - part.start :]
            positions[part.first : part.end] = np.arange(part.first, part.end) - part.start
    return Predicted(bits, positions)


def _batches(parts: Sequence[TextWindow], max_tokens: int) -> Iterator[List[TextWindow]]:
    """Yield windows of one length together, so that none is padded."""
    batch: List[TextWindow] = []
    for part in parts:
        length = part.end - part.start
        if batch and (
            length != batch[0].end - batch[0].start or (len(batch) + 1) * length > max_tokens
        ):
            yield batch
            batch = []
        batch.append(part)
    yield batch


def mean(seeds: Sequence[np.ndarray], piece: int) -> Estimate:
    """Return the mean of bits by token, over seeds and the text.

    The interval is that of :mod:`.intervals`: it is off by the seeds and by the text, of which
    pieces of ``piece`` tokens in a row are what was drawn. Of one seed, it is off by the text
    alone; of one piece there is none. Give differences of two models to get theirs, paired by seed
    and piece.

    Args:
        seeds: for each the bits by token, of the same tokens.
    """
    by_seed = [float(bits.mean()) for bits in seeds]
    by_token = np.mean(seeds, axis=0)
    starts = np.arange(0, len(by_token), piece)
    sums = np.add.reduceat(by_token, starts)
    sizes = np.diff([*starts, len(by_token)])
    # the variance of a ratio of two sums over pieces
    spread = ((sums - by_token.mean() * sizes) ** 2).sum() / len(by_token) ** 2
    value = float(np.mean(by_seed))
    if len(starts) == 1:
        return Estimate(value)
    of_text = float(spread * len(starts) / (len(starts) - 1))
    if len(by_seed) > 1:
        return Estimate(value, *t_interval(by_seed, of_text))
    half = 1.96 * math.sqrt(of_text)
    return Estimate(value, value - half, value + half)


def by_position(predicted: Sequence[Predicted], width: int) -> List[Tuple[int, float]]:
    """Return first position and mean bits of each ``width`` positions, over seeds."""
    bits = np.mean([of_seed.bits for of_seed in predicted], axis=0)
    bins = predicted[0].positions // width
    counts = np.bincount(bins)
    sums = np.bincount(bins, weights=bits)
    filled_bins = map(int, np.flatnonzero(counts))
    return [(number * width, float(sums[number] / counts[number])) for number in filled_bins]


def signature(length: int, stride: Optional[int], subset: str, tokens: int) -> str:
    """Return a line that names every choice that changes a figure."""
    mode = "blocks" if stride is None else f"sliding|stride:{stride}"
    return f"perplexity|length:{length}|mode:{mode}|subset:{subset}|tokens:{tokens}"


def check_same_symbols(models: Dict[str, List[Any]]) -> None:
    """Check that all models have one dictionary; their bits per token could not be compared.

    Args:
        models: dictionaries of the models by name and seed.
    """
    first, dictionaries = next(iter(models.items()))
    for name, of_model in models.items():
        if any(own.symbols != dictionaries[0].symbols for own in of_model):
            raise UsageError(
                f"{name} and {first} have different dictionaries: bits per token differ"
            )

#!/usr/bin/env python
"""Train torch's own Transformer with a position encoding written in a few lines.

Is what a table says true of the encoding, or of the code that trained it? This script is the second
opinion: it imports PyTorch alone, nothing of fairseq or of this package, and trains the layers of
``torch.nn.Transformer`` in the regime of ``recipes/quickstart.sh`` on the text that a recipe has
written::

    bash recipes/quickstart.sh --run-dir runs/quickstart --stop-stage 4
    python recipes/claims/plain_transformer.py --run-dir runs/quickstart --encoding shape \
        --output shape.json

It reads ``{train,valid,test}.bpe.{en,de}``, a sentence a line in subwords, and the joint dictionary
``bin/dict.en.txt``. It prints the validation loss in the form of fairseq's logs, and writes JSON:
``curve``, this loss by updates, and ``test`` by English words, ``{"1-20": 0.12, "21-30": 0.9, …}``.
All figures are bits per target token, end of sentence included, given the reference's tokens before
it, without label smoothing.

Encodings, for positions i of queries and j of keys, which count from 0, and heads of width d:

- none: nothing; the encoder sees a bag of words;
- sinusoidal: sinusoids of i, in fairseq's layout, are added to the embeddings times √width;
- shape: of i + k; training draws k from {0…K} per sentence and side (Kiyono et al. 2021);
- cape: of α i + Δ + ε; training draws Δ per sentence pair and ε per token, evaluation has none. For
  the target α is 1, for the source the target tokens per source token of the training text
  (Likhomanenko et al. 2021, with the global scale λ = 1, as for all their translation models);
- alibi: self-attention scores q · k / √d - slope |i - j|, a slope per head (Press et al. 2022);
- t5: q · k / √d + a learned scalar per head and bucket of i - j; all layers of the encoder share
  theirs, and so do those of the decoder (Raffel et al. 2020);
- kerple: q · k / √d - r1 log(1 + r2 |i - j|), with r1 and r2 per head and layer, of which the
  logarithms are trained. They start uniform in [0.01, 2] and [0.01, 1] (Chi et al. 2022).

As in fairseq, dropout is applied to embeddings and to what residual connections add, not within
attention or behind the ReLU; the first update has learning rate 0; batches are made once and
shuffled for every epoch.
"""

import argparse
import json
import math
import os
import random
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

PAD, EOS, UNKNOWN, FIRST_WORD = 1, 2, 3, 4  # fairseq's ids, of which <s> has 0
FIRST_POSITION = PAD + 1  # as in fairseq
SPLITS = ("train", "valid", "test")
ENCODINGS = ("none", "sinusoidal", "shape", "cape", "alibi", "t5", "kerple")
BUCKETS, MAX_DISTANCE = 32, 128  # T5's
Pair = Tuple[List[int], List[int]]
# source (B, S); what precedes each target token, at first an end of sentence, and target (B, T)
Batch = Tuple[Tensor, ...]


class Regime(NamedTuple):
    """The regime of ``recipes/quickstart.sh``."""

    encoding: str
    updates: int = 2000
    warmup: int = 300  # updates up to the peak learning rate, which then falls to 0
    seed: int = 1
    max_shift: int = 40  # SHAPE's K
    global_shift: float = 5.0  # CAPE's Δ is uniform in ± this
    local_shift: float = 0.5  # and ε in this
    layers: int = 2  # of the encoder, and of the decoder
    width: int = 128
    ffn: int = 512
    heads: int = 4
    dropout: float = 0.0
    label_smoothing: float = 0.1
    lr: float = 0.004
    max_tokens: int = 1000  # pairs of a batch times its longest side
    validate_interval: int = 250  # updates
    bins: Sequence[int] = (20, 30, 45)  # edges in English words, of the test set


def read_lines(folder: str, name: str) -> List[List[str]]:
    """Return the words of each line of a file."""
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return [line.split() for line in file]


def read_pairs(folder: str, split: str, ids: Dict[str, int]) -> List[Pair]:
    """Return the token ids of source and target of each sentence pair, with end of sentence."""
    english, german = (
        [[ids.get(token, UNKNOWN) for token in line] + [EOS] for line in read_lines(folder, name)]
        for name in (f"{split}.bpe.en", f"{split}.bpe.de")
    )
    if len(english) != len(german) or not english:
        raise ValueError(f"{folder}: {split}.bpe.en and .de must be of one length, and not empty")
    return list(zip(english, german))


def make_batches(pairs: Sequence[Pair], max_tokens: int) -> List[Batch]:
    """Return batches of similar length, as fairseq: as many pairs as fit, in multiples of 8."""
    pairs = sorted(pairs, key=lambda pair: (len(pair[0]), len(pair[1])))
    batches = []
    while pairs:
        count, longest = 0, 0
        for source, target in pairs:
            longest = max(longest, len(source), len(target))
            if longest * (count + 1) > max_tokens:
                break
            count += 1
        if count < len(pairs):
            count = count // 8 * 8 or max(count, 1)
        sources, targets = zip(*pairs[:count])
        sides = sources, [[EOS, *target[:-1]] for target in targets], targets
        tensors = ([torch.tensor(row) for row in side] for side in sides)
        batches.append(tuple(pad_sequence(rows, True, PAD) for rows in tensors))
        pairs = pairs[count:]
    return batches


def sinusoids(positions: Tensor, width: int) -> Tensor:
    """Return ``[sin(w p), cos(w p)]`` with ``width / 2`` rates w from 1 down to 1/10000."""
    half = width // 2
    rates = torch.exp(torch.arange(half) * (-math.log(10000) / (half - 1)))
    phases = positions.unsqueeze(-1) * rates
    return torch.cat([phases.sin(), phases.cos()], dim=-1)


def t5_buckets(distance: Tensor, causal: bool) -> Tensor:
    """Return T5's buckets, half of them exact, of distances query minus key."""
    buckets = BUCKETS if causal else BUCKETS // 2
    exact = buckets // 2
    size = distance.abs()
    growth = (size.clamp(min=1).double() / exact).log() / math.log(MAX_DISTANCE / exact)
    far = (exact + (growth * (buckets - exact)).long()).clamp(max=buckets - 1)
    near_or_far = torch.where(size < exact, size, far)
    return near_or_far if causal else near_or_far + buckets * (distance < 0)


class PlainTransformer(nn.Module):
    """torch's encoder and decoder; one table embeds source and target and predicts."""

    def __init__(self, options: Regime, entries: int, source_scale: float):
        super().__init__()
        self.options, self.source_scale = options, source_scale
        width, heads, dropout = options.width, options.heads, options.dropout
        sizes = (width, heads, options.ffn, dropout)
        below = nn.TransformerEncoderLayer(*sizes, batch_first=True, norm_first=True)
        above = nn.TransformerDecoderLayer(*sizes, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(below, options.layers, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(above, options.layers)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))  # behind the last layers
        self.embedding = nn.Embedding(entries, width, padding_idx=PAD)
        self.dropout = nn.Dropout(dropout)
        # of the encoder and of the decoder: T5's scalars, or log r1 and log r2 of KERPLE's layers
        self.biases = nn.ParameterList()
        if options.encoding == "t5":
            self.biases.extend(nn.Parameter(0.02 * torch.randn(BUCKETS, heads)) for _ in range(2))
        if options.encoding == "kerple":
            highest = torch.tensor([2.0, 1.0]).view(2, 1, 1, 1)
            start = (torch.rand(2, options.layers, 2, heads, 1, 1) * highest).clamp(min=0.01)
            self.biases.extend(nn.Parameter(side) for side in start.log())
        # initial values as in fairseq; torch has copied those of one layer to all
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        nn.init.zeros_(self.embedding.weight[PAD])
        for module in self.modules():
            if isinstance(module, nn.MultiheadAttention):
                nn.init.xavier_uniform_(module.in_proj_weight)
                nn.init.xavier_uniform_(module.out_proj.weight)
                module.dropout = 0.0
            if isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
                module.linear1.reset_parameters()
                module.linear2.reset_parameters()
                module.dropout.p = 0.0  # behind the ReLU

    def positions(self, batch: int, source: int, target: int) -> Tuple[Tensor, Tensor]:
        """Return positions ``(batch, source)`` and ``(batch, target)``, random ones in training."""
        options = self.options
        i, j = (torch.arange(float(length)).expand(batch, length) for length in (source, target))
        if options.encoding == "cape":
            i = i * self.source_scale
        if options.encoding == "shape" and self.training:
            i, j = (side + torch.randint(options.max_shift + 1, (batch, 1)) for side in (i, j))
        if options.encoding == "cape" and self.training:
            shift = _uniform(options.global_shift, batch, 1)
            i, j = (side + shift + _uniform(options.local_shift, *side.shape) for side in (i, j))
        return i, j

    def bias(self, layer: int, length: int, causal: bool) -> Optional[Tensor]:
        """Return what is added to the scores ``(heads, query, key)``, without the causal mask."""
        distance = torch.arange(length).unsqueeze(1) - torch.arange(length)
        if self.options.encoding == "alibi":
            slopes = 2.0 ** (-8 * torch.arange(1, self.options.heads + 1) / self.options.heads)
            return -slopes.view(-1, 1, 1) * distance.abs()
        if self.options.encoding == "t5":
            return self.biases[causal][t5_buckets(distance, causal)].permute(2, 0, 1)
        if self.options.encoding == "kerple":
            r1, r2 = self.biases[causal][layer].exp()
            return -r1 * torch.log1p(r2 * distance.abs())
        return None

    def masks(self, batch: int, length: int, causal: bool) -> List[Tensor]:
        """Return what is added to each layer's scores, with the causal mask."""
        mask = torch.full((length, length), -math.inf).triu(1 if causal else length)
        biases = [self.bias(layer, length, causal) for layer in range(self.options.layers)]
        # torch wants masks of shape (batch · heads, query, key)
        return [mask if bias is None else (bias + mask).repeat(batch, 1, 1) for bias in biases]

    @torch.enable_grad()  # without gradients torch takes fused layers, wrong for bias and padding
    def forward(self, source: Tensor, previous: Tensor) -> Tensor:
        """Return logits ``(batch, T, types)`` for tokens ``(batch, S)`` and ``(batch, T)``."""
        (batch, length), target_length = source.shape, previous.size(1)
        padding = torch.zeros(source.shape).masked_fill(source == PAD, -math.inf)
        i, j = self.positions(batch, length, target_length)
        # not torch's loop over layers, which knows one mask for all
        memory = self.embed(source, i)
        for block, mask in zip(self.encoder.layers, self.masks(batch, length, causal=False)):
            memory = block(memory, mask, src_key_padding_mask=padding)
        memory = self.norms[0](memory)
        # padding of the target is at its end, where the causal mask hides it from real tokens
        states = self.embed(previous, j)
        for block, mask in zip(self.decoder.layers, self.masks(batch, target_length, causal=True)):
            states = block(states, memory, mask, memory_key_padding_mask=padding)
        return functional.linear(self.norms[1](states), self.embedding.weight)

    def embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Return the input ``(batch, length, width)`` of the first layer."""
        embedded = self.embedding(tokens) * math.sqrt(self.options.width)
        if self.options.encoding in ("sinusoidal", "shape", "cape"):
            embedded = embedded + sinusoids(positions + FIRST_POSITION, self.options.width)
        return self.dropout(embedded)


def _uniform(bound: float, *shape: int) -> Tensor:
    return (2 * torch.rand(shape) - 1) * bound


def loss(model: PlainTransformer, batch: Batch, **options: Any) -> Tensor:
    """Return the cross-entropy of a batch's target tokens in nats."""
    source, previous, target = batch
    logits = model(source, previous).flatten(0, 1)
    return functional.cross_entropy(logits, target.flatten(), ignore_index=PAD, **options)


def bits_per_token(model: PlainTransformer, batches: Sequence[Batch]) -> float:
    """Return the mean of -log2 p(token) over the target tokens, in evaluation mode."""
    model.eval()
    nats = sum(loss(model, batch, reduction="sum").item() for batch in batches)
    model.train()
    return nats / math.log(2) / sum(int((target != PAD).sum()) for _, _, target in batches)


def learning_rate(options: Regime, done: int) -> float:
    """Return the learning rate of the update after ``done`` updates, as of fairseq's schedule."""
    if done < options.warmup:
        return options.lr * done / options.warmup
    return options.lr * (1 - (done - options.warmup) / (options.updates - options.warmup))


def train(
    model: PlainTransformer, options: Regime, pairs: List[Pair], valid_pairs: List[Pair]
) -> Dict[int, float]:
    """Train and return the validation loss by number of updates."""
    batches, valid = (make_batches(data, options.max_tokens) for data in (pairs, valid_pairs))
    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    order = random.Random(options.seed)
    # fairseq spreads the smoothing over all types but the right one, torch over all
    entries = model.embedding.num_embeddings
    smoothing = options.label_smoothing * entries / (entries - 1)
    epoch: List[Batch] = []
    curve: Dict[int, float] = {}
    model.train()
    for done in range(options.updates):
        if not epoch:
            epoch = order.sample(batches, len(batches))
        adam.param_groups[0]["lr"] = learning_rate(options, done)
        adam.zero_grad()
        loss(model, epoch.pop(), label_smoothing=smoothing).backward()
        adam.step()
        if (done + 1) % options.validate_interval == 0 or done + 1 == options.updates:
            curve[done + 1] = bits_per_token(model, valid)
            line = f"nll_loss {curve[done + 1]:.3f} | num_updates {done + 1}"
            print(f"| valid on 'valid' subset | {line}", flush=True)
    return curve


def by_length(edges: Sequence[int], lengths: Sequence[int]) -> Dict[str, List[int]]:
    """Return the sentences of each bin: 1-20, 21-30 and 31+ for the edges 20 and 30."""
    bins = {}
    for low, high in zip([0, *edges], [*edges, math.inf]):
        name = f"{low + 1}+" if high == math.inf else f"{low + 1}-{high}"
        # an empty sentence counts to the first bin
        bins[name] = [i for i, length in enumerate(lengths) if low < max(length, 1) <= high]
    return bins


def read_options(arguments: Sequence[str]) -> Tuple[Regime, str, str]:
    """Return the options of the training, the recipe's folder, and the file to write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--run-dir", required=True, help="folder of a recipe that has binarised its text")
    add("--encoding", required=True, choices=ENCODINGS, help="see the top of this file")
    add("--output", required=True, help="JSON file to write")
    add("--updates", type=int, default=Regime.updates, help="of the training")
    add("--warmup", type=int, default=Regime.warmup, help="of these, to the peak learning rate")
    add("--seed", type=int, default=Regime.seed, help="of all that is random")
    chosen = vars(parser.parse_args(arguments))
    if not 0 <= chosen["warmup"] < chosen["updates"]:
        parser.error("--updates must be more than --warmup")
    run_dir, output = chosen.pop("run_dir"), chosen.pop("output")
    return Regime(**chosen), run_dir, output


def main(options: Regime, run_dir: str, output: str) -> None:
    """Train, test and write the result: the whole of it, or nothing."""
    try:
        vocabulary = read_lines(run_dir, "bin/dict.en.txt")
        ids = {line[0]: number for number, line in enumerate(vocabulary, FIRST_WORD)}
        pairs = {name: read_pairs(run_dir, name, ids) for name in SPLITS}
        test_lines = read_lines(run_dir, "test.bpe.en")
    except (OSError, ValueError, IndexError) as error:
        raise SystemExit(f"plain_transformer.py: {error}") from None
    torch.manual_seed(options.seed)
    tokens = [sum(len(side) - 1 for side in sides) for sides in zip(*pairs["train"])]
    model = PlainTransformer(options, FIRST_WORD + len(vocabulary), tokens[1] / tokens[0])
    curve = train(model, options, pairs["train"], pairs["valid"])
    lengths = [sum(not subword.endswith("@@") for subword in line) for line in test_lines]
    test = {}
    for name, members in by_length(options.bins, lengths).items():
        if members:
            sentences = [pairs["test"][number] for number in members]
            test[name] = bits_per_token(model, make_batches(sentences, options.max_tokens))
            print(f"| {len(members)} test sentences of {name} words | nll_loss {test[name]:.3f}")
    result = {"encoding": options.encoding, "seed": options.seed, "options": options._asdict()}
    with open(output + ".part", "w", encoding="utf-8") as file:
        json.dump({**result, "curve": curve, "test": test}, file, indent=1)
    os.replace(output + ".part", output)


if __name__ == "__main__":
    main(*read_options(sys.argv[1:]))

"""Are the encoder's states the same wherever the sentence stands? (SHAPE, Figures 2 and 6)."""

from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F

from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.transformer_encoder import PosencTransformerEncoder
from fairseq_posenc.tools.analyses import pictures
from fairseq_posenc.tools.analyses.loading import (
    Trained,
    load_all,
    sample,
    table_size,
    without_bos,
)
from fairseq_posenc.tools.analyses.report import Report, shown

Matrix = List[List[Optional[float]]]


def shift_invariance(
    *,
    models: Sequence[str],
    data: str,
    subset: str = "test",
    offsets: Sequence[int] = (0, 100, 250, 500),
    sentences: Optional[int] = None,
    max_tokens: int = 4000,
    seed: int = 1,
    cpu: bool = False,
) -> Report:
    """Compare encoder states under offsets; the arguments are the options of the command.

    Kiyono et al. 2021, eq. (3): for two offsets, the mean over a sentence's tokens of the cosine
    similarity of their states; and the mean of that over ``sentences`` of the subset, drawn at
    random (all if None). An offset k adds k to the numbers of all positions, before α multiplies
    those of CAPE. Encodings of distances do not read these numbers and have 1 by construction.

    Our reading: "encoder hidden states" are what the decoder gets, the output of the last layer
    (and of its LayerNorm in pre-norm models), at all tokens, the end of sentence included.

    Learned positions have no vectors beyond their table; such offsets have no figure, and a note.

    Raises:
        UsageError: offsets that are not rising from 0 or more, and what is wrong with the files.
    """
    if not offsets or offsets[0] < 0 or any(a >= b for a, b in zip(offsets, offsets[1:])):
        raise UsageError("--offsets takes rising whole numbers from 0 on, such as 0,100,250,500")
    matrices: Dict[str, Matrix] = {}
    signatures: Dict[str, Any] = {}
    notes: List[str] = []
    for trained in load_all(models, data, cpu):
        sources = _sources(trained, subset, sentences, seed)
        known = _known(trained, sources, offsets, notes)
        means = _matrix(trained, sources, known, max_tokens)
        matrices[trained.name] = [[means.get((a, b)) for b in offsets] for a in offsets]
        signatures[trained.name] = trained.signature
    notes.append(f"{len(sources)} sentences of {subset}.")
    return Report(
        title="Cosine similarity of encoder states under two offsets of the positions",
        table=_table(matrices, offsets),
        labels=2,
        notes=notes,
        data={
            "offsets": list(offsets),
            "similarities": matrices,
            "encodings": signatures,
            "subset": subset,
            "sentences": len(sources),
        },
        pictures={".png": pictures.similarities(matrices, offsets)},
    )


@contextmanager
def shifted(encoder: PosencTransformerEncoder, offset: float) -> Iterator[None]:
    """Within the block, add ``offset`` to the numbers of all positions that the encoder sees."""
    handle = encoder.embed_positions.register_forward_pre_hook(
        lambda module, inputs: replace(inputs[0], numbers=inputs[0].numbers + offset)
    )
    try:
        yield
    finally:
        handle.remove()


@torch.no_grad()
def similarities(
    encoder: PosencTransformerEncoder, tokens: Tensor, offsets: Sequence[float]
) -> Tensor:
    """Return eq. (3) of every two offsets for each sentence.

    Args:
        encoder: in evaluation.
        tokens: ``(batch, length)``, padded on either side.
        offsets: K of them.

    Returns:
        ``(K, K, batch)``, float64.
    """
    real = tokens.ne(encoder.padding_idx)
    units = []
    for offset in offsets:
        with shifted(encoder, offset):
            states = encoder(tokens)["encoder_out"][0].transpose(0, 1)
        units.append(F.normalize(states.double(), dim=-1) * real.unsqueeze(-1))
    stacked = torch.stack(units)
    return torch.einsum("kbtc,lbtc->klb", stacked, stacked) / real.sum(dim=1)


def _sources(trained: Trained, subset: str, wanted: Optional[int], seed: int) -> List[Tensor]:
    pairs, bos = trained.pairs(subset), trained.task.source_dictionary.bos()
    chosen = sample(len(pairs), wanted, seed)
    return [without_bos(pairs[index]["source"], bos) for index in chosen]


def _known(
    trained: Trained, sources: Sequence[Tensor], offsets: Sequence[int], notes: List[str]
) -> List[int]:
    """Return the offsets that the encoding has positions for; the others are noted."""
    rows = table_size(trained.encoder.embed_positions)
    if rows is None:
        return list(offsets)
    longest = max(trained.inputs(sources).num_tokens(index) for index in range(len(sources)))
    known = [offset for offset in offsets if offset + longest <= rows]
    if len(known) < len(offsets):
        notes.append(
            f"{trained.name} has a table of {rows} positions, and the longest sentence {longest} "
            f"tokens: offsets above {rows - longest} lead beyond it."
        )
    return known


def _matrix(
    trained: Trained, sources: Sequence[Tensor], known: Sequence[int], max_tokens: int
) -> Dict[Tuple[int, int], float]:
    """Return the mean over the sentences for every two offsets."""
    total = torch.zeros(len(known), len(known), dtype=torch.float64)
    if known:
        for batch in trained.batches(trained.inputs(sources), max_tokens):
            found = similarities(trained.encoder, batch["net_input"]["src_tokens"], known)
            total += found.sum(dim=-1).cpu()
    means = (total / len(sources)).tolist()
    return {(a, b): means[i][j] for i, a in enumerate(known) for j, b in enumerate(known)}


def _table(matrices: Dict[str, Matrix], offsets: Sequence[int]) -> List[List[str]]:
    lines = [["", "k", *map(str, offsets)]]
    for name, matrix in matrices.items():
        for number, (offset, row) in enumerate(zip(offsets, matrix)):
            cells = [shown(value, "{:.4f}") for value in row]
            lines.append([name if number == 0 else "", str(offset), *cells])
    return lines

"""Are the encoder's states the same wherever the sentence stands? (SHAPE, Figures 2 and 6)."""

import math
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.transformer_encoder import PosencTransformerEncoder
from fairseq_posenc.tools.analyses.models import LoadedModel, load_models, sample, without_bos
from fairseq_posenc.tools.analyses.report import Matrix, Report, draw_matrix, shown
from fairseq_posenc.tools.scores.texts import UNKNOWN, Languages
from fairseq_posenc.tools.tables.plots import new_figure


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
    languages: Languages = UNKNOWN,
) -> Report:
    """Compare encoder states under offsets.

    Kiyono et al. 2021, eq. (3): for two offsets, the mean over a sentence's tokens of the cosine
    similarity of their states; and the mean of that over --sentences of the subset, drawn at
    random, or over all. An offset k adds k to the numbers of all positions, before α multiplies
    those of CAPE. Encodings of distances do not read these numbers and have 1 by construction.

    Our reading: "encoder hidden states" are what the decoder gets, the output of the last layer
    (and of its LayerNorm in pre-norm models), at all tokens, the end of sentence included.

    Learned positions have no vectors beyond their table; such offsets have no figure, and a note.
    """
    if not offsets or offsets[0] < 0 or any(a >= b for a, b in zip(offsets, offsets[1:])):
        raise UsageError("--offsets takes rising whole numbers from 0 on, such as 0,100,250,500")
    matrices: Dict[str, Matrix] = {}
    signatures: Dict[str, Any] = {}
    notes: List[str] = []
    for loaded in load_models(models, data, cpu, languages):
        pairs, bos = loaded.pairs(subset), loaded.task.source_dictionary.bos()
        chosen = sample(len(pairs), sentences, seed)
        sources = [without_bos(pairs[index]["source"], bos) for index in chosen]
        matrices[loaded.name] = _mean_similarities(loaded, sources, offsets, max_tokens, notes)
        signatures[loaded.name] = loaded.signature
    notes.append(f"{len(sources)} sentences of {subset}.")
    lines = [
        ["" if number else name, str(offsets[number]), *(shown(value, "{:.4f}") for value in row)]
        for name, matrix in matrices.items()
        for number, row in enumerate(matrix)
    ]
    return Report(
        title="Cosine similarity of encoder states under two offsets of the positions",
        table=[["", "k", *map(str, offsets)], *lines],
        labels=2,
        notes=notes,
        data={
            "offsets": list(offsets),
            "similarities": matrices,
            "encodings": signatures,
            "subset": subset,
            "sentences": len(sources),
        },
        pictures={".png": _draw(matrices, offsets)},
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
    """Return eq. (3) of every two of K offsets for each sentence, ``(K, K, batch)``, float64.

    Args:
        encoder: in evaluation.
        tokens: ``(batch, length)``, padded on either side.
        offsets: K of them.
    """
    units = []
    for offset in offsets:
        with shifted(encoder, offset):
            output = encoder(tokens)
        states, real = output["encoder_out"][0].transpose(0, 1), ~output["encoder_padding_mask"][0]
        # of length 1, so that products are cosines; 0 at padding, so that sums leave it out
        units.append(F.normalize(states.double(), dim=-1) * real.unsqueeze(-1))
    stacked = torch.stack(units)
    return torch.einsum("kbtc,lbtc->klb", stacked, stacked) / real.sum(dim=1)


def _mean_similarities(
    loaded: LoadedModel,
    sources: Sequence[Tensor],
    offsets: Sequence[int],
    max_tokens: int,
    notes: List[str],
) -> Matrix:
    """Return the mean over the sentences for every two offsets.

    Offsets that the encoding has no positions for have None, and are noted.
    """
    fitting, rows = list(offsets), loaded.table_size
    if rows is not None:
        inputs = loaded.inputs(sources)
        longest = max(inputs.num_tokens(index) for index in range(len(inputs)))
        fitting = [offset for offset in offsets if offset + longest <= rows]
        if len(fitting) < len(offsets):
            notes.append(
                f"{loaded.name} has a table of {rows} positions, and the longest sentence "
                f"{longest} tokens: offsets above {rows - longest} lead beyond it."
            )
    total = torch.zeros(len(fitting), len(fitting), dtype=torch.float64)
    if fitting:
        for batch in loaded.batches(loaded.inputs(sources), max_tokens):
            of_batch = similarities(loaded.encoder, batch["net_input"]["src_tokens"], fitting)
            total += of_batch.sum(dim=-1).cpu()
    means = (total / len(sources)).tolist()
    # the known offsets are the first ones, as offsets rise
    unknown = [None] * (len(offsets) - len(fitting))
    return [*([*row, *unknown] for row in means), *([None] * len(offsets) for _ in unknown)]


def _draw(matrices: Mapping[str, Matrix], offsets: Sequence[int]) -> Any:
    """Draw a square of similarities per model (SHAPE, Figure 2); returns matplotlib's figure."""
    side = 0.55 * len(offsets) + 0.8
    rows = math.ceil(len(matrices) / 5)
    columns = math.ceil(len(matrices) / rows)
    figure = new_figure(side * columns + 1.1, side * rows + 0.4)
    defined = [v for matrix in matrices.values() for row in matrix for v in row if v is not None]
    # in steps of a tenth, so that rounding errors are not blown up to a whole scale
    lowest = math.floor(10 * min([0.8, *defined])) / 10
    style: Dict[str, Any] = {"cmap": "viridis", "vmin": lowest, "vmax": 1.0}
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, (name, matrix) in zip(panels, matrices.items()):
        image = draw_matrix(axes, matrix, offsets, offsets, **style)
        axes.set_title(name, fontsize=11)
        axes.set_xlabel("offset k")
    for axes in panels[len(matrices) :]:
        axes.remove()
    figure.colorbar(image, ax=panels[: len(matrices)], label="cosine similarity", shrink=0.9)
    return figure

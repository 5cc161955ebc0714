"""What encodings look at, and the ranks of that (Chen et al. 2021, Figures 2, 4 and 6)."""

import copy
from typing import Any, Dict, List, Mapping, Sequence

import torch
from torch import Tensor

from fairseq_posenc.encodings.segments import NoSegments
from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.transformer_encoder import PosencTransformerEncoder
from fairseq_posenc.tools.analyses.models import load_models
from fairseq_posenc.tools.analyses.position_scores import (
    Maps,
    content_scores,
    input_vectors,
    position_maps,
    ranks,
    running_text,
    singular_values,
)
from fairseq_posenc.tools.analyses.report import Report
from fairseq_posenc.tools.scores.texts import UNKNOWN, Languages
from fairseq_posenc.tools.tables.plots import line_style, new_figure


@torch.no_grad()
def attention(
    *,
    models: Sequence[str],
    data: str,
    length: int = 64,
    subset: str = "valid",
    inputs: int = 8,
    threshold: float = 0.01,
    cpu: bool = False,
    languages: Languages = UNKNOWN,
) -> Report:
    """Draw the scores of positions, and compare ranks.

    Chen et al. 2021, Figures 4 and 6: the scores that the encoder's position encoding adds by
    itself, for each layer and head; for BERT with segments also with the second half of the input
    in the second segment. Figure 2: the rank of these, of the scores of content, Q Kᵀ, and of their
    sum; the last two are means over --inputs pieces of the subset's running text.

    Our readings: scores are drawn as they are added to the logits, before the softmax; those of
    vectors at the input less the mean of each row, which softmax ignores and would hide them. For
    encodings at the input, content is X = √d E. The rank is the number of singular values above
    --threshold times the largest. Inputs are cut from the text without regard to sentences, as
    the rank is at most the number of tokens. A model without scores of positions alone is left out,
    with a note.
    """
    if length < 2 or inputs < 1 or not 0 <= threshold < 1:
        raise UsageError("--length takes 2 or more, --inputs 1 or more, --threshold 0 or up to 1")
    drawn: Dict[str, Maps] = {}
    figures: Dict[str, Any] = {}
    left_out: List[str] = []
    for loaded in load_models(models, data, cpu, languages):
        if loaded.table_size is not None and length > loaded.table_size:
            raise UsageError(f"--length {length}: the table has {loaded.table_size} positions only")
        encoder = copy.deepcopy(loaded.encoder).double()
        try:
            maps = position_maps(encoder, length)
        except UsageError as error:
            left_out.append(f"{loaded.name}: {error}.")
            continue
        named = {loaded.name: maps, **_with_segments(encoder, loaded.name, maps)}
        if input_vectors(encoder, length) is not None:
            named = {name: _less_row_means(of) for name, of in named.items()}
        drawn.update(named)
        content = content_scores(encoder, running_text(loaded, subset, length, inputs), maps)
        layers = _ranks(maps, content, threshold)
        figures[loaded.name] = {"encoding": loaded.signature, "layers": layers}
    if not figures:
        raise UsageError(" ".join(left_out).rstrip("."))
    return Report(
        title=f"Ranks of the encoder's scores at {length} tokens: mean over heads (range)",
        table=_table(figures),
        notes=[f"Rank: singular values above {threshold} of the largest.", *left_out],
        data={"length": length, "threshold": threshold, "models": figures},
        pictures={".png": _draw_scores(drawn), ".ranks.png": _draw_ranks(figures, length)},
    )


def _with_segments(encoder: PosencTransformerEncoder, name: str, alone: Maps) -> Dict[str, Maps]:
    """Return the maps of an encoder whose input's second half is in another segment.

    There are none if the encoder has no segments, or none that act where its positions do.
    """
    if isinstance(getattr(encoder, "segments", None), (NoSegments, type(None))):
        return {}
    length = alone[0].size(-1)
    segments = torch.arange(length) >= length // 2
    maps = position_maps(encoder, length, segments.long().to(alone[0].device))
    # segments whose vectors reach the embeddings, but not the scores of positions, change no map
    same = all(torch.equal(maps[layer], alone[layer]) for layer in maps)
    return {} if same else {f"{name}, second segment from {length // 2}": maps}


def _less_row_means(maps: Maps) -> Maps:
    # softmax(x + c) = softmax(x): a query's mean changes nothing, and would set the colours
    return {layer: x - x.mean(dim=-1, keepdim=True) for layer, x in maps.items()}


def _ranks(maps: Maps, content: Dict[str, Maps], threshold: float) -> List[Dict[str, Any]]:
    """Return the ranks of every layer: a list over heads for each kind of scores."""
    layers = []
    for layer, scores in sorted(maps.items()):
        of_layer = {"position": ranks(scores, threshold).tolist()}
        for label, score_maps in content.items():
            # (inputs, heads) -> (heads,)
            of_layer[label] = ranks(score_maps[layer], threshold).double().mean(dim=0).tolist()
        values = singular_values(scores).tolist()
        layers.append({"layer": layer + 1, "ranks": of_layer, "singular_values": values})
    return layers


def _table(figures: Dict[str, Any]) -> List[List[str]]:
    labels = list(dict.fromkeys(k for f in figures.values() for k in f["layers"][0]["ranks"]))
    lines = [["", "layer", *labels]]
    for name, model in figures.items():
        for layer in model["layers"]:
            heads = [layer["ranks"][label] for label in labels]
            cells = [f"{sum(h) / len(h):.1f} ({min(h):.3g}-{max(h):.3g})" for h in heads]
            lines.append([name, str(layer["layer"]), *cells])
    return lines


def _draw_scores(models: Mapping[str, Maps]) -> Any:
    """Draw the scores of positions, a row per layer and a column per head (Chen et al., Figure 4).

    Layers that have the same scores are one row. Blue is attended to more, red less; the colours of
    a model have one scale.
    """
    blocks: Dict[str, Dict[str, Tensor]] = {}
    for name, maps in models.items():
        (_, first), *further = layers = sorted(maps.items())
        blocks[name] = {f"layer {number + 1}": scores for number, scores in layers}
        if further and all(scores.equal(first) for _, scores in further):
            blocks[name] = {"all layers": first}
    heights = [len(block) + 0.5 for block in blocks.values()]
    heads = max(len(scores) for block in blocks.values() for scores in block.values())
    side = min(max(5.4 / heads, 1.35), 2.0)
    figure = new_figure(side * heads + 1.8, side * sum(heights) + 0.3)
    parts = figure.subfigures(len(blocks), 1, height_ratios=heights, squeeze=False)
    for part, (name, block) in zip(parts.flat, blocks.items()):
        part.suptitle(name, fontsize=11)
        limit = max(float(scores.abs().max()) for scores in block.values()) or 1.0
        style = {"cmap": "RdBu", "vmin": -limit, "vmax": limit, "aspect": "auto"}
        panels = part.subplots(len(block), heads, squeeze=False)
        for head, axes in enumerate(panels[0]):
            axes.set_title(f"head {head + 1}", fontsize=8)
        for row, (label, scores) in zip(panels, block.items()):
            for head, axes in enumerate(row):
                if head >= len(scores):
                    axes.set_axis_off()
                    continue
                image = axes.imshow(scores[head].cpu(), **style)
                axes.set_xticks([])
                axes.set_yticks([])
            row[0].set_ylabel(f"{label}\nquery", fontsize=8)
        part.colorbar(image, ax=list(panels.flat), shrink=0.8, label="score")
        part.supxlabel("key", fontsize=8)
    return figure


def _draw_ranks(models: Mapping[str, Mapping[str, Any]], length: int) -> Any:
    """Draw the rank of each head's scores, layer by layer (Chen et al. 2021, Figure 2)."""
    widths = [max(0.55 * len(model["layers"]), 1.2) for model in models.values()]
    figure = new_figure(sum(widths) + 2.4, 3.4)
    panels = figure.subplots(1, len(models), squeeze=False, sharey=True, width_ratios=widths)[0]
    handles: Dict[str, Any] = {}
    for axes, (name, model) in zip(panels, models.items()):
        for layer in model["layers"]:
            for number, (label, heads) in enumerate(layer["ranks"].items()):
                places = [layer["layer"] + 0.25 * (number - 1)] * len(heads)
                style = {**line_style(number), "linestyle": "none", "alpha": 0.7}
                handles[label] = axes.errorbar(places, heads, **style)
        axes.set_title(name, fontsize=11)
        axes.set_xticks([layer["layer"] for layer in model["layers"]])
        axes.set_xlim(model["layers"][0]["layer"] - 0.6, model["layers"][-1]["layer"] + 0.6)
        axes.set_xlabel("layer")
        axes.grid(axis="y", color="0.8", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylim(0, 1.05 * length)
    panels[0].set_ylabel("rank of a head's scores")
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", frameon=False)
    return figure

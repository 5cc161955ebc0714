"""What encodings look at, and the ranks of that (Chen et al. 2021, Figures 2, 4 and 6)."""

import copy
from typing import Any, Dict, List, Optional, Sequence

import torch

from fairseq_posenc.encodings.segments import NoSegments
from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.transformer_encoder import PosencTransformerEncoder
from fairseq_posenc.tools.analyses import pictures
from fairseq_posenc.tools.analyses.content_scores import content_scores, pieces
from fairseq_posenc.tools.analyses.loading import load_all
from fairseq_posenc.tools.analyses.position_scores import (
    Maps,
    input_vectors,
    position_maps,
)
from fairseq_posenc.tools.analyses.ranks import ranks, singular_values
from fairseq_posenc.tools.analyses.report import Report


@torch.no_grad()
def attention(
    *,
    models: Sequence[str],
    length: int = 64,
    data: Optional[str] = None,
    subset: str = "valid",
    inputs: int = 8,
    threshold: float = 0.01,
    cpu: bool = False,
) -> Report:
    """Draw the scores of positions, and compare ranks; the arguments are the command's options.

    Chen et al. 2021, Figures 4 and 6: the scores that the encoder's position encoding adds by
    itself, for each layer and head; for BERT with segments also with the second half of the input
    in the second segment. Figure 2: the rank of these, with ``data`` also that of the scores of
    content, Q Kᵀ, and of their sum, as means over ``inputs`` pieces of the subset's running text.

    Our readings: scores are drawn as they are added to the logits, before the softmax; those of
    vectors at the input less the mean of each row, which softmax ignores and would hide them. See
    :func:`position_maps` for encodings at the input, whose content is X = √d E there, and
    :func:`ranks` for the threshold. Inputs are cut from the text without regard to sentences, as
    the rank is at most the number of tokens.

    Raises:
        UsageError: an encoding without scores of positions alone, or what is wrong with the files.
    """
    if length < 2 or inputs < 1 or not 0 <= threshold < 1:
        raise UsageError("--length takes 2 or more, --inputs 1 or more, --threshold 0 or up to 1")
    drawn: Dict[str, Maps] = {}
    figures: Dict[str, Any] = {}
    for trained in load_all(models, data, cpu):
        encoder = copy.deepcopy(trained.encoder).double()
        maps, content = position_maps(encoder, length), {}
        named = {trained.name: maps, **_with_segments(encoder, trained.name, maps)}
        centred = input_vectors(encoder, length) is not None
        drawn.update({name: _centred(m) if centred else m for name, m in named.items()})
        if data is not None:
            content = content_scores(encoder, pieces(trained, subset, length, inputs), maps)
        figures[trained.name] = {
            "encoding": trained.signature,
            "layers": _ranks(maps, content, threshold),
        }
    endings = {".png": pictures.maps(drawn), ".ranks.png": pictures.ranks(figures, length)}
    return Report(
        title=f"Ranks of the encoder's scores at {length} tokens: mean over heads (range)",
        table=_table(figures),
        notes=[f"Rank: singular values above {threshold} of the largest."],
        data={"length": length, "threshold": threshold, "models": figures},
        pictures=endings,
    )


def _with_segments(encoder: PosencTransformerEncoder, name: str, alone: Maps) -> Dict[str, Maps]:
    """Return the maps of an encoder whose input's second half is in another segment.

    None if the encoder has no segments, or none that act where its positions do.
    """
    if isinstance(getattr(encoder, "segments", None), (NoSegments, type(None))):
        return {}
    length = alone[0].size(-1)
    segments = torch.arange(length) >= length // 2
    maps = position_maps(encoder, length, segments.long().to(alone[0].device))
    same = all(torch.equal(maps[layer], alone[layer]) for layer in maps)
    return {} if same else {f"{name}, second segment from {length // 2}": maps}


def _centred(maps: Maps) -> Maps:
    return {layer: scores - scores.mean(dim=-1, keepdim=True) for layer, scores in maps.items()}


def _ranks(maps: Maps, content: Dict[str, Maps], threshold: float) -> List[Dict[str, Any]]:
    """Return the ranks of every layer: a list over heads for each kind of scores."""
    return [
        {
            "layer": layer + 1,
            "ranks": {
                "position": ranks(scores, threshold).tolist(),
                **{
                    kind: ranks(found[layer], threshold).double().mean(dim=0).tolist()
                    for kind, found in content.items()
                },
            },
            "singular_values": singular_values(scores).tolist(),
        }
        for layer, scores in sorted(maps.items())
    ]


def _table(figures: Dict[str, Any]) -> List[List[str]]:
    kinds = list(dict.fromkeys(k for f in figures.values() for k in f["layers"][0]["ranks"]))
    lines = [["", "layer", *kinds]]
    for name, model in figures.items():
        for layer in model["layers"]:
            cells = [_cell(layer["ranks"][kind]) for kind in kinds]
            lines.append([name, str(layer["layer"]), *cells])
    return lines


def _cell(heads: Sequence[float]) -> str:
    return f"{sum(heads) / len(heads):.1f} ({min(heads):.3g}-{max(heads):.3g})"

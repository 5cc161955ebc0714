"""Which model gives the tokens of the references higher scores? (SHAPE, section 4, Figure 4)."""

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
from fairseq.data import Dictionary
from scipy.stats import rankdata

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.analyses.models import LoadedModel, load_models
from fairseq_posenc.tools.analyses.report import Matrix, Report, draw_matrix, shown
from fairseq_posenc.tools.scores import lengths
from fairseq_posenc.tools.scores.texts import UNKNOWN, Languages
from fairseq_posenc.tools.tables.plots import new_figure


@dataclass
class ScoredReferences:
    """The tokens of all references, one after another, as arrays of one length.

    ``ranks`` are by frequency, see :func:`ranks`; ``positions`` are in the sentence, from 1;
    ``scores`` are log-probabilities, natural logarithm.
    """

    tokens: np.ndarray
    ranks: np.ndarray
    positions: np.ndarray
    scores: np.ndarray


def tokens(
    *,
    models: Sequence[str],
    data: str,
    subset: str = "valid",
    frequency_bins: Sequence[int] = (5000, 15000, 25000),
    position_bins: Sequence[int] = (10, 20, 30, 40, 50, 60, 70),
    max_tokens: int = 4000,
    cpu: bool = False,
    languages: Languages = UNKNOWN,
) -> Report:
    """Compare two models token by token.

    Kiyono et al. 2021, section 4: teacher forcing gives the log-probability of every token of the
    references under the models A and B; the figure is the share of tokens to which B gives the
    higher one, by frequency and by position in the target sentence.

    Our readings. The paper's rows 1-5000 … 25001- are ranks by frequency, 1 the most frequent
    token, as it calls the last row the low-frequency region; ranks are by the counts of the
    dictionary, which of a joint one are those of both languages. The end of sentence and
    ``<unk>`` are not counted. Equal scores count half, so that A and B exchanged give 1 - share.
    """
    if len(models) != 2:
        raise UsageError(f"--models takes two models to compare, A and B, not {len(models)}")
    frequencies = lengths.by_edges(frequency_bins, option="--frequency-bins")
    positions = lengths.by_edges(position_bins, option="--position-bins")
    names = {
        "frequency_ranks": [*(part.name for part in frequencies), "all"],
        "positions": [*(part.name for part in positions), "all"],
    }
    scored = {
        m.name: score_references(m, subset, max_tokens)
        for m in load_models(models, data, cpu, languages)
    }
    (name_a, a), (name_b, b) = scored.items()
    if not np.array_equal(a.tokens, b.tokens):
        raise UsageError(f"{name_a} and {name_b} have different dictionaries or target sentences")
    counts, shares = compare(a, b, frequency_bins, position_bins)
    lines = [[name, *map(shown, row)] for name, row in zip(names["frequency_ranks"], shares)]
    return Report(
        title=f"Share of the tokens of {subset} that {name_b} scores above {name_a}",
        table=[["rank", *names["positions"]], *lines],
        notes=["Rows: rank of the token by frequency; columns: position in the target sentence."],
        data={
            "a": name_a, "b": name_b, "subset": subset, **names, "shares": shares,
            "tokens": counts,
        },
        pictures={".png": _draw(names, shares, counts, name_a, name_b)},
    )  # fmt: skip


def compare(
    a: ScoredReferences,
    b: ScoredReferences,
    frequency_bins: Sequence[int],
    position_bins: Sequence[int],
) -> Tuple[List[List[int]], List[List[Optional[float]]]]:
    """Return the number of tokens, and the share that ``b`` scores above ``a``, of each cell.

    Rows are ranks by frequency, up to each edge and beyond the last; columns are positions
    likewise. The last row and the last column are for all. Cells without tokens have None.
    """
    rows = np.searchsorted(frequency_bins, a.ranks)
    columns = np.searchsorted(position_bins, a.positions)
    size = (len(frequency_bins) + 2, len(position_bins) + 2)
    counts, better = np.zeros(size), np.zeros(size)
    counted = a.ranks > 0
    # each token counts in its cell, in both margins ("all") and in the corner; np.add.at, unlike
    # counts[where] += 1, counts a cell as often as it is named
    for row, column in ((rows, columns), (rows, -1), (-1, columns), (-1, -1)):
        where = tuple(np.broadcast_to(part, a.ranks.shape)[counted] for part in (row, column))
        np.add.at(counts, where, 1)
        np.add.at(better, where, ((b.scores > a.scores) + 0.5 * (b.scores == a.scores))[counted])
    shares = [
        [float(hits / count) if count else None for hits, count in zip(*lines)]
        for lines in zip(better, counts)
    ]
    return counts.astype(int).tolist(), shares


@torch.no_grad()
def score_references(loaded: LoadedModel, subset: str, max_tokens: int) -> ScoredReferences:
    """Score the references of a subset with a model, in the order of the subset.

    The token of a language, which a model of several is given, is left out.
    """
    sentences: Dict[int, Tuple[np.ndarray, np.ndarray]] = {}
    padding = loaded.task.target_dictionary.pad()
    language_token = getattr(loaded.task, "target_token", None)
    language_token = padding if language_token is None else language_token
    for batch in loaded.batches(loaded.pairs(subset), max_tokens):
        output = loaded.model(**batch["net_input"])
        logs = loaded.model.get_normalized_probs(output, log_probs=True, sample=batch)
        scores = logs.gather(-1, batch["target"].unsqueeze(-1)).squeeze(-1)
        for index, target, line in zip(batch["id"].tolist(), batch["target"], scores):
            real = target.ne(padding) & target.ne(language_token)
            sentences[index] = target[real].cpu().numpy(), line[real].float().cpu().numpy()
    ordered = [sentences[index] for index in sorted(sentences)]
    tokens = np.concatenate([target for target, _ in ordered])
    return ScoredReferences(
        tokens=tokens,
        ranks=ranks(loaded.task.target_dictionary)[tokens],
        positions=np.concatenate([np.arange(1, len(target) + 1) for target, _ in ordered]),
        scores=np.concatenate([scores for _, scores in ordered]),
    )


def ranks(dictionary: Dictionary) -> np.ndarray:
    """Return each token's rank by frequency, from 1; of equals, the first is first.

    Special symbols have rank 0.
    """
    ranked = np.zeros(len(dictionary), dtype=int)
    counts = np.array(dictionary.count[dictionary.nspecial :])
    ranked[dictionary.nspecial :] = rankdata(-counts, method="ordinal")
    return ranked


def _draw(
    names: Dict[str, List[str]], shares: Matrix, counts: List[List[int]], name_a: str, name_b: str
) -> Any:
    """Draw the shares of tokens by frequency and position (SHAPE, Figure 4)."""
    rows, columns = names["frequency_ranks"], names["positions"]
    figure = new_figure(0.85 * len(columns) + 3.0, 0.6 * len(rows) + 1.5)
    axes = figure.add_subplot()
    defined = [value for row in shares for value in row if value is not None]
    reach = max([0.1, *(abs(value - 0.5) for value in defined)])
    style: Dict[str, Any] = {"cmap": "RdBu", "vmin": 0.5 - reach, "vmax": 0.5 + reach}
    image = draw_matrix(axes, shares, rows, columns, counts, "{:.2f}", **style)
    axes.axvline(len(columns) - 1.5, color="white", linewidth=3)
    axes.axhline(len(rows) - 1.5, color="white", linewidth=3)
    axes.set_xlabel("position in the target sentence")
    axes.set_ylabel("rank by frequency")
    bar = figure.colorbar(image, ax=axes, ticks=[0.5 - reach, 0.5, 0.5 + reach])
    bar.ax.set_yticklabels(
        [f"{name_a} better\n({0.5 - reach:.2f})", "equal", f"{name_b} better\n({0.5 + reach:.2f})"]
    )
    return figure

"""How much better is a model than the first, by length? (SHAPE, Figure 3; CAPE, Figure 8)."""

from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from sacrebleu.metrics import BLEU
from tqdm import tqdm

from fairseq_posenc.errors import UsageError
from fairseq_posenc.evaluation import lengths, texts
from fairseq_posenc.evaluation.analyses import pictures
from fairseq_posenc.evaluation.analyses.loading import named
from fairseq_posenc.evaluation.analyses.report import Report

_ORDERS = 4
Figures = Dict[str, Any]


def by_length(
    *,
    generated: Sequence[str],
    reference: Optional[str] = None,
    source: Optional[str] = None,
    bins: Optional[Sequence[int]] = None,
    percentiles: bool = False,
    length_of: Optional[str] = None,
    length_unit: str = "words",
    trained_up_to: Optional[int] = None,
    remove_bpe: str = "@@ ",
    language: str = "de",
    source_language: str = "en",
    samples: int = 1000,
    seed: int = 1,
) -> Report:
    """Compare outputs of fairseq-generate; the arguments are the options of the command.

    The difference in sacreBLEU to the first model by source length (Kiyono et al. 2021, Figure 3)
    or for short, medium and long references (Likhomanenko et al. 2021, Figure 8). The papers show
    no uncertainty; ours is the paired bootstrap: ``samples`` times, as many sentences as a bin
    holds are drawn from it with replacement, the same for all models. The interval is from the
    2.5 % to the 97.5 % percentile of the differences.

    Raises:
        UsageError: both or neither of bins and percentiles, outputs of different test sets, and
            what is wrong with the files.
    """
    if bool(bins) == percentiles:
        raise UsageError("give either --bins or --percentiles")
    if samples < 1:
        raise UsageError(f"--samples must be 1 or more, not {samples}")
    found = {
        name: texts.from_generated(path, reference, source, remove_bpe, language, source_language)
        for name, path in named(generated).items()
    }
    _check_same(found)
    side = length_of or ("source" if bins else "reference")
    counted = lengths.lengths_of(next(iter(found.values())), side, length_unit)
    parts = lengths.by_edges(bins) if bins else lengths.by_percentiles(counted)
    members = {"all": list(range(len(counted))), **{p.name: p.members(counted) for p in parts}}
    rows, signature = _figures(found, members, language, samples, seed)
    of = f"{side} length ({length_unit})"
    return Report(
        title=f"sacreBLEU by {of}: {next(iter(found))}, and differences to it",
        table=_table(rows, members),
        notes=[
            f"In brackets: 95 % of {samples} paired bootstrap samples of the sentences.",
            f"Signature: {signature}",
        ],
        data={
            "bins": [{**vars(p), "sentences": len(members[p.name])} for p in parts],
            "of": side, "unit": length_unit, "models": rows, "signature": signature,
            "samples": samples, "seed": seed,
        },
        pictures={".png": pictures.differences(rows, parts, members, of, trained_up_to)},
    )  # fmt: skip


def statistics(hypotheses: Sequence[str], references: Sequence[str], language: str) -> np.ndarray:
    """Return what BLEU is computed from, ``(sentences, 10)``, to be added up for any corpus.

    Columns: matches and n-grams for n = 1 … 4, length of the hypothesis and of the reference.
    """
    # the setting keeps sacreBLEU from warning of scores of sentences, which are not used
    metric = BLEU(trg_lang=language, effective_order=True)
    scores = (metric.sentence_score(h, [r]) for h, r in zip(hypotheses, references))
    return np.array([[*s.counts, *s.totals, s.sys_len, s.ref_len] for s in scores])


def bleu(total: Sequence[int]) -> float:
    """Return corpus BLEU, with sacreBLEU's default smoothing, of a sum of statistics."""
    figures = [int(value) for value in total]
    score = BLEU.compute_bleu(
        correct=figures[:_ORDERS],
        total=figures[_ORDERS : 2 * _ORDERS],
        sys_len=figures[-2],
        ref_len=figures[-1],
        smooth_method="exp",
    )
    return score.score


def bootstrap(models: Sequence[np.ndarray], samples: int, seed: int) -> Iterator[List[float]]:
    """Yield the BLEU of all models on each resampled test set.

    Args:
        models: the statistics of each, ``(sentences, 10)``, of the same sentences.
        samples: how many test sets.
        seed: of NumPy's ``RandomState``; a test set is ``randint(sentences, size=sentences)``.
    """
    count, random = len(models[0]), np.random.RandomState(seed)
    for _ in range(samples):
        drawn = random.randint(count, size=count)
        yield [bleu(model[drawn].sum(axis=0)) for model in models]


def _figures(
    found: Mapping[str, texts.Texts],
    members: Mapping[str, List[int]],
    language: str,
    samples: int,
    seed: int,
) -> Tuple[Dict[str, Dict[str, Figures]], str]:
    """Return the figures of every model and bin, and sacreBLEU's signature."""
    metric = BLEU(trg_lang=language)
    summands = {n: statistics(t.hypothesis, t.reference, language) for n, t in found.items()}
    rows: Dict[str, Dict[str, Figures]] = {name: {} for name in found}
    for part, chosen in tqdm(members.items(), desc="bootstrap", unit=" bins", leave=False):
        scores: List[Optional[float]] = [None] * len(found)
        lows, highs = list(scores), list(scores)
        if chosen:
            lines = [[[side[i] for i in chosen] for side in (t.hypothesis, t.reference)]
                     for t in found.values()]  # fmt: skip
            scores = [metric.corpus_score(h, [r]).score for h, r in lines]
            stacks = [summands[name][chosen] for name in found]
            drawn = np.array(list(bootstrap(stacks, samples, seed)))
            lows, highs = np.percentile(drawn - drawn[:, :1], [2.5, 97.5], axis=0).tolist()
        for name, score, low, high in zip(found, scores, lows, highs):
            difference = None if score is None or scores[0] is None else score - scores[0]
            rows[name][part] = {
                "bleu": score, "difference": difference, "low": low, "high": high
            }  # fmt: skip
    return rows, str(metric.get_signature())


def _check_same(found: Mapping[str, texts.Texts]) -> None:
    first_name, first = next(iter(found.items()))
    for name, other in found.items():
        if (other.reference, other.source_tokens) != (first.reference, first.source_tokens):
            raise UsageError(
                f"{name} and {first_name} are outputs for different test sets: their "
                f"{'references' if other.reference != first.reference else 'sources'} differ"
            )


def _table(
    rows: Mapping[str, Mapping[str, Figures]], members: Mapping[str, List[int]]
) -> List[List[str]]:
    lines = [["", *(f"{name} (n = {len(chosen)})" for name, chosen in members.items())]]
    for number, (name, figures) in enumerate(rows.items()):
        cells = [_cell(part, absolute=number == 0) for part in figures.values()]
        lines.append([name, *cells])
    return lines


def _cell(part: Figures, absolute: bool) -> str:
    if part["bleu"] is None:
        return "-"
    if absolute:
        return f"{part['bleu']:.2f}"
    return f"{part['difference']:+.2f} [{part['low']:+.2f}, {part['high']:+.2f}]"

"""From files to every figure of a test set, as a whole and by length."""

import hashlib
import itertools
import os
import platform
from dataclasses import replace
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import fairseq
import numpy as np
import sacrebleu
import sacremoses
import torch

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores import lengths
from fairseq_posenc.tools.scores.inputs import read_texts
from fairseq_posenc.tools.scores.intervals import bootstrap, drawn_score, interval
from fairseq_posenc.tools.scores.metrics import (
    SACREBLEU_METRICS,
    digits_of,
    metric_of,
    why_undefined,
)
from fairseq_posenc.tools.scores.references import read_numbers
from fairseq_posenc.tools.scores.result import (
    ByLength,
    CorpusScore,
    Digests,
    LengthRange,
    Score,
    Sentences,
    Subset,
)
from fairseq_posenc.tools.scores.round_trip import ceiling_lines, round_trip_score
from fairseq_posenc.tools.scores.scorer import DEFAULT, Scorer, Statistics
from fairseq_posenc.tools.scores.segments import (
    BITS,
    BITS_SIGNATURE,
    SIGNATURE,
    read_reference_bits,
    read_segment_scores,
)
from fairseq_posenc.tools.scores.texts import TestSet
from fairseq_posenc.tools.text_tables import padded
from fairseq_posenc.tools.writing import replacing
from fairseq_posenc.version import __version__

# an edge of a range of lengths, or, behind all others, ``lengths.AUTO``
Edge = Union[int, str]


def evaluate(
    *,
    data: Optional[str] = None,
    bins: Optional[Sequence[Edge]] = None,
    percentiles: bool = False,
    length_of: Optional[str] = None,
    length_unit: Optional[str] = None,
    group_by: Optional[str] = None,
    without_token: Optional[str] = None,
    metrics: Sequence[str] = DEFAULT,
    segment_scores: Optional[Mapping[str, str]] = None,
    reference_scores: Optional[str] = None,
    write_hypotheses: Optional[str] = None,
    notes: Optional[Mapping[str, str]] = None,
    command: Sequence[str] = (),
    **files: Any,
) -> Score:
    """Return the figures of a test set; the arguments are the options of ``posenc score``.

    ``files`` are other arguments of :func:`read_texts`.
    """
    texts = read_texts(data=data, **files)
    scorer = Scorer(texts.languages.target or "", metrics)
    statistics, signatures = scorer.statistics(texts), scorer.signatures()
    without = scorer.without(texts, without_token)
    for name, path in (segment_scores or {}).items():
        statistics[name] = read_segment_scores(name, path, texts)
        signatures[name] = SIGNATURE
    if reference_scores:
        statistics[BITS] = read_reference_bits(reference_scores, texts, files.get("generated"))
        signatures[BITS] = BITS_SIGNATURE
    if write_hypotheses:
        with replacing(write_hypotheses) as stream:
            stream.writelines(f"{line}\n" for line in texts.hypothesis)
    texts.remarks += scorer.remarks
    round_trip = texts.round_trip and round_trip_score(texts.round_trip, scorer)
    by_chance = scorer.chance(texts, statistics, round_trip)
    figures = partial(_figures, scorer, statistics, texts.within)
    split = bins, percentiles, length_of, length_unit, group_by
    by_length, sentences = _by_length(texts, statistics, figures, *split)
    return Score(
        all=_corpus_score(texts, figures(range(len(texts))), *by_chance),
        by_length=by_length,
        sentences=sentences,
        ceiling=round_trip,
        longest_trained=texts.longest_trained,
        without_token=without,
        signatures=signatures,
        language=texts.languages.target,
        source_language=texts.languages.source,
        test_set=Digests(
            _digest([*texts.reference, *itertools.chain(*texts.more_references)]),
            None if texts.source_tokens is None else _digest(texts.source_tokens),
        ),
        precision=texts.precision,
        remarks=texts.remarks,
        versions=versions(),
        command=command,
        notes=notes or {},
    )


def _corpus_score(
    texts: TestSet, figures: Subset, by_chance: Optional[float], above_chance: Optional[bool]
) -> CorpusScore:
    return CorpusScore(
        **vars(figures),
        chance=by_chance,
        above_chance=above_chance,
        empty_hypotheses=_empty(texts, "hypotheses", texts.hypothesis),
        empty_references=_empty(texts, "references", texts.reference),
    )


def _empty(texts: TestSet, side: str, lines: Sequence[str]) -> List[int]:
    """Return the numbers, from 1, of empty lines of a side, and remark on them."""
    numbers = [number for number, line in enumerate(lines, 1) if not line.strip()]
    if numbers:
        shown = ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
        texts.remarks.append(f"{len(numbers)} empty {side}: line {shown}")
    return numbers


def versions() -> Dict[str, str]:
    """Return the versions of everything that a score may depend on."""
    libraries = {
        library.__name__: library.__version__ for library in (torch, fairseq, sacrebleu, sacremoses)
    }
    return {"fairseq_posenc": __version__, "python": platform.python_version(), **libraries}


def render(score: Score) -> str:
    """Return a score as a table to read, with details and signatures."""
    by_length, corpus, metrics = score.by_length, score.all, list(score.signatures)
    titles = ["", "sentences", "sacreBLEU [95 %]", *(metric_of(name).title for name in metrics[1:])]
    rows = [[*titles, "no penalty", "length ratio", "within trained length"]]
    parts = [("all", corpus), *((part.name, part) for part in score.bins)]
    digits = {
        name: digits_of(name, [part.metrics[name] for _, part in parts])
        for name in (*metrics, "bleu_without_penalty")
    }
    for label, part in parts:
        figures = [(part.metrics[name], digits[name]) for name in digits]
        cells = ["-" if value is None else f"{value:.{places}f}" for value, places in figures]
        interval, ratio = part.interval["sacrebleu"], part.metrics["length_ratio"]
        if interval:
            cells[0] += " [{:.2f}, {:.2f}]".format(*interval)
        cells.append("-" if ratio is None else f"{ratio:.3f}")
        within = lengths.share(part.within, part.sentences)
        rows.append([label, str(part.sentences), *cells, within])
    if score.ceiling:
        values = [score.ceiling.figures.get(name) for name in metrics]
        cells = ["-" if value is None else f"{value:.2f}" for value in values]
        rows.insert(2, ["ceiling", str(corpus.sentences), *cells, "-", "-", "-"])
    widths = [max(map(len, column)) for column in zip(*rows)]
    out = ["  ".join(padded(row, widths)).rstrip() for row in rows]
    if by_length:
        out.append(f"by {lengths.length_label(by_length.of, by_length.unit)}")
    out += dict.fromkeys(reason for _, part in parts for reason in part.undefined)
    out += ceiling_lines(score.ceiling)
    longest, without = score.longest_trained, score.without_token
    if longest:
        out.append(
            f"longest trained on: {longest.source} subwords of the source, {longest.reference} of "
            "the target"
        )
    if without:
        left = without.all.metrics
        titled = (
            f"{metric_of(name).title} {left[name]:.2f}"
            for name in metrics
            if left.get(name) is not None
        )
        out.append(f"without {without.token}: {', '.join(titled)}")
    out += [f"This model {r}; or are these not its references?" for r in score.nothing_learned()]
    return "\n".join([*out, "", *_details(score)])


def _details(score: Score) -> List[str]:
    """Return what tokenised BLEU is made of, the languages and the signatures."""
    metrics, lines = score.all.metrics, []
    detail = score.all.tokenised_detail
    if detail:
        precisions = "/".join(f"{precision:.1f}" for precision in detail.precisions)
        lines.append(
            f"tokenised, as multi-bleu.perl: BLEU = {metrics['tokenised_bleu'] or 0:.2f}, "
            f"{precisions} (BP={detail.brevity_penalty:.3f}, "
            f"ratio={metrics['length_ratio'] or 0:.3f}, hyp_len={detail.hypothesis_tokens}, "
            f"ref_len={detail.reference_tokens})"
        )
    lines.append(f"language: {score.language}, source: {score.source_language or 'unknown'}")
    signed = score.signatures.items()
    return [*lines, *(f"{metric_of(name).title}: {signature}" for name, signature in signed)]


def _figures(
    scorer: Scorer, statistics: Statistics, within: Optional[List[bool]], members: Sequence[int]
) -> Subset:
    """Return the scorer's figures with their intervals, and how many sentences are ``within``."""
    figures = scorer.score(statistics, members)
    chosen = slice(None) if len(members) == len(next(iter(statistics.values()))) else [*members]
    tables = [(name, rows[chosen]) for name, rows in statistics.items()]
    defined = [table for table in tables if figures.metrics[table[0]] is not None]
    samples = bootstrap([drawn_score(*table) for table in defined], len(members)) if defined else ()
    intervals = {name: interval(drawn) for (name, _), drawn in zip(defined, samples)}
    return replace(
        figures,
        interval={name: intervals.get(name) for name in statistics},
        undefined=[*filter(None, (why_undefined(*table) for table in tables))],
        within=None if within is None else sum(within[i] for i in members),
    )


def _by_length(
    texts: TestSet,
    statistics: Statistics,
    figures: Callable[[Sequence[int]], Subset],
    bins: Optional[Sequence[Edge]],
    percentiles: bool,
    side: Optional[str],
    unit: Optional[str],
    group_by: Optional[str],
) -> Tuple[Optional[ByLength], Optional[Sentences]]:
    """Return ``by_length`` and ``sentences`` of the result; ``figures`` are those of members."""
    if bins and percentiles:
        raise UsageError("--bins and --percentiles exclude each other")
    if not (bins or percentiles):
        if side or unit or group_by:
            raise UsageError(
                "--length-of, --length-unit and --group-by need --bins or --percentiles"
            )
        return None, None
    if group_by:
        if side or unit:
            raise UsageError("--group-by excludes --length-of and --length-unit")
        side, unit = lengths.SENTENCE, os.path.basename(group_by).split(".")[-1]
        counted = read_numbers(group_by, len(texts))
    else:
        side = side or ("source" if bins else "reference")
        unit = unit or texts.usual_unit(side)
        counted = texts.lengths(side, unit)
    edges = [edge for edge in bins or () if isinstance(edge, int)]
    if bins and lengths.AUTO in bins:
        edges = lengths.edges_of_data(edges, counted)
    smallest = min(1, *counted) if group_by else 1
    parts = lengths.by_edges(edges, smallest) if edges else lengths.by_percentiles(counted)
    scored = [LengthRange(**vars(part), **vars(figures(part.members(counted)))) for part in parts]
    sentences = Sentences(
        length=counted,
        statistics={name: _rows(name, rows) for name, rows in statistics.items()},
        source=texts.plain_sources(),
        reference=texts.reference,
        hypothesis=texts.hypothesis,
        more_references=texts.more_references,
    )
    return ByLength(side, unit, scored), sentences


def _rows(name: str, rows: np.ndarray) -> List[List[float]]:
    """Return statistics as lists; sacreBLEU's are whole numbers, but for averaged lengths."""
    is_whole = name in SACREBLEU_METRICS and bool((rows == np.floor(rows)).all())
    return rows.astype(int).tolist() if is_whole else rows.tolist()


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]

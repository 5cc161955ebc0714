"""From files to a dictionary of every figure of a test set, as a whole and by length.

What ``score.json`` holds:

- ``all``: what :meth:`Scorer.score` returns, and by metric the ``interval`` of 95 % of bootstrap
  samples of the sentences; ``within``, the number of sentences that are no longer, on both sides,
  than the longest trained on (None: not known); ``chance``, sacreBLEU with each reference given to
  another hypothesis, and ``above_chance`` (None: the test set cannot tell); ``undefined``, why
  metrics are not; ``empty_hypotheses`` and ``empty_references``, numbers of lines from 1.
- ``by_length``: in ``bins``, for each, ``name``, ``longer_than``, ``up_to`` and its figures, and
  ``of`` what they count the ``unit`` (of a file of numbers: ``sentence``, and the file's ending).
  None without bins, as ``sentences``: of every sentence the ``length`` (or number), the plain
  ``hypothesis``, ``reference`` (``more_references`` where there are several) and ``source`` (or
  None) and, by metric, the ``statistics``, from which tables draw their samples.
- ``ceiling``: what the references themselves get after the preparation of the training text and
  back, see :class:`Ceiling`; None where it is not known.
- ``longest_trained``: subwords of ``source`` and ``reference`` of the training set, or None.
- ``without_token``: the ``token`` and, without it in both texts, the figures of ``all``. Our
  reading of Kiyono et al. 2021, whose BLEU of ten sentences joined by ``<sep>`` is 8 points above
  that of the same sentences one by one: separators count in the figures of the whole.
- ``signatures`` of sacreBLEU, ``language``, ``source_language``, ``test_set`` (digests of
  ``source`` and ``reference``), ``precision`` (of ``generation``, and of ``training`` with its
  hardware; None: not known), ``remarks``, ``versions``, ``command`` and ``notes``.
"""

import hashlib
import itertools
import os
import platform
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import fairseq
import numpy as np
import sacrebleu
import sacremoses
import torch

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores import lengths, reference_bits
from fairseq_posenc.tools.scores.ceiling import Ceiling, ceiling, ceiling_lines
from fairseq_posenc.tools.scores.chance import chance
from fairseq_posenc.tools.scores.data_folder import languages_of_data, longest_trained
from fairseq_posenc.tools.scores.intervals import bootstrap, drawn_score, interval
from fairseq_posenc.tools.scores.metrics import SACREBLEU_METRICS, metric_of, why_undefined
from fairseq_posenc.tools.scores.reading import read_numbers, read_texts
from fairseq_posenc.tools.scores.reference_bits import BITS, read_reference_bits
from fairseq_posenc.tools.scores.result import nothing_learned
from fairseq_posenc.tools.scores.scorer import DEFAULT, Figures, Scorer, Statistics
from fairseq_posenc.tools.scores.segments import SIGNATURE, read_segment_scores
from fairseq_posenc.tools.scores.texts import TestSet
from fairseq_posenc.tools.scores.tokenizers import word_remarks
from fairseq_posenc.tools.text_tables import padded
from fairseq_posenc.tools.writing import replacing
from fairseq_posenc.version import __version__

# an edge of a range of lengths, or, behind all others, ``lengths.AUTO``
Edge = Union[int, str]


class LengthOptions(NamedTuple):
    """How a test set is split by length: the options of ``posenc score``."""

    bins: Optional[Sequence[Edge]]
    percentiles: bool
    length_of: Optional[str]
    length_unit: Optional[str]
    group_by: Optional[str]


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
) -> Dict[str, Any]:
    """Return what ``score.json`` holds; the arguments are the options of ``posenc score``.

    ``files`` are other arguments of :func:`read_texts`.

    Raises:
        UsageError: options that exclude each other, and whatever is wrong with the files.
    """
    texts = read_texts(data=data, **files)
    scorer = Scorer(texts.languages.target or "", metrics)
    statistics, signatures = scorer.statistics(texts), scorer.signatures()
    for name, path in (segment_scores or {}).items():
        statistics[name] = read_segment_scores(name, path, texts)
        signatures[name] = SIGNATURE
    if reference_scores:
        statistics[BITS] = read_reference_bits(reference_scores, texts)
        signatures[BITS] = reference_bits.SIGNATURE
    if write_hypotheses:
        with replacing(write_hypotheses) as stream:
            stream.writelines(f"{line}\n" for line in texts.hypothesis)
    longest, within = _trained_lengths(texts, data)
    figures = partial(_figures, scorer, statistics, within)
    lengths = LengthOptions(bins, percentiles, length_of, length_unit, group_by)
    by_length, sentences = _by_length(texts, lengths, statistics, figures)
    round_trip = _ceiling(texts, scorer, data)
    texts.remarks += word_remarks(texts.languages.target or "", metrics)
    learned = chance(texts, scorer, statistics, round_trip)
    return {
        "all": {**figures(range(len(texts))), **learned, **_empty(texts)},
        "by_length": by_length,
        "sentences": sentences,
        "ceiling": round_trip._asdict() if round_trip else None,
        "longest_trained": longest,
        "without_token": _without(texts, scorer, without_token),
        "signatures": signatures,
        "language": texts.languages.target,
        "source_language": texts.languages.source,
        "test_set": _digests(texts),
        "precision": dict(texts.precision),
        "remarks": texts.remarks,
        "versions": versions(),
        "command": list(command),
        "notes": dict(notes or {}),
    }


def _without(texts: TestSet, scorer: Scorer, token: Optional[str]) -> Optional[Figures]:
    """Return the figures of the whole test set without a token; None without one."""
    if not token:
        return None
    return {"token": token, "all": scorer.score(scorer.statistics(texts.without(token)))}


def _empty(texts: TestSet) -> Dict[str, List[int]]:
    """Return the numbers, from 1, of empty lines of both sides, and remark on them."""
    sides = {"empty_hypotheses": texts.hypothesis, "empty_references": texts.reference}
    empty = {}
    for name, lines in sides.items():
        numbers = empty[name] = [i for i, line in enumerate(lines, 1) if not line.strip()]
        if numbers:
            some = ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
            texts.remarks.append(f"{len(numbers)} {name.replace('_', ' ')}: line {some}")
    return empty


def versions() -> Dict[str, str]:
    """Return the versions of everything that a score may depend on."""
    libraries = {
        library.__name__: library.__version__ for library in (torch, fairseq, sacrebleu, sacremoses)
    }
    return {"fairseq_posenc": __version__, "python": platform.python_version(), **libraries}


def render(result: Mapping[str, Any]) -> str:
    """Return the result of :func:`evaluate` as a table to read, with details and signatures."""
    overall, by_length = result["all"], result["by_length"]
    metrics = list(result["signatures"])
    titles = ["", "sentences", "sacreBLEU [95 %]", *(metric_of(name).title for name in metrics[1:])]
    rows = [[*titles, "no penalty", "length ratio", "within trained length"]]
    for part in ({"name": "all", **overall}, *(by_length["bins"] if by_length else ())):
        names = [*metrics, "bleu_without_penalty"]
        cells = ["-" if part[name] is None else f"{part[name]:.2f}" for name in names]
        if part["interval"]["sacrebleu"]:
            cells[0] += " [{:.2f}, {:.2f}]".format(*part["interval"]["sacrebleu"])
        cells.append("-" if part["length_ratio"] is None else f"{part['length_ratio']:.3f}")
        within = lengths.share(part["within"], part["sentences"])
        rows.append([part["name"], str(part["sentences"]), *cells, within])
    if result["ceiling"]:
        figures = result["ceiling"]["figures"]
        values = [figures.get(name) for name in metrics]
        cells = ["-" if value is None else f"{value:.2f}" for value in values]
        rows.insert(2, ["ceiling", str(overall["sentences"]), *cells, "-", "-", "-"])
    widths = [max(map(len, column)) for column in zip(*rows)]
    out = ["  ".join(padded(row, widths)).rstrip() for row in rows]
    if by_length:
        out.append(f"by {lengths.length_label(by_length['of'], by_length['unit'])}")
    parts = [overall, *(by_length["bins"] if by_length else ())]
    out += dict.fromkeys(reason for part in parts for reason in part.get("undefined", ()))
    out += ceiling_lines(result["ceiling"])
    longest, without = result["longest_trained"], result["without_token"]
    if longest:
        out.append(
            f"longest trained on: {longest['source']} subwords of the source, "
            f"{longest['reference']} of the target"
        )
    if without:
        scores = {name: without["all"][name] for name in metrics if without["all"].get(name)}
        figures = ", ".join(
            f"{metric_of(name).title} {value:.2f}" for name, value in scores.items()
        )
        out.append(f"without {without['token']}: {figures}")
    if overall["above_chance"] is False:
        said = nothing_learned(overall["sacrebleu"], overall["chance"])
        out.append(f"This model {said}; or are these not its references?")
    detail = overall["tokenised_detail"]
    precisions = "/".join(f"{precision:.1f}" for precision in detail["precisions"])
    out += [
        "",
        f"tokenised, as multi-bleu.perl: BLEU = {overall['tokenised_bleu'] or 0:.2f}, {precisions} "
        f"(BP={detail['brevity_penalty']:.3f}, ratio={overall['length_ratio'] or 0:.3f}, "
        f"hyp_len={detail['hypothesis_tokens']}, ref_len={detail['reference_tokens']})",
        f"language: {result['language']}, source: {result['source_language'] or 'unknown'}",
    ]
    out += [f"{metric_of(name).title}: {text}" for name, text in result["signatures"].items()]
    return "\n".join(out)


def _figures(
    scorer: Scorer, statistics: Statistics, within: Optional[List[bool]], members: Sequence[int]
) -> Figures:
    """Return what the scorer does, ``interval`` by metric, and how many are ``within``."""
    figures = scorer.score(statistics, members)
    chosen = slice(None) if len(members) == len(next(iter(statistics.values()))) else [*members]
    tables = [(name, rows[chosen]) for name, rows in statistics.items()]
    defined = [table for table in tables if figures[table[0]] is not None]
    samples = bootstrap([drawn_score(*table) for table in defined], len(members)) if defined else ()
    intervals = {name: list(interval(drawn)) for (name, _), drawn in zip(defined, samples)}
    figures["interval"] = {name: intervals.get(name) for name in statistics}
    figures["undefined"] = [*filter(None, (why_undefined(*table) for table in tables))]
    figures["within"] = None if within is None else sum(within[i] for i in members)
    return figures


def _ceiling(texts: TestSet, scorer: Scorer, data: Optional[str]) -> Optional[Ceiling]:
    """Return the ceiling of what was trained on binarised data, and remark where it is not known.

    Tokenised BLEU has none: its references are tokens as the model's are.
    """
    if not data:
        return None
    target = texts.names.target or ""
    round_trip = ceiling(data, texts.reference, target, scorer, texts.tokens_back)
    if round_trip is None:
        texts.remarks.append(
            f"{data} does not say how its text was prepared: the ceiling of scores is not known"
        )
    return round_trip


def _trained_lengths(
    texts: TestSet, data: Optional[str]
) -> Tuple[Optional[Dict[str, int]], Optional[List[bool]]]:
    """Return the longest sentences trained on, and whether each sentence is within, if known."""
    if not data:
        return None, None
    languages = languages_of_data(data, texts.subwords, texts.names.target)
    longest = longest_trained(data, languages)
    if longest is None:
        texts.remarks.append(f"{data} has no training set: how long its sentences are is not known")
        return None, None
    if len(texts.subwords) < 2:
        texts.remarks.append(
            "how many sentences are within the trained length is not known: it is counted in "
            "subwords, in the output of fairseq-generate made without --remove-bpe and --bpe"
        )
        return longest, None
    pairs = zip(texts.subwords["source"], texts.subwords["reference"])
    return longest, [s <= longest["source"] and r <= longest["reference"] for s, r in pairs]


def _by_length(
    texts: TestSet,
    split: LengthOptions,
    statistics: Statistics,
    figures: Callable[[Sequence[int]], Figures],
) -> Tuple[Optional[Dict[str, Any]], Optional[Dict[str, Any]]]:
    """Return ``by_length`` and ``sentences`` of the result; ``figures`` are those of members."""
    bins, percentiles, side, unit, group_by = split
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
    parts = lengths.by_edges(edges) if edges else lengths.by_percentiles(counted)
    scored = [{**vars(part), **figures(part.members(counted))} for part in parts]
    sentences = {
        "length": counted,
        "statistics": {name: _rows(name, rows) for name, rows in statistics.items()},
        "source": texts.plain_sources(),
        "reference": texts.reference,
        "hypothesis": texts.hypothesis,
        **({"more_references": texts.more_references} if texts.more_references else {}),
    }
    return {"of": side, "unit": unit, "bins": scored}, sentences


def _rows(name: str, rows: np.ndarray) -> List[List[float]]:
    """Return statistics as lists; sacreBLEU's are whole numbers, but for averaged lengths."""
    is_whole = name in SACREBLEU_METRICS and bool((rows == np.floor(rows)).all())
    return rows.astype(int).tolist() if is_whole else rows.tolist()


def _digests(texts: TestSet) -> Dict[str, Optional[str]]:
    references = [*texts.reference, *itertools.chain(*texts.more_references)]
    return {"source": _digest(texts.source_tokens), "reference": _digest(references)}


def _digest(lines: Optional[List[str]]) -> Optional[str]:
    return None if lines is None else hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]

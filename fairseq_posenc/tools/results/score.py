"""From files to a dictionary of every figure of a test set, as a whole and by length."""

import hashlib
import json
import platform
import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import fairseq
import numpy as np
import sacrebleu
import sacremoses
import torch

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.results import lengths, texts
from fairseq_posenc.tools.results.bleu import METRICS, Figures, Scorer, Statistics, corpus_score
from fairseq_posenc.tools.results.intervals import bootstrap, interval
from fairseq_posenc.tools.results.languages import languages_of_data, longest_trained
from fairseq_posenc.tools.results.tables import nothing_learned, padded
from fairseq_posenc.version import __version__

# in BLEU: a model that is less above chance has learned nothing
_LEAST = 1.0


def evaluate(
    *,
    generated: Optional[str] = None,
    hypothesis: Optional[str] = None,
    reference: Optional[str] = None,
    source: Optional[str] = None,
    remove_bpe: str = "@@ ",
    language: Optional[str] = None,
    source_language: Optional[str] = None,
    data: Optional[str] = None,
    bins: Optional[Sequence[int]] = None,
    percentiles: bool = False,
    length_of: Optional[str] = None,
    length_unit: str = "words",
    without_token: Optional[str] = None,
    notes: Optional[Mapping[str, str]] = None,
    command: Sequence[str] = (),
) -> Dict[str, Any]:
    """Score a test set; the arguments are the options of ``posenc score``.

    Returns:
        What ``score.json`` holds, and nothing that JSON cannot hold: ``all`` (see :func:`_figures`
        and :func:`_chance`; also ``empty_hypotheses`` and ``empty_references``, line numbers from
        1), ``by_length`` and ``sentences`` (see :func:`_by_length`), ``longest_trained`` (subwords
        of ``source`` and ``reference``, or None), ``without_token`` (see :func:`_without`),
        ``signatures``, ``language``, ``source_language``, ``test_set`` (digests of
        ``source`` and ``reference``), ``remarks``, ``versions``, ``command``, ``notes``.

    Raises:
        UsageError: options that exclude each other, and whatever is wrong with the files.
    """
    tongues = {"language": language, "source_language": source_language, "data": data}
    if generated and not hypothesis:
        found = texts.from_generated(generated, reference, source, remove_bpe, **tongues)
    elif hypothesis and reference and not generated:
        found = texts.from_files(hypothesis, reference, source, **tongues)
    else:
        raise UsageError("give either --generated, or --hypothesis and --reference")
    scorer = Scorer(found.languages.target or "")
    statistics = scorer.statistics(found)
    longest, within = _within(found, data)
    split = (bins, percentiles, length_of, length_unit)
    by_length, sentences = _by_length(found, scorer, statistics, within, *split)
    whole = _figures(scorer, statistics, within, range(len(found)))
    whole.update(_chance(found, scorer, statistics), **_empty(found))
    return {
        "all": whole,
        "by_length": by_length,
        "sentences": sentences,
        "longest_trained": longest,
        "without_token": _without(without_token, found, scorer),
        "signatures": scorer.signatures(),
        "language": found.languages.target,
        "source_language": found.languages.source,
        "test_set": {"source": _digest(found.source_tokens), "reference": _digest(found.reference)},
        "remarks": found.remarks + _remarks(found),
        "versions": versions(),
        "command": list(command),
        "notes": dict(notes or {}),
    }


def versions() -> Dict[str, str]:
    """Return the versions of everything that a score may depend on."""
    return {
        "fairseq_posenc": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "fairseq": fairseq.__version__,
        "sacrebleu": sacrebleu.__version__,
        "sacremoses": sacremoses.__version__,
    }


def to_json(result: Mapping[str, Any]) -> str:
    """Return what :func:`evaluate` gives as JSON to read: lists of numbers take a line each."""
    text = json.dumps(result, indent=2, ensure_ascii=False)
    return re.sub(r"\[\n[\d\s,]+\]", lambda found: "".join(found[0].split()), text) + "\n"


def render(result: Mapping[str, Any]) -> str:
    """Return the result of :func:`evaluate` as a table to read, with details and signatures."""
    longest = result["longest_trained"]
    titles = [
        "",
        "sentences",
        "sacreBLEU [95 %]",
        *list(METRICS.values())[1:],
        "length ratio",
        "within trained length",
    ]
    rows = [titles, ["all", *_cells(result["all"])]]
    by_length = result["by_length"]
    if by_length:
        rows += [[part["name"], *_cells(part)] for part in by_length["bins"]]
    widths = [max(map(len, column)) for column in zip(*rows)]
    out = ["  ".join(padded(row, widths)).rstrip() for row in rows]
    if by_length:
        out.append(f"by length of the {by_length['of']} in {by_length['unit']}")
    if longest:
        out.append(
            f"longest trained on: {longest['source']} subwords of the source, "
            f"{longest['reference']} of the target"
        )
    without = result["without_token"]
    if without:
        figures = ", ".join(f"{METRICS[name]} {without['all'][name]:.2f}" for name in METRICS)
        out.append(f"without {without['token']}: {figures}")
    if result["all"]["above_chance"] is False:
        out.append(f"This model {nothing_learned(result['all'])}.")
    out += ["", f"tokenised, as multi-bleu.perl: {_multi_bleu(result['all'])}"]
    out.append(f"language: {result['language']}, source: {result['source_language'] or 'unknown'}")
    out += [f"{METRICS[name]}: {text}" for name, text in result["signatures"].items()]
    return "\n".join(out)


def _cells(figures: Figures) -> List[str]:
    ratio, low_high = figures["length_ratio"], figures["interval"]["sacrebleu"]
    metrics = ["-" if figures[name] is None else f"{figures[name]:.2f}" for name in METRICS]
    if low_high:
        metrics[0] += f" [{low_high[0]:.2f}, {low_high[1]:.2f}]"
    cells = [str(figures["sentences"]), *metrics, "-" if ratio is None else f"{ratio:.3f}"]
    return cells + [lengths.share(figures["within"], figures["sentences"])]


def _multi_bleu(figures: Figures) -> str:
    detail = figures["tokenised_detail"]
    return (
        f"BLEU = {figures['tokenised_bleu']:.2f}, "
        + "/".join(f"{precision:.1f}" for precision in detail["precisions"])
        + f" (BP={detail['brevity_penalty']:.3f}, ratio={figures['length_ratio'] or 0:.3f}, "
        f"hyp_len={detail['hypothesis_tokens']}, ref_len={detail['reference_tokens']})"
    )


def _figures(
    scorer: Scorer, statistics: Statistics, within: Optional[List[bool]], members: Sequence[int]
) -> Figures:
    """Return what the scorer does, and two more.

    ``interval``, by metric: 95 % of bootstrap samples of the sentences, or None. ``within``: how
    many sentences are no longer, on both sides, than the longest trained on; None: not known.
    """
    figures = scorer.score(statistics, members)
    figures["interval"] = {
        name: list(interval(bootstrap(name, [[statistics[name][list(members)]]])[0]))
        if members
        else None
        for name in METRICS
    }
    figures["within"] = None if within is None else sum(within[i] for i in members)
    return figures


def _chance(found: texts.Texts, scorer: Scorer, statistics: Statistics) -> Figures:
    """Return sacreBLEU by chance, and whether the hypotheses are above it.

    ``chance``: with each reference given to another hypothesis, in a fixed order. ``above_chance``:
    the difference is 1 or more, and the interval of its paired bootstrap leaves out 0; None for a
    single sentence.
    """
    count = len(found)
    if count < 2:
        return {"chance": None, "above_chance": None}
    order = np.random.RandomState(1).permutation(count)
    other = dict(zip(order.tolist(), np.roll(order, 1).tolist()))
    name = "sacrebleu"
    references = [found.reference[other[i]] for i in range(count)]
    by_chance = scorer.statistics(texts.Texts(found.hypothesis, references, [], []), [name])[name]
    own, chance = bootstrap(name, [[statistics[name]], [by_chance]])
    scores = [corpus_score(name, one.sum(axis=0)) for one in (statistics[name], by_chance)]
    above = scores[0] - scores[1] >= _LEAST and interval(own - chance)[0] > 0
    return {"chance": scores[1], "above_chance": above}


def _without(token: Optional[str], found: texts.Texts, scorer: Scorer) -> Optional[Dict[str, Any]]:
    """Return the ``token`` and, without it in both texts, the figures of ``all``.

    Our reading of Kiyono et al. 2021, whose BLEU of ten sentences joined by ``<sep>`` is 8 points
    above that of the same sentences one by one: separators count as tokens, so that they stay in
    the figures of the whole.
    """
    if not token:
        return None
    return {"token": token, "all": scorer.score(scorer.statistics(found.without(token)))}


def _within(found: texts.Texts, data: Optional[str]) -> Tuple[Optional[Dict[str, int]], Any]:
    """Return the longest sentences trained on, and whether each sentence is within, if known."""
    if not data:
        return None, None
    languages = languages_of_data(data, found.subwords, found.languages.target)
    longest = longest_trained(data, languages)
    if longest is None:
        found.remarks.append(f"{data} has no training set: how long its sentences are is not known")
        return None, None
    if len(found.subwords) < 2:
        found.remarks.append(
            "how many sentences are within the trained length is not known: it is counted in "
            "subwords, in the output of fairseq-generate made without --remove-bpe and --bpe"
        )
        return longest, None
    pairs = zip(found.subwords["source"], found.subwords["reference"])
    return longest, [s <= longest["source"] and r <= longest["reference"] for s, r in pairs]


def _by_length(
    found: texts.Texts,
    scorer: Scorer,
    statistics: Statistics,
    within: Optional[List[bool]],
    bins: Optional[Sequence[int]],
    percentiles: bool,
    side: Optional[str],
    unit: str,
) -> Tuple[Optional[Dict[str, Any]], Optional[Dict[str, Any]]]:
    """Return the bins: ``of`` what they count the ``unit``, and in ``bins``, for each, ``name``,
    ``longer_than``, ``up_to`` and its figures. And of every sentence the ``length`` and, by metric,
    the ``statistics``, from which tables draw their samples. None and None without bins.
    """
    if bins and percentiles:
        raise UsageError("--bins and --percentiles exclude each other")
    if not (bins or percentiles):
        if side or unit != "words":
            raise UsageError("--length-of and --length-unit need --bins or --percentiles")
        return None, None
    side = side or ("source" if bins else "reference")
    counted = lengths.lengths_of(found, side, unit)
    parts = lengths.by_edges(bins) if bins else lengths.by_percentiles(counted)
    scored = [
        {**vars(part), **_figures(scorer, statistics, within, part.members(counted))}
        for part in parts
    ]
    sentences = {"length": counted, "statistics": {n: s.tolist() for n, s in statistics.items()}}
    return {"of": side, "unit": unit, "bins": scored}, sentences


def _digest(lines: Optional[List[str]]) -> Optional[str]:
    return None if lines is None else hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _empty(found: texts.Texts) -> Dict[str, List[int]]:
    return {
        "empty_hypotheses": [i for i, line in enumerate(found.hypothesis, 1) if not line.strip()],
        "empty_references": [i for i, line in enumerate(found.reference, 1) if not line.strip()],
    }


def _remarks(found: texts.Texts) -> List[str]:
    return [
        f"{len(numbers)} {what.replace('_', ' ')}: line {', '.join(map(str, numbers[:5]))}"
        + (", ..." if len(numbers) > 5 else "")
        for what, numbers in _empty(found).items()
        if numbers
    ]

"""From files to a dictionary of every figure of a test set, as a whole and by length."""

import platform
from typing import Any, Dict, List, Mapping, Optional, Sequence

import fairseq
import sacrebleu
import sacremoses
import torch

from fairseq_posenc.errors import UsageError
from fairseq_posenc.evaluation import lengths, texts
from fairseq_posenc.evaluation.bleu import METRICS, Figures, Scorer
from fairseq_posenc.evaluation.tables import padded
from fairseq_posenc.version import __version__


def evaluate(
    *,
    generated: Optional[str] = None,
    hypothesis: Optional[str] = None,
    reference: Optional[str] = None,
    source: Optional[str] = None,
    remove_bpe: str = "@@ ",
    language: str = "de",
    source_language: str = "en",
    bins: Optional[Sequence[int]] = None,
    percentiles: bool = False,
    length_of: Optional[str] = None,
    length_unit: str = "words",
    without_token: Optional[str] = None,
    notes: Optional[Mapping[str, str]] = None,
    command: Sequence[str] = (),
) -> Dict[str, Any]:
    """Score a test set; the arguments are the options of ``scripts/score.py``.

    ``without_token`` is left out of both texts, and the whole set is scored once more. Our reading
    of Kiyono et al. 2021, whose BLEU of ten sentences joined by ``<sep>`` is 8 points above that of
    the same sentences one by one: separators count as tokens, so that they stay in ``all``.

    Returns:
        What ``score.json`` holds, and nothing that JSON cannot hold:
        ``all`` (see :meth:`Scorer.score`, also ``empty_hypotheses`` and ``empty_references``, line
        numbers from 1), ``by_length`` (None, or ``of``, ``unit`` and ``bins``: each with ``name``,
        ``longer_than``, ``up_to`` and its figures), ``without_token`` (None, or ``token`` and
        ``all``), ``signatures``, ``language``, ``remarks``, ``versions``, ``command``, ``notes``.

    Raises:
        UsageError: options that exclude each other, and whatever is wrong with the files.
    """
    if generated and not hypothesis:
        found = texts.from_generated(
            generated, reference, source, remove_bpe, language, source_language
        )
    elif hypothesis and reference and not generated:
        found = texts.from_files(hypothesis, reference, source, language, source_language)
    else:
        raise UsageError("give either --generated, or --hypothesis and --reference")
    scorer = Scorer(language)
    return {
        "all": {**scorer.score(found), **_empty(found)},
        "by_length": _by_length(found, scorer, bins, percentiles, length_of, length_unit),
        "without_token": without_token
        and {"token": without_token, "all": scorer.score(found.without(without_token))},
        "signatures": scorer.signatures(),
        "language": language,
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


def render(result: Mapping[str, Any]) -> str:
    """Return the result of :func:`evaluate` as a table to read, with details and signatures."""
    titles = ["", "sentences", *METRICS.values(), "length ratio"]
    rows = [titles, ["all", *_cells(result["all"])]]
    by_length = result["by_length"]
    if by_length:
        rows += [[part["name"], *_cells(part)] for part in by_length["bins"]]
    widths = [max(map(len, column)) for column in zip(*rows)]
    out = ["  ".join(padded(row, widths)).rstrip() for row in rows]
    if by_length:
        out.append(f"by length of the {by_length['of']} in {by_length['unit']}")
    without = result["without_token"]
    if without:
        figures = ", ".join(f"{METRICS[name]} {without['all'][name]:.2f}" for name in METRICS)
        out.append(f"without {without['token']}: {figures}")
    out += ["", f"tokenised, as multi-bleu.perl: {_multi_bleu(result['all'])}"]
    out += [f"{METRICS[name]}: {text}" for name, text in result["signatures"].items()]
    return "\n".join(out)


def _cells(figures: Figures) -> List[str]:
    ratio = figures["length_ratio"]
    metrics = ["-" if figures[name] is None else f"{figures[name]:.2f}" for name in METRICS]
    return [str(figures["sentences"]), *metrics, "-" if ratio is None else f"{ratio:.3f}"]


def _multi_bleu(figures: Figures) -> str:
    detail = figures["tokenised_detail"]
    return (
        f"BLEU = {figures['tokenised_bleu']:.2f}, "
        + "/".join(f"{precision:.1f}" for precision in detail["precisions"])
        + f" (BP={detail['brevity_penalty']:.3f}, ratio={figures['length_ratio'] or 0:.3f}, "
        f"hyp_len={detail['hypothesis_tokens']}, ref_len={detail['reference_tokens']})"
    )


def _by_length(
    found: texts.Texts,
    scorer: Scorer,
    bins: Optional[Sequence[int]],
    percentiles: bool,
    side: Optional[str],
    unit: str,
) -> Optional[Dict[str, Any]]:
    if bins and percentiles:
        raise UsageError("--bins and --percentiles exclude each other")
    if not (bins or percentiles):
        if side or unit != "words":
            raise UsageError("--length-of and --length-unit need --bins or --percentiles")
        return None
    side = side or ("source" if bins else "reference")
    counted = lengths.lengths_of(found, side, unit)
    parts = lengths.by_edges(bins) if bins else lengths.by_percentiles(counted)
    scored = [{**vars(part), **scorer.score(found, part.members(counted))} for part in parts]
    return {"of": side, "unit": unit, "bins": scored}


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

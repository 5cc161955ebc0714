"""Results of ``posenc score``, read by name and seed, and whether they can be compared."""

from dataclasses import replace
from typing import Any, Dict, List, Optional, Sequence, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.lengths import length_label
from fairseq_posenc.tools.scores.metrics import SACREBLEU_METRICS, base_metric, metric_of
from fairseq_posenc.tools.scores.result import Score, named_path, read_score
from fairseq_posenc.tools.scores.training_options import options_beside
from fairseq_posenc.tools.tables.cells import PLAIN_TEXT, Condition, without_version

_ALL_RIGHT = 99.99  # sacreBLEU
Runs = Dict[str, List[Score]]


def read_runs(arguments: Sequence[str], test: Optional[str] = None) -> Runs:
    """Read results by name, of ``score_cell`` those of a test set; several of a name are seeds."""
    runs: Runs = {}
    encodings: Dict[str, Tuple[str, str]] = {}
    places: Dict[Any, Tuple[str, str]] = {}
    for name, path in map(named_path, arguments):
        score = replace(read_score(path, test), training_options=options_beside(path))
        _check_new(places, name, path, score)
        check_encoding(encodings, name, path, score.notes.get("signature", ""))
        runs.setdefault(name, []).append(score)
    return runs


def check_encoding(
    encodings: Dict[str, Tuple[str, str]], name: str, path: str, signature: str
) -> None:
    """Raise :class:`UsageError` if seeds of a name note other positions.

    Args:
        encodings: signature of positions and path of the first seed by name, to be completed.
        name, path, signature: of a seed; a result may note no signature.
    """
    if signature:
        first, first_path = encodings.setdefault(name, (signature, path))
        if first == signature:
            return
        # only here, as it imports torch
        from fairseq_posenc.guards.signatures import same

        if not same(first, signature):
            raise UsageError(
                f"{path} is a seed of {name}, as {first_path}, and has other positions "
                f"({signature} and {first}): name them apart, with NAME=score.json"
            )


def _check_new(places: Dict[Any, Tuple[str, str]], name: str, path: str, score: Score) -> None:
    """Raise :class:`UsageError` if a training is counted twice.

    It is if a name has a seed twice, or two results have the same outputs. Two models may well
    agree where all is right, or where they have learned nothing: all outputs are alike, or get
    no more than by chance. Seeds of a name that are noted to be one model agree, too.

    Args:
        places: where seeds and outputs were found, and the name of those that are one model, to
            be completed.
    """
    outputs: Sequence[Any] = score.texts.hypothesis or next(
        iter(score.texts.statistics.values()), []
    )
    facts: Dict[Any, str] = {}
    is_right = (score.all.metrics.get("sacrebleu") or 0) > _ALL_RIGHT
    if score.seed:
        facts["seed", name, score.seed] = f"seed {score.seed} of {name}"
    learned = score.all.above_chance is not False
    if len({*map(str, outputs)}) > 1 and learned and not is_right:
        facts["outputs", str(outputs)] = "the same outputs"
    one_model = name if score.is_one_model else ""
    for key, fact in facts.items():
        earlier, model = places.setdefault(key, ("", one_model))
        is_declared = key[0] == "outputs" and one_model and model == one_model
        if earlier and not is_declared:
            raise UsageError(f"{path} has {fact}, as {earlier}: give each training once")
        places[key] = (path, one_model)


def conditions(name: str, score: Score, metric: str) -> List[Condition]:
    """Return what must be alike in results that are compared."""
    if not (score.by_length and score.bins):
        raise UsageError(f"{name} has no bins: score it with --bins or --percentiles")
    stored = base_metric(metric)
    if stored not in score.signatures:
        available = ", ".join(score.signatures)
        listed = [key for key in (*score.signatures, stored) if key in SACREBLEU_METRICS]
        option = f" with --metrics {','.join(listed)}" if stored in listed else ""
        raise UsageError(
            f"{name} has no {metric_of(stored).title}, only {available}; score it again{option}"
        )
    # rows that declare other training text may differ in its lengths
    trained = "".join(f" ({value})" for key, value in score.notes.items() if key == "longest")
    by_length, test_set, longest = score.by_length, score.test_set, score.longest_trained
    within = f"sentences within the trained length{trained}"
    return [
        Condition("lengths", length_label(by_length.of, by_length.unit)),
        Condition("bins", ", ".join(f"{part.name} up to {part.up_to}" for part in score.bins)),
        Condition("sentences per bin", [part.sentences for part in score.bins], PLAIN_TEXT),
        Condition("signatures", without_version(score.signatures[stored])),
        Condition("target languages", score.language or ""),
        Condition("references", test_set and test_set.reference),
        Condition("sources", test_set and test_set.source),
        Condition(f"longest sentences trained on{trained}", longest and vars(longest), PLAIN_TEXT),
        Condition(within, [part.within for part in score.bins], PLAIN_TEXT),
    ]

"""The options of a training on which its model depends, as its log has them."""

import ast
import os
import re
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.tools.scores.result import Score
from fairseq_posenc.tools.scores.task_score import TaskScore

# results by row
Scores = Mapping[str, Sequence[Union[Score, TaskScore]]]
LOG = "train.log"
_POSITION = re.compile(r"\| position:(\w{1,40})")
_CONFIG = re.compile(r"\| fairseq_cli\.train \| (\{'_name': .{1,100000}\})$")
_GROUPS = "optimization", "task", "criterion", "optimizer", "lr_scheduler", "model"
_NAMED = "task", "criterion", "optimizer", "lr_scheduler"  # of a model that is its architecture
_OF_BATCHES = "max_tokens", "batch_size", "train_subset"  # of ``dataset``
# what rows differ in by design, names of folders, what is found in the data, and validation
_NOT_COMPARED = re.compile(
    r"position_.*|max_(source|target)_positions|no_token_positional_embeddings|.*_learned_pos"
    r"|data|.*_lang|dictionary_hash|admin_profile|num_batch_buckets|min_params_to_wrap|eval_.*"
    r"|stop_time_hours|skip_invalid_.*|required_.*|dataset_impl|seed|tpu|debug_.*|fp16_.*"
    r"|(checkpoint|offload)_activations|bpe|tokenizer|scoring|_name"
)
_IDENTITY = "seed", "position"  # which training it is
_SHOWN = 5


def options_beside(path: str) -> Dict[str, str]:
    """Return the options of the log beside a result, by name; none where no log tells them.

    Among them are its ``seed``, and the encoding as ``position``.
    """
    log = os.path.join(os.path.dirname(path), LOG)
    if not os.path.isfile(log):
        return {}
    try:
        lines = read_lines(log)
        configs = [match[1] for match in map(_CONFIG.search, lines) if match]
        tree = ast.parse(configs[-1] if configs else "{}", mode="eval").body
    except (UsageError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}  # a log that cannot be read, or of another version of fairseq
    groups = {name: _members(group) for name, group in _members(tree).items()}
    batches = {name: groups.get("dataset", {}).get(name) for name in _OF_BATCHES}
    options = {name: node for name, node in batches.items() if node}
    # models that are made of a command line have all of its options
    elsewhere = {name for group in groups if group != "model" for name in groups[group]}
    for group in _GROUPS:
        members = groups.get(group, {})
        options.update({n: m for n, m in members.items() if group != "model" or n not in elsewhere})
        if group in _NAMED and "_name" in members:
            options[group] = members["_name"]
    texts = {n: _text(node) for n, node in options.items() if not _NOT_COMPARED.fullmatch(n)}
    if "seed" in groups.get("common", {}):
        texts["seed"] = _text(groups["common"]["seed"])
    encodings = [match[1] for match in map(_POSITION.search, lines) if match]
    return {**texts, "position": encodings[-1]} if encodings else texts


def _compared_options(score: Union[Score, TaskScore]) -> Dict[str, str]:
    """Return the options of a result's training, without a rate by which tables choose."""
    dropped = {*_IDENTITY, *(["lr"] if "lr" in score.notes else [])}
    options = {name: text for name, text in score.training_options.items() if name not in dropped}
    epochs = score.notes.get("epochs")
    return {**options, "max_epoch": epochs} if epochs else options


def _log_of_another(name: str, score: Union[Score, TaskScore]) -> List[str]:
    """Return a sentence if the log beside a result is of another seed or encoding than noted."""
    position = score.notes.get("signature", "").partition(":")[2].partition("|")[0]
    noted = {"seed": score.seed, "position": position}
    log = score.training_options
    differing = [n for n in _IDENTITY if noted[n] and log.get(n, noted[n]) != noted[n]]
    if not differing:
        return []
    differences = " and ".join(f"{n} {log[n]}, not {noted[n]}" for n in differing)
    seed = f", seed {score.seed}," if score.seed else ""
    return [f"The {LOG} beside the result of {name}{seed} is of {differences}: is it its own?"]


def _unlike(facts: Iterable[Tuple[str, str, str]]) -> Dict[str, str]:
    """Return the facts, each with its value and row, that have several values, in words."""
    rows: Dict[str, Dict[str, List[str]]] = {}  # by fact and value
    for fact, value, row in facts:
        rows.setdefault(fact, {}).setdefault(value, []).append(row)
    return {
        fact: ", ".join(f"{value} ({', '.join(dict.fromkeys(by[value]))})" for value in by)
        for fact, by in rows.items()
        if len(by) > 1
    }


def precision_words(rows: Mapping[str, Sequence[Mapping[str, Optional[str]]]]) -> List[str]:
    """Return a sentence for each step in whose precision rows or seeds differ.

    Of each row's seeds, ``rows`` has the precision of each step, as in score.json. Hardware is left
    out, and so are results that do not tell their precision.
    """
    facts = [
        (step, text.partition(" on ")[0], name)
        for name, seeds in rows.items()
        for seed in seeds
        for step, text in seed.items()
        if text
    ]
    words = _unlike(facts)
    return [f"Precision of {step} differs: {words[step]}. So may figures." for step in words]


def unlike_options(rows: Scores, of_task: str = "") -> List[str]:
    """Return sentences on logs of other trainings, and on options in which trainings differ.

    An option that a training does not tell is left out.
    """
    scores = [(name, score) for name, of_row in rows.items() for score in of_row]
    logs = [sentence for pair in scores for sentence in _log_of_another(*pair)]
    words = _unlike(
        (option, value, name)
        for name, score in scores
        for option, value in _compared_options(score).items()
    )
    if not words:
        return logs
    different = [f"--{option.replace('_', '-')} {text}" for option, text in words.items()]
    hidden = len(different) - _SHOWN
    shown = "; ".join(different[:_SHOWN]) + (f"; and {hidden} others" if hidden > 0 else "")
    return [*logs, f"Options of training{of_task} differ: {shown}. So may figures."]


def _members(node: Any) -> Dict[str, Any]:
    """Return what a ``{'name': value}`` or a ``Namespace(name=value)`` has, by name."""
    if isinstance(node, ast.Call):
        return {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    if isinstance(node, ast.Dict):
        return {
            str(key.value): value
            for key, value in zip(node.keys, node.values)
            if isinstance(key, ast.Constant)
        }
    return {}


def _text(node: Any) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)

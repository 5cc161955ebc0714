"""From a fine-tuned checkpoint and a prepared folder to predictions and scores.

Works for every task with these members: ``predict(model, sample)``, which returns pairs of an
example's number and anything; ``score(split, pairs)``, the metrics; ``write(split, pairs,
stream)``; ``per_example(split, pairs)``, what the metrics are computed from, see
:mod:`fairseq_posenc.tools.scores.task_score`; ``gold(split)``, what is right, as JSON;
``predictions_suffix``, ``benchmark`` and ``main_metrics``. With ``chance(split, pairs)``, or bits,
it is known what a model has that has learned nothing.
"""

import hashlib
import json
import os
import time
from importlib.metadata import version
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import torch
from fairseq import checkpoint_utils, utils
from fairseq.tasks.translation_multi_simple_epoch import TranslationMultiSimpleEpochTask
from tqdm import tqdm

from fairseq_posenc import register_all
from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards.precision import FLOAT32, recorded_in_words
from fairseq_posenc.hardware import hardware
from fairseq_posenc.json_files import write_json
from fairseq_posenc.tasks.multilingual import PosencMultilingualTask
from fairseq_posenc.tools.arguments import check_signature
from fairseq_posenc.tools.scores.data_folder import first_folder, pairs_of_data, several
from fairseq_posenc.tools.scores.score import versions
from fairseq_posenc.tools.scores.task_score import BITS, TaskScore, frequency_bits
from fairseq_posenc.tools.scores.texts import UNKNOWN, Languages
from fairseq_posenc.tools.writing import replacing


def predict(
    *,
    path: str,
    data: str,
    subsets: Sequence[str],
    output: str,
    max_tokens: int = 8192,
    cpu: bool = False,
    notes: Mapping[str, str],
    command: Sequence[str] = (),
) -> TaskScore:
    """Predict, score and write; the arguments are the options of ``posenc predict``.

    Writes ``predictions.<subset>.<suffix>`` and, last, ``score.json``.
    """
    begin = time.perf_counter()
    model, task = load(path, data)
    check_signature(notes, path, [getattr(model, "signature", "")])
    for subset in subsets:  # one that is not there is told before any is predicted
        task.load_dataset(subset)
    device = torch.device("cuda" if torch.cuda.is_available() and not cpu else "cpu")
    model.to(device).eval()
    scores, examples, per_example, gold, chance = {}, {}, {}, {}, {}
    for subset in subsets:
        pairs = predictions(model, task, subset, max_tokens)
        scores[subset], examples[subset] = task.score(subset, pairs), len(task.dataset(subset))
        if scores[subset]:
            right = task.gold(subset)
            per_example[subset] = task.per_example(subset, pairs)
            gold[subset] = hashlib.sha256(json.dumps(right).encode()).hexdigest()[:16]
            if BITS in scores[subset]:
                tokens = [token for block in right for token in block]
                chance[subset] = frequency_bits(tokens, len(task.dictionary))
            elif hasattr(task, "chance"):
                chance[subset] = task.chance(subset, pairs)
        file = os.path.join(output, f"predictions.{subset}.{task.predictions_suffix}")
        with replacing(file) as stream:
            task.write(subset, pairs, stream)
    result = TaskScore(
        scores=scores,
        examples=examples,
        task=task.benchmark,
        main_metrics=list(task.main_metrics),
        labels=list(task.labels),
        per_example=per_example,
        gold=gold,
        chance={subset: value for subset, value in chance.items() if value is not None},
        notes=dict(notes),
        command=list(command),
        versions={**versions(), **{name: version(name) for name in ("scikit-learn", "scipy")}},
        precision=precision_of(path),
        hardware=hardware(device),
        seconds=round(time.perf_counter() - begin, 1),
    )
    with replacing(os.path.join(output, "score.json")) as stream:
        write_json(result.to_dict(), stream)
    return result


def precision_of(path: str) -> Dict[str, Optional[str]]:
    """Return the precision of predictions, and of the training of a checkpoint."""
    training = recorded_in_words(load_checkpoint(path, mmap=True))
    return {"prediction": FLOAT32, "training": training}


def load(path: str, data: str) -> Tuple[Any, Any]:
    """Return the model of a checkpoint, and its task, looking at the folder ``data``."""
    model, task, name = load_any(path, data)
    if not hasattr(task, "predict"):
        raise UsageError(
            f"{path} was trained with --task {name}, which predicts nothing; fine-tune it first"
        )
    # models of all seeds predict the same masked tokens
    task.cfg.seed = 1
    return model, task


def load_any(path: str, data: str, languages: Optional[Languages] = None) -> Tuple[Any, Any, str]:
    """Return the model of a checkpoint of any task, its task, and the name of that.

    The task looks at the folder ``data``. Where a checkpoint does not tell its languages, as one of
    many languages, they are ``languages``, or those of the folder, which then has a single pair.
    Without ``languages`` they do not matter, and the first of the folder are taken.
    """
    if not os.path.isfile(path):
        raise UsageError(f"there is no checkpoint {path}")
    register_all()  # that a checkpoint may name
    chosen: Dict[str, Any] = {"data": data}
    state = checkpoint_utils.load_checkpoint_to_cpu(path, chosen)
    if "source_lang" in state["cfg"]["task"]:
        pair = _languages(path, state["cfg"]["task"], first_folder(data), languages)
        chosen.update(source_lang=pair.source, target_lang=pair.target)
        state = checkpoint_utils.load_checkpoint_to_cpu(path, chosen)
    ensemble, config, task = checkpoint_utils.load_model_ensemble_and_task(
        [path], arg_overrides=chosen, state=state
    )
    if isinstance(task, TranslationMultiSimpleEpochTask):
        task = PosencMultilingualTask.of(task)
    return ensemble[0], task, config.task._name


def _languages(path: str, task: Any, folder: str, requested: Optional[Languages]) -> Languages:
    """Return the pair of languages that a checkpoint is to translate in a folder."""
    own = UNKNOWN if "langs" in task else Languages(task["source_lang"], task["target_lang"])
    languages = requested or UNKNOWN
    if any(a and b and a != b for a, b in zip(own, languages)):
        raise UsageError(
            f"{path} was trained for {own.source}-{own.target}, not for {languages.source or '…'}-"
            f"{languages.target or '…'}: leave out --source-lang and --target-lang"
        )
    source, target = own.source or languages.source, own.target or languages.target
    if source and target:
        return Languages(source, target)
    pairs = pairs_of_data(folder)
    suited = [pair for pair in pairs if source in (None, pair.source)]
    suited = [pair for pair in suited if target in (None, pair.target)]
    if len(suited) > 1 and requested:
        raise UsageError(
            f"{several(folder, suited)}, and {path} does not tell its own: give --source-lang and "
            "--target-lang"
        )
    return suited[0] if suited else Languages(source, target)


def predictions(model: Any, task: Any, subset: str, max_tokens: int) -> List[Tuple[int, Any]]:
    """Return what a task predicts for a loaded subset, in the order of the examples' numbers."""
    limits = utils.resolve_max_positions(task.max_positions(), model.max_positions())
    batches = task.get_batch_iterator(
        task.dataset(subset), max_tokens=max(max_tokens, task.max_positions()), max_positions=limits
    ).next_epoch_itr(shuffle=False)
    on_gpu = next(model.parameters()).is_cuda
    predicted: List[Tuple[int, Any]] = []
    with torch.no_grad():
        for sample in tqdm(batches, desc=subset, unit=" batches", leave=False):
            predicted += task.predict(model, utils.move_to_cuda(sample) if on_gpu else sample)
    return sorted(predicted, key=lambda pair: pair[0])

"""Whether checkpoints and a training are of one run: what a run computes, and what may change.

A checkpoint has the options of its model and task, from which fairseq builds both. All of them
count but those of a list here: a change of an option that nobody has thought of is refused, not
followed in silence. Beside them :func:`record` leaves what options do not tell: a checksum of the
training text and one of the dictionaries. What a checkpoint of an earlier version does not record
is taken as equal.
"""

import argparse
import ast
import logging
from argparse import Namespace
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Set, Tuple

from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY
from omegaconf import OmegaConf

from fairseq_posenc import register_all
from fairseq_posenc.data.training_text import checksum
from fairseq_posenc.errors import UsageError, printable
from fairseq_posenc.guards import signatures

logger = logging.getLogger(__name__)

# what is told of a run: the options of model and task, and the rest, by name
Told = Dict[str, Dict[str, Any]]
RECORD = "trained_on"  # the part of a checkpoint that has the two checksums

# The options of model and task that may change when a run is resumed, and between checkpoints that
# are averaged. All those of fairseq's other groups may: learning rate, optimizer, criterion,
# updates, batches, validation, saving, seed, precision, devices.
MAY_CHANGE = {
    # noise in training
    "dropout", "attention_dropout", "activation_dropout", "relu_dropout", "pooler_dropout",
    "adaptive_softmax_dropout", "no_embedding_dropout", "encoder_layerdrop", "decoder_layerdrop",
    "quant_noise_pq", "quant_noise_pq_block_size", "quant_noise_scalar",
    # where weights begin, before those of the checkpoint replace them
    "encoder_embed_path", "decoder_embed_path", "embedding_initialization",
    "load_checkpoint_heads",
    # memory, speed and padding
    "checkpoint_activations", "offload_activations", "min_params_to_wrap", "num_batch_buckets",
    "pad_to_fixed_length", "pad_to_fixed_bsz", "export",
    # how validations are scored, and answers found
    "eval_bleu", "eval_bleu_args", "eval_bleu_detok", "eval_bleu_detok_args",
    "eval_tokenized_bleu", "eval_bleu_remove_bpe", "eval_bleu_print_samples",
    "max_answer_length", "n_best",
    # the longest inputs; where positions have a table, its size is compared with the weights
    "max_source_positions", "max_target_positions",
    # the name of the folder, as what is in it is compared
    "data",
    # guards of their own look at these
    "train_only", "dictionary_hash",
}  # fmt: skip
# The same for an ensemble, beside all options of models, as each is built by its own. The task is
# one for all, so only what leaves the models' input alone may differ.
_HOW_TEXT_IS_CUT = {
    "training text", "tokens_per_sample", "sample_break_mode", "max_positions", "upsample_primary"
}  # fmt: skip
MAY_CHANGE_IN_ENSEMBLE = MAY_CHANGE | _HOW_TEXT_IS_CUT | {
    "positions", "mask_prob", "leave_unmasked_prob", "random_token_prob",
    "freq_weighted_replacement", "mask_whole_words", "no_shuffle",
}  # fmt: skip
# where weights begin, and which there are: what is given may change, but not whether it is given
_GIVEN_OR_NOT = {"admin_profile"}
# what the signature of positions tells, beside position_…
_SIGNED = {
    "prepend_source_bos", "no_source_eos", "no_token_positional_embeddings",
    "encoder_learned_pos", "decoder_learned_pos",
}  # fmt: skip
_UNKNOWN_IF_NONE = {"task", "source_lang", "target_lang", "training text", "dictionaries"}
_ALIKE = {"posenc_translation": "translation"}  # ours is fairseq's with an option more
_MOST_TOLD = 5


class Way(NamedTuple):
    """What is done with checkpoints: what may differ then, and what to do if something else does.

    ``left_out`` is a part of :data:`Told` that is not looked at. Where nothing is refused, there
    is a warning.
    """

    may_change: Set[str]
    advice: str
    left_out: str = ""
    refuses: bool = True


RESUME = Way(
    MAY_CHANGE,
    "resume it with its own options and data (with other text: --reset-dataloader), give another "
    "--save-dir to train anew, or --finetune-from-model to begin another training with its weights",
)
# with --reset-dataloader
RESUME_ON_OTHER_TEXT = RESUME._replace(may_change=MAY_CHANGE | _HOW_TEXT_IS_CUT)
FINE_TUNE = Way(MAY_CHANGE_IN_ENSEMBLE - {"positions"}, "fine-tuning goes on so", "task", False)
AVERAGE = Way(MAY_CHANGE, "average checkpoints of one run")
AVERAGE_ACROSS = AVERAGE._replace(may_change=MAY_CHANGE | {"training text"})
ENSEMBLE = Way(MAY_CHANGE_IN_ENSEMBLE, "join models that take the same input", "model")


class SameRun:
    """Compares checkpoints, as they are read, with a training or with the first of them."""

    def __init__(self, way: Way, name: str = "", first: Optional[Told] = None):
        self.way, self.name, self.first = way, name, first
        self.of_training = first is not None

    def check(self, state: Any, path: str) -> None:
        """Compare a checkpoint; the first one is kept if there is no training.

        Raises:
            UsageError: it differs, and in what.
        """
        found = told(state)
        if self.first is None:
            self.name, self.first = path, found
            return
        names = differences(found, self.first, self.way)
        if names:
            there, here = (
                ", ".join(_shown(name, one[group].get(name)) for group, name in names[:_MOST_TOLD])
                for one in (found, self.first)
            )
            text = f"{path} was trained with {there}, {self.name} has {here}; {self.way.advice}"
            if self.way.refuses:
                raise UsageError(text)
            logger.warning("%s", printable(text))


class SameLanguages:
    """Compares the direction of translation of checkpoints with what is asked for.

    Models whose languages share a dictionary would translate the wrong way round without an error.
    """

    def __init__(self, task: Any, overrides: Mapping[str, Any] = {}, fine_tuning: bool = False):
        sides, options = ("source_lang", "target_lang"), getattr(task, "cfg", None)
        self.asked = tuple(overrides.get(side) or getattr(options, side, None) for side in sides)
        self.fine_tuning = fine_tuning

    def check(self, state: Any, path: str) -> None:
        """Compare a checkpoint; one that does not record its languages may have any.

        Raises:
            UsageError: they are swapped, but in fine-tuning. Other languages are a warning.
        """
        state = state if isinstance(state, Mapping) else {}
        task = _as_dict(state.get("args")) or _as_dict(_as_dict(state.get("cfg")).get("task"))
        trained = task.get("source_lang"), task.get("target_lang")
        is_multilingual = task.get("lang_pairs") is not None
        if is_multilingual or None in trained or None in self.asked or trained == self.asked:
            return
        text = "{} was trained to translate {} to {}, and {} to {} is asked for"
        text = printable(text.format(path, *trained, *self.asked))
        if trained == self.asked[::-1] and not self.fine_tuning:
            raise UsageError(f"{text}; give --source-lang {trained[0]} --target-lang {trained[1]}")
        logger.warning("%s", text)


def way_of(cfg: Any, resumed: bool, ours: bool) -> Way:
    """Return the way of a training that begins with a checkpoint.

    Args:
        cfg: fairseq's ``CheckpointConfig``.
        resumed: else it is fine-tuned.
        ours: its model is one of ours, which tell of positions themselves in fine-tuning.
    """
    if resumed:
        return RESUME_ON_OTHER_TEXT if cfg.reset_dataloader else RESUME
    return FINE_TUNE._replace(may_change=MAY_CHANGE_IN_ENSEMBLE) if ours else FINE_TUNE


def differences(first: Told, second: Told, way: Way) -> List[Tuple[str, str]]:
    """Return part and name of what differs and must not, positions first."""
    found = {}
    for part in first.keys() & second.keys() - {way.left_out}:
        for name in first[part].keys() | second[part].keys():
            one, other = first[part].get(name), second[part].get(name)
            if name in way.may_change or (name in _UNKNOWN_IF_NONE and None in (one, other)):
                continue
            same = signatures.same(str(one), str(other)) if name == "positions" else one == other
            if not same:
                found[name] = part  # once, where model and task both have it
    return sorted(((found[name], name) for name in found), key=lambda at: (at[0] != "run", at))


def _shown(name: str, value: Any) -> str:
    """Return an option as on a command line, or what else is told."""
    if name == "positions":
        return str(value)
    if name in ("training text", "dictionaries"):
        return f"{name} {value}"
    flag = f"--{name.replace('_', '-')}"
    return f"no {flag}" if value is None else flag if value is True else f"{flag} {value!s:.60}"


def told(state: Any) -> Told:
    """Return what a checkpoint, or :func:`of_training`, tells of what its run computes.

    A part that nothing is known of is left out.

    Raises:
        UsageError: its options name an encoding that does not exist.
    """
    register_all()
    state = state if isinstance(state, Mapping) else {}
    cfg, old = _as_dict(state.get("cfg")), _as_dict(state.get("args"))
    # up to fairseq 0.10 all options are in one namespace
    model, task = (old or _as_dict(cfg.get(group)) for group in ("model", "task"))
    arch, task_name = (
        next((group[key] for key in (kind, "_name") if isinstance(group.get(key), str)), "")
        for group, kind in ((model, "arch"), (task, "task"))
    )
    found = {
        "model": _options(model, ARCH_MODEL_REGISTRY.get(arch), ARCH_CONFIG_REGISTRY.get(arch)),
        "task": _options(task, TASK_REGISTRY.get(task_name)),
        "run": {"positions": signatures.of_checkpoint(state), **_as_dict(state.get(RECORD))},
    }
    if found["task"]:
        found["task"]["task"] = _ALIKE.get(task_name, task_name)
    return {part: options for part, options in found.items() if options}


def _options(
    given: Mapping[str, Any], kind: Any, complete: Optional[Callable] = None
) -> Dict[str, Any]:
    """Return the options that a model or task has, with defaults; none if it is not known."""
    if kind is None:
        return {}
    defaults: Dict[str, Any] = {}
    for owner in reversed(kind.__mro__):
        parser = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
        # our models have no defaults for options of the classes of fairseq that they are made of
        declared = vars(owner).get("__dataclass")
        if declared:
            gen_parser_from_dataclass(parser, declared())
        elif "add_args" in vars(owner):
            owner.add_args(parser)
        for action in parser._actions:
            if action.default is not None or action.dest not in defaults:
                defaults[action.dest] = action.default
    # an architecture also sets options that have no flag
    every = Namespace()
    if complete:
        complete(every)
    names = [name for name in {**defaults, **vars(every)} if given.get(name) is not None]
    chosen = Namespace(**{name: given[name] for name in names})
    if complete:
        complete(chosen)
    found = {**defaults, **vars(chosen)}
    plain = {name: _plain(value) for name, value in found.items()}
    return {
        name: True if value and name in _GIVEN_OR_NOT else value
        for name, value in plain.items()
        if name not in _SIGNED and not name.startswith("position_")
    }


def _plain(value: Any) -> Any:
    """Return a value of an option, whether text or parsed; None for false and for nothing."""
    if value is argparse.SUPPRESS:
        return None
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value) if len(value) < 100 else value
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return value or None
    return (tuple(value) if isinstance(value, (list, tuple)) else value) or None


def of_training(trainer: Any) -> Dict[str, Any]:
    """Return the part of a checkpoint that tells what fairseq's trainer computes."""
    cfg: Any = OmegaConf.to_container(trainer.cfg, resolve=True, enum_to_str=True)
    # on a CPU the trainer must not know of it, see precision.py
    cfg["common"]["amp"] = cfg["common"]["amp"] or getattr(trainer, "bfloat16_products", False)
    task = _as_dict(cfg["task"])
    for name in ("source_lang", "target_lang"):
        # the task has found them in the names of files if they were not given
        if hasattr(getattr(trainer.task, "cfg", None), name):
            task[name] = getattr(trainer.task.cfg, name)
    dictionaries = _dictionaries(trainer.task)
    record = {
        "training text": checksum(task.get("data") or "", trainer.cfg.dataset.train_subset),
        "dictionaries": signatures.dictionary_hash(*dictionaries) if dictionaries else None,
    }
    return {"cfg": cfg, RECORD: record}


def record(trainer: Any, found: Dict[str, Any]) -> None:
    """Let a trainer write what :func:`of_training` has found into its checkpoints."""
    write = trainer.state_dict

    def state_dict() -> Dict[str, Any]:
        return {**write(), **found}

    trainer.state_dict = state_dict


def _dictionaries(task: Any) -> List[Any]:
    found: List[Any] = []
    for side in ("source_dictionary", "target_dictionary"):
        try:
            dictionary = getattr(task, side)
        except (AttributeError, NotImplementedError):
            continue  # a task of another kind
        # one that is for both counts once
        if hasattr(dictionary, "symbols") and not any(dictionary is other for other in found):
            found.append(dictionary)
    return found


def _as_dict(options: Any) -> Dict[str, Any]:
    """Return the options themselves; none if they are of another kind."""
    options = vars(options) if isinstance(options, Namespace) else options
    return options if isinstance(options, dict) else {}

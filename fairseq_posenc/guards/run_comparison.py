"""Comparison of checkpoints with a training, by their options: the list of those that may change.

A checkpoint has the options of its model and task, from which fairseq builds both. All of them
count but those of a list here: a change of an option that nobody has thought of is refused, not
followed in silence. :func:`attach_run_metadata` writes them, and checksums of the training text and
of the dictionaries. A checksum that a checkpoint of an earlier version lacks is taken as equal.
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
from fairseq_posenc.checkpoints.groups import as_dict, group_options, name_of
from fairseq_posenc.data.training_text import checksum
from fairseq_posenc.errors import UsageError, printable
from fairseq_posenc.guards import signatures, source_bos

logger = logging.getLogger(__name__)

# the options of model and task by name, and of the run: positions and checksums
RunMetadata = Dict[str, Dict[str, Any]]
METADATA_KEY = "trained_on"  # the key of a checkpoint with the two checksums

# The options of model and task that may change when a run is resumed, and between checkpoints that
# are averaged. All those of fairseq's other groups may: learning rate, optimizer, criterion,
# updates, batches, validation, saving, seed, precision, devices.
MAY_CHANGE = {
    # noise in training
    "dropout", "attention_dropout", "activation_dropout", "relu_dropout", "pooler_dropout",
    "adaptive_softmax_dropout", "no_embedding_dropout", "encoder_layerdrop", "decoder_layerdrop",
    "quant_noise_pq", "quant_noise_pq_block_size", "quant_noise_scalar",
    # initial weights, which those of the checkpoint replace
    "encoder_embed_path", "decoder_embed_path", "embedding_initialization",
    "load_checkpoint_heads",
    # memory, speed and padding
    "checkpoint_activations", "offload_activations", "min_params_to_wrap", "num_batch_buckets",
    "pad_to_fixed_length", "pad_to_fixed_bsz", "export",
    # metrics of validations, and the search for answers
    "eval_bleu", "eval_bleu_args", "eval_bleu_detok", "eval_bleu_detok_args",
    "eval_tokenized_bleu", "eval_bleu_remove_bpe", "eval_bleu_print_samples",
    "max_answer_length", "n_best",
    # the longest inputs; where positions have a table, its size is compared with the weights, and
    # what positions compute from them is compared with the positions
    "max_source_positions", "max_target_positions",
    # the name of the folder; its content is compared
    "data",
    # guards of their own look at these, and the signature of positions at the last
    "train_only", "dictionary_hash", source_bos.OPTION,
}  # fmt: skip
# The same for an ensemble, beside all options of models, as each is built by its own. The task is
# one for all, so only what leaves the models' input alone may differ.
_DATA_BLOCKING = {
    "training text", "tokens_per_sample", "sample_break_mode", "max_positions", "upsample_primary"
}  # fmt: skip
_MAY_CHANGE_BETWEEN_MODELS = MAY_CHANGE | _DATA_BLOCKING | {
    "positions", "mask_prob", "leave_unmasked_prob", "random_token_prob",
    "freq_weighted_replacement", "mask_whole_words", "no_shuffle",
}  # fmt: skip
# positions may differ there, but not whether sources start with BOS
MAY_CHANGE_IN_ENSEMBLE = _MAY_CHANGE_BETWEEN_MODELS - {source_bos.OPTION}
# initial weights: the value may change, but not whether there is one
_COMPARED_BY_PRESENCE = {"admin_profile"}
# options in the signature of positions, beside position_…
_IN_SIGNATURE = {
    "prepend_source_bos", "no_source_eos", "no_token_positional_embeddings",
    "encoder_learned_pos", "decoder_learned_pos",
}  # fmt: skip
_UNKNOWN_IF_NONE = {"task", "source_lang", "target_lang", "training text", "dictionaries"}
_TASK_ALIASES = {"posenc_translation": "translation"}  # ours is fairseq's with an option more
_MAX_SHOWN = 5


class ComparisonPolicy(NamedTuple):
    """Options that may differ in a use of checkpoints, and the advice if others do.

    ``ignored_group`` is a group of :data:`RunMetadata` that is not compared. Where nothing is
    refused, there is a warning.
    """

    may_change: Set[str]
    advice: str
    ignored_group: str = ""
    refuses: bool = True


RESUME = ComparisonPolicy(
    MAY_CHANGE,
    "resume it with its own options and data (with other text: --reset-dataloader), give another "
    "--save-dir to train anew, or --finetune-from-model to begin another training with its weights",
)
# with --reset-dataloader
RESUME_ON_OTHER_TEXT = RESUME._replace(may_change=MAY_CHANGE | _DATA_BLOCKING)
FINE_TUNE = ComparisonPolicy(
    _MAY_CHANGE_BETWEEN_MODELS - {"positions"},
    "fine-tuning goes on so",
    ignored_group="task",
    refuses=False,
)
AVERAGE = ComparisonPolicy(MAY_CHANGE, "average checkpoints of one run")
AVERAGE_ACROSS = AVERAGE._replace(may_change=MAY_CHANGE | {"training text"})
ENSEMBLE = ComparisonPolicy(MAY_CHANGE_IN_ENSEMBLE, "join models that take the same input", "model")


class RunComparison:
    """Compares checkpoints, as they are read, with a training or with the first of them."""

    def __init__(
        self, policy: ComparisonPolicy, name: str = "", reference: Optional[RunMetadata] = None
    ):
        self.policy, self.name, self.reference = policy, name, reference

    def check(self, state: Any, path: str) -> None:
        """Compare a checkpoint; without a training the first one becomes the reference.

        Raises:
            UsageError: it differs, and in what; a policy that does not refuse warns.
        """
        metadata = run_metadata(state)
        if self.reference is None:
            self.name, self.reference = path, metadata
            return
        names = differences(metadata, self.reference, self.policy)[:_MAX_SHOWN]
        if names:
            trained, own = (
                ", ".join(_as_option(name, run[group].get(name)) for group, name in names)
                for run in (metadata, self.reference)
            )
            text = f"{path} was trained with {trained}, {self.name} has {own}; {self.policy.advice}"
            if self.policy.refuses:
                raise UsageError(text)
            logger.warning("%s", printable(text))


def policy_for(cfg: Any, resumed: bool, is_ours: bool) -> ComparisonPolicy:
    """Return the policy for a training that begins with a checkpoint.

    Args:
        cfg: fairseq's ``CheckpointConfig``.
        resumed: else it is fine-tuned.
        is_ours: its model is one of ours, which compare positions themselves in fine-tuning.
    """
    if resumed:
        return RESUME_ON_OTHER_TEXT if cfg.reset_dataloader else RESUME
    return FINE_TUNE._replace(may_change=MAY_CHANGE_IN_ENSEMBLE) if is_ours else FINE_TUNE


def differences(
    checkpoint: RunMetadata, reference: RunMetadata, policy: ComparisonPolicy
) -> List[Tuple[str, str]]:
    """Return group and name of the options that differ and must not, those of the run first."""
    groups: Dict[str, str] = {}
    for group in sorted(checkpoint.keys() & reference.keys() - {policy.ignored_group}):
        for name in checkpoint[group].keys() | reference[group].keys():
            values = checkpoint[group].get(name), reference[group].get(name)
            if name in policy.may_change or (name in _UNKNOWN_IF_NONE and None in values):
                continue
            if name == "positions":
                same = signatures.same(str(values[0]), str(values[1]))
            else:
                same = values[0] == values[1]
            if not same:
                groups[name] = group  # once, where model and task both have it
    pairs = [(group, name) for name, group in groups.items()]
    return sorted(pairs, key=lambda pair: (pair[0] != "run", pair))


def _as_option(name: str, value: Any) -> str:
    """Return an option as on a command line, or a checksum with its name."""
    if name == "positions":
        return str(value)
    if name in ("training text", "dictionaries"):
        return f"{name} {value}"
    flag = f"--{name.replace('_', '-')}"
    return f"no {flag}" if value is None else flag if value is True else f"{flag} {value!s:.60}"


def run_metadata(state: Any) -> RunMetadata:
    """Return the metadata in a checkpoint, or in the part that :func:`training_metadata` makes.

    A group without options is left out.

    Raises:
        UsageError: its options name an encoding that does not exist.
    """
    register_all()
    model, task = (group_options(state, group) for group in ("model", "task"))
    arch, task_name = name_of(model, "arch"), name_of(task, "task")
    metadata = {
        "model": _options(model, ARCH_MODEL_REGISTRY.get(arch), ARCH_CONFIG_REGISTRY.get(arch)),
        "task": _options(task, TASK_REGISTRY.get(task_name)),
    }
    metadata["run"] = {
        "positions": signatures.of_run(state, metadata["model"]),
        source_bos.OPTION: source_bos.of_checkpoint(state) or None,
        **as_dict(as_dict(state).get(METADATA_KEY)),
    }
    if metadata["task"]:
        metadata["task"]["task"] = _TASK_ALIASES.get(task_name, task_name)
    return {group: options for group, options in metadata.items() if options}


def _options(
    chosen: Mapping[str, Any], registered: Any, set_defaults: Optional[Callable] = None
) -> Dict[str, Any]:
    """Return the options of a model or task, with defaults; none if it is not registered.

    ``set_defaults`` is the function of its architecture.
    """
    if registered is None:
        return {}
    defaults: Dict[str, Any] = {}
    # from the base on, so that a class replaces the defaults of those above it
    for owner in reversed(registered.__mro__):
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
    of_architecture = Namespace()
    if set_defaults:
        set_defaults(of_architecture)
    names = [name for name in {**defaults, **vars(of_architecture)} if chosen.get(name) is not None]
    options = Namespace(**{name: chosen[name] for name in names})
    if set_defaults:
        set_defaults(options)
    values = {**defaults, **vars(options)}
    normalised = {name: _normalised(value) for name, value in values.items()}
    return {
        name: True if value and name in _COMPARED_BY_PRESENCE else value
        for name, value in normalised.items()
        if name not in _IN_SIGNATURE and not name.startswith("position_")
    }


def _normalised(value: Any) -> Any:
    """Return a value of an option, whether text or parsed; None for false and for nothing."""
    if value is argparse.SUPPRESS:
        return None
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value) if len(value) < 100 else value
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return value or None
    return (tuple(value) if isinstance(value, (list, tuple)) else value) or None


def training_metadata(trainer: Any) -> Dict[str, Any]:
    """Return the part of a checkpoint with the options and checksums of fairseq's trainer."""
    cfg: Any = OmegaConf.to_container(trainer.cfg, resolve=True, enum_to_str=True)
    # on a CPU the trainer must not know of it, see precision.py
    cfg["common"]["amp"] = cfg["common"]["amp"] or getattr(trainer, "bfloat16_products", False)
    task = as_dict(cfg["task"])
    for name in ("source_lang", "target_lang"):
        # the task has found them in the names of files if they were not given
        if hasattr(getattr(trainer.task, "cfg", None), name):
            task[name] = getattr(trainer.task.cfg, name)
    dictionaries = _dictionaries(trainer.task)
    checksums = {
        "training text": checksum(task.get("data") or "", trainer.cfg.dataset.train_subset),
        "dictionaries": signatures.dictionary_hash(*dictionaries) if dictionaries else None,
    }
    return {"cfg": cfg, METADATA_KEY: checksums}


def attach_run_metadata(trainer: Any, metadata: Dict[str, Any]) -> None:
    """Let a trainer write the part of :func:`training_metadata` into its checkpoints."""
    write = trainer.state_dict

    def state_dict() -> Dict[str, Any]:
        return {**write(), **metadata}

    trainer.state_dict = state_dict


def _dictionaries(task: Any) -> List[Any]:
    dictionaries: List[Any] = []
    for side in ("source_dictionary", "target_dictionary"):
        try:
            dictionary = getattr(task, side)
        except (AttributeError, NotImplementedError):
            continue  # a task without such a dictionary
        # a dictionary for both sides counts once
        if hasattr(dictionary, "symbols") and not any(dictionary is x for x in dictionaries):
            dictionaries.append(dictionary)
    return dictionaries

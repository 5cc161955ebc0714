"""What a checkpoint's own options may ask for, checked between reading them and building anything.

fairseq builds the model, task and criterion that a checkpoint names, evaluates some of its options
as Python (``eval``), lets OmegaConf resolve ``${oc.env:…}`` in them, fetches files from addresses
and opens paths that they name. From a stranger all of this is refused, or not looked at.
"""

import argparse
import ast
import contextlib
import dataclasses
import json
import os
import re
import sys
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, Set, Tuple

import numpy as np
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from torch import Tensor
from torch.nn.modules.module import register_module_parameter_registration_hook

from fairseq_posenc.checkpoints.reader import count_values
from fairseq_posenc.checkpoints.unpickler import Refused
from fairseq_posenc.errors import UsageError, first_line

# fairseq evaluates these; tests/security compares with the calls of eval in its source
EVALUATED = frozenset(
    """adafactor_eps adam_betas adamax_betas adaptive_input_cutoff adaptive_softmax_cutoff
    character_filters conv_aggregator_layers conv_feature_layers decoder_attention decoder_layers
    decoder_xformers_att_config downsample encoder_attention encoder_layers
    encoder_xformers_att_config feature_encoder_spec gated_attention lamb_betas left_pad_source
    left_pad_target pipeline_balance pipeline_decoder_balance pipeline_decoder_devices
    pipeline_devices pipeline_encoder_balance pipeline_encoder_devices pretrained project_input
    self_attention wer_args xformers_att_config""".split()
)
# Options that name files to read or programs to start, and what they are set to: weights of
# embeddings are in the checkpoint itself, and subwords are named by whoever loads it.
CLEARED: Dict[str, Any] = {
    **dict.fromkeys("user_dir embed_path encoder_embed_path decoder_embed_path".split()),
    **dict.fromkeys("replace_unk lm_path bpe_vocab_file".split()),
    **dict.fromkeys(
        """sentencepiece_model sentencepiece_model_path sentencepiece_vocab bpe_codes bpe_vocab
        bpe_merges gpt2_encoder_json gpt2_vocab_bpe""".split(),
        "",
    ),
    "quantization_config_path": None,
    "job_logging_cfg": None,  # of fairseq-hydra-train: names streams and classes
    "use_plasma_view": False,
}
# options whose text may look like a call: paths, and what is written about a run
FREE_TEXT = frozenset(
    """data path save_dir restore_file finetune_from_model tensorboard_logdir log_file wandb_project
    results_path aim_repo aim_run_hash plasma_path continue_once position_signature input
    model_overrides""".split()
)
# ADMIN's profile may be a file on the command line only
JSON = frozenset("eval_bleu_args eval_bleu_detok_args admin_profile".split())
KNOWN: Dict[str, Set[str]] = {
    "arch": set(),  # by class, see MODELS
    "task": {"translation", "masked_lm", "sentence_prediction", "language_modeling"},
    "criterion": {
        "cross_entropy", "label_smoothed_cross_entropy", "masked_lm", "sentence_prediction",
        "label_smoothed_cross_entropy_with_alignment", "label_smoothed_cross_entropy_with_rdrop",
        "label_smoothed_cross_entropy_r3f", "sentence_prediction_r3f",
        "sentence_prediction_adapters", "adaptive_loss",
    },
    "optimizer": {
        "adadelta", "adafactor", "adagrad", "adam", "adamax", "composite", "cpu_adam", "lamb",
        "nag", "sgd",
    },
    "lr_scheduler": {
        "cosine", "fixed", "inverse_sqrt", "manual", "pass_through", "polynomial_decay",
        "reduce_lr_on_plateau", "step", "tri_stage", "triangular",
    },
    "tokenizer": {"moses", "nltk", "space"},
    "eval_bleu_detok": {"moses", "nltk", "space"},
    "bpe": {
        "bert", "byte_bpe", "bytes", "characters", "fastbpe", "gpt2", "hf_byte_bpe",
        "sentencepiece", "subword_nmt",
    },
    "scoring": {"bleu", "chrf", "meteor", "sacrebleu", "wer"},
    "simul_type": set(),
    "dataset_impl": {"raw", "lazy", "cached", "mmap"},
}  # fmt: skip
MODELS = {
    "fairseq.models.transformer.transformer_legacy.TransformerModel",
    "fairseq.models.transformer_lm.TransformerLanguageModel",
    "fairseq.models.roberta.model.RobertaModel",
}
_ADDRESS = re.compile(r"(?i)(https?|s3):|.*://")
_IGNORED = re.compile(r"[\0-\x20]")  # by programs that read addresses
_OWN_ADDRESS = re.compile(r"(tcp|file|env)://[\w./:\[\]-]*")
_NAME = re.compile(r"(?!__)[\w./: -]{1,100}")
_LANGUAGE = re.compile(r"[\w.-]{1,40}")
_SIZE = re.compile(
    r"(\w+_)?(dim|layers|heads|max_distance|num_buckets|kernel_size|rank|num_classes)"
)
_CALLS = (ast.Call, ast.Lambda, ast.comprehension, ast.NamedExpr, ast.Await, ast.JoinedStr)
_MOST_VALUES = 100_000
_SMALLEST_LIMIT = 1024
_LONGEST_PROGRAM = 10_000  # characters; what is nested deeper ends Python 3.10
_MOST_POSITIONS = 100_000
_SPARE_WEIGHTS = 10_000_000


def check_options(state: Any, path: str, named: Optional[Mapping[str, Any]] = None) -> None:
    """Check what a checkpoint asks fairseq to build and to read.

    Args:
        state: as it was read; options that name files or say how to generate are reset in it.
        path: of the checkpoint, for messages.
        named: options that the caller gives instead; they, and those of the command line, may
            name architectures, tasks and so on beyond the known ones.

    Raises:
        UsageError: it asks for something else than a known model of plain values.
    """
    try:
        _check(state, {**_of_command_line(), **(named or {})})
    except Refused as error:
        raise UsageError(
            f"checkpoint {path} refused: {error}; get it from a source you trust"
        ) from None


def _check(state: Any, named: Mapping[str, Any]) -> None:
    if not isinstance(state, dict):
        raise Refused("it holds no model and options")
    _drop_fused(state.get("last_optimizer_state"))
    model = state.get("model")
    weights = model.values() if isinstance(model, dict) else ()
    shapes = [tensor.shape for tensor in weights if isinstance(tensor, Tensor)]
    widest = max([_SMALLEST_LIMIT, len(shapes), *(size for shape in shapes for size in shape)])
    for top in ("args", "cfg"):
        found = state.get(top)
        if found is None:
            continue
        count_values(found, _MOST_VALUES)
        for group, name, value in _walk(found, top):
            _check_value(name, value)
            _check_size(name, value, widest)
            kind = {"model": "arch"}.get(group, group) if name == "_name" else name
            if kind in KNOWN and value is not None:
                _check_known(kind, value, named)
        options = _as_dict(found)
        # how to generate is said by whoever generates
        defaults = dataclasses.asdict(GenerationConfig())
        defaults["generation"] = dict(defaults)
        options.update({k: v for k, v in defaults.items() if k in options and k != "_name"})
        of_model = _as_dict(options if top == "args" else options.get("model"))
        if not any(isinstance(of_model.get(key), str) for key in ("_name", "arch")):
            raise Refused("its options name no --arch")


def _drop_fused(optimizer: Any) -> None:
    """Let no optimizer take torch's fused way, which writes beyond a state that is too small."""
    if isinstance(optimizer, dict):
        if "fused" in optimizer:
            optimizer["fused"] = None
        optimizer = list(optimizer.values())
    for inner in optimizer if isinstance(optimizer, (list, tuple)) else ():
        _drop_fused(inner)


def _as_dict(options: Any) -> Dict[str, Any]:
    options = vars(options) if isinstance(options, argparse.Namespace) else options
    if not isinstance(options, dict):
        raise Refused("its options are no options")
    return options


def _walk(value: Any, name: str, group: str = "") -> Iterator[Tuple[str, str, Any]]:
    """Yield ``(group, name, value)`` of all options; those of ``CLEARED`` are reset on the way."""
    if isinstance(value, (dict, argparse.Namespace)):
        options = _as_dict(value)
        for key, inner in options.items():
            if not isinstance(key, str) or not _NAME.fullmatch(key):
                raise Refused(f"its options have the name {key!r:.60}")
            if key in CLEARED and inner is not None:
                options[key] = CLEARED[key]
            yield from _walk(options[key], key, name)
    elif isinstance(value, (list, tuple, set)):
        for inner in value:
            yield from _walk(inner, name, group)
    else:
        yield group, name, value


def _check_value(name: str, value: Any) -> None:
    """Refuse objects, and text that fairseq would run, replace or fetch."""
    if value is None or isinstance(value, (bool, int, float, np.number)):
        return
    if not isinstance(value, str):
        raise Refused(f"its option {name} is a {type(value).__name__}")
    if name in JSON:
        return _check_json(name, value)
    if "${" in value:
        raise Refused(f"its option {name} asks to be replaced ({value!r:.60})")
    own = name == "distributed_init_method" and _OWN_ADDRESS.fullmatch(value)
    if _ADDRESS.match(_IGNORED.sub("", value)) and not own:
        raise Refused(f"its option {name} is an address ({value!r:.60})")
    if name in ("lang", "source_lang", "target_lang") and not _LANGUAGE.fullmatch(value):
        raise Refused(f"its option {name} is no language ({value!r:.60})")
    if name in EVALUATED:
        if not is_literal(value):
            raise Refused(f"its option {name} is no literal, but {value!r:.60}")
    elif name not in FREE_TEXT:
        parsed = _parse(value)
        if parsed and any(isinstance(node, _CALLS) for node in ast.walk(parsed)):
            raise Refused(f"its option {name} is a piece of program ({value!r:.60})")


def _check_json(name: str, text: str) -> None:
    try:
        inner = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"its option {name} is no JSON ({first_line(error)})") from None
    if isinstance(inner, dict) and not inner.keys() & KNOWN.keys():
        for _, key, value in _walk(inner, name):
            _check_value(key, value)
    elif inner is not None:
        raise Refused(f"its option {name} holds other options")


def _parse(text: str) -> Optional[ast.AST]:
    """Return the expression that ``eval`` would see in a text, if there is one."""
    if len(text) > _LONGEST_PROGRAM:
        raise Refused("an option is longer than any should be")
    try:
        return ast.parse(text.lstrip(" \t"), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    except (RecursionError, MemoryError):
        raise Refused("an option is nested too deeply") from None


def is_literal(text: str) -> bool:
    """Return whether a text is made of numbers, strings and containers, or ``[…] * 3 + […]``."""

    def check(node: ast.AST) -> None:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            check(node.left)
            check(node.right)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            if not isinstance(node.left, ast.List) or ast.literal_eval(node.right) > 1000:
                raise ValueError("no list, a few times")
            check(node.left)
        else:
            ast.literal_eval(node)

    try:
        parsed = _parse(text)
        if parsed is not None:
            check(parsed)
        return parsed is not None
    except (ValueError, TypeError, RecursionError):
        return False


def _check_known(kind: str, name: Any, named: Mapping[str, Any]) -> None:
    """Refuse to build a model, task and so on that is neither known nor named by the user."""
    if not isinstance(name, str):
        raise Refused(f"its option {kind} is a {type(name).__name__}")
    model: Any = ARCH_MODEL_REGISTRY.get(name) or MODEL_REGISTRY.get(name) or object
    if not (
        name == named.get(kind)
        or name in KNOWN[kind]
        or re.fullmatch(r"posenc_\w+", name)
        or (kind == "arch" and f"{model.__module__}.{model.__name__}" in MODELS)
    ):
        raise Refused(
            f"it asks for --{kind.replace('_', '-')} {name!r:.60}, which is none of those that "
            "are built for strangers; name it yourself if you trust it"
        )


def _of_command_line() -> Dict[str, str]:
    """Return the architecture, task and so on that the user has named."""
    found = {}
    flags: Dict[str, str] = {f"--{kind.replace('_', '-')}": kind for kind in KNOWN}
    flags["-a"] = "arch"
    for word, following in zip(sys.argv, [*sys.argv[1:], ""]):
        flag, equals, value = word.partition("=")
        if flag in flags:
            found[flags[flag]] = value if equals else following
    return found


def _check_size(name: str, value: Any, widest: int) -> None:
    """Refuse a model that is far larger than the weights, which would fill the memory."""
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
        most = widest if _SIZE.fullmatch(name) else None
        most = _MOST_POSITIONS if name.endswith("_positions") else most
        if most is not None and value > most:
            raise Refused(f"its option {name} is beyond {most}, more than its weights show")


@contextlib.contextmanager
def no_larger_than(paths: Sequence[str]) -> Iterator[None]:
    """Refuse, while a model is built, more weights than its files show.

    Twice as many as they have bytes are let pass: ties and fused layers are made twice.

    Raises:
        UsageError: the model is larger.
    """
    left = 2 * sum(map(os.path.getsize, filter(os.path.isfile, paths))) + _SPARE_WEIGHTS

    def count(_: Any, name: str, parameter: Optional[Tensor]) -> None:
        nonlocal left
        left -= 0 if parameter is None else parameter.numel()
        if left < 0:
            raise UsageError(
                f"checkpoint {os.pathsep.join(paths)} refused: its options ask for a model that is "
                "far larger than its weights; get it from a source you trust"
            )

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()

"""A trained model, read for export; its data are not needed."""

import glob
import operator
import os
import re
from argparse import Namespace
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Dict, List, Mapping, Optional, Type

import torch
from fairseq.data import Dictionary
from fairseq.data.data_utils import load_indexed_dataset
from fairseq.data.multilingual.multilingual_utils import augment_dictionary
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY
from torch.overrides import TorchFunctionMode

from fairseq_posenc.checkpoints.groups import group_options
from fairseq_posenc.data.indexed import check_indexed, read_dictionary, repeated_types
from fairseq_posenc.data.languages import languages_of
from fairseq_posenc.data.subwords import DICTIONARY, MASK
from fairseq_posenc.encodings.base import ExportedPositions
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards import signatures, source_bos
from fairseq_posenc.guards.loading import one_line
from fairseq_posenc.guards.option_checks import check_options
from fairseq_posenc.models.bert import PosencBertModel
from fairseq_posenc.models.transformer import PosencTransformerModel
from fairseq_posenc.models.transformer_lm import PosencTransformerLanguageModel
from fairseq_posenc.tools.averaging import read_trained
from fairseq_posenc.tools.scores.data_folder import pairs_of_data, several

SIDES = ("encoder", "decoder")
LIMITS = {"encoder": "max_source_positions", "decoder": "max_target_positions"}
# what is exported, and what it is called in messages
TRANSLATION: Dict[Type, str] = {
    PosencTransformerModel: "translation models of --arch posenc_transformer…"
}
LANGUAGE_MODEL = "posenc_transformer_lm"
ALL: Dict[Type, str] = {
    **TRANSLATION,
    PosencBertModel: "BERT models of --arch posenc_bert…",
    PosencTransformerLanguageModel: f"language models of --arch {LANGUAGE_MODEL}…",
}
_PLAIN = (bool, int, float, str, type(None))
# the stacks of layers that a model of any of these kinds may have
BERT_ENCODER = "encoder.sentence_encoder"
_STACKS = ("encoder", BERT_ENCODER, "decoder")


@dataclass
class ExportSource:
    """A checkpoint of one of our models.

    Attributes:
        path: the file.
        state: all that is in it.
        options: those of the model; every one is set.
        task: those of the task.
        model: in evaluation, in float32, on the CPU.
        model_name: its name in fairseq's registry.
        stacks: its stacks of layers, by what the names of their weights begin with.
        limits: for each of them, the most tokens that a sentence may have.
        dictionaries: the hash of those that it was trained with, if it has one.
        signature: of its positions.
    """

    path: str
    state: Dict[str, Any]
    options: Namespace
    task: Dict[str, Any]
    model: Any
    model_name: str
    stacks: Dict[str, Any]
    limits: Dict[str, int]
    dictionaries: Optional[str]

    def __post_init__(self) -> None:
        self.max_positions = max(self.limits.values())
        self.signature = signatures.of_checkpoint(self.state)
        # whether it was trained with --prepend-source-bos
        self.source_bos = source_bos.of_checkpoint(self.state)
        # entries of the vocabulary of each stack
        self.vocab_sizes = {
            name: stack.embed_tokens.num_embeddings for name, stack in self.stacks.items()
        }
        # whether sources and targets begin with the token of their language
        self.is_multilingual = "langs" in self.task
        # whether a vector is added to each token, by the text of a pair that it is of
        self.has_segments = f"{BERT_ENCODER}.segments.weight" in self.state["model"]
        # before a language model's text is </s>, or <s> with --add-bos-token
        self.first_token = 0 if self.task.get("add_bos_token") else 2

    def check_eos(self) -> None:
        """Raise :class:`UsageError` if its encoder does not see EOS, as it does elsewhere."""
        if getattr(self.options, "no_source_eos", False):
            raise UsageError(
                f"{self.path} was trained with --no-source-eos; export it to ctranslate2 or "
                "safetensors, as elsewhere every source ends with </s>"
            )

    def refusal(self, reason: str) -> UsageError:
        """Return the error of a model that cannot be exported."""
        return UsageError(f"{self.path} cannot be exported: {reason}")

    def description(self) -> Dict[str, Any]:
        """Return what exports say of it in JSON, without options of other types."""
        options = {**vars(self.options), "dictionary_hash": self.dictionaries}
        return {
            "kind": self.model_name,
            "signature": self.signature,
            "model": {name: value for name, value in options.items() if _is_plain(value)},
            "task": {name: value for name, value in self.task.items() if _is_plain(value)},
        }

    def exported_positions(self, side: str, length: int) -> ExportedPositions:
        """Return what the encoding of one side computes, for up to ``length`` tokens."""
        try:
            return self.stacks[side].embed_positions.export_tables(length)
        except ValueError as error:
            encoding = self.options.position_encoding
            raise self.refusal(f"--position-encoding {encoding}: {error}") from None


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


def read_checkpoint(path: str, kinds: Mapping[Type, str] = TRANSLATION) -> ExportSource:
    """Read a checkpoint of one of some ``kinds`` of models; nothing in it is run."""
    if not os.path.isfile(path):
        raise UsageError(f"there is no checkpoint {path}")
    return read_state(read_trained(path), path, kinds)


class _WeightsWithoutMemory(TorchFunctionMode):
    """Where models are built: weights, which are made empty, have a shape and no memory.

    Those of a checkpoint are put in their place, so that there is one copy of them.
    """

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        meta = {"device": "meta"} if function is torch.empty else {}
        if function is torch.Tensor.cpu and args[0].is_meta:
            return args[0]  # fairseq initialises BERT's there
        return function(*args, **{**(kwargs or {}), **meta})


def read_state(state: Dict[str, Any], path: str, kinds: Mapping[Type, str]) -> ExportSource:
    """Make a model of what a checkpoint holds; its weights are those of the ``state``.

    Args:
        state: its options are replaced by those that may be followed.
    """
    check_options(state, path, builds=False)
    try:
        options = Namespace(**group_options(state, "model"))
        task_options = group_options(state, "task")
        # a model that is configured by Hydra alone has no arch
        arch = getattr(options, "arch", None) or options._name
        state["model"].keys()
    except (KeyError, TypeError, AttributeError):
        raise UsageError(f"{path} is not a checkpoint of fairseq-train") from None
    model_class = ARCH_MODEL_REGISTRY.get(arch)
    if model_class is None or not issubclass(model_class, tuple(kinds)):
        supported = " and ".join(kinds.values())
        raise UsageError(
            f"checkpoint {path} refused: only {supported} can be exported, not --arch {arch!s:.60}"
            "; train from it with one of these and --finetune-from-model first"
        )
    misfit = f"{path}: its weights do not fit its own options"
    _check_weights(state["model"], options, path, misfit)
    try:
        with one_line(misfit):
            weights = dict(state["model"])
            task = task_of(weights)
            trained = getattr(options, "dictionary_hash", None)
            options.dictionary_hash = None  # of the task's dictionaries, only the sizes are right
            with _WeightsWithoutMemory():
                model = model_class.build_model(options, task)
            model.load_state_dict(weights, assign=True)
            model = model.eval().float().requires_grad_(False)
            stacks = {name: operator.attrgetter(name)(model) for name in stack_names(weights)}
            return ExportSource(
                path=path,
                state=state,
                options=options,
                task=task_options,
                model=model,
                model_name=ARCH_MODEL_NAME_REGISTRY[arch],
                stacks=stacks,
                limits={name: getattr(options, LIMITS[name.split(".")[0]]) for name in stacks},
                dictionaries=trained,
            )
    except UsageError as error:
        # what models and encodings say does not name the file
        raise error if path in str(error) else UsageError(f"{misfit}: {error}") from None


def _check_weights(weights: Dict[str, Any], options: Namespace, path: str, misfit: str) -> None:
    """Refuse weights of which no model can be built, or should be."""
    if any(re.search(r"\bembed_tokens\.(?!weight$)", name) for name in weights):
        raise UsageError(f"{path} has adaptive or character embeddings, which are not exported")
    for side in SIDES:
        # before so many are built: a layer has several weights
        if getattr(options, f"{side}_layers", 0) > len(weights):
            raise UsageError(f"{misfit}: there are no {getattr(options, f'{side}_layers')} layers")
    for name, weight in weights.items():
        if isinstance(weight, torch.Tensor) and not bool(weight.isfinite().all()):
            raise UsageError(
                f"{path}: {name} has a number that is not finite; its training failed, or the file "
                "is damaged"
            )


def read_dictionaries(source: ExportSource, folder: str) -> Dict[str, Dictionary]:
    """Return the dictionaries that a model was trained with, by its stacks of layers."""
    dictionaries = {}
    for stack, file in zip(source.stacks, _dictionary_files(source, folder)):
        if not os.path.isfile(file):
            raise UsageError(f"there is no {file}; name the folder of the dictionaries with --data")
        dictionary = read_dictionary(file)
        repeated = repeated_types(dictionary)
        if repeated:
            raise source.refusal(
                f"{file} names {len(repeated)} types as others (#fairseq:overwrite), the first is "
                f"{dictionary[repeated[0]]!r}; elsewhere a name stands for one type"
            )
        if source.is_multilingual:
            _add_languages(dictionary, source.task)
        if os.path.basename(file) == DICTIONARY and source.model_name == "posenc_bert":
            dictionary.add_symbol(MASK)  # as the tasks do
        entries = source.vocab_sizes[stack]
        if len(dictionary) != entries:
            raise UsageError(
                f"{file} has {len(dictionary)} types with the special ones, the model {entries}; "
                "name the folder of the data that it was trained on with --data"
            )
        dictionaries[stack] = dictionary
    # a language model has one dictionary for source and target
    hashed = list(dictionaries.values()) * (2 if source.model_name == LANGUAGE_MODEL else 1)
    if source.dictionaries not in (None, signatures.dictionary_hash(*hashed)):
        raise UsageError(
            f"the dictionaries in {folder or 'the current folder'} have other symbols than in "
            "training, or another order; name the folder of the data that it was trained on with "
            "--data"
        )
    return dictionaries


def read_sentences(source: ExportSource, folder: str, most: int) -> Dict[str, List[List[int]]]:
    """Return sentences of the training's data, as numbers with EOS, by the model's stacks.

    They are of its test set, or else of that for validation or training; none if there is none.
    """
    sentences: Dict[str, List[List[int]]] = {stack: [] for stack in source.stacks}
    for split in ("test", "valid", "train"):
        paths = [_data_file(file, split, folder) for file in _dictionary_files(source, folder)]
        if all(check_indexed(path) for path in paths):
            for stack, path in zip(sentences, paths):
                data = load_indexed_dataset(path)
                sentences[stack] = [data[n].tolist() for n in range(min(most, len(data)))]
            break
    return sentences


def _data_file(dictionary: str, split: str, folder: str) -> str:
    """Return the data that go with the file of a dictionary, without their endings."""
    directory, name = os.path.split(dictionary)
    if name == DICTIONARY:
        return os.path.join(directory, split)
    language = name.split(".")[1]
    pairs = glob.glob(os.path.join(glob.escape(folder), f"{split}.*-*.{language}.idx"))
    return pairs[0][: -len(".idx")] if pairs else os.path.join(folder, split)


def _dictionary_files(source: ExportSource, folder: str) -> List[str]:
    """Return the files of the dictionaries, one per stack of layers."""
    if len(source.stacks) == 1:
        # in the folder of a task of GLUE, those of its sentences have folders of their own
        places = [os.path.join(folder, part, DICTIONARY) for part in ("", "input0")]
        return [next(filter(os.path.isfile, places), places[0])]
    shared = os.path.join(folder, DICTIONARY)
    if source.is_multilingual and os.path.isfile(shared):
        return [shared, shared]
    languages = [source.task.get("source_lang"), source.task.get("target_lang")]
    if source.is_multilingual and source.task.get("lang_pairs"):  # all have one dictionary
        languages = re.findall(r"\w+", str(source.task["lang_pairs"]))[:2]  # en-de,… or a list
    if not all(languages):
        # those that are not given are found in the data, as in training
        pairs = pairs_of_data(folder)
        if len(pairs) > 1:
            raise UsageError(
                f"{several(folder, pairs)}, and the checkpoint does not tell its own: give --data "
                "a folder with links to the files of its pair alone"
            )
        if not pairs:
            raise UsageError(
                f"there is no binarised text in {folder} that tells source "
                "and target language; name the folder of the training's data with --data"
            )
        languages = [language or inferred for language, inferred in zip(languages, pairs[0])]
        source.task.update(source_lang=languages[0], target_lang=languages[1])
    return [os.path.join(folder, f"dict.{language}.txt") for language in languages]


def _add_languages(dictionary: Dictionary, task: Mapping[str, Any]) -> None:
    """Append the tokens of languages that a dictionary lacks, as fairseq's task does."""
    style = task.get("lang_tok_style") or "multilingual"
    augment_dictionary(dictionary, languages_of(task), style)


def stack_names(weights: Mapping[str, Any]) -> List[str]:
    """Return what the names of a model's weights begin with, for each stack of layers."""
    return [name for name in _STACKS if f"{name}.embed_tokens.weight" in weights]


def task_of(weights: Mapping[str, Any]) -> SimpleNamespace:
    """Return what a model wants from a task: dictionaries as large as its embeddings."""
    dictionaries = []
    for name in stack_names(weights):
        dictionary = Dictionary()
        while len(dictionary) < weights[f"{name}.embed_tokens.weight"].size(0):
            dictionary.add_symbol(f"type{len(dictionary)}")
        dictionaries.append(dictionary)
    source, target = dictionaries[0], dictionaries[-1]
    return SimpleNamespace(source_dictionary=source, target_dictionary=target)

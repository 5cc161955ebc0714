"""All ways of reading a checkpoint, and options of one that are changed."""

import argparse

import fairseq
from fairseq import checkpoint_utils
from fairseq.tasks import TASK_DATACLASS_REGISTRY

from fairseq_posenc.models.bert import PosencBertModel
from fairseq_posenc.models.transformer import PosencTransformerModel
from fairseq_posenc.tools.bert.predict import load_any
from fairseq_posenc.tools.convert.checkpoint import read_checkpoint


def of_task(cfg, options):
    """Return those of the options that a checkpoint's task may have besides its own."""
    if fairseq.__version__ != "0.12.2":
        return options  # unknown ones are dropped; 0.12.2 refuses to build the task
    declared = TASK_DATACLASS_REGISTRY[cfg["task"]["_name"]].__dataclass_fields__
    return {name: value for name, value in options.items() if name in declared}


def as_dict(options):
    return vars(options) if isinstance(options, argparse.Namespace) else options


def set_option(cfg, place, value):
    """Return options with one of them changed; a place is the path of an option."""
    first, *others = place
    changed = dict(as_dict(cfg))
    changed[first] = set_option(changed[first], others, value) if others else value
    return argparse.Namespace(**changed) if isinstance(cfg, argparse.Namespace) else changed


def from_transformer(trained):
    PosencTransformerModel.from_pretrained(trained.folder, "model.pt", trained.folder)


def from_bert(trained):
    PosencBertModel.from_pretrained(trained.folder, "model.pt", trained.folder)


def analyse_or_predict(trained):
    load_any(trained.path, trained.folder)


def export_it(trained):
    read_checkpoint(trained.path)


def generate(trained):
    checkpoint_utils.load_model_ensemble([trained.path], {"data": str(trained.folder)})


WAYS = [from_transformer, from_bert, analyse_or_predict, export_it, generate]

"""What fairseq makes of texts, options and command lines, in small, and without its programs."""

import copy
import functools
from argparse import Namespace

import torch
from fairseq import options
from fairseq.data import Dictionary, indexed_dataset
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import roberta, transformer, transformer_lm

from fairseq_posenc.data import subwords
from fairseq_posenc.models.bert import PosencBertModel
from fairseq_posenc.models.transformer import PosencTransformerModel
from fairseq_posenc.models.transformer_lm import PosencTransformerLanguageModel
from fairseq_posenc.tools.bert import vocabulary

# kind: fairseq's model, ours, and what completes the options of both
MODELS = {
    "transformer": (
        transformer.TransformerModel, PosencTransformerModel, transformer.tiny_architecture),
    "bert": (roberta.RobertaModel, PosencBertModel, roberta.model.base_architecture),
    "lm": (
        transformer_lm.TransformerLanguageModel, PosencTransformerLanguageModel,
        transformer_lm.base_lm_architecture),
}  # fmt: skip


def dictionary_of(symbols):
    """A dictionary of symbols, in their order, with counts if they are given by symbol.

    A number stands for so many: w0, w1, …
    """
    dictionary = Dictionary()
    for symbol in [f"w{n}" for n in range(symbols)] if isinstance(symbols, int) else symbols:
        dictionary.add_symbol(symbol, n=symbols[symbol] if isinstance(symbols, dict) else 1)
    return dictionary


def build_model(kind, task, seed=1, stock=False, **chosen):
    """Build a model of ours, or a stock one, in training; it has its ``options``."""
    theirs, ours, architecture = MODELS[kind]
    args = Namespace(**{"dropout": 0.0, **chosen})
    architecture(args)
    torch.manual_seed(seed)
    model = (theirs if stock else ours).build_model(args, task)
    model.options = args
    return model


def binarise(path, sentences, types=100, impl="mmap"):
    """Write PATH.bin and PATH.idx, as fairseq-preprocess does of sentences of token numbers."""
    builder = indexed_dataset.make_builder(f"{path}.bin", impl, vocab_size=types)
    for sentence in sentences:
        builder.add_item(torch.as_tensor(sentence, dtype=torch.int32))
    builder.finalize(f"{path}.idx")


def learn_subwords(folder, lines, size, kind="wordpiece", **options):
    """Learn subwords from lines; return the folder, which has their dictionary, too."""
    getattr(vocabulary, f"learn_{kind}")(lambda: iter(lines), str(folder), size, **options)
    vocabulary.copy_subwords(subwords.load(str(folder)), str(folder))
    return str(folder)


def parsed(words, program="training"):
    """The configuration that fairseq makes of a command line."""
    return copy.deepcopy(_parsed(tuple(map(str, words)), program))


@functools.lru_cache(None)  # to parse it takes longer than a small training
def _parsed(words, program):
    parser = getattr(options, f"get_{program}_parser")()
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, list(words)))


def checkpoint_of(cfg, weights, **parts):
    """What fairseq-train saves of a model."""
    history = {"criterion_name": "x", "optimizer_name": "x", "lr_scheduler_state": {}}
    return {
        "args": None, "cfg": cfg, "model": weights, "last_optimizer_state": None,
        "optimizer_history": [{**history, "num_updates": 7}],
        "extra_state": {"train_iterator": {"epoch": 1}, "val_loss": 3.5}, **parts,
    }  # fmt: skip

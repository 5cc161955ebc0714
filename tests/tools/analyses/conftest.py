"""A tiny binarised corpus, and checkpoints of models as they were drawn."""

from types import SimpleNamespace

import pytest
import torch
from fairseq import tasks
from fairseq.data import Dictionary
from omegaconf import OmegaConf

import fairseq_posenc.models.bert
import fairseq_posenc.models.transformer  # noqa: F401 (registers them)
from tests.tiny import binarise, checkpoint_of, parsed

SEPARATOR, WORDS = "<sep>", 30
SIZES = {"train": 40, "valid": 12, "test": 9}
TINY = "--arch posenc_transformer_tiny --task posenc_translation -s en -t de".split()
TINY += "--max-source-positions 64 --max-target-positions 64 --encoder-layers 3".split()
TINY += "--encoder-attention-heads 4 --encoder-normalize-before".split()
TINY_BERT = "--arch posenc_bert_tiny --task posenc_masked_lm --max-positions 64".split()
STRONG = 0.3


def joined_sentences(dictionary, generator):
    """A line of three sentences of two to five words."""
    line = []
    for number in range(3):
        size = int(torch.randint(2, 6, (), generator=generator))
        words = torch.randint(WORDS, (size,), generator=generator).tolist()
        if number > 0:
            line.append(dictionary.index(SEPARATOR))
        line += [dictionary.index(f"w{word}") for word in words]
    return [*line, dictionary.eos()]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """A folder that holds a translation corpus and, in `text`, one language's."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "text").mkdir()
    symbols = [f"{SEPARATOR} 400", *(f"w{i} {300 - i}" for i in range(WORDS)), "unused 1"]
    for name in ("dict.en.txt", "dict.de.txt", "text/dict.txt"):
        (folder / name).write_text("\n".join(symbols) + "\n")
    dictionary = Dictionary.load(str(folder / "dict.en.txt"))
    generator = torch.Generator().manual_seed(1)
    for split, size in SIZES.items():
        for name in (f"{split}.en-de.en", f"{split}.en-de.de", f"text/{split}"):
            lines = [joined_sentences(dictionary, generator) for _ in range(size)]
            binarise(folder / name, lines)
    return SimpleNamespace(path=str(folder), text=str(folder / "text"), dictionary=dictionary)


@pytest.fixture(scope="session")
def checkpoint(corpus, tmp_path_factory):
    """A function that saves a model with strong position parameters and returns NAME=PATH."""
    folder = tmp_path_factory.mktemp("checkpoints")

    def save(encoding, *more, seed, bert):
        arguments = [corpus.text if bert else corpus.path, *(TINY_BERT if bert else TINY)]
        arguments += ["--position-encoding", encoding, *map(str, more)]
        cfg = parsed(arguments)
        torch.manual_seed(seed)
        task = tasks.setup_task(cfg.task)
        model = task.build_model(cfg.model)
        for key, parameter in model.named_parameters():
            if "embed_positions" in key or "segments" in key:
                parameter.data += STRONG * torch.randn(parameter.shape)
        path = folder / f"{len(list(folder.iterdir()))}.pt"
        plain = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)
        torch.save(checkpoint_of(plain, model.state_dict()), path)
        return str(path)

    paths = {}

    def named(encoding, *more, name=None, seed=1, bert=False):
        key = (encoding, *more, seed, bert)
        if key not in paths:
            paths[key] = save(encoding, *more, seed=seed, bert=bert)
        return f"{name or encoding}={paths[key]}"

    return named


@pytest.fixture
def trained(corpus, checkpoint):
    """A function that saves a model, loads it again and returns it as the analyses see it."""
    from fairseq_posenc.tools.analyses.models import load_models

    def trained(encoding, *more, **others):
        data = corpus.text if others.get("bert") else corpus.path
        return next(load_models([checkpoint(encoding, *more, **others)], data, cpu=True))

    return trained

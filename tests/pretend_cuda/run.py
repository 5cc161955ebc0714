"""Run every encoding on the pretended GPU, and write what was counted: run.py GUARD OUTPUT.json"""

import contextlib
import json
import sys
from argparse import Namespace
from types import SimpleNamespace

import pretend
import torch
from fairseq.data import Dictionary
from fairseq.models.roberta.model import RobertaModel
from fairseq.models.roberta.model import base_architecture as bert_architecture
from fairseq.models.transformer import TransformerModel, tiny_architecture
from fairseq.sequence_generator import SequenceGenerator

from fairseq_posenc.encodings import names
from fairseq_posenc.models.bert import PosencBertModel
from fairseq_posenc.models.transformer import PosencTransformerModel

STOCK = "stock"
LAYERS, CHANNELS, HEADS, BATCH = 2, 16, 2, 3
SOURCE, TARGET = 11, 9
GPU = pretend.Gpu()
# From name to the parameters' type, and to autocast's.
PRECISIONS = {
    "float32": (torch.float32, None),
    "float16": (torch.float16, None),
    "bfloat16": (torch.bfloat16, None),
    "amp": (torch.float32, torch.float16),
}
DICTIONARY = Dictionary()
for word in range(46):
    DICTIONARY.add_symbol(f"w{word}")
TASK = SimpleNamespace(
    source_dictionary=DICTIONARY, target_dictionary=DICTIONARY, max_positions=lambda: 64
)


def build(kind, name, dropout):
    """Build a model of a kind, ``translation`` or ``bert``; the name is an encoding's or STOCK."""
    args = Namespace(dropout=dropout, attention_dropout=dropout, max_positions=64)
    for side in ("encoder", "decoder"):
        sizes = {
            "embed_dim": CHANNELS,
            "ffn_embed_dim": 32,
            "layers": LAYERS,
            "attention_heads": HEADS,
        }
        vars(args).update({f"{side}_{size}": value for size, value in sizes.items()})
    args.max_source_positions = args.max_target_positions = 64
    if name != STOCK:
        args.position_encoding = name
    torch.manual_seed(1)
    if kind == "translation":
        tiny_architecture(args)
        model = TransformerModel if name == STOCK else PosencTransformerModel
    else:
        bert_architecture(args)
        args.position_segments = "per_head"
        model = RobertaModel if name == STOCK else PosencBertModel
    return model.build_model(args, TASK)


def tokens(padding, length):
    """Random sentences; all but the first are padded on a side, or none."""
    found = torch.randint(4, 50, (BATCH, length), generator=torch.Generator().manual_seed(length))
    for row in (1, 2):
        places = {"left": slice(row), "right": slice(length - row, None), "none": slice(0)}
        found[row, places[padding]] = DICTIONARY.pad()
    return found


def forward(model, kind, name, padding, device):
    """Return the scores of a batch."""
    source = tokens(padding, SOURCE).to(device)
    if kind == "translation":
        side = "none" if padding == "none" else "right"
        return model(source, None, tokens(side, TARGET).to(device))[0]
    segments = torch.arange(SOURCE).gt(5).long().expand(BATCH, SOURCE).contiguous().to(device)
    return model(source, **({} if name == STOCK else {"segments": segments}))[0]


@contextlib.contextmanager
def precision(name, device):
    """Autocast, if the precision is that of ``--amp``."""
    autocast = PRECISIONS[name][1]
    if autocast is None or device == "cpu":
        yield
    else:
        with torch.autocast("cuda", autocast):
            yield


def gradients(model):
    return {n: x.grad for n, x in model.named_parameters() if x.grad is not None}


def counted():
    """Return what the GPU counted, ready for JSON."""
    return {
        name: [[key, number] for key, number in getattr(GPU, name).items()]
        for name in ("syncs", "copies", "mixed", "attention", "float32")
    } | {"operations": GPU.operations}


def step(kind, name, kept, padding, train=True, dropout=0.0):
    """Count a training step, or a forward pass alone; with the gradients' distance from the CPU's.

    Args:
        kept: precision of the model, see PRECISIONS.
    """
    model = build(kind, name, dropout).train(train)
    expected = {}
    if train and not dropout and kept == "float32":
        forward(model, kind, name, padding, "cpu").float().square().mean().backward()
        expected = {n: x.clone() for n, x in gradients(model).items()}
        model.zero_grad(set_to_none=True)
    model = model.to(PRECISIONS[kept][0])
    with GPU:
        pretend.onto_gpu(model)
        GPU.reset()
        with precision(kept, "cuda"):
            output = forward(model, kind, name, padding, "cuda")
        GPU.copies.clear()  # the batch itself
        if train:
            output.float().square().mean().backward()
        found = counted()
    found["finite"] = bool(output.held.isfinite().all())
    theirs = {n: x.held.float() for n, x in gradients(model).items()}
    if expected:
        assert expected.keys() == theirs.keys()
        found["error"] = max(
            ((theirs[n] - x).norm() / (x.norm() + 1e-6)).item() for n, x in expected.items()
        )
    return found


def generation(name, kept, steps, beam=3):
    """Count a beam search of some steps."""
    model = build("translation", name, 0.0).to(PRECISIONS[kept][0]).eval()
    generator = SequenceGenerator(
        [model], DICTIONARY, beam_size=beam, max_len_a=0, max_len_b=steps, min_len=steps - 1
    )
    with GPU:
        pretend.onto_gpu(model)
        source = tokens("left", SOURCE).to("cuda")
        net_input = {"src_tokens": source, "src_lengths": source.ne(DICTIONARY.pad()).sum(1)}
        GPU.reset()
        with precision(kept, "cuda"):
            generator.generate([model], {"net_input": net_input, "id": torch.arange(BATCH)})
        return counted()


def main():
    found = {}
    wanted = sys.argv[3].split(",") if len(sys.argv) > 3 else [STOCK, *names()]
    for name in wanted:
        for padding in ("none", "left", "right"):
            found[f"translation {name} float32 {padding}"] = step(
                "translation", name, "float32", padding
            )
        for kept in ("float16", "bfloat16", "amp"):
            found[f"translation {name} {kept} left"] = step(
                "translation", name, kept, "left", dropout=0.1
            )
        found[f"translation {name} float16 left evaluation"] = step(
            "translation", name, "float16", "left", False
        )
        for padding in ("none", "right"):
            found[f"bert {name} float32 {padding}"] = step("bert", name, "float32", padding)
        found[f"bert {name} amp right"] = step("bert", name, "amp", "right", dropout=0.1)
        for steps in (4, 8):
            found[f"generation {name} float16 {steps}"] = generation(name, "float16", steps)
        print(name, flush=True)
    with open(sys.argv[2], "w") as file:
        json.dump(found, file, default=str)


main()

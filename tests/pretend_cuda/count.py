"""Count what every encoding asks of a GPU, on a pretended one: count.py [OUTPUT.json].

Prints the table of docs/speed.md; the file gets all counts, for the tests.
"""

import contextlib
import json
import logging
import sys
import warnings
from collections import defaultdict
from types import SimpleNamespace

import pretend
import torch
from fairseq.sequence_generator import SequenceGenerator

from fairseq_posenc.encodings import names
from tests.tiny import build_model, dictionary_of

STOCK = "stock"
HEADS, BATCH, SOURCE, TARGET = 2, 3, 11, 9
GPU = pretend.Gpu()
# From name to the parameters' type, and to autocast's.
PRECISIONS = {
    "float32": (torch.float32, None),
    "float16": (torch.float16, None),
    "bfloat16": (torch.bfloat16, None),
    "amp": (torch.float32, torch.float16),
}
DICTIONARY = dictionary_of(46)
PAD = DICTIONARY.pad()
TASK = SimpleNamespace(
    source_dictionary=DICTIONARY, target_dictionary=DICTIONARY, max_positions=lambda: 512
)


def build(kind, name, dropout=0.0):
    """Build a model of a kind, ``translation`` or ``bert``; the name is an encoding's or STOCK."""
    sizes = {"embed_dim": 16, "ffn_embed_dim": 32, "layers": 2, "attention_heads": HEADS}
    options = {f"{s}_{name}": n for s in ("encoder", "decoder") for name, n in sizes.items()}
    for limit in ("max_positions", "max_source_positions", "max_target_positions"):
        options[limit] = 512
    options.update(position_encoding=name, dropout=dropout, attention_dropout=dropout)
    if kind == "bert":
        options["position_segments"] = "per_head"
    kind = kind.replace("translation", "transformer")
    return build_model(kind, TASK, stock=name == STOCK, **options)


def tokens(padding, length):
    """Random sentences; all but the first are padded on a side, or none."""
    found = torch.randint(4, 50, (BATCH, length), generator=torch.Generator().manual_seed(length))
    for row in (1, 2):
        places = {"left": slice(row), "right": slice(length - row, None), "none": slice(0)}
        found[row, places[padding]] = PAD
    return found


def batch(kind, name, padding, device):
    """Return the arguments of a model."""
    found = {"src_tokens": tokens(padding, SOURCE)}
    if kind == "translation":
        side = "none" if padding == "none" else "right"
        found.update(src_lengths=None, prev_output_tokens=tokens(side, TARGET))
    elif name != STOCK:
        found["segments"] = torch.arange(SOURCE).gt(5).long().repeat(BATCH, 1)
    return {key: x if x is None else x.to(device) for key, x in found.items()}


def run(model, inputs, train=True):
    """Return scores and, in training, the gradients of an arbitrary loss."""
    torch.manual_seed(1)
    output = model(**inputs)[0]
    if not train:
        return output, {}
    output.float().square().mean().backward()
    return output, {n: x.grad for n, x in model.named_parameters() if x.grad is not None}


@contextlib.contextmanager
def on_gpu(model, precision):
    """Move a model to the GPU and count, in a precision."""
    dtype, autocast = PRECISIONS[precision]
    with GPU:
        pretend.onto_gpu(model.to(dtype))
        with torch.autocast("cuda", autocast, enabled=autocast is not None):
            yield


def counts():
    """Return what was counted, ready for JSON."""
    kinds = ("syncs", "copies", "mixed", "attention", "made")
    found = {kind: [[*key, number] for key, number in getattr(GPU, kind).items()] for kind in kinds}
    return {**found, "operations": GPU.operations}


def step(kind, name, precision, padding, train=True, dropout=0.0):
    """Count a training step or, without ``train``, a forward pass.

    In float32 without dropout, ``error`` is the distance of the gradients from the CPU's.
    """
    model, expected = build(kind, name, dropout).train(train), {}
    if train and not dropout and precision == "float32":
        _, expected = run(model, batch(kind, name, padding, "cpu"))
        model.zero_grad(set_to_none=True)
    with on_gpu(model, precision):
        inputs = batch(kind, name, padding, "cuda")
        GPU.reset()
        output, found = run(model, inputs, train)
    result = {**counts(), "finite": bool(output.held.isfinite().all())}
    if expected:
        assert expected.keys() == found.keys()
        largest = max(x.norm() for x in expected.values())
        distances = [(found[n].held - x).norm() / largest for n, x in expected.items()]
        result["error"] = max(distances).item()
    return result


def generation(name, steps, beam=3):
    """Count a beam search of some steps in half precision."""
    model = build("translation", name).eval()
    sizes = {"max_len_a": 0, "max_len_b": steps, "min_len": steps}
    generator = SequenceGenerator([model], DICTIONARY, beam_size=beam, **sizes)
    with on_gpu(model, "float16"):
        source = tokens("left", SOURCE).to("cuda")
        net_input = {"src_tokens": source, "src_lengths": source.ne(PAD).sum(1)}
        GPU.reset()
        generator.generate([model], {"net_input": net_input, "id": torch.arange(BATCH)})
    return counts()


def count(name):
    """Return all counts of an encoding, by case."""
    found = {}
    for padding in ("none", "left"):
        found[f"translation float32 {padding}"] = step("translation", name, "float32", padding)
    for precision in ("bfloat16", "amp"):
        for kind, padding in (("translation", "left"), ("bert", "right")):
            case = step(kind, name, precision, padding, dropout=0.1)
            found[f"{kind} {precision} {padding}"] = case
    for padding in ("none", "right"):
        found[f"bert float32 {padding}"] = step("bert", name, "float32", padding)
    found["evaluation float16 left"] = step("translation", name, "float16", "left", train=False)
    for steps in (4, 8):
        found[f"generation {steps}"] = generation(name, steps)
    return found


def waits(case):
    """Return how often the host waited for the model, beam search apart."""
    return sum(n for _, line, n in case["syncs"] if "sequence_generator" not in line)


def masks(case, length):
    """Return the masks of the calls of torch's attention whose queries have a length."""
    names = {1: "1", BATCH: "B", HEADS: "H", SOURCE: "T", TARGET: "T"}
    found = set()
    for queries, mask, causal, _, _ in case["attention"]:
        if queries[2] == length:
            words = [names[size] for size in mask or []]
            found.add("·".join(words) or ("causal" if causal else "none"))
    # the decoder's attention to the source has as many queries, and a mask like the encoder's
    return sorted(found - ({"none", "B·1·1·T"} if length == TARGET else set())) or ["not torch's"]


def row(case, stock):
    """Return the cells of an encoding's row in the table."""
    cells = [f"{waits(case['translation amp left'])}"]
    cells += [f"{(waits(case['generation 8']) - waits(case['generation 4'])) / 4:g}"]
    for name, length in (
        ("translation float32 none", SOURCE),
        ("translation float32 left", SOURCE),
        ("translation float32 left", TARGET),
        ("bert float32 right", SOURCE),
    ):
        cells.append(" or ".join(masks(case[name], length)))
    operations, stocks = (x["translation amp left"]["operations"] for x in (case, stock))
    cells.append(f"{operations / stocks:.2f}")
    operations, stocks = (
        x["generation 8"]["operations"] - x["generation 4"]["operations"] for x in (case, stock)
    )
    return [*cells, f"{operations / stocks:.2f}"]


def main():
    """Count, write and print."""
    logging.disable(logging.INFO)
    warnings.simplefilter("ignore")
    found = {name: json.loads(json.dumps(count(name), default=str)) for name in [STOCK, *names()]}
    if sys.argv[1:]:
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            json.dump(found, file)
    print(
        "| | waits: training | step of generation | mask: encoder | padded | decoder | "
        "BERT, segments, padded | operations: training | step of generation |"
    )
    print("|---|" + "---:|" * 8)
    # those of equal waits and masks share a row; its operations are from the fewest to the most
    rows = defaultdict(dict)
    for name, case in found.items():
        *equal, training, step = row(case, found[STOCK])
        rows[tuple(equal)][name] = training, step
    for equal, several in rows.items():
        ranges = ["-".join(sorted({min(x), max(x)})) for x in zip(*several.values())]
        print(f"| {', '.join(several)} | {' | '.join([*equal, *ranges])} |")


if __name__ == "__main__":
    main()
